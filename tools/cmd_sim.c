/* SPDX-License-Identifier: BSD-3-Clause */
/* ha sim: the core under virtual time, random traffic and random faults; see sim/plugin/README.md */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "sim/plugin/faults.h"
#include "sim/plugin/hunt.h"
#include "tools/ha.h"

#define JOBS_MAX 1024

enum {
	OPT_SEEDS = 256,
	OPT_START,
	OPT_SEED,
	OPT_FAULTS,
	OPT_MASK,
	OPT_MUTATE,
	OPT_NO_FAULTS,
	OPT_NO_CONNS,
	OPT_MESSAGES,
	OPT_RAW,
	OPT_LIST,
	OPT_HELP
};

static const struct option options[] = {
	{ "seeds", required_argument, NULL, OPT_SEEDS },
	{ "start", required_argument, NULL, OPT_START },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "jobs", required_argument, NULL, 'j' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "faults", required_argument, NULL, OPT_FAULTS },
	{ "fault-mask", required_argument, NULL, OPT_MASK },
	{ "mutate", required_argument, NULL, OPT_MUTATE },
	{ "without-faults", required_argument, NULL, OPT_NO_FAULTS },
	{ "without-connections", required_argument, NULL, OPT_NO_CONNS },
	{ "messages", required_argument, NULL, OPT_MESSAGES },
	{ "no-shrink", no_argument, NULL, OPT_RAW },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

struct job {
	struct sim_hunt hunt;
	bool one, verbose;
	uint64_t seed;
	uint32_t without_faults, messages;
	uint64_t without_conns;
};

static void usage_print(FILE *out)
{
	fprintf(out, "usage: ha sim [--seeds N] [--start S] [-j JOBS] [--faults LIST]    many seeds; status 1 when one "
		     "finds something\n"
		     "       ha sim --seed S [-v]                                        one seed, exactly as before; "
		     "-v traces it\n"
		     "       ha sim --list                                               the kinds of faults and of defects\n"
		     "\n"
		     "  --faults LIST            only these, e.g. loss,reorder; all = every one; storm = many at once\n"
		     "  --mutate NAME            break something on purpose: drop-imm, double-imm, shorten, corrupt, "
		     "stray, leak-qp,\n"
		     "                           or the protocol: see --list\n"
		     "  --no-shrink              do not look for the smallest scenario that fails\n"
		     "  --without-faults MASK, --without-connections MASK, --messages N, --fault-mask MASK\n"
		     "                           what shrinking prints, to run exactly that again\n");
}

static void list_print(void)
{
	const char *help;

	for (unsigned i = 0; i < sim_fault_nclasses; i++)
		printf("%-18s %-27s %s\n", sim_fault_classes[i].name, sim_effect_expected(sim_fault_classes[i].effect),
		       sim_fault_classes[i].help);
	printf("\nWays to break the protocol (--mutate):\n");
	for (int m = SIM_MUTATIONS + 1; sim_mutation_name((enum sim_mutation)m, &help); m++)
		printf("%-18s %s\n", sim_mutation_name((enum sim_mutation)m, NULL), help);
}

static int mutation_parse(const char *name)
{
	const char *known;

	for (int m = 0; (known = sim_mutation_name((enum sim_mutation)m, NULL)); m++)
		if (!strcmp(name, known))
			return m;
	return -1;
}

/* 0, or the exit status plus one. */
static int number_take(const char *what, uint64_t low, uint64_t high, uint64_t *value)
{
	return ha_number_take("ha sim", what, optarg, low, high, value) ? 0 : 3;
}

static int number_take_32(const char *what, unsigned low, unsigned high, unsigned *value)
{
	return ha_number_take_unsigned("ha sim", what, optarg, low, high, value) ? 0 : 3;
}

