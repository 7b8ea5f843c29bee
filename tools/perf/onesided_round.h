/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_ONESIDED_ROUND_H
#define HAWSER_PERF_ONESIDED_ROUND_H

#include "tools/perf/onesided_side.h"
#include "tools/perf/operation.h"

/*
 * onesided_round - one iteration of a one-sided operation over one side, and what must be true
 *
 * put, putsignal: `steps` puts to the next rank, the last of them or each with a signal; over when
 * the previous rank's have come and ours are done. get: `steps` gets from the next rank. moe:
 * `steps` puts of unequal sizes to every rank, itself too (dispatch), each of which sends back what
 * it got (combine). A counter that goes beyond what was sent is a wrong one, and so is every byte
 * that is not the iteration's. Cells are filled before an iteration's time begins and compared
 * after it has ended.
 */
#define HA_ROUND_SETS 2 /* of cells, in turn: a rank may be an iteration ahead of the next one */

struct ha_round {
	const struct perf_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	struct ha_side *side;
	enum ha_one_sided kind;
	size_t bytes;                   /* of a put */
	bool check;                     /* fill and compare this iteration */
	uint64_t wrong, verified, sent; /* words and counters; iterations; bytes */
	uint64_t took;                  /* ns, the last iteration, without filling and comparing */
	uint64_t check_ns;              /* filling and comparing, all iterations */
	int64_t moved, looked;
};

/* Bytes of the window, and counters. */
size_t ha_round_window(enum ha_one_sided kind, int ranks, int steps, size_t bytes);
unsigned ha_round_counters(int ranks);
/* Puts or gets of one rank in an iteration. */
unsigned ha_round_messages(enum ha_one_sided kind, int ranks, int steps);
/* What gets read, once before the first. */
void ha_round_prepare(struct ha_round *r);
/* 0 or a negative errno with the fault recorded. */
int ha_round_run(struct ha_round *r);
/* Behind the last iteration of a size: the answers to it have come. */
int ha_round_settle(struct ha_round *r);
/* Of this rank's counters, those that are not what has been sent so far: every rank has settled. */
uint64_t ha_round_miscounted(struct ha_round *r);

#endif
