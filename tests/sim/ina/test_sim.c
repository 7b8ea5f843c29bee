/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sim.c - the simulator finds each deliberate defect, one loss costs one repetition, and its
 * seeds reach what they should */
#include "base/check.h"
#include "sim/ina/world.h"

#define SEEDS 400

static const char *const mutations[INA_MUTATE_COUNT] = { "none",
#define X(id, name, help) name,
							 INA_MUTATION_LIST(X)
#undef X
};

static void run_seed(uint64_t seed, enum ina_mutation mutation, struct ina_sim_result *r)
{
	struct ina_sim_scenario sc;

	ina_sim_scenario_make(&sc, seed);
	ina_mutation = mutation;
	ina_sim_run(&sc, false, r);
	ina_mutation = INA_MUTATE_NOTHING;
}

/* A seed finds it, and finds nothing without it: the finding is the defect's. */
static void find_defect(enum ina_mutation mutation)
{
	struct ina_sim_result r, sound;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run_seed(seed, mutation, &r);
		if (!r.finding)
			continue;
		printf("%s: %s after %llu seeds: %s\n", mutations[mutation],
		       ina_sim_finding_name(r.finding), (unsigned long long)seed, r.text);
		run_seed(seed, INA_MUTATE_NOTHING, &sound);
		CHECK_INT(sound.finding, INA_SIM_NOTHING);
		return;
	}
	CHECK(!"found");
}

/* In NetCCL one loss makes all ranks send again. Here, with losses on one rank's way up only, words
 * go again only as often as they were lost. */
static void one_loss(void)
{
	uint64_t words = 0, lost = 0, questions = 0;

	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct ina_sim_scenario sc;
		struct ina_sim_result r;

		ina_sim_scenario_make(&sc, seed);
		sc.extended = true;
		sc.ranks = 8;
		sc.len = 64;
		sc.nops = 2;
		for (unsigned i = 0; i < 2; i++)
			sc.op[i] = (struct ina_sim_op) { INA_ALL_REDUCE, 0, INA_SIM_SMALL, 250 };
		sc.restart_at = sc.dead_at = sc.lapse_at = sc.leave_at = sc.hostile_ns =
			sc.think_ns = 0;
		sc.skew_ns = 1000;
		sc.queue_ns = 1000000;
		sc.up = (struct sr_fault_dir) { .drop_ppm = 1000 };
		sc.down = (struct sr_fault_dir) { 0 };
		ina_sim_run(&sc, false, &r);
		CHECK_INT(r.finding, INA_SIM_NOTHING);
		words += r.count.again_words;
		lost += r.lost;
		questions += r.count.probes;
		CHECK(r.count.again_words <= r.lost);
	}
	printf("%llu packets lost, %llu words sent again, %llu questions\n",
	       (unsigned long long)lost, (unsigned long long)words, (unsigned long long)questions);
	CHECK(lost > 100 && words > lost / 2);
}

/* What the switch and the ranks may do is done by some seed: none of it is out of the dice's
 * reach. */
static void everything_is_covered(void)
{
	struct ina_sim_result all = { 0 }, r;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run_seed(seed, INA_MUTATE_NOTHING, &r);
		CHECK_INT(r.finding, INA_SIM_NOTHING);
		for (int i = 0; i < INA_REASONS; i++)
			all.reason[i] += r.reason[i];
#define X(name, help) all.count.name += r.count.name;
		INA_COUNTER_LIST(X)
#undef X
	}
	for (int i = 0; i < INA_REASONS; i++) {
		/* Ranks keep to their windows, roots and slots, the controller notifies the switch
		 * first, and cables bring what is for their end. */
		static const bool never[INA_REASONS] = {
			[INA_REASON_NEW_EPOCH] = true, [INA_REASON_NOT_HERE] = true,
			[INA_REASON_ANSWER] = true,    [INA_REASON_WRONG_SLOT] = true,
			[INA_REASON_EARLY] = true,     [INA_REASON_OTHER] = true,
			[INA_REASON_WORDS] = true
		};

		if (!all.reason[i] == !never[i])
			fprintf(stderr, "%s: %llu\n", ina_reason_name((enum ina_reason)i, NULL),
				(unsigned long long)all.reason[i]);
		CHECK(!all.reason[i] == never[i]);
	}
#define X(name, help) CHECK(all.count.name > 0 || !strcmp(#name, "nonfinite"));
	INA_COUNTER_LIST(X)
#undef X
}

int main(int argc, char **argv)
{
	CHECK_INT(argc, 2);
	if (!strcmp(argv[1], "one_loss")) {
		one_loss();
		return 0;
	}
	if (!strcmp(argv[1], "covered")) {
		everything_is_covered();
		return 0;
	}
	for (int m = 1; m < INA_MUTATE_COUNT; m++)
		if (!strcmp(mutations[m], argv[1])) {
			find_defect((enum ina_mutation)m);
			return 0;
		}
	fprintf(stderr, "no test is called '%s'\n", argv[1]);
	return 2;
}
