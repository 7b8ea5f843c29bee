/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ha gpu-moe: the example of gpu/example, ranks as processes over software NICs that are killed;
 * see gpu/example/README.md
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"
#include "gpu/example/memory.h"
#include "gpu/example/trial.h"
#include "gpu/host/stream.h"
#include "tools/ha.h"

#define MS UINT64_C(1000000)
#define DOWN_NO_PATH_MS 1000 /* of part `down`, at most */

struct part {
	const char *name, *help;
	struct ha_moe_plan plan;
	enum ha_moe_routing routing;
	enum ha_moe_format format;
};

#define BOTH_KERNELS (HA_MOE_CUT_DISPATCH | HA_MOE_CUT_COMBINE)

static const struct part parts[] = {
	{ "quiet", "nothing is cut", { .kind = -1 }, HA_MOE_ROUTE_RANDOM, HA_MOE_BF16 },
	{ "dispatch",
	  "a NIC in the middle of every dispatch",
	  { .cut_in = HA_MOE_CUT_DISPATCH, .kind = -1 },
	  HA_MOE_ROUTE_RANDOM,
	  HA_MOE_BF16 },
	{ "combine",
	  "a NIC in the middle of every combine",
	  { .cut_in = HA_MOE_CUT_COMBINE, .kind = -1 },
	  HA_MOE_ROUTE_RANDOM,
	  HA_MOE_BF16 },
	{ "both",
	  "a NIC in every dispatch and in every combine",
	  { .cut_in = BOTH_KERNELS, .kind = -1 },
	  HA_MOE_ROUTE_RANDOM,
	  HA_MOE_BF16 },
	{ "fp8",
	  "the same with FP8 tokens and their scales",
	  { .cut_in = BOTH_KERNELS, .kind = -1 },
	  HA_MOE_ROUTE_RANDOM,
	  HA_MOE_FP8 },
	{ "half",
	  "the same, and half of the experts get no token",
	  { .cut_in = BOTH_KERNELS, .kind = -1 },
	  HA_MOE_ROUTE_HALF,
	  HA_MOE_BF16 },
	{ "one",
	  "the same, and all tokens go to one expert",
	  { .cut_in = BOTH_KERNELS, .kind = -1 },
	  HA_MOE_ROUTE_ONE,
	  HA_MOE_BF16 },
	{ "down",
	  "both NICs of rank 1 fail for good in the middle: every rank's kernel must end and "
	  "report it",
	  { .kind = -1, .down_at = 1 },
	  HA_MOE_ROUTE_RANDOM,
	  HA_MOE_BF16 },
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

struct options {
	struct ha_moe_shape shape;
	const char *part; /* NULL: all */
	uint64_t launches, seed;
	unsigned warps, lanes, down_ms, limit_s;
	int kind;
	struct ha_gpu_settings settings;
};

/* ---- arguments ---- */

static bool take_kind(void *target, const struct ha_option_text *given)
{
	struct options *o = target;

	for (o->kind = 0; o->kind < ha_moe_ncut_kinds; o->kind++)
		if (!strcmp(ha_moe_cut_kinds[o->kind].name, given->text))
			return true;
	fprintf(stderr,
		"ha gpu-moe: there is no way '%s' to be cut; `ha gpu-moe --help` lists them\n",
		given->text);
	return false;
}

static bool take_part(void *target, const struct ha_option_text *given)
{
	struct options *o = target;

	o->part = given->text;
	for (size_t i = 0; i < PARTS; i++)
		if (!strcmp(parts[i].name, given->text))
			return true;
	fprintf(stderr, "ha gpu-moe: there is no part '%s'; `ha gpu-moe --help` lists them\n",
		given->text);
	return false;
}

static void print_parts(FILE *out)
{
	fprintf(out, "\nparts:\n");
	for (size_t i = 0; i < PARTS; i++)
		fprintf(out, "  %-10s %s\n", parts[i].name, parts[i].help);
	fprintf(out, "\nways to be cut:\n");
	for (int i = 0; i < ha_moe_ncut_kinds; i++)
		fprintf(out, "  %-10s %s\n", ha_moe_cut_kinds[i].name, ha_moe_cut_kinds[i].help);
}

#define HA_TARGET struct options

static const struct ha_option options[] = {
	{ "part", 0, "NAME", "one of the parts below (all)", HA_CALL(take_part, NULL) },
	{ "launches", 0, "N", "of a part (12)", HA_NUMBER(launches, 1, UINT32_MAX) },
	{ "ranks", 0, "N", "processes (3)", HA_NUMBER(shape.ranks, 2, HA_MOE_RANKS_MAX) },
	{ "experts", 0, "N", "of all ranks (4 each)", HA_NUMBER(shape.experts, 2, 4096) },
	{ "tokens", 0, "N", "of a rank (16)", HA_NUMBER(shape.tokens_max, 1, 4096) },
	{ "topk", 0, "N", "experts of a token (4)", HA_NUMBER(shape.topk, 1, HA_MOE_TOPK_MAX) },
	{ "hidden", 0, "N", "elements of a token (7168)", HA_NUMBER(shape.hidden, 8, 65536) },
	{ "seed", 0, "N", "of everything (1)", HA_NUMBER(seed, 0, UINT64_MAX) },
	{ "warps", 0, "N", "of a kernel (2)", HA_NUMBER(warps, 1, HA_MOE_SLOTS_MAX) },
	{ "lanes", 0, "N", "of a warp, each a thread; at most 64 in a kernel (1)",
	  HA_NUMBER(lanes, 1, HA_GPU_LANES_MAX) },
	{ "down-ms", 0, "N", "a NIC that was cut comes back after so long (80)",
	  HA_NUMBER(down_ms, 1, 10000) },
	{ "limit", 0, "N", "seconds for a kernel (60)", HA_NUMBER(limit_s, 1, 3600) },
	{ "kind", 0, "NAME", "how a NIC is cut (one way after the other)",
	  HA_CALL(take_kind, NULL) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha gpu-moe",
	.about = "Sends tokens to experts and back, ranks as processes over software NICs that are "
		 "killed. Every token is "
		 "compared with a reference.",
	.options = { options },
	.notes = "Exit status: 0 all right, 1 a token is wrong or a rank hangs, 2 called wrongly.",
	.print_notes = print_parts,
};

/* Of any part: what holds for one format holds for the other. */
static bool shape_ok(const struct options *o)
{
	struct ha_moe_shape s = o->shape;
	uint32_t rows = HA_MOE_NICS * (uint32_t)o->settings.rc_per_pe;
	const char *wrong = NULL;

	for (size_t i = 0; i < PARTS && !wrong; i++) {
		if (o->part && strcmp(parts[i].name, o->part))
			continue;
		s.format = parts[i].format;
		wrong = ha_moe_shape_wrong(&s, rows);
	}
	if (!wrong && o->warps * o->lanes > HA_MOE_SLOTS_MAX)
		wrong = "warps times lanes are threads: at most 64";
	if (wrong)
		fprintf(stderr, "ha gpu-moe: %s\n", wrong);
	return !wrong;
}

/*
 * Small queues, so that they turn often, and a fast recovery; what the environment says goes
 * before. False: it says nonsense, and a line says so.
 */
static bool load_settings(struct ha_gpu_settings *s)
{
	static const char *const ours[][2] = {
		{ "HA_GPU_QP_DEPTH", "256" },     { "HA_GPU_CHECK_MS", "2" },
		{ "HA_GPU_SILENT_CHECKS", "25" }, { "HA_GPU_RECOVERY_MS", "5" },
		{ "HA_GPU_QP_TIMEOUT", "8" },     { "HA_GPU_RC_PER_PE", "1" }
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		setenv(ours[i][0], ours[i][1], 0);
	return !ha_gpu_settings_load_env(s);
}

/* 0: go on; else the exit status + 1. */
static int parse_options(struct options *o, int argc, char **argv)
{
	int result;

	*o = (struct options) {
		.shape = { .ranks = 3, .tokens_max = 16, .topk = 4, .hidden = 7168 },
		.launches = 12,
		.seed = 1,
		.warps = 2,
		.lanes = 1,
		.down_ms = 80,
		.limit_s = 60,
		.kind = -1
	};
	result = ha_options_parse(&program, argc, argv, o);
	if (result)
		return result;
	if (!o->shape.experts)
		o->shape.experts = 4 * o->shape.ranks;
	return load_settings(&o->settings) && shape_ok(o) ? 0 : 3;
}

/* ---- a part ---- */

struct job {
	struct ha_moe_rank_config rank;
	struct ha_moe_plan plan;
	struct ha_moe_tally *tally; /* of each rank */
	pid_t pid[HA_MOE_RANKS_MAX];
	char root[80];
	unsigned hung, failed;
	uint64_t ns;
};

/* A port that is free now. */
static bool make_job(struct job *j, const struct options *o, const struct part *p)
{
	memset(j, 0, sizeof(*j));
	j->plan = p->plan;
	j->plan.launches = o->launches;
	j->plan.every = 1;
	j->plan.kind = o->kind;
	j->plan.down_ms = o->down_ms;
	j->plan.failback = true;
	j->plan.limit_ns = o->limit_s * 1000 * MS;
	j->plan.down_at = p->plan.down_at ? o->launches / 2 + 1 : 0;
	j->rank.values.shape = o->shape;
	j->rank.values.shape.format = p->format;
	j->rank.values.seed = o->seed;
	j->rank.values.routing = p->routing;
	ha_moe_make_layout(&j->rank.values.shape, &j->rank.values.layout);
	j->rank.warps = o->warps;
	j->rank.lanes = o->lanes;
	j->rank.settings = o->settings;
	if (p->plan.down_at && j->rank.settings.no_path_ms > DOWN_NO_PATH_MS)
		j->rank.settings.no_path_ms = DOWN_NO_PATH_MS;
	if (ha_gpu_stream_free_local(j->root)) {
		fprintf(stderr, "ha gpu-moe: cannot listen on 127.0.0.1, where the ranks meet: is "
				"the loopback interface up?\n");
		return false;
	}
	j->rank.root = j->root;
	j->plan.failback = j->rank.settings.failback && j->rank.settings.backup;
	j->rank.fabric =
		soft_fabric_open(o->shape.ranks * HA_MOE_NICS, ha_moe_fabric_bytes(&j->rank));
	j->tally = mmap(NULL, sizeof(*j->tally) * HA_MOE_RANKS_MAX, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (j->rank.fabric && j->tally != MAP_FAILED)
		return true;
	fprintf(stderr, "ha gpu-moe: no memory for %zu MB of areas: take fewer tokens or ranks\n",
		ha_moe_fabric_bytes(&j->rank) >> 20);
	return false;
}

/* A rank goes with the command, however that ends. */
static void be_rank(struct job *j, unsigned rank, pid_t command)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != command)
		_exit(1);
	j->rank.rank = (int)rank;
	_exit(ha_moe_run_trial(&j->rank, &j->plan, &j->tally[rank]) != 0);
}

/* False: one could not be started, and there is none. */
static bool start_ranks(struct job *j)
{
	pid_t command = getpid();

	fflush(stdout);
	for (unsigned i = 0; i < j->rank.values.shape.ranks; i++) {
		j->pid[i] = fork();
		if (!j->pid[i])
			be_rank(j, i, command);
		if (j->pid[i] > 0)
			continue;
		fprintf(stderr,
			"ha gpu-moe: no process for rank %u: %s; take fewer ranks, or see to "
			"ulimit -u\n",
			i, strerror(errno));
		while (i--) {
			kill(j->pid[i], SIGKILL);
			waitpid(j->pid[i], NULL, 0);
		}
		return false;
	}
	return true;
}

static uint64_t count_launches(const struct job *j)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < j->rank.values.shape.ranks; i++)
		n += ha_gpu_load(&j->tally[i].launches) + ha_gpu_load(&j->tally[i].finished);
	return n;
}

