/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moe.h - tokens to experts and back (mixture of experts), after DeepEP's low-latency kernels:
 * shapes, memory, words
 *
 * Rank r owns the experts r * local ... r * local + local - 1. One launch number n stands for one
 * dispatch and one combine, at all ranks the same. Launches take turns on two areas of each rank's
 * heap, n mod 2, which are laid out alike at all ranks:
 *
 *   stage     [tokens_max]                  messages: what this rank sends, once per token
 *                                           whatever its top-k
 *   arrived   [local][ranks][tokens_max]    messages, put there by the ranks, packed from 0 per
 *                                           expert and rank
 *   outputs   [local][ranks x tokens_max]   rows: what the experts made of their tokens, in the
 *                                           order of `packed`
 *   returned  [experts][tokens_max]         rows, put there by the experts' ranks, by the token's
 *                                           number
 *
 * A message is 16 bytes (the token's number at its source; zeros) and the token. A row is `hidden`
 * bf16.
 *
 * Whose memory when (docs/gpu.md): what A puts into B's `arrived` and `returned` is A's until B has
 * seen the signal behind it: the count of an expert's tokens, or an expert's "all returned".
 * `stage` and `outputs` are free again when the receiver has answered that signal: an expert's
 * "all returned" answers its count, and the next dispatch but one answers "all returned". Therefore
 * a dispatch may begin when the combine before the last is done (ha_moe_may_dispatch), and nothing
 * needs quiet(), a barrier, or counters that are cleaned.
 */
#ifndef HA_GPU_EXAMPLE_MOE_H
#define HA_GPU_EXAMPLE_MOE_H

#include "gpu/device/hawser_gpu.h"
#include "gpu/device/world.h"

#define HA_MOE_BATCH 4 /* messages per doorbell */
#define HA_MOE_TOPK_MAX 16
#define HA_MOE_HEADER 16  /* bytes before the token in a message */
#define HA_MOE_ALIGN 128  /* bytes; messages and rows begin at multiples */
#define HA_MOE_SCALED 128 /* FP8: elements per scale */
#define HA_MOE_KINDS 4    /* signals of an expert: dispatch and combine, on either area */
#define HA_MOE_LOCAL_PER_ROW 15
#define HA_MOE_SIGNAL_ABORT 61 /* "one of us has no path to a peer left" */

enum ha_moe_phase { HA_MOE_SEND = 1, HA_MOE_RECEIVE = 2, HA_MOE_BOTH = 3 };

enum ha_moe_format {
	HA_MOE_BF16, /* hidden x 2 bytes */
	HA_MOE_FP8   /* hidden bytes of E4M3, then a float per 128 of them */
};

/* The same at all ranks. */
struct ha_moe_shape {
	/* experts: a multiple of ranks; tokens_max: of one rank in one launch */
	uint32_t ranks, experts, tokens_max, topk;
	/* hidden: a multiple of 8, of 512 for FP8; enum ha_moe_format */
	uint32_t hidden, format;
};

/* Bytes, and offsets from the start of an area. */
struct ha_moe_layout {
	uint64_t token, message, row;
	uint64_t stage, arrived, outputs, returned, area;
	uint32_t local; /* experts of a rank */
};

/*
 * Words of an area. Each says of which launch it is (run.h), so that none is ever cleaned. `base`
 * alone is plain: the sum of an expert's count signal as of the area's last launch.
 */
struct ha_moe_words {
	/* dispatch, sender */
	uint64_t *staged;    /* [tokens_max] */
	uint64_t *taken;     /* [experts] slots given out at the receiver */
	uint64_t *placed;    /* [tokens_max x topk] slot + 1, POSTED when it is on its way */
	uint64_t *ended;     /* [experts] messages posted, see dispatch.h */
	uint64_t *announced; /* [experts] the count is on its way */
	uint64_t *own_count; /* [local] to this rank's own experts: tokens + 1 */
	/* dispatch, receiver */
	uint64_t *base;     /* [local x ranks] */
	uint64_t *arrivals; /* [local x ranks] tokens */
	uint64_t *begin;    /* [local x ranks] of them in `packed`, plain */
	uint64_t *packed;   /* [local] tokens in `packed` */
	uint64_t *origin;   /* [local][ranks x tokens_max] rank << 32 | token, plain */
	/* combine, sender */
	uint64_t *posted;             /* [local][ranks x tokens_max] */
	uint64_t *returned;           /* [local x ranks] rows posted */
	uint64_t *announced_returned; /* [local x ranks] */
	uint64_t *own_returned;       /* [local] */
};

/*
 * One process's side. Set-up writes all but the counts of phases; those the host adds to, after a
 * launch that was DONE.
 */
struct ha_moe {
	struct ha_moe_shape shape;
	struct ha_moe_layout layout;
	struct ha_gpu_world *world;
	uint8_t *heap; /* two areas; registered */
	/*
	 * rows: connections to each peer in use; an expert's are on row (its number at its rank)
	 * mod rows
	 */
	uint32_t rank, rows;
	struct ha_moe_words words[2];
	uint64_t dispatch_sent, dispatch_received, combine_sent, combine_received; /* launches */
};

/* What a launch is called with; the same for every warp. */
struct ha_moe_call {
	uint64_t number;  /* n */
	uint64_t limit;   /* nanoseconds for all of it */
	uint64_t *result; /* enum ha_gpu_result, the worst of all warps; the host writes 0 before */
	uint32_t phases;  /* enum ha_moe_phase */
	uint32_t tokens;  /* of this rank */
	const uint8_t *x; /* dispatch: [tokens] of layout.token bytes, 16-byte aligned */
	const int32_t *topk;  /* [tokens x topk] experts, each at most once per token; -1: none */
	const float *weights; /* combine: [tokens x topk] */
	uint8_t *packed;      /* dispatch: [local][ranks x tokens_max] tokens, out */
	uint16_t *combined;   /* combine: [tokens][hidden] bf16, out */
};

HA_GPU_FN uint64_t ha_moe_round_up(uint64_t bytes)
{
	return (bytes + HA_MOE_ALIGN - 1) & ~(uint64_t)(HA_MOE_ALIGN - 1);
}

HA_GPU_FN uint8_t *ha_moe_area_of(const struct ha_moe *m, uint64_t n)
{
	return m->heap + (n & 1) * m->layout.area;
}

/* The connection that carries what goes to and comes from expert `local` of a rank. */
HA_GPU_FN struct ha_gpu_conn *ha_moe_conn_to(const struct ha_moe *m, uint32_t rank, uint32_t local)
{
	return ha_gpu_world_conn(m->world, local % m->rows, rank);
}

enum ha_moe_kind { HA_MOE_COUNT, HA_MOE_RETURNED };

HA_GPU_FN unsigned ha_moe_signal_slot(const struct ha_moe *m, uint32_t local, enum ha_moe_kind kind,
				      uint64_t n)
{
	return local / m->rows * HA_MOE_KINDS + (unsigned)kind * 2 + (unsigned)(n & 1);
}

/*
 * ---- the order of launches: what does not keep it is refused, and the kernel touches nothing ----
 */

/* sent, received: launches of this kind that are done; ready: launches that may be sent. */
HA_GPU_FN bool ha_moe_in_turn(const struct ha_moe *m, const struct ha_moe_call *call, uint64_t sent,
			      uint64_t received, uint64_t ready)
{
	uint64_t n = call->number;

	if (call->tokens > m->shape.tokens_max || !(call->phases & HA_MOE_BOTH))
		return false;
	if (call->phases & HA_MOE_SEND && (n != sent || n >= ready))
		return false;
	return !(call->phases & HA_MOE_RECEIVE) ||
	       (n == received && (n < sent || call->phases & HA_MOE_SEND));
}

HA_GPU_FN bool ha_moe_may_dispatch(const struct ha_moe *m, const struct ha_moe_call *call)
{
	return ha_moe_in_turn(m, call, ha_gpu_load(&m->dispatch_sent),
			      ha_gpu_load(&m->dispatch_received),
			      ha_gpu_load(&m->combine_received) + 2);
}

HA_GPU_FN bool ha_moe_may_combine(const struct ha_moe *m, const struct ha_moe_call *call)
{
	return ha_moe_in_turn(m, call, ha_gpu_load(&m->combine_sent),
			      ha_gpu_load(&m->combine_received),
			      ha_gpu_load(&m->dispatch_received));
}

#endif
