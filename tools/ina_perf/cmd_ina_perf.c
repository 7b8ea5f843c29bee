/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ha ina-perf: collectives through libhawser-ina, every element verified; see
 * tools/ina_perf/README.md
 */
#include "base/config.h"
#include "base/options.h"
#include "tools/ha.h"
#include "tools/ina_perf/rank.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_S 2 /* for the other ranks to say what they have received */

struct choice {
	const char *collective;
	enum ha_ina_type type;
	size_t min, max;
	unsigned factor, root;
};

struct call {
	struct ina_perf perf;
	struct choice choice;
};

static bool take_members(void *target, const struct ha_option_text *given)
{
	struct ina_perf *p = &((struct call *)target)->perf;
	char list[HA_INA_RANKS * INET_ADDRSTRLEN], *save;
	unsigned n = 0;

	if (snprintf(list, sizeof(list), "%s", given->text) >= (int)sizeof(list))
		return false;
	for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		struct in_addr a;

		if (n == HA_INA_RANKS || inet_pton(AF_INET, one, &a) != 1)
			return false;
		p->member[n++] = ntohl(a.s_addr);
	}
	p->members = true;
	return true;
}

#define HA_TARGET struct call

static const char *const types[] = { "bytes", "int32", "float32", NULL }; /* enum ha_ina_type */

