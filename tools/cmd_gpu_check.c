/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ha gpu-check: the list of docs/gpu.md, tried; over ConnectX NICs where there are any, else over
 * software NICs
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"
#include "gpu/check/check.h"
#include "gpu/host/mlx5.h"
#include "gpu/host/soft.h"
#include "gpu/host/stream.h"
#include "rdma/verbs/dlopen.h"
#include "tools/ha.h"

#define RANKS 2
#define SOFT_NICS 2 /* of each rank */
#define BOOTSTRAP_MS 120000
/* a rank may take to end that has met the other and learns that it has gone */
#define RECEIVES_MS 5000
#define ALIKE_MS 1000 /* ranks may lie apart that both end, for one reason, before they meet */

struct options {
	bool soft, list;
	int rank; /* -1: both, here */
	int gid_index;
	unsigned rounds, cut_s;
	const char *only;
	char root[80];
	struct ha_gpu_settings settings;
	uint64_t *met; /* both here: how many ranks have met the other; in shared memory */
};

/* ---- options ---- */

static bool take_item(void *target, const struct ha_option_text *given)
{
	struct options *o = target;

	o->only = given->text;
	for (unsigned i = 0; i < ha_gpu_check_nitems; i++)
		if (!strcmp(given->text, ha_gpu_check_items[i].name))
			return true;
	fprintf(stderr, "ha gpu-check: there is no item '%s'; `ha gpu-check --list`\n",
		given->text);
	return false;
}

#define HA_TARGET struct options