/* 0, or the exit status plus one. */
static int option_take(struct job *job, int opt)
{
	char bad[32];
	int m;

	switch (opt) {
	case OPT_SEEDS:
		return number_take("--seeds", 1, UINT64_MAX, &job->hunt.count);
	case OPT_START:
		return number_take("--start", 0, UINT64_MAX, &job->hunt.start);
	case OPT_SEED:
		job->one = true;
		return number_take("--seed", 0, UINT64_MAX, &job->seed);
	case 'j':
		return number_take_32("--jobs", 1, JOBS_MAX, &job->hunt.jobs);
	case 'v':
		job->verbose = true;
		return 0;
	case OPT_FAULTS:
		job->hunt.allowed = sim_faults_parse(optarg, bad);
		if (job->hunt.allowed)
			return 0;
		fprintf(stderr, "ha sim: no kind of fault is called '%s'; `ha sim --list` names them\n", bad);
		return 3;
	case OPT_MASK:
		return number_take_32("--fault-mask", 0, UINT32_MAX, &job->hunt.allowed);
	case OPT_MUTATE:
		m = mutation_parse(optarg);
		job->hunt.mutation = (enum sim_mutation)m;
		if (m >= 0)
			return 0;
		fprintf(stderr, "ha sim: there is no defect '%s'; `ha sim --list` names them\n", optarg);
		return 3;
	case OPT_NO_FAULTS:
		return number_take_32("--without-faults", 0, UINT32_MAX, &job->without_faults);
	case OPT_NO_CONNS:
		return number_take("--without-connections", 0, UINT64_MAX, &job->without_conns);
	case OPT_MESSAGES:
		return number_take_32("--messages", 1, UINT32_MAX, &job->messages);
	case OPT_RAW:
		job->hunt.shrink = false;
		return 0;
	case OPT_LIST:
		list_print();
		return 1;
	case OPT_HELP:
		usage_print(stdout);
		return 1;
	default:
		usage_print(stderr);
		return 3;
	}
}

static int run_one(const struct job *job)
{
	struct sim_scenario sc;
	struct sim_result r;

	sim_scenario_make(&sc, job->seed, job->hunt.allowed);
	for (unsigned i = 0; i < sc.nfaults; i++)
		sc.fault[i].off = job->without_faults >> i & 1;
	sc.conns_off = job->without_conns;
	if (job->messages)
		sc.message_cap = job->messages;
	sim_scenario_print(&sc, stdout);
	sim_world_run(&sc, job->hunt.mutation, job->verbose, &r);
	printf("seed %" PRIu64 ": %s%s%s; %.3f ms, %" PRIu64 " packets, %" PRIu64 " messages, %" PRIu64
	       " bytes, %" PRIu64 " ends with an error, trace %016" PRIx64 "\n",
	       job->seed, sim_finding_name(r.finding), r.finding ? ": " : "", r.text, (double)r.ns / 1e6, r.packets,
	       r.messages, r.bytes, r.errors, r.hash);
	if (r.finding && !job->verbose)
		sim_world_print_log(stdout);
	return r.finding != SIM_NOTHING;
}

static int run_many(const struct job *job)
{
	struct sim_tally t;
	int err = sim_hunt_run(&job->hunt, &t, stdout);

	if (err) {
		fprintf(stderr, "ha sim: cannot start processes: %s\n", strerror(-err));
		return 1;
	}
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " findings; %" PRIu64 " messages, %.1f MB, %" PRIu64
	       " packets, %.1f s of virtual time; rails failed over %" PRIu64 " times and came back %" PRIu64
	       " times, %" PRIu64 " connection ends with an error\n",
	       t.seeds, job->hunt.start, t.findings, t.messages, (double)t.bytes / 1e6, t.packets, (double)t.ns / 1e9,
	       t.failovers, t.recoveries, t.errors);
	return t.findings != 0 || t.seeds != job->hunt.count;
}

int ha_cmd_sim(int argc, char **argv)
{
	struct job job = { .hunt = { .start = 1, .count = 1000, .jobs = 1, .shrink = true } };
	int opt, stop;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "j:v", options, NULL)) >= 0) {
		stop = option_take(&job, opt);
		if (stop)
			return stop - 1;
	}
	if (optind < argc) {
		usage_print(stderr);
		return 2;
	}
	return job.one ? run_one(&job) : run_many(&job);
}
