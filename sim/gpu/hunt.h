/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hunt.h - one run of the hunt: two ends, four software NICs, traffic of several kinds, a fault
 * from the script, and the oracles
 *
 * All threads are fibers of one thread (gpu/emu/fiber.h): a seed decides traffic, configuration,
 * fault and every switch.
 */
#ifndef HA_TESTS_GPU_HUNT_H
#define HA_TESTS_GPU_HUNT_H

#include "sim/gpu/pair.h"

enum hunt_verdict { HUNT_GOOD, HUNT_GAVE_UP, HUNT_CORRUPT, HUNT_HANG };

struct hunt_result {
	enum hunt_verdict verdict;
	const char *why; /* of what is not good */
	uint64_t struck; /* faults that happened */
	uint64_t switches, replayed, skipped, landed_late, timeouts, entries, ns;
};

struct hunt_options {
	int kind; /* of the fault: an index of hunt_kinds, -1: any, -2: none */
	bool verbose;
	bool dc;    /* dynamically connected */
	bool moves; /* a port that comes back has another address */
	bool apart; /* the memory of both ends comes late: a GPU's, posted.h */
};

struct hunt_kind {
	const char *name;
	struct soft_fault fault; /* at, n, hold and down are drawn */
};
extern const struct hunt_kind hunt_kinds[];
extern const int hunt_nkinds;

/* Of a pair whose memory is apart; what is not there when its NIC dies is lost, so acknowledgements
 * are not believed. */
void hunt_set_apart(struct pair_config *c);

/*
 * Faults for four NICs, two ends with two paths; also how slow the NICs are. believed:
 * acknowledgements are (docs/gpu.md).
 */
void hunt_script(struct soft_fabric *fabric, const struct hunt_options *o, bool believed);

/*
 * hunt_stage.c, what the traffic of either kind runs on. All but the last draw from the seed: the
 * order of calls is part of what a seed means.
 */
void hunt_begin(struct soft_fabric *fabric, uint64_t seed);
void hunt_configure(struct pair_config *c); /* not the heap */
/* NICs, agents, sometimes somebody who puts right what is broken */
void hunt_populate(struct pair *pair);
bool hunt_struck(const struct pair *pair, unsigned path);
/* Ends the run: what NICs and agents have counted. */
void hunt_end(struct pair *pair, struct hunt_result *r);

/* hunt.c: any traffic; moe_hunt.c: the example's. */
void hunt_run(struct soft_fabric *fabric, uint64_t seed, const struct hunt_options *o,
	      struct hunt_result *r);

#endif
