/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_posts.h - the loop that posts, of one source compiled once for each variant
 * (gpu_posts_loop.c), and who calls it (gpu_posts.c)
 */
#ifndef HA_BENCH_GPU_POSTS_H
#define HA_BENCH_GPU_POSTS_H

#include "gpu/device/conn.h"

struct posts {
	struct ha_gpu_conn *conn;
	const uint8_t *from;
	uint64_t to;    /* at the peer */
	uint64_t n;     /* puts */
	unsigned bytes; /* of each */
	unsigned batch; /* puts that share a doorbell */
	/*
	 * false: nobody runs the NIC, everything rung counts as acknowledged when the ring is half
	 * full
	 */
	bool nic;
};

/* Posts all of it and waits until it is acknowledged; nanoseconds. */
uint64_t posts_protected(const struct posts *p);
uint64_t posts_plain(const struct posts *p);
/* the same source with the same flags elsewhere in memory: what an address is worth */
uint64_t posts_plain_again(const struct posts *p);

#endif
