/* SPDX-License-Identifier: BSD-3-Clause */
/* ha ina-perf: collectives through libhawser-ina, every element verified; see tools/ina_perf/README.md */
#include "base/config.h"
#include "tools/ha.h"
#include "tools/ina_perf/rank.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_S 2 /* for the other ranks to say what they have received */

enum { OPT_RANKS = 256, OPT_RANK, OPT_MEMBERS, OPT_TICKET, OPT_BACKEND, OPT_ROOT, OPT_AGAIN, OPT_INCARNATION, OPT_FIRST, OPT_EACH, OPT_TIMEOUT, OPT_LOOPBACK, OPT_HELP };

static const struct option options[] = {
	{ "ranks", 1, NULL, OPT_RANKS },     { "rank", 1, NULL, OPT_RANK },	{ "members", 1, NULL, OPT_MEMBERS },
	{ "ticket", 1, NULL, OPT_TICKET },   { "backend", 1, NULL, OPT_BACKEND }, { "root", 1, NULL, OPT_ROOT },
	{ "again", 1, NULL, OPT_AGAIN },     { "incarnation", 1, NULL, OPT_INCARNATION },
	{ "first", 1, NULL, OPT_FIRST },     { "each", 0, NULL, OPT_EACH },
	{ "timeout", 1, NULL, OPT_TIMEOUT }, { "loopback", 0, NULL, OPT_LOOPBACK },
	{ "min", 1, NULL, 'b' },	     { "max", 1, NULL, 'e' },		{ "factor", 1, NULL, 'f' },
	{ "iterations", 1, NULL, 'n' },	     { "type", 1, NULL, 't' },		{ "help", 0, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"usage: ha ina-perf [COLLECTIVE] [options]     sums in the network, every element verified\n"
	"  COLLECTIVE          all_reduce (default), reduce, broadcast, reduce_scatter, all_gather, barrier, or all\n"
	"  -b, -e SIZE         bytes from, to; with K, M, G (default 4K, 16M)     -f N  factor between sizes (default 4)\n"
	"  -t TYPE             float32 (default), int32, bytes\n"
	"  -n N                measured iterations of each size (default 10)\n"
	"  --ranks N           so many processes on this host (default 2)\n"
	"  --root R            of reduce and broadcast (default 0)\n"
	"  --backend PATH      the backend's socket (default: NETCCL_BACKEND, /run/hawser/ina.sock)\n"
	"  --rank R --ticket FILE --members A,B,...   be one rank of --ranks: rank 0 asks for the group and writes FILE, which all see;\n"
	"                      members are the addresses of the ranks' cards in their order\n"
	"  --again N           when the group ends, up to N times another one, and on from where all are (FILE.1, FILE.2, ...)\n"
	"  --incarnation K --first N  (with --rank) begin with group K at step N: what a rank says that was started again (steps are numbered from 0)\n"
	"  --each              a line for every step and every group, from every rank\n"
	"  --timeout S         seconds for an operation, a rank, a backend that is away (default 60)\n"
	"  --loopback          no backend: the library answers itself; results are not verified\n"
	"GB/s are bytes of the whole by the median time; \"of bound\" is the largest error by what docs/ina.md allows.\n";

struct choice {
	const char *collective;
	enum ha_ina_type type;
	size_t min, max;
	unsigned factor, root;
};

static bool number(const char *what, const char *text, size_t least, size_t most, size_t *to)
{
	char *end;
	size_t n = strtoull(text, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

	if (*text >= '0' && *text <= '9' && !end[shift != 0] && n <= SIZE_MAX >> 31 && n << shift >= least && n << shift <= most) {
		*to = n << shift;
		return true;
	}
	fprintf(stderr, "ha ina-perf: %s takes a whole number from %zu to %zu, not '%.64s'\n", what, least, most, text);
	return false;
}

static bool take_unsigned(const char *what, const char *text, size_t least, size_t most, unsigned *to)
{
	size_t n;

	if (!number(what, text, least, most, &n))
		return false;
	*to = (unsigned)n;
	return true;
}

static bool take_members(char *list, struct ina_perf *p)
{
	unsigned n = 0;

	for (char *save, *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		struct in_addr a;

		if (n == HA_INA_RANKS || inet_pton(AF_INET, one, &a) != 1) {
			fprintf(stderr, "ha ina-perf: --members: '%s' is no IPv4 address, or one too many\n", one);
			return false;
		}
		p->member[n++] = ntohl(a.s_addr);
	}
	p->members = true;
	return true;
}

static bool take_type(const char *text, enum ha_ina_type *type)
{
	static const char *const names[] = { "bytes", "int32", "float32" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			*type = (enum ha_ina_type)i;
			return true;
		}
	fprintf(stderr, "ha ina-perf: '%s' is none of float32, int32, bytes\n", text);
	return false;
}

static bool take(int o, struct ina_perf *p, struct choice *c)
{
	unsigned n;

	switch (o) {
	case OPT_RANKS:
		return take_unsigned("--ranks", optarg, 2, HA_INA_RANKS, &p->ranks);
	case OPT_RANK:
		return take_unsigned("--rank", optarg, 0, HA_INA_RANKS - 1, &p->rank);
	case OPT_MEMBERS:
		return take_members(optarg, p);
	case OPT_TICKET:
		p->ticket = optarg;
		return true;
	case OPT_BACKEND:
		p->backend = optarg;
		return true;
	case OPT_ROOT:
		return take_unsigned("--root", optarg, 0, HA_INA_RANKS - 1, &c->root);
	case OPT_AGAIN:
		return take_unsigned("--again", optarg, 0, 1000, &p->again);
	case OPT_INCARNATION:
		return take_unsigned("--incarnation", optarg, 0, 1000000, &p->incarnation);
	case OPT_FIRST:
		return number("--first", optarg, 0, SIZE_MAX >> 32, &p->first);
	case OPT_EACH:
		return p->each = true;
	case OPT_TIMEOUT:
		return take_unsigned("--timeout", optarg, 1, 100000, &p->timeout_s);
	case OPT_LOOPBACK:
		return p->loopback = true;
	case 'b':
		return number("-b", optarg, 4, 1u << 30, &c->min);
	case 'e':
		return number("-e", optarg, 4, 1u << 30, &c->max);
	case 'f':
		return take_unsigned("-f", optarg, 2, 1024, &c->factor);
	case 'n':
		if (!take_unsigned("-n", optarg, 1, 1000000, &n))
			return false;
		p->iterations = n + 1;
		return true;
	case 't':
		return take_type(optarg, &c->type);
	default:
		return false;
	}
}

/* ---- the steps ---- */

static const char *const collectives[] = { "all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "barrier" };

static bool chosen(const struct choice *c, int coll)
{
	if (strcmp(c->collective, "all"))
		return !strcmp(c->collective, collectives[coll - 1]);
	return true;
}

static void add_steps(struct ina_perf *p, const struct choice *c, enum ha_ina_coll coll, size_t bytes)
{
	size_t unit = (c->type == HA_INA_BYTES ? 1 : 4) * (coll == HA_INA_REDUCE_SCATTER || coll == HA_INA_ALL_GATHER ? p->ranks : 1);

	bytes = coll == HA_INA_BARRIER ? 0 : bytes / unit ? bytes / unit * unit : unit;
	for (unsigned i = 0; i < p->iterations; i++)
		p->step[p->steps++] = (struct ina_step){ coll, c->type, bytes, c->root, (uint32_t)p->steps };
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
		bool sums = coll == HA_INA_ALL_REDUCE || coll == HA_INA_REDUCE || coll == HA_INA_REDUCE_SCATTER;

		if (!chosen(c, coll) || (sums && c->type == HA_INA_BYTES))
			continue;
		for (unsigned i = 0; i < (coll == HA_INA_BARRIER ? 1 : sizes); i++, bytes *= c->factor)
			add_steps(p, c, (enum ha_ina_coll)coll, bytes);
	}
	return p->steps;
}

/* ---- processes ---- */

/* A rank has failed: the others learn of it by themselves, but for those that wait for what it would have given them. */
static void end_others(const pid_t *pid, unsigned ranks)
{
	sleep(GRACE_S);
	for (unsigned r = 0; r < ranks; r++)
		if (pid[r])
			kill(pid[r], SIGKILL);
}

/* All ranks here; the first that fails ends the others. */
static int fork_ranks(struct ina_perf *p)
{
	char folder[] = "/tmp/ha-ina-perf.XXXXXX", ticket[64], path[80];
	pid_t pid[HA_INA_RANKS];
	int worst = 0;

	if (!mkdtemp(folder)) {
		perror(folder);
		return 3;
	}
	snprintf(ticket, sizeof(ticket), "%s/ticket", folder);
	p->ticket = ticket;
	p->joined = mmap(NULL, sizeof(*p->joined), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->joined == MAP_FAILED)
		p->joined = NULL;
	fflush(NULL);
	for (unsigned r = 0; r < p->ranks; r++) {
		pid[r] = fork();
		if (!pid[r]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			p->rank = r;
			exit(ina_perf_rank(p));
		}
	}
	for (unsigned n = 0; n < p->ranks; n++) {
		int status, code;

		pid_t one = wait(&status);

		for (unsigned r = 0; r < p->ranks; r++)
			pid[r] = pid[r] == one ? 0 : pid[r];
		if (worst == 3 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			continue; /* ours */
		code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
		if (WIFSIGNALED(status))
			fprintf(stderr, "ha ina-perf: a rank was ended by signal %d\n", WTERMSIG(status));
		if (code == 3 && worst != 3)
			end_others(pid, p->ranks);
		worst = code > worst ? code : worst;
	}
	for (unsigned i = 0; i <= p->again; i++) {
		snprintf(path, sizeof(path), i ? "%s.%u" : "%s", ticket, i);
		unlink(path);
	}
	rmdir(folder);
	if (p->joined)
		munmap(p->joined, sizeof(*p->joined));
	return worst;
}

/* NULL, or what does not go together. */
static const char *unfit(const struct ina_perf *p, const struct choice *c, bool one)
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
	struct ina_perf p = { .iterations = 11, .ranks = 2, .rank = HA_INA_RANKS, .timeout_s = 60 };
	struct choice c = { "all_reduce", HA_INA_FLOAT32, 4096, 16u << 20, 4, 0 };
	struct ha_config config;
	const char *what;
	int o, status;

	ha_config_load_env(&config); /* for what it says about names that nobody knows */
	while ((o = getopt_long(argc, argv, "b:e:f:n:t:", options, NULL)) >= 0) {
		if (o == OPT_HELP) {
			fputs(usage, stdout);
			return 0;
		}
		if (!take(o, &p, &c))
			return 2;
	}
	if (optind < argc)
		c.collective = argv[optind++];
	what = optind < argc ? "one COLLECTIVE" : unfit(&p, &c, p.rank != HA_INA_RANKS);
	if (!what && !make_steps(&p, &c))
		what = "COLLECTIVE is none of those that `ha ina-perf --help` lists, or does not go with -t bytes";
	if (!what && p.first >= p.steps)
		what = "--first is none of the steps: see -n";
	if (what) {
		fprintf(stderr, "ha ina-perf: %s\n", what);
		free(p.step);
		return 2;
	}
	status = p.rank == HA_INA_RANKS ? fork_ranks(&p) : ina_perf_rank(&p);
	free(p.step);
	return status;
}
