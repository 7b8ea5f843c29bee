/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-gin LIBNCCL PLUGIN: what NCCL's GIN proxy makes of a plugin, or with PLUGIN "none" of
 * NCCL's own IB transport: latency of a put with a signal, rate of small ones, bandwidth of large
 * ones
 *
 * Two ranks, a process each; a CPU thread stands for the kernel (tests/under_nccl/gin). Prints one
 * line of JSON. `bench/gin` runs it in turns.
 */
#include "tests/under_nccl/communicators/ranks.h"
#include "tests/under_nccl/gin/kernel.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/options.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (16u << 20)
#define PINGS 1500
#define SMALL 20000
#define LARGE 300
#define LARGE_BYTES (256u << 10)
#define SAMPLES 5

struct bench {
	struct rank *me;
	struct gin_kernel kernel;
	uint64_t sent, seen; /* signals to the other rank, and from it */
};

/* Only two processors: who waits lets NCCL's threads run. */
static void await_signals(struct bench *b, uint64_t signals)
{
	while (gin_signal(&b->kernel, 0, 0) < signals)
		sched_yield();
	b->seen = signals;
}

static void enqueue_put(struct bench *b, size_t size)
{
	struct gin_operation o = { .peer = 1 - b->me->rank,
				   .source = 0,
				   .target = BYTES / 2,
				   .size = size,
				   .signal_op = GIN_SIGNAL_INC,
				   .counter = -1 };

	while (!gin_enqueue(&b->kernel, &o))
		sched_yield();
	b->sent++;
}

/* Microseconds one way. */
static double measure_latency(struct bench *b)
{
	double begun = ha_monotonic_s();

	for (int i = 0; i < PINGS; i++) {
		if (!b->me->rank)
			enqueue_put(b, 8);
		await_signals(b, b->seen + 1);
		if (b->me->rank)
			enqueue_put(b, 8);
	}
	return (ha_monotonic_s() - begun) * 1e6 / PINGS / 2;
}

/* Puts a second, rank 0 to rank 1; the time is that of the last one's signal, and of its answer. */
static double measure_rate(struct bench *b, int n, size_t size)
{
	double begun = ha_monotonic_s();

	if (b->me->rank) {
		await_signals(b, b->seen + (unsigned)n);
		enqueue_put(b, 0);
	} else {
		for (int i = 0; i < n; i++)
			enqueue_put(b, size);
		await_signals(b, b->seen + 1);
	}
	return n / (ha_monotonic_s() - begun);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *x)
{
	qsort(x, SAMPLES, sizeof(*x), compare_doubles);
	return x[SAMPLES / 2];
}

static void run_samples(struct bench *b)
{
	double us[SAMPLES], small[SAMPLES], large[SAMPLES];

	measure_latency(b);
	for (int i = 0; i < SAMPLES; i++) {
		us[i] = measure_latency(b);
		rank_barrier(b->me);
		small[i] = measure_rate(b, SMALL, 64);
		rank_barrier(b->me);
		large[i] = measure_rate(b, LARGE, LARGE_BYTES) * LARGE_BYTES / 1e6;
		rank_barrier(b->me);
	}
	if (!b->me->rank)
		printf("{\"latency_us\": %.2f, \"puts_per_s\": %.0f, \"mb_per_s\": %.1f}\n",
		       median(us), median(small), median(large));
}

static void run_rank(struct rank *me)
{
	static struct bench b;
	int (*create)(nccl_comm, const struct gin_requirements *, struct gin_device_comm *);
	int (*register_window)(nccl_comm, void *, size_t, struct gin_window **, int);
	int (*deregister_window)(nccl_comm, struct gin_window *);
	int (*destroy)(nccl_comm, const struct gin_device_comm *);
	struct gin_requirements want = { .size = sizeof(want),
					 .magic = 0xcafebeef,
					 .version = 22907,
					 .contexts = 1,
					 .signals = 1,
					 .connection_type = 1 };
	struct nccl_config config = { .size = sizeof(config),
				      .magic = NCCL_CONFIG_MAGIC,
				      .version = NCCL_CONFIG_VERSION,
				      .blocking = NCCL_UNDEFINED,
				      .cga_cluster_size = NCCL_UNDEFINED,
				      .min_ctas = NCCL_UNDEFINED,
				      .max_ctas = NCCL_UNDEFINED,
				      .net_name = getenv("TEST_NET"),
				      .split_share = NCCL_UNDEFINED };
	struct gin_window *window;
	void *library;
	nccl_comm comm;
	int err;

	b.me = me;
	rank_open_library(me);
	library = dlopen(ranks_libnccl(), RTLD_NOW | RTLD_NOLOAD);
	CHECK(library);
	ranks_find_call(library, &create, "ncclDevCommCreate");
	ranks_find_call(library, &destroy, "ncclDevCommDestroy");
	ranks_find_call(library, &register_window, "ncclCommWindowRegister");
	ranks_find_call(library, &deregister_window, "ncclCommWindowDeregister");
	err = me->library.nccl.comm_init(&comm, me->count, rank_next_id(me), me->rank, &config);
	CHECK_INT(err, 0);
	CHECK_INT(create(comm, &want, &b.kernel.comm), 0);
	CHECK_INT(me->library.nccl.mem_alloc((void **)&b.kernel.memory, BYTES), 0);
	CHECK_INT(register_window(comm, b.kernel.memory, BYTES, &window, NCCL_WIN_SYMMETRIC), 0);
	b.kernel.window = window;
	rank_barrier(me);
	run_samples(&b);
	CHECK_INT(deregister_window(comm, window), 0);
	CHECK_INT(destroy(comm, &b.kernel.comm), 0);
	CHECK_INT(me->library.nccl.comm_destroy(comm), 0);
}

struct arguments {
	const char *library, *plugin;
};

#define HA_TARGET struct arguments

static const struct ha_option operands[] = {
	{ "LIBNCCL", 0, NULL, "NCCL's library", HA_TEXT(library) },
	{ "PLUGIN", 0, NULL, "or none: NCCL's own IB transport", HA_TEXT(plugin) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-gin",
	.about = "What NCCL's GIN proxy makes of a plugin: one line of JSON.",
	.operands = operands,
	.needed = 2,
};

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	int stop = ha_options_parse(&program, argc, argv, &arguments);
	bool own;

	if (stop)
		return stop - 1;
	own = !strcmp(arguments.plugin, "none");
	ranks_prepare(arguments.library, arguments.plugin);
	setenv("NCCL_GIN_TYPE", "2", 1);
	setenv("NCCL_GIN_NCONNECTIONS", "1", 1);
	setenv("NCCL_CUMEM_ENABLE", "1", 1);
	setenv("TEST_NET", own ? "IB" : "HA", 1);
	ranks_run(2, run_rank, NULL);
	return 0;
}
