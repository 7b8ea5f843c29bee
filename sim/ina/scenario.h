/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario.h - what one seed means: a group, its operations, the network and what goes wrong, all
 * decided beforehand
 */
#ifndef INA_SIM_SCENARIO_H
#define INA_SIM_SCENARIO_H

#include "ina/frame/frame.h"
#include "softroce/faults.h"

#include <stdio.h>

#define INA_SIM_OPS_MAX 8
#define INA_SIM_PACKETS_MAX 300

/* What the blocks of an operation are like. */
enum ina_sim_kind {
	INA_SIM_SMALL, /* sums are exact */
	/* sums may pass the ends of int32; extended frames only, for only they can say so */
	INA_SIM_LARGE,
	INA_SIM_EXPONENTS, /* every rank's block has an exponent of its own; extended frames only */
	INA_SIM_KINDS
};

struct ina_sim_op {
	uint8_t coll, root;
	enum ina_sim_kind kind;
	uint32_t packets;
};

struct ina_sim_scenario {
	uint64_t seed;
	bool extended;
	unsigned ranks;
	uint32_t len, first_psn; /* of the range; one worker */
	unsigned nops;
	struct ina_sim_op op[INA_SIM_OPS_MAX];
	uint64_t skew_ns;  /* ranks begin up to so much apart */
	uint64_t think_ns; /* and rest up to so long before each operation */
	uint64_t latency_ns, bytes_per_us, slow_bytes_per_us; /* slow: of rank 0's cable */
	uint64_t queue_ns, mark_ns;   /* what waits longer for a cable is lost, or marked */
	struct sr_fault_dir up, down; /* to the switch, and from it */
	/* All 0: never. ns from the start. */
	uint64_t restart_at, away_ns; /* the switch loses all it knows, and is away */
	uint64_t dead_at;             /* rank 1 says nothing any more */
	uint64_t lapse_at;            /* the lease ends: nothing came from the controller */
	/* rank 1 gives the group up, and its cable upwards is cut for so long */
	uint64_t leave_at, outage_ns;
	/* a foreign sender sends something to some rank that often */
	uint64_t hostile_ns;
};

void ina_sim_scenario_make(struct ina_sim_scenario *sc, uint64_t seed);
void ina_sim_scenario_print(const struct ina_sim_scenario *sc, FILE *out);

#endif
