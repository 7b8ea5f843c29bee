/* SPDX-License-Identifier: BSD-3-Clause */
/* ha gpu-check: the list of docs/gpu.md, tried; over ConnectX NICs where there are any, else over software NICs */
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

#include "base/number.h"
#include "gpu/check/check.h"
#include "gpu/host/mlx5.h"
#include "gpu/host/soft.h"
#include "gpu/host/stream.h"
#include "tools/ha.h"
#include "rdma/verbs/dlopen.h"

#define RANKS 2
#define SOFT_NICS 2 /* of each rank */
#define BOOTSTRAP_MS 120000
#define RECEIVES_MS 5000 /* a rank may take to end that has met the other and learns that it has gone */
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

static void usage(FILE *out)
{
	fprintf(out, "usage: ha gpu-check [--soft] [--rounds N] [--cut SECONDS] [--gid-index N] [--only ITEM]\n"
		     "       ha gpu-check --rank 0|1 --root ADDRESS:PORT [the same]   between two machines: rank 0 listens at ADDRESS\n"
		     "       ha gpu-check --list\n"
		     "Runs what docs/gpu.md lists, over the ConnectX NICs of this machine, or where there are none over software NICs.\n"
		     "Each item ends with ok, FAILED or \"not here\" and one line. Settings: HA_GPU_* (gpu/host/README.md).\n"
		     "Exit status: 0 nothing failed, 1 something did, 2 called wrongly.\n");
}

/* A number of the option `name`; else a line says what it takes. */
static bool number_take(const char *name, const char *text, unsigned low, unsigned high, unsigned *n)
{
	return ha_number_take_unsigned("ha gpu-check", name, text ? text : "", low, high, n);
}

/* One of the options that take a number. 1: it is none of them; else 0, or -EINVAL after a line. */
static int number_option(const char *name, const char *value, struct options *o)
{
	unsigned n;

	if (!strcmp(name, "--rounds"))
		return number_take(name, value, 1, 1000000, &o->rounds) ? 0 : -EINVAL;
	if (!strcmp(name, "--cut"))
		return number_take(name, value, 0, 3600, &o->cut_s) ? 0 : -EINVAL;
	if (!strcmp(name, "--gid-index")) {
		if (!number_take(name, value, 0, 255, &n))
			return -EINVAL;
		o->gid_index = (int)n;
		return 0;
	}
	if (!strcmp(name, "--rank")) {
		if (!number_take(name, value, 0, RANKS - 1, &n))
			return -EINVAL;
		o->rank = (int)n;
		return 0;
	}
	return 1;
}

static int parse(int argc, char **argv, struct options *o)
{
	*o = (struct options){ .rank = -1, .gid_index = -1, .rounds = 100 };
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool takes = true, good = value != NULL;
		int numeric = number_option(a, value, o);

		if (numeric < 0)
			return numeric;
		if (!numeric) {
			i++;
			continue;
		}
		if (!strcmp(a, "--soft")) {
			o->soft = good = true;
			takes = false;
		} else if (!strcmp(a, "--list")) {
			o->list = good = true;
			takes = false;
		} else if (!strcmp(a, "--root")) {
			good = good && strlen(value) < sizeof(o->root);
			snprintf(o->root, sizeof(o->root), "%s", good ? value : "");
		} else if (!strcmp(a, "--only")) {
			o->only = value;
		} else {
			good = false;
		}
		if (!good) {
			fprintf(stderr, "ha gpu-check: '%s%s%s' makes no sense; `ha gpu-check --help`\n", a, value && takes ? " " : "",
				value && takes ? value : "");
			return -EINVAL;
		}
		i += takes;
	}
	if ((o->rank >= 0) != (*o->root != 0) || (o->rank >= 0 && o->soft)) {
		fprintf(stderr, "ha gpu-check: --rank and --root go together, and not with --soft\n");
		return -EINVAL;
	}
	for (unsigned i = 0; o->only && i < ha_gpu_check_nitems; i++)
		if (!strcmp(o->only, ha_gpu_check_items[i].name))
			return 0;
	if (!o->only)
		return 0;
	fprintf(stderr, "ha gpu-check: there is no item '%s'; `ha gpu-check --list`\n", o->only);
	return -EINVAL;
}

/* ---- one rank ---- */

static int run(struct ha_gpu_check *k, const struct options *o, int rank)
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
		fprintf(stderr, "ha gpu-check: rank %d has lost the other one: %s\n", rank, strerror(-r));
	if (!rank)
		printf("%u ok, %u not here, %u failed\n", k->count[HA_GPU_CHECK_OK], k->count[HA_GPU_CHECK_NOT_HERE], k->count[HA_GPU_CHECK_FAILED]);
	fflush(stdout);
	return r != 0;
}

