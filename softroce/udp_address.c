/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/udp_wire.h"

#include <arpa/inet.h>
#include <string.h>

socklen_t sr_udp_address(const struct sr_socket *from, const uint8_t gid[16], union sr_address *out)
{
	memset(out, 0, sizeof(*out));
	if (sr_gid_ipv4(gid)) {
		out->in.sin_family = AF_INET;
		out->in.sin_port = htons(SR_UDP_PORT);
		out->in.sin_addr.s_addr = htonl(sr_gid_ipv4(gid));
		return sizeof(out->in);
	}
	out->in6.sin6_family = AF_INET6;
	out->in6.sin6_port = htons(SR_UDP_PORT);
	memcpy(&out->in6.sin6_addr, gid, 16);
	if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80)
		out->in6.sin6_scope_id = from->ifindex;
	return sizeof(out->in6);
}
