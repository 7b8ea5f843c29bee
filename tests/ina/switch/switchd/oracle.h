/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.h - a living ha-switch beside the slot core in this process: packet by packet the same
 * answers, byte by byte, at the same ports, and the same verdicts */
#ifndef HA_TESTS_SWITCHD_ORACLE_H
#define HA_TESTS_SWITCHD_ORACLE_H

#include "ina/switch/vectors/cases.h"
#include "tests/ina/switch/switchd/rig.h"

struct oracle {
	struct switch_rig *rig;
	const char *playing; /* for its complaints */
	struct ina_switch sw;
	struct ina_slot slot[INA_CASE_SLOTS];
	unsigned port[INA_RANKS_MAX]; /* that a rank is behind; it is believed */
	uint64_t now, packets, answers;
	/* verdicts; packets that are no frames, or not the switch's */
	uint64_t reason[INA_REASONS], others;
};

/* A living switch with these options, NULL at the end; rank i is behind port i mod RIG_PORTS. */
void oracle_open(struct oracle *o, struct switch_rig *rig, const char *program,
		 const char *const *options);
/* The slot core begins with nothing; what was counted stays. */
void oracle_forget(struct oracle *o);
/* One packet to both, and what both say to it. */
void oracle_packet(struct oracle *o, unsigned port, const uint8_t *bytes, size_t len);
/* Nothing else has come at any port. */
void oracle_nothing_more(struct oracle *o);
/* The switch has counted the same, since the first packet. */
void oracle_check_counts(struct oracle *o);

#endif
