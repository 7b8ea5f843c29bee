/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC against vectors made with another CRC from whole packets, and its arithmetic on
 * the IP identification. */
#include "base/rng.h"
#include "softroce/icrc.h"
#include "tests/softroce/engine_pair.h"
#include <arpa/inet.h>
#include <string.h>

struct vector {
	const char *src, *dst;
	uint8_t tclass, ttl;
	uint16_t sport, ipid;
	uint32_t len;
	uint8_t seed;
	uint32_t icrc;
};
#include "icrc_vectors.h"

static void to_gid(const char *text, uint8_t gid[16])
{
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	CHECK_INT(inet_pton(AF_INET, text, gid + 12), 1);
}

static void check_vector(const struct vector *v)
{
	struct sr_path path = { .tclass = v->tclass, .ttl = v->ttl, .sport = v->sport };
	uint16_t udp_len = (uint16_t)(8 + v->len + SR_ICRC_LEN);
	uint8_t packet[5000];
	struct iovec iov[3];
	uint32_t crc;

	to_gid(v->src, path.src);
	to_gid(v->dst, path.dst);
	for (uint32_t i = 0; i < v->len; i++)
		packet[i] = (uint8_t)(i * 37 + v->seed);
	crc = sr_icrc_begin(&path, SR_UDP_PORT, udp_len, v->ipid, packet, 12);
	CHECK_INT(sr_icrc_end(sr_icrc_update(crc, packet + 12, v->len - 12)), v->icrc);
	/* In one piece, and in three. */
	CHECK_INT(sr_icrc_end(sr_icrc_begin(&path, SR_UDP_PORT, udp_len, v->ipid, packet, v->len)),
		  v->icrc);
	iov[0] = (struct iovec) { packet + 12, (v->len - 12) / 3 };
	iov[1] = (struct iovec) { packet + 12 + iov[0].iov_len, 0 };
	iov[2] = (struct iovec) { packet + 12 + iov[0].iov_len, v->len - 12 - iov[0].iov_len };
	CHECK_INT(sr_icrc_end(sr_icrc_updatev(crc, iov, 3)), v->icrc);
	/* Congestion bits may be set on the way. */
	packet[4] ^= 0xc0;
	crc = sr_icrc_begin(&path, SR_UDP_PORT, udp_len, v->ipid, packet, 12);
	CHECK_INT(sr_icrc_end(sr_icrc_update(crc, packet + 12, v->len - 12)), v->icrc);
	packet[5] ^= 1;
	crc = sr_icrc_begin(&path, SR_UDP_PORT, udp_len, v->ipid, packet, 12);
	CHECK(sr_icrc_end(sr_icrc_update(crc, packet + 12, v->len - 12)) != v->icrc);
}

static void any_ipid_matches(void)
{
	struct sr_path path = { .sport = 0xc001 };
	struct sr_rng rng = { 5 };
	uint8_t packet[4200];
	unsigned passed = 0;

	to_gid("10.0.0.1", path.src);
	to_gid("10.0.0.2", path.dst);
	for (unsigned i = 0; i < sizeof(packet); i++)
		packet[i] = (uint8_t)sr_rng_next(&rng);
	for (int i = 0; i < 3000; i++) {
		uint32_t len = 12 + 4 * (uint32_t)sr_rng_below(&rng, 1030);
		uint16_t id = (uint16_t)sr_rng_next(&rng),
			 udp_len = (uint16_t)(8 + len + SR_ICRC_LEN);
		uint32_t zero = sr_icrc_begin(&path, SR_UDP_PORT, udp_len, 0, packet, len);
		uint32_t with = sr_icrc_begin(&path, SR_UDP_PORT, udp_len, id, packet, len);

		CHECK_INT(sr_icrc_change_ipid(zero, udp_len, id), with);
		CHECK_INT(sr_icrc_change_ipid(with, udp_len, id), zero);
		CHECK(sr_icrc_matches_any_ipid(zero, with, udp_len));
		/* A wrong bit anywhere is not an identification, except with a chance of 2^-16. */
		packet[13 % len] ^= (uint8_t)(1u << (i % 8));
		passed += sr_icrc_matches_any_ipid(
			sr_icrc_begin(&path, SR_UDP_PORT, udp_len, 0, packet, len), with, udp_len);
		passed += sr_icrc_matches_any_ipid(zero, (uint32_t)sr_rng_next(&rng), udp_len);
	}
	CHECK(passed <= 3);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		check_vector(&vectors[i]);
	any_ipid_matches();
	return 0;
}
