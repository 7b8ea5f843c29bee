/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * values.h - what goes into a launch and what must come out, computed by each rank for itself from
 * a seed
 *
 * The reference knows nothing of slots, areas, signals or NICs: it knows tokens, experts and
 * weights. All comparisons are of bits.
 */
#ifndef HA_GPU_EXAMPLE_VALUES_H
#define HA_GPU_EXAMPLE_VALUES_H

#include "gpu/example/moe.h"

#include <stdint.h>

enum ha_moe_routing {
	/* top-k different experts, here and there one fewer; now and then fewer tokens, or none */
	HA_MOE_ROUTE_RANDOM,
	/* the same, but only to the first half of the experts: the others get none */
	HA_MOE_ROUTE_HALF,
	/* every token of every rank to one and the same expert, which changes with each launch */
	HA_MOE_ROUTE_ONE
};

struct ha_moe_values {
	struct ha_moe_shape shape;
	struct ha_moe_layout layout;
	uint64_t seed;
	enum ha_moe_routing routing;
};

/* ---- input of a rank and a launch ---- */
uint32_t ha_moe_token_count(const struct ha_moe_values *v, uint32_t rank, uint64_t n);
void ha_moe_make_token(const struct ha_moe_values *v, uint32_t rank, uint64_t n, uint32_t t,
		       uint8_t *token);
void ha_moe_make_route(const struct ha_moe_values *v, uint32_t rank, uint64_t n, uint32_t t,
		       int32_t *topk, float *weights);

/* ---- looking: how many are wrong ---- */
/*
 * After a dispatch: of the tokens that our experts should have, and of those that they have
 * besides.
 */
uint64_t ha_moe_check_dispatch(const struct ha_moe_values *v, const struct ha_moe *m,
			       const struct ha_moe_call *call);
/* After a combine: of our tokens. */
uint64_t ha_moe_check_combine(const struct ha_moe_values *v, const struct ha_moe *m,
			      const struct ha_moe_call *call);

/*
 * What the others put into an area is this rank's once it has been signalled, until it sends the
 * combine of launch n + 1: it is overwritten when it has been looked at, and whatever changes after
 * that has landed late.
 */
void ha_moe_scribble_arrived(const struct ha_moe *m, uint64_t n);  /* the dispatch was looked at */
void ha_moe_scribble_returned(const struct ha_moe *m, uint64_t n); /* the combine is done */
/* rows and messages that are not as they were left */
uint64_t ha_moe_check_scribbled(const struct ha_moe *m, uint64_t n);

#endif
