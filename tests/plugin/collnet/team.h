/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.h - all ranks of a communicator in one process and one thread, over the software NIC and the
 * hub
 *
 * A rank's operations have known numbers in them; when one ends, all of it is held against what the
 * switch and what the ring would have made, segment by segment, and against the other ranks' bits.
 */
#ifndef HA_TESTS_COLLNET_TEAM_H
#define HA_TESTS_COLLNET_TEAM_H

#include "base/check.h"
#include "plugin/collnet/collnet.h"
#include "tests/plugin/collnet/hub.h"

#define TEAM_WAIT_S 600 /* for anything to come; beside other work */
#define TEAM_OPS 2048   /* of one test */

struct team_op {
	float *in, *out;
	struct ha_collnet_op *op;
	bool posted, done;
};

struct team {
	int ranks;
	struct ha_collnet_listen *listen[HA_COLLNET_RANKS];
	struct ha_collnet *comm[HA_COLLNET_RANKS];
	int error[HA_COLLNET_RANKS]; /* of connecting */
	bool gone[HA_COLLNET_RANKS];
	bool in_place;
	size_t words[TEAM_OPS];
	struct team_op op[TEAM_OPS][HA_COLLNET_RANKS];
	unsigned posted[HA_COLLNET_RANKS], tested[HA_COLLNET_RANKS];
	uint64_t ringed, switched; /* segments that were found to be the ring's, the switch's */
};

/* Of the next team; 100 s unless a test says otherwise. */
extern uint64_t team_silence_ns;
/* A team that has connected, or failed to, each rank with error[r]. */
void team_open(struct team *t, int ranks, bool always);
/* Its ranks have each other's handles, and none has made a step. */
void team_begin(struct team *t, int ranks, bool always);
void team_close(struct team *t);
/* Announces an operation of that many words; ranks post it when it is their turn. Returns its
 * number. */
void team_plan(struct team *t, unsigned first, unsigned n, size_t words);
/* Rank r posts its next operation if it can. False: not now. */
bool team_post(struct team *t, int r);
/* Rank r asks for its oldest operation in flight. */
void team_test(struct team *t, int r);
/* All ranks post operations up to `n`, at most `window` in flight, and bring them to their end. */
void team_run(struct team *t, unsigned n, unsigned window);
/* Until `what` is true of all ranks' stats; operations go on meanwhile, beginning with number
 * `next`. Returns how many there are then. */
unsigned team_until_on_switch(struct team *t, unsigned next);
struct ha_collnet_stats team_stats(const struct team *t, int r);
/* Seconds, and a fruitless moment. */
double team_now(void);

#endif
