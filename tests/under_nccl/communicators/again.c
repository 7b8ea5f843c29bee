/* SPDX-License-Identifier: BSD-3-Clause */
/* again.c - communicators that are made again and again, and libraries that are loaded again */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "tests/under_nccl/communicators/cases.h"
#include "tests/under_nccl/communicators/footprint.h"
#include "tests/under_nccl/communicators/member.h"
#include "tests/under_nccl/communicators/nics.h"

#define WARM_TIMES_MAX 20 /* of many; of few the first half */
/* NCCL keeps some memory of every communicator; no object of the plugin's connections is as
 * small */
#define LEFT_KB 1

/* ---- 200 times ---- */

static int times_wanted;

/* After which nothing may grow. */
static int warm_times(void)
{
	return times_wanted / 2 < WARM_TIMES_MAX ? times_wanted / 2 : WARM_TIMES_MAX;
}

static void check_growth(const struct rank *me, const struct footprint *early,
			 const struct footprint *late)
{
	long times = times_wanted - warm_times();

	footprint_print(me->rank, "early", early);
	footprint_print(me->rank, "late", late);
	CHECK(late->descriptors <= early->descriptors);
	CHECK(late->threads <= early->threads);
	/* stacks and arenas of threads that have ended are kept by the C library: less than one
	 * mapping each time is no leak */
	CHECK(late->mappings <= early->mappings + 64 + times / 2);
	CHECK(late->heap_kb <= early->heap_kb + 64 + times * LEFT_KB);
}

static void live_many_times(struct rank *me)
{
	struct footprint early = { 0 }, late;
	struct member m;

	rank_open_library(me);
	for (int i = 0; i < times_wanted; i++) {
		if (i == warm_times())
			early = footprint_take();
		member_open(&m, me, 2000);
		member_rounds(&m, 2);
		member_close(&m);
		rank_barrier(me);
	}
	late = footprint_await(&early);
	check_growth(me, &early, &late);
}

/* Every communicator is new, with the plugin that NCCL loads and unloads each time; nothing is left
 * of them. */
void test_many_times(int times)
{
	times_wanted = times;
	ranks_run(2, live_many_times, NULL);
}

/* ---- the plugin ---- */

static void live_three_times(struct rank *me)
{
	struct member m;

	rank_open_library(me);
	for (int i = 0; i < 3; i++) {
		member_open(&m, me, 100000);
		member_rounds(&m, 40);
		member_close(&m);
		rank_barrier(me);
	}
}

static void cut_now_and_then(struct ranks *ranks)
{
	for (int i = 0; i < 3; i++) {
		ranks_await_rounds(ranks, 0, 5);
		nic_cut(ranks->pid[i % 2], 0);
		ranks_await_rounds(ranks, 0, 25);
		nic_heal(ranks->pid[i % 2], 0);
		while (atomic_load(&ranks->shared->rounds[0]) < 40u * (unsigned)(i + 1))
			ranks_await_rounds(ranks, 0, 1);
	}
	CHECK(ranks_events("\"failed_over\"") > 0);
}

/* NCCL closes the plugin with its last communicator; the next one has it again, or NCCL would find
 * no network HA. */
void test_plugin_comes_back(void)
{
	ranks_run(2, live_three_times, cut_now_and_then);
}

/* ---- libnccl ---- */

static void live_with_and_without_libnccl(struct rank *me)
{
	struct member m;
	void *handle;

	for (int i = 0; i < 3; i++) {
		rank_open_library(me);
		member_open(&m, me, 10000);
		member_rounds(&m, 10);
		member_close(&m);
		rank_barrier(me);
		handle = dlopen(ranks_libnccl(), RTLD_NOW | RTLD_NOLOAD);
		CHECK(handle);
		CHECK(!dlclose(handle));
		CHECK(!dlclose(handle)); /* rank_open_library()'s */
	}
}

/* A program that closes libnccl and opens it again, as an interpreter with extension modules may
 * do. */
void test_libnccl_comes_back(void)
{
	ranks_run(2, live_with_and_without_libnccl, NULL);
}
