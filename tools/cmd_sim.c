/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ha sim: the core under virtual time, random traffic and random faults; see sim/plugin/README.md
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "sim/plugin/faults.h"
#include "sim/plugin/hunt.h"
#include "tools/ha.h"

#define JOBS_MAX 1024

struct job {
	struct sim_hunt hunt;
	bool one, verbose, list;
	uint64_t seed;
	uint32_t without_faults, messages;
	uint64_t without_conns;
};

static void print_list(void)
{
	const char *help;

	for (unsigned i = 0; i < sim_fault_nclasses; i++)
		printf("%-18s %-27s %s\n", sim_fault_classes[i].name,
		       sim_effect_expected(sim_fault_classes[i].effect), sim_fault_classes[i].help);
	printf("\nWays to break the protocol (--mutate):\n");
	for (int m = SIM_MUTATIONS + 1; sim_mutation_name((enum sim_mutation)m, &help); m++)
		printf("%-18s %s\n", sim_mutation_name((enum sim_mutation)m, NULL), help);
}

/* ---- options ---- */

static bool take_faults(void *target, const struct ha_option_text *given)
{
	struct job *job = target;
	char bad[32];

	job->hunt.allowed = sim_faults_parse(given->text, bad);
	if (!job->hunt.allowed)
		fprintf(stderr,
			"ha sim: no kind of fault is called '%s'; `ha sim --list` names them\n",
			bad);
	return job->hunt.allowed != 0;
}

static bool take_mutation(void *target, const struct ha_option_text *given)
{
	struct job *job = target;
	const char *known;

	for (int m = 0; (known = sim_mutation_name((enum sim_mutation)m, NULL)); m++)
		if (!strcmp(given->text, known)) {
			job->hunt.mutation = (enum sim_mutation)m;
			return true;
		}
	fprintf(stderr, "ha sim: there is no defect '%s'; `ha sim --list` names them\n",
		given->text);
	return false;
}

#define HA_TARGET struct job

static const struct ha_option options[] = {
	{ "seeds", 0, "N", "so many seeds (1000)", HA_NUMBER(hunt.count, 1, UINT64_MAX) },
	{ "start", 0, "S", "the first of them (1)", HA_NUMBER(hunt.start, 0, UINT64_MAX) },
	{ "seed", 0, "S", "one seed, exactly as before", HA_NUMBER(seed, 0, UINT64_MAX),
	  HA_GIVEN(one) },
	{ "jobs", 'j', "N", "processes that share the seeds (1)",
	  HA_NUMBER(hunt.jobs, 1, JOBS_MAX) },
	{ "verbose", 'v', NULL, "trace one seed", HA_FLAG(verbose) },
	{ "faults", 0, "LIST",
	  "only these, e.g. loss,reorder; all = every one; storm = many at once",
	  HA_CALL(take_faults, NULL) },
	{ "mutate", 0, "NAME",
	  "break something on purpose: drop-imm, corrupt, ..., or the protocol: see --list",
	  HA_CALL(take_mutation, NULL) },
	{ "no-shrink", 0, NULL, "do not look for the smallest scenario that fails",
	  HA_FLAG_OFF(hunt.shrink) },
	{ "list", 0, NULL, "the kinds of faults and of defects", HA_FLAG(list) },
	{ "without-faults", 0, "MASK", "as shrinking prints it, to run exactly that again",
	  HA_NUMBER(without_faults, 0, UINT32_MAX) },
	{ "without-connections", 0, "MASK", "as above", HA_NUMBER(without_conns, 0, UINT64_MAX) },
	{ "messages", 0, "N", "as above", HA_NUMBER(messages, 1, UINT32_MAX) },
	{ "fault-mask", 0, "MASK", "as above", HA_NUMBER(hunt.allowed, 0, UINT32_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha sim",
	.synopsis = "[--seeds N] [--start S] [-j JOBS] [--faults LIST]\n--seed S [-v]\n--list",
	.about = "Runs the plugin's core through random traffic and faults in virtual time.",
	.options = { options },
	.notes = "Exit status: 0 nothing was found, 1 something was, 2 called wrongly.",
};

/* ---- runs ---- */

static int run_one(const struct job *job)
{
	struct sim_scenario sc;
	struct sim_result r;

	sim_scenario_make(&sc, job->seed, job->hunt.allowed);
	for (unsigned i = 0; i < sc.nfaults; i++)
		sc.fault[i].off = job->without_faults >> i & 1;
	sc.shrunk.conns_off = job->without_conns;
	if (job->messages)
		sc.shrunk.message_cap = job->messages;
	sim_scenario_print(&sc, stdout);
	sim_world_run(&sc, job->hunt.mutation, job->verbose, &r);
	printf("seed %" PRIu64 ": %s%s%s; %.3f ms, %" PRIu64 " packets, %" PRIu64
	       " messages, %" PRIu64 " bytes, %" PRIu64 " ends with an error, trace %016" PRIx64
	       "\n",
	       job->seed, sim_finding_name(r.finding), r.finding ? ": " : "", r.text,
	       (double)r.ns / 1e6, r.packets, r.messages, r.bytes, r.errors, r.hash);
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
	printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " findings; %" PRIu64
	       " messages, %.1f MB, %" PRIu64
	       " packets, %.1f s of virtual time; rails failed over %" PRIu64
	       " times and came back %" PRIu64 " times, %" PRIu64
	       " connection ends with an error\n",
	       t.seeds, job->hunt.start, t.findings, t.messages, (double)t.bytes / 1e6, t.packets,
	       (double)t.ns / 1e9, t.failovers, t.recoveries, t.errors);
	return t.findings != 0 || t.seeds != job->hunt.count;
}

int ha_cmd_sim(int argc, char **argv)
{
	struct job job = { .hunt = { .start = 1, .count = 1000, .jobs = 1, .shrink = true } };
	int result = ha_options_parse(&program, argc, argv, &job);

	if (result)
		return result - 1;
	if (job.list) {
		print_list();
		return 0;
	}
	return job.one ? run_one(&job) : run_many(&job);
}