/*
 * Until all have gone. Who makes no progress for as long as two kernels may take, and some, hangs:
 * it is killed and counted.
 */
static void await_ranks(struct job *j)
{
	uint64_t seen = 0, start_ns = ha_gpu_now(), since = start_ns,
		 time_limit = 2 * j->plan.limit_ns + 30000 * MS;
	unsigned left = j->rank.values.shape.ranks;
	const struct timespec nap = { 0, 2000000 };
	int status;

	while (left) {
		for (unsigned i = 0; i < j->rank.values.shape.ranks; i++) {
			if (j->pid[i] <= 0 || waitpid(j->pid[i], &status, WNOHANG) != j->pid[i])
				continue;
			j->pid[i] = 0;
			j->failed += status != 0;
			left--;
		}
		if (count_launches(j) != seen) {
			seen = count_launches(j);
			since = ha_gpu_now();
		} else if (left && ha_gpu_now() - since > time_limit) {
			for (unsigned i = 0; i < j->rank.values.shape.ranks; i++)
				if (j->pid[i] > 0 && !kill(j->pid[i], SIGKILL))
					j->hung++;
			since = ha_gpu_now();
		}
		nanosleep(&nap, NULL);
	}
	j->ns = ha_gpu_now() - start_ns;
}

static struct ha_moe_tally sum_tallies(const struct job *j)
{
	struct ha_moe_tally s = { 0 };