static const struct ha_option rows[] = {
	{ "min", 'b', "SIZE", "bytes from (4K)", HA_SIZE(choice.min, 4, 1u << 30) },
	{ "max", 'e', "SIZE", "bytes to (16M)", HA_SIZE(choice.max, 4, 1u << 30) },
	{ "factor", 'f', "N", "between sizes (4)", HA_NUMBER(choice.factor, 2, 1024) },
	{ "type", 't', "TYPE", "float32, int32, bytes (float32)", HA_CHOICE(choice.type, types) },
	{ "iterations", 'n', "N", "measured iterations of each size (10)",
	  HA_NUMBER(perf.iterations, 1, 1000000) },
	{ "ranks", 0, "N", "so many processes on this host (2)",
	  HA_NUMBER(perf.ranks, 2, HA_INA_RANKS) },
	{ "root", 0, "R", "of reduce and broadcast (0)",
	  HA_NUMBER(choice.root, 0, HA_INA_RANKS - 1) },
	{ "backend", 0, "PATH", "the backend's socket (NETCCL_BACKEND, /run/hawser/ina.sock)",
	  HA_TEXT(perf.backend) },
	{ "rank", 0, "R", "be one rank of --ranks; needs --ticket and --members",
	  HA_NUMBER(perf.rank, 0, HA_INA_RANKS - 1) },
	{ "ticket", 0, "FILE", "all ranks see it; rank 0 asks for the group and writes it",
	  HA_TEXT(perf.ticket) },
	{ "members", 0, "A,B,...", "the addresses of the ranks' cards in their order",
	  HA_CALL(take_members, "IPv4 addresses with commas between") },
	{ "again", 0, "N",
	  "when the group ends, up to N times another one, and on from where all are (FILE.1, "
	  "FILE.2, ...) (0)",
	  HA_NUMBER(perf.again, 0, 1000) },
	{ "incarnation", 0, "K",
	  "with --rank: begin with group K, as a rank says that was started again",
	  HA_NUMBER(perf.incarnation, 0, 1000000) },
	{ "first", 0, "N", "with --rank: begin at this step, numbered from 0",
	  HA_NUMBER(perf.first, 0, SIZE_MAX >> 32) },
	{ "each", 0, NULL, "a line for every step and every group, from every rank",
	  HA_FLAG(perf.each) },
	{ "timeout", 0, "S", "seconds for an operation, a rank, a backend that is away (60)",
	  HA_NUMBER(perf.timeout_s, 1, 100000) },
	{ "loopback", 0, NULL, "no backend: the library answers itself; results are not verified",
	  HA_FLAG(perf.loopback) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "COLLECTIVE", 0, NULL,
	  "all_reduce (default), reduce, broadcast, reduce_scatter, all_gather, barrier, or all",
	  HA_TEXT(choice.collective) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha ina-perf",
	.about = "Makes sums in the network and verifies every element.",
	.options = { rows },
	.operands = operands,
	.notes = "GB/s are bytes of the whole by the median time; \"of bound\" is the largest "
		 "error by what docs/ina.md allows.\n"
		 "Exit status: 0 all right, 1 something was wrong, 2 called wrongly, 3 it could "
		 "not be done.",
};

/* ---- the steps ---- */

static const char *const collectives[] = { "all_reduce",     "reduce",     "broadcast",
					   "reduce_scatter", "all_gather", "barrier" };

static bool is_chosen(const struct choice *c, int coll)
{
	if (strcmp(c->collective, "all"))
		return !strcmp(c->collective, collectives[coll - 1]);
	return true;
}

static void add_steps(struct ina_perf *p, const struct choice *c, enum ha_ina_coll coll,
		      size_t bytes)
{
	size_t unit = (c->type == HA_INA_BYTES ? 1 : 4) *
		      (coll == HA_INA_REDUCE_SCATTER || coll == HA_INA_ALL_GATHER ? p->ranks : 1);

	bytes = bytes < unit ? unit : bytes / unit * unit;
	if (coll == HA_INA_BARRIER)
		bytes = 0;
	for (unsigned i = 0; i < p->iterations; i++)
		p->step[p->steps++] =
			(struct ina_step) { coll, c->type, bytes, c->root, (uint32_t)p->steps };
}

/* Sizes of each collective; false: there is none. */
static bool make_steps(struct ina_perf *p, const struct choice *c)
{
	unsigned sizes = 1;

	for (size_t b = c->min; b <= c->max / c->factor; b *= c->factor)
		sizes++;
	p->step = calloc((size_t)sizes * 6 * p->iterations, sizeof(*p->step));
	for (int coll = HA_INA_ALL_REDUCE; p->step && coll <= HA_INA_BARRIER; coll++) {
		size_t bytes = c->min;
		bool sums = coll == HA_INA_ALL_REDUCE || coll == HA_INA_REDUCE ||
			    coll == HA_INA_REDUCE_SCATTER;

		if (!is_chosen(c, coll) || (sums && c->type == HA_INA_BYTES))
			continue;
		for (unsigned i = 0; i < (coll == HA_INA_BARRIER ? 1 : sizes);
		     i++, bytes *= c->factor)
			add_steps(p, c, (enum ha_ina_coll)coll, bytes);
	}
	return p->steps;
}

/* ---- processes ---- */

/*
 * A rank has failed: the others learn of it by themselves, but for those that wait for what it
 * would have given them.
 */
static void end_others(const pid_t *pid, unsigned ranks)
{
	sleep(GRACE_S);
	for (unsigned r = 0; r < ranks; r++)
		if (pid[r])
			kill(pid[r], SIGKILL);
}

static void start_ranks(struct ina_perf *p, pid_t *pid)
{
	fflush(NULL);
	for (unsigned r = 0; r < p->ranks; r++) {
		pid[r] = fork();
		if (!pid[r]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			p->rank = r;
			exit(ina_perf_rank(p));
		}
	}
}

/* The worst exit status of all; the first rank that fails ends the others. */
static int await_ranks(struct ina_perf *p, pid_t *pid)
{
	int worst = 0;

	for (unsigned n = 0; n < p->ranks; n++) {
		int status, code;

		pid_t one = wait(&status);

		for (unsigned r = 0; r < p->ranks; r++)
			pid[r] = pid[r] == one ? 0 : pid[r];
		if (worst == 3 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			continue; /* ours */
		code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
		if (WIFSIGNALED(status))
			fprintf(stderr, "ha ina-perf: a rank was ended by signal %d\n",
				WTERMSIG(status));
		if (code == 3 && worst != 3)
			end_others(pid, p->ranks);
		worst = code > worst ? code : worst;
	}
	return worst;
}

/* A ticket for each incarnation of the group, and their folder. */
static void remove_tickets(const struct ina_perf *p, const char *folder)
{
	char path[80];

	for (unsigned i = 0; i <= p->again; i++) {
		snprintf(path, sizeof(path), i ? "%s.%u" : "%s", p->ticket, i);
		unlink(path);
	}
	rmdir(folder);
}

/* All ranks here; the first that fails ends the others. */
static int fork_ranks(struct ina_perf *p)
{
	char folder[] = "/tmp/ha-ina-perf.XXXXXX", ticket[64];
	pid_t pid[HA_INA_RANKS];
	int worst;

	if (!mkdtemp(folder)) {
		perror(folder);
		return 3;
	}
	snprintf(ticket, sizeof(ticket), "%s/ticket", folder);
	p->ticket = ticket;
	p->joined = mmap(NULL, sizeof(*p->joined), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->joined == MAP_FAILED)
		p->joined = NULL;
	start_ranks(p, pid);
	worst = await_ranks(p, pid);
	remove_tickets(p, folder);
	if (p->joined)
		munmap(p->joined, sizeof(*p->joined));
	return worst;
}

/* NULL, or what does not go together. */
static const char *find_conflict(const struct ina_perf *p, const struct choice *c, bool one)
{
	if (one && (!p->ticket || (!p->members && !p->loopback) || p->rank >= p->ranks))
		return "--rank R below --ranks goes with --ticket and --members";
	if (!one && (p->incarnation || p->first))
		return "--incarnation and --first are for one rank: --rank";
	for (unsigned i = 0; p->members && i < HA_INA_RANKS; i++)
		if ((i < p->ranks) != (p->member[i] != 0))
			return "--members has as many addresses as there are --ranks";
	if (c->min > c->max)
		return "-b is not above -e";
	if (c->root >= p->ranks)
		return "--root is a rank";
	return NULL;
}

int ha_cmd_ina_perf(int argc, char **argv)
{
	struct call call = {
		.perf = { .iterations = 10, .ranks = 2, .rank = HA_INA_RANKS, .timeout_s = 60 },
		.choice = { "all_reduce", HA_INA_FLOAT32, 4096, 16u << 20, 4, 0 }
	};
	struct ina_perf *p = &call.perf;
	struct ha_config config;
	const char *what;
	int status = ha_options_parse(&program, argc, argv, &call);

	if (status)
		return status - 1;
	ha_config_load_env(&config); /* for what it says about names that nobody knows */
	p->iterations++;             /* the first of a run is not timed */
	what = find_conflict(p, &call.choice, p->rank != HA_INA_RANKS);
	if (!what && !make_steps(p, &call.choice))
		what = "COLLECTIVE is none of those that `ha ina-perf --help` lists, or does not "
		       "go with -t bytes";
	if (!what && p->first >= p->steps)
		what = "--first is none of the steps: see -n";
	if (what) {
		fprintf(stderr, "ha ina-perf: %s\n", what);
		free(p->step);
		return 2;
	}
	status = p->rank == HA_INA_RANKS ? fork_ranks(p) : ina_perf_rank(p);
	free(p->step);
	return status;
}
