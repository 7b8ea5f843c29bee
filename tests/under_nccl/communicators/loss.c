/* SPDX-License-Identifier: BSD-3-Clause */
/* loss.c - communicators that end before their time: aborted, a rank killed, no path left */
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "tests/under_nccl/communicators/cases.h"
#include "tests/under_nccl/communicators/footprint.h"
#include "tests/under_nccl/communicators/member.h"
#include "tests/under_nccl/communicators/nics.h"

#define REMOTE_ERROR 6
#define SYSTEM_ERROR 2

/* ---- abort ---- */

/* One rank's collective waits for ever for the others, who do not call it. */
static void abort_a_lonely_collective(struct rank *me)
{
	struct member m;

	member_open(&m, me, 200000);
	member_rounds(&m, 3);
	if (!me->rank)
		member_start(&m);
	rank_barrier(me);
	member_abort(&m);
}

/* Collectives of all ranks are under way. */
static void abort_under_way(struct rank *me, int of_rank)
{
	struct member m;

	member_open(&m, me, 400000);
	member_rounds(&m, 3);
	/* or a slow rank is still in those rounds when another aborts, and is notified of it */
	rank_barrier(me);
	for (int i = 0; i < MEMBER_SLOTS; i++)
		member_start(&m);
	/* one rank aborts, the others wait until they are notified, and abort as well */
	if (me->rank == of_rank)
		member_abort(&m);
	rank_barrier(me);
	if (me->rank != of_rank)
		member_abort(&m);
}

static void live_abort(struct rank *me)
{
	struct footprint early = { 0 }, late;
	struct member m;

	rank_open_library(me);
	for (int i = 0; i < 6; i++) {
		if (i == 2)
			early = footprint_take();
		if (i % 2)
			abort_under_way(me, i / 2 % me->count);
		else
			abort_a_lonely_collective(me);
		rank_barrier(me);
		member_open(&m, me, 5000);
		member_rounds(&m, 5);
		member_close(&m);
		rank_barrier(me);
	}
	late = footprint_await(&early);
	footprint_print(me->rank, "early", &early);
	footprint_print(me->rank, "late", &late);
	/* The early look may miss what is still starting; a leak adds one for each of four
	 * repetitions, and a buffer's memory. */
	CHECK(late.threads <= early.threads + 2);
	CHECK(late.descriptors <= early.descriptors + 2);
	CHECK(late.memory_kb <= early.memory_kb + 4096);
}

/* ncclCommAbort in the middle of a collective, again and again; the next communicator works,
 * nothing is left behind. */
void test_abort(void)
{
	ranks_run(3, live_abort, NULL);
}

/* ---- a killed rank ---- */

/* All-reduces until NCCL says that it cannot go on; the error. */
static int run_until_error(struct member *m)
{
	double start;
	int error;

	for (;;) {
		member_start(m);
		start = ha_monotonic_s();
		error = member_wait(m);
		if (!error) {
			member_finish(m);
			continue;
		}
		printf("rank %d: ncclCommGetAsyncError: %s after %.2f s; %s\n", m->me->rank,
		       m->me->library.nccl.error_string(error), ha_monotonic_s() - start,
		       m->me->library.nccl.last_error(m->comm));
		fflush(stdout);
		return error;
	}
}

static void live_beside_a_killed_rank(struct rank *me)
{
	struct member m;
	int error;

	rank_open_library(me);
	member_open(&m, me, 100000);
	error = run_until_error(&m);
	CHECK(me->rank != 3);
	CHECK(error == REMOTE_ERROR || error == SYSTEM_ERROR);
	me->alive &= ~(1u << 3);
	member_abort(&m);
	member_open(&m, me, 100000);
	member_rounds(&m, 20);
	member_close(&m);
}

static void kill_the_last(struct ranks *ranks)
{
	ranks_await_rounds(ranks, 0, 20);
	ranks_kill(ranks, 3);
}

/* After a rank's kill -9 all others learn it from ncclCommGetAsyncError, abort, and go on without
 * it. */
void test_killed_rank(void)
{
	ranks_run(4, live_beside_a_killed_rank, kill_the_last);
}

/* ---- no path ---- */

static void live_without_a_path(struct rank *me)
{
	struct member m;
	int error;

	rank_open_library(me);
	member_open(&m, me, 100000);
	error = run_until_error(&m);
	CHECK(error == REMOTE_ERROR || error == SYSTEM_ERROR);
	member_abort(&m);
	rank_barrier(me);
	if (!me->rank)
		atomic_store(&me->shared->stage, 1);
	rank_note(me, "waits for the cables to be healed");
	while (atomic_load(&me->shared->stage) < 2)
		ranks_sleep();
	member_open(&m, me, 100000);
	member_rounds(&m, 20);
	member_close(&m);
}

static void cut_both_cables(struct ranks *ranks)
{
	/* a first cut is survived: only the loss of both is an error */
	ranks_await_rounds(ranks, 0, 20);
	nic_cut(ranks->pid[1], 0);
	ranks_await_rounds(ranks, 0, 20);
	nic_cut(ranks->pid[1], 1);
	ranks_await_stage(ranks, 1);
	nic_heal(ranks->pid[1], 0);
	nic_heal(ranks->pid[1], 1);
	atomic_store(&ranks->shared->stage, 2);
}

/* Both cables of a rank cut for longer than HA_NCCL_MAX_RETRIES allows: an error at every rank, no
 * hang; healed, a new communicator of the same processes works. */
void test_no_path(void)
{
	ranks_run(3, live_without_a_path, cut_both_cables);
}