	for (unsigned i = 0; i < j->rank.values.shape.ranks; i++) {
		const struct ha_moe_tally *t = &j->tally[i];

		s.launches = i && s.launches < t->launches ? s.launches : t->launches;
		s.tokens += t->tokens;
		s.rows += t->rows;
		s.wrong += t->wrong;
		s.cuts += t->cuts;
		s.resumed += t->resumed;
		s.resumed_sum_ns += t->resumed_sum_ns;
		s.resumed_max_ns =
			s.resumed_max_ns > t->resumed_max_ns ? s.resumed_max_ns : t->resumed_max_ns;
		s.switches += t->switches;
		s.replayed += t->replayed;
		s.not_failed_back += t->not_failed_back;
		s.slowest_ns = s.slowest_ns > t->slowest_ns ? s.slowest_ns : t->slowest_ns;
	}
	return s;
}

/* Every rank ended as it should. */
static bool as_it_should(const struct job *j)
{
	uint64_t want = j->plan.down_at ? HA_GPU_BOTH_DOWN : HA_GPU_DONE;
	bool good = !j->hung && !j->failed;

	for (unsigned i = 0; i < j->rank.values.shape.ranks; i++)
		good &= j->tally[i].finished && j->tally[i].result == want;
	return good;
}

static bool print_row(const struct job *j, const struct part *p)
{
	static const char *const results[] = { "done", "TIMEOUT", "BOTH_DOWN", "REFUSED" };
	struct ha_moe_tally s = sum_tallies(j);
	bool good = as_it_should(j) && !s.wrong && !s.not_failed_back;
	char times[32] = "-";

	if (s.resumed)
		snprintf(times, sizeof(times), "%.1f / %.1f",
			 (double)s.resumed_sum_ns / (double)s.resumed / 1e6,
			 (double)s.resumed_max_ns / 1e6);
	printf("%-9s %8" PRIu64 " %7" PRIu64 " %10" PRIu64 " %5" PRIu64 " %8" PRIu64 " %7" PRIu64
	       " %16s %4" PRIu64 " %6" PRIu64 " %5u  ",
	       p->name, s.launches, s.tokens, s.rows, s.cuts, s.switches, s.replayed, times,
	       s.resumed, s.wrong, j->hung);
	for (unsigned i = 0; i < j->rank.values.shape.ranks; i++)
		printf("%s%s", i ? " " : "",
		       j->tally[i].finished ? results[j->tally[i].result & 3] : "none");
	printf("%s\n", good ? "" : "   <-- not as it should be");
	if (s.not_failed_back)
		printf("          %" PRIu64 " times a connection did not return to its first NIC\n",
		       s.not_failed_back);
	return good;
}

