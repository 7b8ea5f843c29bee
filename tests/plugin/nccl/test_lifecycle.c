/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init and finalize: many communicators at once, from many threads, in any order, again and again;
 * init twice where there is no finalize. After the last one no thread and no descriptor of ours is
 * left, and everything works again after a new init.
 */
#include "tests/plugin/nccl/rig.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 5

static struct rig rig;

static void use_connection(struct rig *r)
{
	struct rig_pair pair;

	rig_pair_open(r, &pair);
	rig_exchange(r, &pair, 3000);
	rig_pair_close(r, &pair);
}

static void *run_communicator(void *arg)
{
	struct rig own = rig; /* the same library and table, a communicator of its own */

	for (int i = 0; i < ROUNDS; i++) {
		OK(rig_init(&own));
		OK(own.plugin.count(&own.plugin.devices));
		CHECK(own.plugin.devices > 0, "no device");
		use_connection(&own);
		if (own.plugin.abi->finalize)
			OK(own.plugin.abi->finalize(&own.plugin));
	}
	return NULL;
}

static void from_threads(void)
{
	pthread_t thread[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, run_communicator, NULL), "thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Several communicators of one thread; the first to come is the first to go, connections stay
 * usable. */
static void overlapping_communicators(void)
{
	struct rig a = rig, b = rig;
	struct rig_pair pair;

	OK(rig_init(&a));
	OK(rig_init(&b));
	rig_pair_open(&b, &pair);
	if (a.plugin.abi->finalize)
		OK(a.plugin.abi->finalize(&a.plugin));
	rig_exchange(&b, &pair, 70000);
	rig_pair_close(&b, &pair);
	if (b.plugin.abi->finalize)
		OK(b.plugin.abi->finalize(&b.plugin));
}

static void *finalize_elsewhere(void *arg)
{
	struct rig *r = arg;

	OK(r->plugin.abi->finalize(&r->plugin));
	return NULL;
}

/* finalize comes from a thread that never called us, with comms still open. */
static void foreign_finalize(void)
{
	struct rig own = rig;
	pthread_t thread;
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	void *listen, *send = NULL;

	if (!rig.plugin.abi->finalize)
		return;
	OK(rig_init(&own));
	OK(own.plugin.abi->listen(&own.plugin, 0, handle, &listen));
	OK(own.plugin.abi->connect(&own.plugin, 0, handle, &send));
	CHECK(!pthread_create(&thread, NULL, finalize_elsewhere, &own), "thread");
	pthread_join(thread, NULL);
}

/* A child after fork() begins anew; what it has inherited does not hinder it, and what it does does
 * not hurt the parent. */
static void in_a_child(void)
{
	struct rig own = rig;
	struct rig_pair pair;
	int status = -1;
	pid_t child;

	OK(rig_init(&own));
	rig_pair_open(&own, &pair);
	rig_exchange(&own, &pair, 1000);
	child = fork();
	if (!child) {
		OK(rig_init(&rig));
		OK(rig.plugin.count(&rig.plugin.devices));
		CHECK(rig.plugin.devices > 0, "no device in a child");
		use_connection(&rig);
		if (rig.plugin.abi->finalize)
			OK(rig.plugin.abi->finalize(&rig.plugin));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status, "the child's status 0x%x", status);
	rig_exchange(&own, &pair, 1000);
	rig_pair_close(&own, &pair);
	if (own.plugin.abi->finalize)
		OK(own.plugin.abi->finalize(&own.plugin));
}

static void nothing_left(int threads, int fds, const char *when)
{
	int left = rig_count_threads(threads);

	CHECK(left == threads, "%s: %d threads, %d before", when, left, threads);
	CHECK(rig_count_fds() <= fds, "%s: %d descriptors, %d before", when, rig_count_fds(), fds);
}

int main(int argc, char **argv)
{
	int threads, fds;

	rig_prepare(&rig, argc, argv);
	threads = rig_count_threads(1);
	fds = rig_count_fds();
	rig_load(&rig, rig_plugin_path());
	nothing_left(threads, fds, "after loading");
	for (int i = 0; i < 3; i++) {
		overlapping_communicators();
		if (rig.plugin.abi->finalize)
			nothing_left(threads, fds, "after the last finalize");
	}
	in_a_child();
	foreign_finalize();
	if (rig.plugin.abi->finalize)
		nothing_left(threads, fds, "after a finalize with open comms");
	from_threads();
	if (rig.plugin.abi->finalize)
		nothing_left(threads, fds, "after many threads");
	rig.plugin.initialized = false;
	if (!rig.plugin.abi->finalize) { /* context and library stay, and do not grow */
		threads = rig_count_lasting_threads(1);
		fds = rig_count_fds();
		from_threads();
		rig_shrink_to(threads, fds);
		return 0;
	}
	rig_close(&rig);
	nothing_left(threads, fds, "after dlclose");
	return 0;
}
