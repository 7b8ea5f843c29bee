/* SPDX-License-Identifier: BSD-3-Clause */
/* test_oracles.c - each deliberate defect is found, and as what it is; without one nothing is */
#include "base/check.h"
#include "sim/plugin/hunt.h"

#define SEEDS 20

static void hunt_mutation(enum sim_mutation mutation, struct sim_tally *tally)
{
	struct sim_hunt h = {
		.start = 1, .count = SEEDS, .jobs = 2, .mutation = mutation, .quiet = true
	};

	CHECK_INT(sim_hunt_run(&h, tally, stdout), 0);
	CHECK_INT(tally->seeds, SEEDS);
	printf("%-12s %llu of %d seeds\n", sim_mutation_name(mutation, NULL),
	       (unsigned long long)tally->findings, SEEDS);
}

int main(void)
{
	struct sim_tally t;

	hunt_mutation(SIM_SOUND, &t);
	CHECK_INT(t.findings, 0);
	CHECK(t.messages > 1000);

	/* Lost in silence: somebody waits for ever, or the peer's BYE message does not agree. */
	hunt_mutation(SIM_DROP_IMM, &t);
	CHECK(t.by_finding[SIM_HANG] > 0 && t.findings > SEEDS / 3);
	hunt_mutation(SIM_DOUBLE_IMM, &t);
	CHECK(t.by_finding[SIM_ERROR] > SEEDS / 3);
	hunt_mutation(SIM_SHORTEN, &t);
	CHECK(t.by_finding[SIM_WRONG_SIZE] > SEEDS / 3);
	CHECK_INT(t.by_finding[SIM_WRONG_SIZE], t.findings);
	hunt_mutation(SIM_CORRUPT, &t);
	CHECK(t.by_finding[SIM_WRONG_BYTE] > SEEDS / 3);
	CHECK_INT(t.by_finding[SIM_WRONG_BYTE], t.findings);
	hunt_mutation(SIM_STRAY, &t);
	/* Not where faults leave no message to strike at. */
	CHECK(t.by_finding[SIM_STRAY_WRITE] > SEEDS / 2);
	CHECK_INT(t.by_finding[SIM_STRAY_WRITE], t.findings);
	hunt_mutation(SIM_LEAK_QP, &t);
	/* Not where both processes end before they have a queue pair. */
	CHECK(t.by_finding[SIM_LEAK] >= SEEDS - 2);
	CHECK_INT(t.by_finding[SIM_LEAK], t.findings);
	return 0;
}