struct total {
	uint64_t rows, cuts, wrong, hung;
	bool good;
};

/* False: it could not be run, and a line has said why. */
static bool run_part(const struct options *o, const struct part *p, struct total *total)
{
	struct ha_moe_tally s;
	struct job j;

	if (!make_job(&j, o, p) || !start_ranks(&j))
		return false;
	await_ranks(&j);
	total->good &= print_row(&j, p);
	s = sum_tallies(&j);
	total->rows += s.rows;
	total->cuts += s.cuts;
	total->wrong += s.wrong;
	total->hung += j.hung;
	fflush(stdout);
	soft_fabric_close(j.rank.fabric);
	munmap(j.tally, sizeof(*j.tally) * HA_MOE_RANKS_MAX);
	return true;
}

int ha_cmd_gpu_moe(int argc, char **argv)
{
	struct total total = { .good = true };
	struct options o;
	int r = parse_options(&o, argc, argv);

	if (r)
		return r - 1;
	printf("%u ranks with two software NICs each, %u experts, up to %u tokens of %u elements, "
	       "top-%u, %u warps of %u; GPU threads are threads of the host\n"
	       "                                                     posted  ms, cut to traffic\n"
	       "part      launches  tokens to experts  cuts switches   again    mean / worst   of  "
	       "wrong  hung  how each rank's last kernel ended\n",
	       o.shape.ranks, o.shape.experts, o.shape.tokens_max, o.shape.hidden, o.shape.topk,
	       o.warps, o.lanes);
	for (size_t i = 0; i < PARTS; i++)
		if ((!o.part || !strcmp(o.part, parts[i].name)) && !run_part(&o, &parts[i], &total))
			return 1;
	printf("\n%" PRIu64 " tokens went to experts and came back, through %" PRIu64
	       " cuts: %" PRIu64 " wrong, %" PRIu64 " ranks hung%s\n",
	       total.rows, total.cuts, total.wrong, total.hung,
	       total.good ? "" : "; NOT as it should be");
	return !total.good;
}
