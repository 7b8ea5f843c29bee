/* SPDX-License-Identifier: BSD-3-Clause */
/* ha ina-sim: reduction in the network under virtual time, random traffic and random faults; see sim/ina/README.md */
#include "base/number.h"
#include "sim/ina/world.h"
#include "tools/ha.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "ha ina-sim"
#define TWICE 64   /* one seed in so many is run again, and must repeat */
#define SHOWN_MAX 5

enum { OPT_SEEDS = 256, OPT_START, OPT_SEED, OPT_MUTATE, OPT_LIST, OPT_HELP };

static const struct option options[] = {
	{ "seeds", required_argument, NULL, OPT_SEEDS },   { "start", required_argument, NULL, OPT_START },
	{ "seed", required_argument, NULL, OPT_SEED },	   { "mutate", required_argument, NULL, OPT_MUTATE },
	{ "verbose", no_argument, NULL, 'v' },		   { "list", no_argument, NULL, OPT_LIST },
	{ "help", no_argument, NULL, OPT_HELP },	   { NULL, 0, NULL, 0 },
};

static const char *const mutations[INA_MUTATE_COUNT][2] = {
	{ "none", "nothing is wrong" },
#define X(id, name, help) { name, help },
	INA_MUTATION_LIST(X)
#undef X
};

struct job {
	uint64_t start, seeds;
	bool one, verbose;
};

struct tally {
	uint64_t findings, packets, lost, errors, incarnations, ns, words, again, probes;
};

static void usage_print(FILE *out)
{
	fprintf(out, "usage: ha ina-sim [--seeds N] [--start N] [--mutate DEFECT]   many seeds; what they find is shown\n"
		     "       ha ina-sim --seed N [-v] [--mutate DEFECT]              one, in full\n"
		     "       ha ina-sim --list                                       the deliberate defects\n");
}

static void list_print(void)
{
	for (int m = 1; m < INA_MUTATE_COUNT; m++)
		printf("%-14s %s\n", mutations[m][0], mutations[m][1]);
}

static bool mutation_take(const char *name)
{
	for (int m = 0; m < INA_MUTATE_COUNT; m++)
		if (!strcmp(name, mutations[m][0])) {
			ina_mutation = (enum ina_mutation)m;
			return true;
		}
	fprintf(stderr, "ha ina-sim: there is no defect '%s'; `ha ina-sim --list` names them\n", name);
	return false;
}

/* -1: go on; else the exit status. */
static int option_take(struct job *job, int opt)
{
	switch (opt) {
	case OPT_SEEDS:
		return ha_number_take(PROGRAM, "--seeds", optarg, 1, UINT64_MAX, &job->seeds) ? -1 : 2;
	case OPT_START:
		return ha_number_take(PROGRAM, "--start", optarg, 0, UINT64_MAX, &job->start) ? -1 : 2;
	case OPT_SEED:
		job->one = true;
		job->seeds = 1;
		return ha_number_take(PROGRAM, "--seed", optarg, 0, UINT64_MAX, &job->start) ? -1 : 2;
	case OPT_MUTATE:
		return mutation_take(optarg) ? -1 : 2;
	case 'v':
		job->verbose = true;
		return -1;
	case OPT_LIST:
		list_print();
		return 0;
	case OPT_HELP:
		usage_print(stdout);
		return 0;
	}
	usage_print(stderr);
	return 2;
}

static void run_seed(const struct job *job, uint64_t seed, struct ina_sim_scenario *sc, struct ina_sim_result *r)
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
	snprintf(r->text, sizeof(r->text), "trace %016" PRIx64 ", then %016" PRIx64, r->hash, again.hash);
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
			printf(" %s %" PRIu64, ina_reason_name((enum ina_reason)i, NULL), r->reason[i]);
	printf("\n");
}

static void finding_print(uint64_t seed, const struct ina_sim_scenario *sc, const struct ina_sim_result *r)
{
	printf("seed %" PRIu64 ": %s after %.3f ms: %s\n", seed, ina_sim_finding_name(r->finding), (double)r->at / 1e6, r->text);
	ina_sim_scenario_print(sc, stdout);
	printf("  replay: ha ina-sim --seed %" PRIu64 " -v", seed);
	printf(ina_mutation ? " --mutate %s\n" : "\n", mutations[ina_mutation][0]);
	fflush(stdout);
}

static void add(struct tally *t, const struct ina_sim_result *r)
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
	int opt, status;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "v", options, NULL)) >= 0) {
		status = option_take(&job, opt);
		if (status >= 0)
			return status;
	}
	if (optind < argc) {
		usage_print(stderr);
		return 2;
	}
	for (uint64_t seed = job.start; seed - job.start < job.seeds; seed++) {
		run_seed(&job, seed, &sc, &r);
		add(&t, &r);
		if (r.finding && t.findings <= SHOWN_MAX)
			finding_print(seed, &sc, &r);
		else if (job.one)
			ina_sim_scenario_print(&sc, stdout);
		if (job.one)
			counters_print(&r);
	}
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " findings; %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64
	       " sent by ranks, of which %" PRIu64 " words again and %" PRIu64 " questions; %" PRIu64 " incarnations, %" PRIu64
	       " excused errors, %.1f s of virtual time\n",
	       job.seeds, job.start, t.findings, t.packets, t.lost, t.words + t.again + t.probes, t.again, t.probes, t.incarnations, t.errors,
	       (double)t.ns / 1e9);
	return t.findings != 0;
}
