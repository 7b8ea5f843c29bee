/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icrc.h - the invariant CRC of a RoCEv2 packet (IBTA vol. 1, 7.8.1 and annex A17.3.3)
 *
 * CRC-32 of Ethernet over: 8 bytes of ones (a local route header that is not there), the IP header,
 * the UDP header, BTH to pad. Fields that routers may change count as ones: type of service, time
 * to live and header checksum of IPv4; traffic class, flow label and hop limit of IPv6; the UDP
 * checksum; the BTH's congestion byte. The four bytes go on the wire in little-endian order, as
 * zlib's crc32() would be stored on a PC.
 *
 * crc = sr_icrc_begin(path, dport, udp_len, ipid, hdr, hdr_len);
 * crc = sr_icrc_update(crc, payload, len);   (as often as needed; the pad bytes too)
 * store32le(sr_icrc_end(crc));
 *
 * The IPv4 identification is part of it, and a program behind a UDP socket neither chooses nor sees
 * it. Sending with
 * "don't fragment", Linux puts 0 on a datagram of an unconnected socket and 0, 1, 2, ... on the
 * segments it cuts from one buffer (UDP_SEGMENT). For receiving, sr_icrc_matches_any_ipid() accepts
 * what some identification explains.
 */
#ifndef SOFTROCE_ICRC_H
#define SOFTROCE_ICRC_H

#include "softroce/engine/engine.h"

#define SR_ICRC_LEN 4u

/*
 * dport in host order (SR_UDP_PORT); udp_len: UDP header, packet from BTH to pad, ICRC. path->src
 * is the packet's source address and path->sport its source port; ipid counts for IPv4 only. hdr
 * starts with a BTH, of at least 12 bytes, whose congestion byte is taken as ones; what follows may
 * stand behind it or be added later. Everything in one pass: a short CRC costs as much as a long
 * one.
 */
uint32_t sr_icrc_begin(const struct sr_path *path, uint16_t dport, uint16_t udp_len, uint16_t ipid,
		       const void *hdr, uint32_t hdr_len);
uint32_t sr_icrc_update(uint32_t crc, const void *data, size_t len);
uint32_t sr_icrc_updatev(uint32_t crc, const struct iovec *iov, unsigned n);
static inline uint32_t sr_icrc_end(uint32_t crc)
{
	return crc;
}

/* The ICRC after the identification was changed by XOR with `flip`, without reading the packet
 * again: a CRC is linear. */
uint32_t sr_icrc_change_ipid(uint32_t icrc, uint16_t udp_len, uint16_t flip);
/*
 * Whether `received` is right under some IPv4 identification, when `computed` is the ICRC under
 * ipid 0. Of 2^32 wrong values 2^16 pass; UDP's own checksum or the NIC's has looked at the packet
 * before.
 */
bool sr_icrc_matches_any_ipid(uint32_t computed, uint32_t received, uint16_t udp_len);

#endif
