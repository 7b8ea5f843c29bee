/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.h - the send queue as redo log: what was posted since `tail` goes onto another path
 *
 * Indices stay what they are; base, hardware index, queue pair number, keys and signal slots become
 * the other path's. Up to the last entry whose signal the peer has, writes have landed and must not
 * land again (their memory may be in use): they become NOPs. Reads among them are repeated unless
 * an entry that waited for them has landed.
 */
#ifndef HA_GPU_FAILOVER_REPLAY_H
#define HA_GPU_FAILOVER_REPLAY_H

#include "gpu/device/hawser_gpu.h"

struct ha_gpu_replay {
	struct ha_gpu_conn *conn;
	const struct ha_gpu_wqe *log; /* as it was posted on `from`: entry i at i mod nwqes */
	const struct ha_gpu_path *from, *to;
	uint64_t first, end; /* entries of the log */
	uint64_t landed;     /* entries below it are at the peer */
	uint64_t posted, skipped;
};

/*
 * The end of what the peer has, by the signals it reports for the path; r->first when there is
 * none.
 */
uint64_t ha_gpu_replay_landed(const struct ha_gpu_replay *r, const uint64_t slot[HA_GPU_SIGNALS]);
/* Puts the log into the other path's queue, whose base is set. */
void ha_gpu_replay_copy(struct ha_gpu_replay *r);

#endif