static void soft_cut(void *self, bool away)
{
	struct soft_nic *nic = self;

	if (!away) {
		soft_nic_heal(nic);
		return;
	}
	ha_gpu_store(&nic->power, SOFT_DEAD);
	ha_gpu_store(&nic->told, 1);
}

static int run_soft(struct soft_fabric *f, const struct options *o, int rank)
{
	struct ha_gpu_soft soft = { .fabric = f, .first = (unsigned)rank * SOFT_NICS, .n = SOFT_NICS };
	struct ha_gpu_check k = { .config = { .ops = &ha_gpu_soft_ops, .hw = &soft }, .cut = soft_cut, .cut_self = &f->nic[soft.first],
				  .gpu = "software NICs: nothing is on a bus" };
	pthread_t t[SOFT_NICS];
	int r;

	k.config.heap = soft_alloc(f, HA_GPU_CHECK_HEAP);
	if (!k.config.heap) {
		fprintf(stderr, "ha gpu-check: no memory for the heap of rank %d\n", rank);
		return 1;
	}
	for (int i = 0; i < SOFT_NICS; i++)
		if (pthread_create(&t[i], NULL, soft_nic_serve, &f->nic[soft.first + (unsigned)i])) {
			fprintf(stderr, "ha gpu-check: no thread for a NIC of rank %d: see to ulimit -u\n", rank);
			return 1;
		}
	r = run(&k, o, rank);
	for (int i = 0; i < SOFT_NICS; i++) {
		ha_gpu_store(&f->nic[soft.first + (unsigned)i].stop, 1);
		pthread_join(t[i], NULL);
	}
	return r;
}

static int run_mlx5(const struct ha_verbs_ops *verbs, const struct options *o, int rank)
{
	struct ha_gpu_mlx5 m;
	struct ha_gpu_check k = { .config = { .ops = &ha_gpu_mlx5_ops, .hw = &m }, .cut_s = o->cut_s,
				  .gpu = "no kernel is built into this program; threads of the host stood for GPU threads" };
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
	r = run(&k, o, rank);
	free(heap);
	ha_gpu_mlx5_fini(&m);
	return r;
}

/* ---- where ---- */

/* NULL: no ConnectX, and why. */
static struct ha_verbs_ops *connectx(const char **why)
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

static void say_how(int rank, int status, bool together)
{
	char how[40];

	snprintf(how, sizeof(how), WIFSIGNALED(status) ? "killed by signal %d" : "exit status %d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	fprintf(stderr, "ha gpu-check: rank %d has ended (%s)%s; see the lines before, or the kernel's log\n", rank, how,
		together ? "" : " before the ranks met: the other one, which looks for it, is ended, too");
}

/* Ranks that have met receive by their connection that the other has gone. One that has not would look for the other for as long as a person
 * may take to start it on another machine. */
static int wait_for_both(const pid_t pid[RANKS], const uint64_t *met)
{
	int status, other = 0, first = waitpid(-1, &status, 0) == pid[1], second = !first;
	bool together = ha_gpu_load(met) == RANKS;

	if (!WIFSIGNALED(status) && (together || !status)) {
		waitpid(pid[second], &other, 0);
		return status || other;
	}
	say_how(first, status, together);
	if (!ends_within(pid[second], together ? RECEIVES_MS : ALIKE_MS, &other)) {
		if (together)
			fprintf(stderr, "ha gpu-check: rank %d still waits for it after %u s, and is ended\n", second, RECEIVES_MS / 1000);
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
	o->met = mmap(NULL, sizeof(*o->met), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (o->met == MAP_FAILED) {
		perror("ha gpu-check: mmap");
		return 1;
	}
	fflush(stdout);
	for (int rank = 0; rank < RANKS; rank++) {
		pid[rank] = fork();
		if (!pid[rank]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rank goes with the command, however that ends */
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

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage(stdout);
		return 0;
	}
	if (parse(argc, argv, &o))
		return 2;
	if (o.list) {
		for (unsigned i = 0; i < ha_gpu_check_nitems; i++)
			printf("%-12s %s\n", ha_gpu_check_items[i].name, ha_gpu_check_items[i].what);
		return 0;
	}
	if (ha_gpu_settings_load_env(&o.settings))
		return 2;
	if (!o.soft)
		verbs = connectx(&why);
	if (o.rank >= 0 && !verbs) {
		fprintf(stderr, "ha gpu-check: %s here; without --rank and --root it runs over software NICs\n", why);
		return 1;
	}
	if (verbs)
		printf("over the ConnectX NICs of this machine\n");
	else
		printf("over software NICs%s%s: what follows says nothing about hardware\n", why ? ", for there is " : "", why ? why : "");
	if (o.rank >= 0)
		return run_mlx5(verbs, &o, o.rank);
	if (ha_gpu_stream_free_local(o.root)) {
		fprintf(stderr, "ha gpu-check: cannot listen on 127.0.0.1, where the ranks meet: is the loopback interface up?\n");
		return 1;
	}
	return both_here(verbs, &o);
}
