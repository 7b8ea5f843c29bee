/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_RUN_H
#define HAWSER_TOOL_NCCL_RUN_H

#include <stdint.h>

#include "tools/job/figures.h"
#include "tools/job/payload.h"
#include "tools/nccl/gpus.h"
#include "tools/nccl/operation.h"

struct nccl_bench;

/*
 * run - one operation at one size: asking NCCL for it, filling its buffers, comparing what came out
 */
struct nccl_run {
	struct nccl_bench *bench;
	const struct ha_datatype *type;
	enum ha_redop redop;
	size_t block;
	enum ha_placement placement;
	int side;
};

/* The call of one GPU: its extent and, by placement, where its data lies. */
struct nccl_call nccl_run_call(const struct nccl_run *run, const struct nccl_gpu *gpu);

/* Bytes of one GPU. */
size_t nccl_run_send_bytes(const struct nccl_run *run);
size_t nccl_run_recv_bytes(const struct nccl_run *run);

struct ha_payload nccl_run_payload(const struct nccl_run *run, uint64_t seed);

/*
 * All of them return 0 or a negative errno with the fault recorded. Those that wait must be called
 * between ha_watch_enter and ha_watch_leave, but for verified, which does that itself.
 */

/*
 * Asks for one iteration on all GPUs' streams; `send`: instead of the GPUs' own buffers, one for
 * each, or NULL.
 */
int nccl_run_start(const struct nccl_run *run, const struct nccl_buffers *send);

/* Every GPU's buffers poisoned, then what it contributes. */
int nccl_run_fill(const struct nccl_run *run, uint64_t seed);

/*
 * An iteration from fresh data and poisoned buffers, compared element by element. *elapsed_ns may
 * be NULL. Collective.
 */
int nccl_run_verified(const struct nccl_run *run, uint64_t seed, struct ha_tally *tally,
		      uint64_t *elapsed_ns);

#endif
