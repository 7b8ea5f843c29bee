/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ha ina-sim: reduction in the network under virtual time, random traffic and random faults; see
 * sim/ina/README.md
 */
#include "base/options.h"
#include "sim/ina/world.h"
#include "tools/ha.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TWICE 64 /* one seed in so many is run again, and must repeat */
#define SHOWN_MAX 5

static const char *const mutations[INA_MUTATE_COUNT][2] = { { "none", "nothing is wrong" },
#define X(id, name, help) { name, help },
							    INA_MUTATION_LIST(X)
#undef X
};

struct job {
	uint64_t start, seeds;
	bool one, verbose, list;
};

struct tally {
	uint64_t findings, packets, lost, errors, incarnations, ns, words, again, probes;
};

static void print_list(void)
{
	for (int m = 1; m < INA_MUTATE_COUNT; m++)
		printf("%-14s %s\n", mutations[m][0], mutations[m][1]);
}

static bool take_mutation(void *target, const struct ha_option_text *given)
{
	for (int m = 0; m < INA_MUTATE_COUNT; m++)
		if (!strcmp(given->text, mutations[m][0])) {
			ina_mutation = (enum ina_mutation)m;
			return true;
		}
	fprintf(stderr, "ha ina-sim: there is no defect '%s'; `ha ina-sim --list` names them\n",
		given->text);
	return false;
}

#define HA_TARGET struct job

static const struct ha_option options[] = {
	{ "seeds", 0, "N", "so many seeds; what they find is shown (1000)",
	  HA_NUMBER(seeds, 1, UINT64_MAX) },
	{ "start", 0, "N", "the first of them (1)", HA_NUMBER(start, 0, UINT64_MAX) },
	{ "seed", 0, "N", "one, in full", HA_NUMBER(start, 0, UINT64_MAX), HA_GIVEN(one) },
	{ "mutate", 0, "DEFECT", "break something on purpose", HA_CALL(take_mutation, NULL) },
	{ "verbose", 'v', NULL, "trace it", HA_FLAG(verbose) },
	{ "list", 0, NULL, "the deliberate defects", HA_FLAG(list) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha ina-sim",
	.synopsis = "[--seeds N] [--start N] [--mutate DEFECT]\n--seed N [-v] [--mutate "
		    "DEFECT]\n--list",
	.about = "Runs a switch and ranks that reduce in the network through random faults in "
		 "virtual time.",
	.options = { options },
	.notes = "Exit status: 0 nothing was found, 1 something was, 2 called wrongly.",
};

static void run_seed(const struct job *job, uint64_t seed, struct ina_sim_scenario *sc,
		     struct ina_sim_result *r)
{
	struct ina_sim_result again;

	ina_sim_scenario_make(sc, seed);
	ina_sim_run(sc, job->verbose, r);
	if (r->finding || seed % TWICE)
		return;
	ina_sim_run(sc, false, &again);
	if (again.hash == r->hash)
		return;
	r->finding = INA_SIM_UNSTEADY;
	snprintf(r->text, sizeof(r->text), "trace %016" PRIx64 ", then %016" PRIx64, r->hash,
		 again.hash);
}

static void counters_print(const struct ina_sim_result *r)
{
	printf("  ranks:");
#define X(name, help) printf(r->count.name ? " %s %" PRIu64 : "", #name, r->count.name);
	INA_COUNTER_LIST(X)
#undef X
	printf("\n  switch:");
	for (int i = 0; i < INA_REASONS; i++)
		if (r->reason[i])
			printf(" %s %" PRIu64, ina_reason_name((enum ina_reason)i, NULL),
			       r->reason[i]);
	printf("\n");
}

static void finding_print(uint64_t seed, const struct ina_sim_scenario *sc,
			  const struct ina_sim_result *r)
{
	printf("seed %" PRIu64 ": %s after %.3f ms: %s\n", seed, ina_sim_finding_name(r->finding),
	       (double)r->at / 1e6, r->text);
	ina_sim_scenario_print(sc, stdout);
	printf("  replay: ha ina-sim --seed %" PRIu64 " -v", seed);
	printf(ina_mutation ? " --mutate %s\n" : "\n", mutations[ina_mutation][0]);
	fflush(stdout);
}

static void add_result(struct tally *t, const struct ina_sim_result *r)
{
	t->findings += r->finding != INA_SIM_NOTHING;
	t->packets += r->packets;
	t->lost += r->lost;
	t->errors += r->errors;
	t->incarnations += r->incarnations;
	t->ns += r->ns;
	t->words += r->count.sent;
	t->again += r->count.again_words;
	t->probes += r->count.probes;
}

int ha_cmd_ina_sim(int argc, char **argv)
{
	struct job job = { .start = 1, .seeds = 1000 };
	struct ina_sim_scenario sc;
	struct ina_sim_result r;
	struct tally t = { 0 };
	int result = ha_options_parse(&program, argc, argv, &job);

	if (result)
		return result - 1;
	if (job.list) {
		print_list();
		return 0;
	}
	if (job.one)
		job.seeds = 1;
	for (uint64_t seed = job.start; seed - job.start < job.seeds; seed++) {
		run_seed(&job, seed, &sc, &r);
		add_result(&t, &r);
		if (r.finding && t.findings <= SHOWN_MAX)
			finding_print(seed, &sc, &r);
		else if (job.one)
			ina_sim_scenario_print(&sc, stdout);
		if (job.one)
			counters_print(&r);
	}
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " findings; %" PRIu64
	       " packets, %" PRIu64 " lost, %" PRIu64 " sent by ranks, of which %" PRIu64
	       " words again and %" PRIu64 " questions; %" PRIu64 " incarnations, %" PRIu64
	       " excused errors, %.1f s of virtual time\n",
	       job.seeds, job.start, t.findings, t.packets, t.lost, t.words + t.again + t.probes,
	       t.again, t.probes, t.incarnations, t.errors, (double)t.ns / 1e9);
	return t.findings != 0;
}
