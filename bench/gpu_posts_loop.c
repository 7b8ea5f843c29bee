/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled with and without HA_GPU_PROTECTED; POSTS is the function's name. */
#include "bench/gpu_posts.h"

#include "base/clock.h"
#include "gpu/device/hawser_gpu.h"

#include <stdlib.h>

/* Alone, the time of this thread: what others do with its processor meanwhile is not in it. */
static uint64_t read_clock(const struct posts *p)
{
	return (uint64_t)ha_kernel_clock_ns(p->nic ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

/* What a NIC does that takes no time: the last entry that was rung is acknowledged. */
static void acknowledge_last(struct ha_gpu_conn *c)
{
	struct ha_gpu_path *p = &c->path[0];
	uint16_t last = (uint16_t)(ha_gpu_be32(p->dbrec[HA_GPU_DBR_SEND]) - 1);

	ha_gpu_store((uint64_t *)(p->cqe + HA_GPU_CQE_QPN),
		     (uint64_t)(last >> 8) << 32 | (uint64_t)(last & 0xff) << 40);
	ha_gpu_poll(c);
}

static __attribute__((noinline)) void post_put(const struct posts *p, unsigned how)
{
	if (ha_gpu_put_nbi(p->conn, p->to, p->from, p->bytes, how, HA_GPU_FOREVER) != HA_GPU_DONE)
		abort();
}

uint64_t POSTS(const struct posts *p)
{
	struct ha_gpu_conn *c = p->conn;
	uint64_t start = read_clock(p), half = c->nwqes / 2, i = 0;

	while (i < p->n) {
		for (uint64_t end = i + half; i < end && i < p->n; i++)
			post_put(p,
				 i % p->batch == p->batch - 1 || i + 1 == p->n ? 0 : HA_GPU_LATER);
		if (!p->nic) {
			ha_gpu_ring(c);
			acknowledge_last(c);
		}
	}
	while (ha_gpu_index_of(ha_gpu_poll(c)) != ha_gpu_load(&c->ready))
		ha_gpu_pause();
	return read_clock(p) - start;
}