static const struct ha_option options[] = {
	{ "soft", 0, NULL, "over software NICs, also where there are ConnectX NICs",
	  HA_FLAG(soft) },
	{ "rounds", 0, "N", "of each item that repeats something (100)",
	  HA_NUMBER(rounds, 1, 1000000) },
	{ "cut", 0, "SECONDS", "wait so long for somebody to pull a cable",
	  HA_NUMBER(cut_s, 0, 3600) },
	{ "gid-index", 0, "N", "the GID that a port uses (the first of RoCE v2)",
	  HA_NUMBER(gid_index, 0, 255) },
	{ "only", 0, "ITEM", "one item of the list", HA_CALL(take_item, NULL) },
	{ "list", 0, NULL, "print the items", HA_FLAG(list) },
	{ "rank", 0, "0|1", "between two machines: be this rank", HA_NUMBER(rank, 0, RANKS - 1) },
	{ "root", 0, "ADDRESS:PORT", "between two machines: where rank 0 listens", HA_COPY(root) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha gpu-check",
	.synopsis = "[--soft] [--rounds N] [--cut SECONDS] [--gid-index N] [--only ITEM]\n"
		    "--rank 0|1 --root ADDRESS:PORT [the same]\n--list",
	.about = "Runs what docs/gpu.md lists, over the ConnectX NICs of this machine, or where "
		 "there are none over software NICs. "
		 "Each item ends with ok, FAILED or \"not here\" and one line. It has the "
		 "settings too, HA_GPU_*.",
	.options = { options },
	.notes = "Exit status: 0 nothing failed, 1 something did, 2 called wrongly.",
};

static int parse_options(int argc, char **argv, struct options *o)
{
	int result;

	*o = (struct options) { .rank = -1, .gid_index = -1, .rounds = 100 };
	result = ha_options_parse(&program, argc, argv, o);
	if (result)
		return result;
	if ((o->rank >= 0) != (*o->root != 0) || (o->rank >= 0 && o->soft))
		return ha_program_refuse(&program,
					 "--rank and --root go together, and not with --soft");
	return 0;
}

/* ---- one rank ---- */

static int run_rank(struct ha_gpu_check *k, const struct options *o, int rank)
{
	struct ha_gpu_bootstrap b;
	int r = ha_gpu_bootstrap_tcp(&b, o->root, rank, RANKS, 0x67707563, BOOTSTRAP_MS);

	if (r)
		return 1;
	if (o->met)
		ha_gpu_add(o->met, 1);
	k->config.settings = o->settings;
	k->config.bootstrap = &b;
	k->config.heap_bytes = HA_GPU_CHECK_HEAP;
	k->rounds = o->rounds;
	k->only = o->only;
	k->out = stdout;
	r = ha_gpu_check_run(k);
	ha_gpu_bootstrap_close(&b);
	if (r < 0)
		fprintf(stderr, "ha gpu-check: rank %d has lost the other one: %s\n", rank,
			strerror(-r));
	if (!rank)
		printf("%u ok, %u not here, %u failed\n", k->count[HA_GPU_CHECK_OK],
		       k->count[HA_GPU_CHECK_NOT_HERE], k->count[HA_GPU_CHECK_FAILED]);
	fflush(stdout);
	return r != 0;
}

static void cut_soft_nic(void *self, bool away)
{
	struct soft_nic *nic = self;

	if (!away) {
		soft_nic_heal(nic);
		return;
	}
	ha_gpu_store(&nic->power, SOFT_DEAD);
	ha_gpu_store(&nic->reported, 1);
}

static int run_soft(struct soft_fabric *f, const struct options *o, int rank)
{
	struct ha_gpu_soft soft = { .fabric = f,
				    .first = (unsigned)rank * SOFT_NICS,
				    .n = SOFT_NICS };
	struct ha_gpu_check k = { .config = { .ops = &ha_gpu_soft_ops, .hw = &soft },
				  .cut = cut_soft_nic,
				  .cut_self = &f->nic[soft.first],
				  .gpu = "software NICs: nothing is on a bus" };
	pthread_t t[SOFT_NICS];
	int r;

	k.config.heap = soft_alloc(f, HA_GPU_CHECK_HEAP);
	if (!k.config.heap) {
		fprintf(stderr, "ha gpu-check: no memory for the heap of rank %d\n", rank);
		return 1;
	}
	for (int i = 0; i < SOFT_NICS; i++)
		if (pthread_create(&t[i], NULL, soft_nic_serve,
				   &f->nic[soft.first + (unsigned)i])) {
			fprintf(stderr,
				"ha gpu-check: no thread for a NIC of rank %d: see to ulimit -u\n",
				rank);
			return 1;
		}
	r = run_rank(&k, o, rank);
	for (int i = 0; i < SOFT_NICS; i++) {
		ha_gpu_store(&f->nic[soft.first + (unsigned)i].stop, 1);
		pthread_join(t[i], NULL);
	}
	return r;
}

static int run_mlx5(const struct ha_verbs_ops *verbs, const struct options *o, int rank)
{
	struct ha_gpu_mlx5 m;
	struct ha_gpu_check k = { .config = { .ops = &ha_gpu_mlx5_ops, .hw = &m },
				  .cut_s = o->cut_s,
				  .gpu = "no kernel is built into this program; threads of the "
					 "host stood for GPU threads" };
	void *heap;
	int r;

	if (ha_gpu_mlx5_init(&m, verbs, NULL))
		return 1;
	m.gid_index = o->gid_index;
	heap = aligned_alloc(4096, HA_GPU_CHECK_HEAP);
	if (!heap) {
		fprintf(stderr, "ha gpu-check: no memory for the heap of rank %d\n", rank);
		return 1;
	}
	memset(heap, 0, HA_GPU_CHECK_HEAP);
	k.config.heap = heap;
	r = run_rank(&k, o, rank);
	free(heap);
	ha_gpu_mlx5_fini(&m);
	return r;
}

/* ---- where ---- */

/* NULL: no ConnectX, and why. */
static struct ha_verbs_ops *find_connectx(const char **why)
{
	static struct ha_verbs_ops *verbs;
	struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
	struct ha_gpu_mlx5 m;
	int n;

	*why = "no libibverbs";
	if (ha_verbs_open_library("system", &verbs))
		return NULL;
	*why = "no libmlx5";
	if (ha_gpu_mlx5_init(&m, verbs, NULL))
		return NULL;
	n = ha_gpu_mlx5_ops.ports(&m, list, HA_GPU_PORTS_MAX);
	ha_gpu_mlx5_fini(&m);
	*why = "no ConnectX";
	return n > 0 ? verbs : NULL;
}

/* False: it is still there after that time. */
static bool ends_within(pid_t pid, unsigned ms, int *status)
{
	const struct timespec nap = { 0, 10000000 };
	uint64_t end = ha_gpu_now() + UINT64_C(1000000) * ms;

	while (waitpid(pid, status, WNOHANG) != pid) {
		if (ha_gpu_now() > end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

static void report_end(int rank, int status, bool together)
{
	char how[40];

	snprintf(how, sizeof(how), WIFSIGNALED(status) ? "killed by signal %d" : "exit status %d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	fprintf(stderr,
		"ha gpu-check: rank %d has ended (%s)%s; see the lines before, or the kernel's "
		"log\n",
		rank, how,
		together ? ""
			 : " before the ranks met: the other one, which looks for it, is ended, "
			   "too");
}

/* Ranks that have met receive by their connection that the other has gone. One that has not would
 * look for the other for as long as a person may take to start it on another machine. */
static int wait_for_both(const pid_t pid[RANKS], const uint64_t *met)
{
	int status, other = 0, first = waitpid(-1, &status, 0) == pid[1], second = !first;
	bool together = ha_gpu_load(met) == RANKS;

	if (!WIFSIGNALED(status) && (together || !status)) {
		waitpid(pid[second], &other, 0);
		if (WIFSIGNALED(other)) /* the first one was quick to receive it */
			report_end(second, other, true);
		return status || other;
	}
	report_end(first, status, together);
	if (!ends_within(pid[second], together ? RECEIVES_MS : ALIKE_MS, &other)) {
		if (together)
			fprintf(stderr,
				"ha gpu-check: rank %d still waits for it after %u s, and is "
				"ended\n",
				second, RECEIVES_MS / 1000);
		kill(pid[second], SIGKILL);
		waitpid(pid[second], &other, 0);
	}
	return 1;
}

static int both_here(const struct ha_verbs_ops *verbs, struct options *o)
{
	struct soft_fabric *f = verbs ? NULL : soft_fabric_open(RANKS * SOFT_NICS, 24 << 20);
	pid_t pid[RANKS], command = getpid();

	if (!verbs && !f) {
		fprintf(stderr, "ha gpu-check: no memory for software NICs\n");
		return 1;
	}
	o->met = mmap(NULL, sizeof(*o->met), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (o->met == MAP_FAILED) {
		perror("ha gpu-check: mmap");
		return 1;
	}
	fflush(stdout);
	for (int rank = 0; rank < RANKS; rank++) {
		pid[rank] = fork();
		if (!pid[rank]) {
			/* a rank goes with the command, however that ends */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != command)
				_exit(1);
			_exit(verbs ? run_mlx5(verbs, o, rank) : run_soft(f, o, rank));
		}
		if (pid[rank] > 0)
			continue;
		perror("ha gpu-check: fork");
		for (int i = 0; i < rank; i++)
			kill(pid[i], SIGKILL);
		return 1;
	}
	return wait_for_both(pid, o->met);
}

int ha_cmd_gpu_check(int argc, char **argv)
{
	const struct ha_verbs_ops *verbs = NULL;
	const char *why = NULL;
	struct options o;
	int result;

	result = parse_options(argc, argv, &o);
	if (result)
		return result - 1;
	if (o.list) {
		for (unsigned i = 0; i < ha_gpu_check_nitems; i++)
			printf("%-12s %s\n", ha_gpu_check_items[i].name,
			       ha_gpu_check_items[i].what);
		return 0;
	}
	if (ha_gpu_settings_load_env(&o.settings))
		return 2;
	if (!o.soft)
		verbs = find_connectx(&why);
	if (o.rank >= 0 && !verbs) {
		fprintf(stderr,
			"ha gpu-check: %s here; without --rank and --root it runs over software "
			"NICs\n",
			why);
		return 1;
	}
	if (verbs)
		printf("over the ConnectX NICs of this machine\n");
	else
		printf("over software NICs%s%s: what follows says nothing about hardware\n",
		       why ? ", for there is " : "", why ? why : "");
	if (o.rank >= 0)
		return run_mlx5(verbs, &o, o.rank);
	if (ha_gpu_stream_free_local(o.root)) {
		fprintf(stderr, "ha gpu-check: cannot listen on 127.0.0.1, where the ranks meet: "
				"is the loopback interface up?\n");
		return 1;
	}
	return both_here(verbs, &o);
}
