/* SPDX-License-Identifier: BSD-3-Clause */
/* icrc.c - the invariant CRC; see icrc.h */
#include "softroce/icrc.h"
#include <endian.h>
#include <isa-l/crc.h>
#include <netinet/in.h>
#include <string.h>

#define LRH_LEN 8u
#define IP4_LEN 20u
#define IP6_LEN 40u
#define UDP_LEN 8u
#define BTH_CONGESTION 4 /* offset of the byte in a BTH */
#define POLY 0xedb88320u /* CRC-32 with its bits reflected: bit 31 is x^0 */

#ifdef __x86_64__
/* isa-l's widest variant leaves the upper halves of the vector registers dirty, and every SSE
 * instruction behind it then waits until the CRC is there: a fifth of the time that a packet
 * takes. */
__attribute__((target("avx"))) static void vectors_clean(void)
{
	__builtin_ia32_vzeroupper();
}

static uint32_t crc32_wide(uint32_t crc, const void *data, size_t len)
{
	crc = crc32_gzip_refl(crc, data, len);
	if (__builtin_cpu_supports("avx"))
		vectors_clean();
	return crc;
}
#else
#define crc32_wide crc32_gzip_refl
#endif

/* isa-l inverts on entry and exit, as zlib does, so a running value is also a final one. */
static uint32_t crc32_more(uint32_t crc, const void *data, size_t len)
{
	return len ? crc32_wide(crc, data, len) : crc;
}

static bool is_ip4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

static void put_be16(uint8_t *at, uint16_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static size_t put_ip4(uint8_t *at, const struct sr_path *path, uint16_t udp_len, uint16_t ipid)
{
	memset(at, 0xff, IP4_LEN);
	at[0] = 0x45; /* version 4, five words; then masked type of service */
	put_be16(at + 2, (uint16_t)(IP4_LEN + udp_len));
	put_be16(at + 4, ipid);
	put_be16(at + 6, 0x4000); /* don't fragment; time to live is masked */
	at[9] = IPPROTO_UDP;      /* protocol; the checksum is masked */
	memcpy(at + 12, path->src + 12, 4);
	memcpy(at + 16, path->dst + 12, 4);
	return IP4_LEN;
}

static size_t put_ip6(uint8_t *at, const struct sr_path *path, uint16_t udp_len)
{
	memset(at, 0xff, 8);
	at[0] = 0x6f; /* version 6, masked traffic class and flow label */
	put_be16(at + 4, udp_len);
	at[6] = IPPROTO_UDP; /* then masked hop limit */
	memcpy(at + 8, path->src, 16);
	memcpy(at + 24, path->dst, 16);
	return IP6_LEN;
}

uint32_t sr_icrc_begin(const struct sr_path *path, uint16_t dport, uint16_t udp_len, uint16_t ipid,
		       const void *hdr, uint32_t hdr_len)
{
	uint8_t first[LRH_LEN + IP6_LEN + UDP_LEN + SR_HDR_MAX];
	uint32_t copied = hdr_len < SR_HDR_MAX ? hdr_len : SR_HDR_MAX, crc;
	uint8_t *at = first + LRH_LEN;

	memset(first, 0xff, LRH_LEN);
	at += is_ip4(path->dst) ? put_ip4(at, path, udp_len, ipid) : put_ip6(at, path, udp_len);
	put_be16(at, path->sport);
	put_be16(at + 2, dport);
	put_be16(at + 4, udp_len);
	put_be16(at + 6, 0xffff);
	at += UDP_LEN;
	memcpy(at, hdr, copied);
	at[BTH_CONGESTION] = 0xff;
	crc = crc32_more(0, first, (size_t)(at + copied - first));
	return crc32_more(crc, (const uint8_t *)hdr + copied, hdr_len - copied);
}

uint32_t sr_icrc_update(uint32_t crc, const void *data, size_t len)
{
	return crc32_more(crc, data, len);
}

uint32_t sr_icrc_updatev(uint32_t crc, const struct iovec *iov, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		crc = crc32_more(crc, iov[i].iov_base, iov[i].iov_len);
	return crc;
}

/* a * b modulo the CRC's polynomial; bit 31 is x^0. */
static uint32_t multiply_mod(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a & 0x80000000u)
			product ^= b;
		b = b & 1 ? b >> 1 ^ POLY : b >> 1;
	}
	return product;
}

/* Bytes behind the identification, over which its influence is shifted: the rest of the IP header
 * (six bytes of it are up to and with the identification), and UDP up to the ICRC. */
static uint32_t bytes_behind(uint16_t udp_len)
{
	return IP4_LEN - 6 + udp_len - SR_ICRC_LEN;
}

/*
 * x^(8 * bytes), or with `inverse` x^(-8 * bytes): squares of the two bases, by the bits of the
 * exponent.
 */
static uint32_t power_of_x(uint32_t bytes, bool inverse)
{
	uint32_t base = inverse ? 0 : 0x00800000u; /* x^8 */
	uint32_t result = 0x80000000u;             /* 1 */

	if (inverse) {
		/* x^-1 shifts the other way: x^0 + POLY without its x^0 term, divided by x. */
		uint32_t one = 0x80000000u;

		for (int i = 0; i < 8; i++)
			one = one & 0x80000000u ? (one ^ POLY) << 1 | 1 : one << 1;
		base = one;
	}
	for (; bytes; bytes >>= 1) {
		if (bytes & 1)
			result = multiply_mod(result, base);
		base = multiply_mod(base, base);
	}
	return result;
}

/* What a two-byte difference contributes to the CRC register right behind it. */
static uint32_t two_bytes(uint16_t flip)
{
	/* first byte is the lower */
	uint32_t crc = (uint32_t)(uint8_t)(flip >> 8) | (uint32_t)(flip & 0xff) << 8;

	for (int i = 0; i < 16; i++)
		crc = crc & 1 ? crc >> 1 ^ POLY : crc >> 1;
	return crc;
}

uint32_t sr_icrc_change_ipid(uint32_t icrc, uint16_t udp_len, uint16_t flip)
{
	return icrc ^ multiply_mod(two_bytes(flip), power_of_x(bytes_behind(udp_len), false));
}

bool sr_icrc_matches_any_ipid(uint32_t computed, uint32_t received, uint16_t udp_len)
{
	uint32_t diff = computed ^ received;

	if (!diff)
		return true;
	/*
	 * Back through everything behind the identification, then through its own two bytes: only
	 * those may be set.
	 */
	diff = multiply_mod(diff, power_of_x(bytes_behind(udp_len) + 2, true));
	return diff <= 0xffff;
}
