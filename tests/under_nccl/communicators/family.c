/* SPDX-License-Identifier: BSD-3-Clause */
/* family.c - communicators made of others, and several at once */
#include <stdio.h>

#include "base/check.h"
#include "tests/under_nccl/communicators/cases.h"
#include "tests/under_nccl/communicators/member.h"
#include "tests/under_nccl/communicators/nics.h"

#define SHRINK_DEFAULT 0
#define SHRINK_ABORT 1
#define NO_COLOR (-1)

/* Traffic of several communicators, interleaved: all rounds are under way before the first is
 * waited for. */
static void run_interleaved(struct member *members, int count, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		for (int k = 0; k < count; k++)
			member_start(&members[k]);
		for (int k = count - 1; k >= 0; k--)
			member_finish(&members[k]);
	}
}

/* Cuts and heals one cable of a rank, then the other, while collectives go on. */
static void cut_twice(struct ranks *ranks)
{
	for (int i = 0; i < 2; i++) {
		ranks_await_rounds(ranks, 0, 5);
		nic_cut(ranks->pid[2], i);
		ranks_await_rounds(ranks, 0, 10);
		nic_heal(ranks->pid[2], i);
		ranks_await_rounds(ranks, 0, 5);
	}
	CHECK(ranks_events("\"failed_over\"") > 0);
}

/* ---- split ---- */

static int share_wanted;

static void split_once(struct rank *me, struct member *parent, int color, int key,
		       uint32_t processes, struct member *child)
{
	struct nccl_config config = member_config();
	nccl_comm comm = NULL;

	config.split_share = share_wanted;
	rank_note(me, "ncclCommSplit, color %d", color);
	member_check(me, me->calls.split(parent->comm, color, key, &comm, &config),
		     "ncclCommSplit");
	if (color == NO_COLOR) {
		CHECK(!comm);
		return;
	}
	member_adopt(child, me, comm, processes, 100 + (uint32_t)color + 8 * parent->number, 30000);
}

static void live_split(struct rank *me)
{
	struct member m[3]; /* all ranks; halves in reverse order; all but the last */

	rank_open_library(me);
	for (share_wanted = 0; share_wanted < 2; share_wanted++) {
		bool last = me->rank == me->count - 1;

		member_open(&m[0], me, 30000);
		member_rounds(&m[0], 4);
		split_once(me, &m[0], me->rank % 2, -me->rank, 5u << me->rank % 2, &m[1]);
		CHECK_INT(m[1].rank, me->rank < 2);
		run_interleaved(m, 2, 30);
		split_once(me, &m[0], last ? NO_COLOR : 2, 0, 7, &m[2]);
		run_interleaved(m, last ? 2 : 3, 30);
		if (!last)
			member_close(&m[2]);
		/* the parent goes first one time, the child the other */
		member_rounds(&m[share_wanted], 4);
		member_close(&m[!share_wanted]);
		member_rounds(&m[share_wanted], 4);
		member_close(&m[share_wanted]);
		rank_barrier(me);
	}
}

/* ncclCommSplit with and without shared resources, traffic in parent and children at once, a cable
 * cut and healed. */
void test_split(void)
{
	ranks_run(4, live_split, cut_twice);
}

/* ---- shrink ---- */

static void shrink_once(struct rank *me, struct member *parent, uint32_t excluded, int flags,
			struct member *child)
{
	int list[RANKS_MAX], count = 0;
	nccl_comm comm = NULL;

	for (int r = 0; r < parent->count; r++)
		if (excluded >> r & 1)
			list[count++] = r;
	rank_note(me, "ncclCommShrink");
	member_check(me, me->calls.shrink(parent->comm, list, count, &comm, NULL, flags),
		     "ncclCommShrink");
	member_adopt(child, me, comm, parent->processes & ~excluded, 200 + parent->number, 30000);
}

static void live_shrink(struct rank *me)
{
	struct member m[2];

	rank_open_library(me);
	member_open(&m[0], me, 30000);
	member_rounds(&m[0], 20);
	rank_barrier(me);
	if (me->rank == 1) {
		rank_barrier(me);
		member_close(&m[0]);
		return;
	}
	shrink_once(me, &m[0], 1u << 1, SHRINK_DEFAULT, &m[1]);
	member_rounds(&m[1], 60);
	member_close(&m[1]);
	rank_barrier(me);
	member_close(&m[0]);
}

/* ncclCommShrink of a healthy communicator: the ranks that stay have one more, a cable is cut and
 * healed. */
void test_shrink(void)
{
	ranks_run(4, live_shrink, cut_twice);
}

/* The survivors' collectives under way, of which none can end, are ended by the shrink. */
static void shrink_away(struct rank *me, struct member *parent, struct member *child)
{
	me->alive &= ~(1u << 2);
	rank_barrier(me);
	shrink_once(me, parent, 1u << 2, SHRINK_ABORT, child);
	member_rounds(child, 20);
	member_close(child);
	rank_barrier(me);
	member_abort(parent);
}

static void live_shrink_without_the_dead(struct rank *me)
{
	struct member m[2];

	rank_open_library(me);
	member_open(&m[0], me, 30000);
	member_rounds(&m[0], 10);
	rank_barrier(me);
	if (!me->rank)
		atomic_store(&me->shared->stage, 1);
	rank_note(me, "waits for the end of a rank");
	while (atomic_load(&me->shared->stage) < 2)
		ranks_sleep();
	shrink_away(me, &m[0], &m[1]);
}

static void kill_between_collectives(struct ranks *ranks)
{
	ranks_await_stage(ranks, 1);
	ranks_kill(ranks, 2);
	ranks_await_end(ranks, 2);
	atomic_store(&ranks->shared->stage, 2);
}

/*
 * A rank is killed and the others know of it before NCCL does: ncclCommShrink with
 * NCCL_SHRINK_ABORT, and they go on. (A communicator that has an asynchronous error already is
 * refused by ncclCommShrink: test_killed_rank makes a new one.)
 */
void test_shrink_without_the_dead(void)
{
	ranks_run(4, live_shrink_without_the_dead, kill_between_collectives);
}

static void live_shrink_without_the_idle(struct rank *me)
{
	struct member m[2];

	rank_open_library(me);
	member_open(&m[0], me, 30000);
	member_rounds(&m[0], 10);
	rank_barrier(me);
	if (me->rank == 2) {
		rank_note(me, "takes no part");
		while (atomic_load(&me->shared->stage) < 1)
			ranks_sleep();
		member_abort(&m[0]);
		return;
	}
	member_start(&m[0]);
	shrink_away(me, &m[0], &m[1]);
	atomic_store(&me->shared->stage, 1);
}

/* A rank does not come to a collective in which the others are: they end it by ncclCommShrink and
 * go on without it. */
void test_shrink_without_the_idle(void)
{
	ranks_run(4, live_shrink_without_the_idle, NULL);
}

/* ---- several ---- */

static void live_several(struct rank *me)
{
	struct member m[4];

	rank_open_library(me);
	for (int k = 0; k < 3; k++)
		member_open(&m[k], me, 1000u << 3 * k);
	run_interleaved(m, 3, 40);
	member_close(&m[1]);
	member_open(&m[1], me, 50000); /* made while the others exist */
	member_open(&m[3], me, 7);
	run_interleaved(m, 4, 40);
	for (int k = 3; k >= 0; k--)
		member_close(&m[k]);
}

/* Four communicators of the same ranks, traffic in all of them at once, a cable cut and healed. */
void test_several_at_once(void)
{
	ranks_run(3, live_several, cut_twice);
}

/* ---- finalize ---- */

static void live_finalize(struct rank *me)
{
	struct nccl_config config = member_config();
	struct member m;
	int result;

	rank_open_library(me);
	for (int blocking = 0; blocking < 2; blocking++) {
		config.blocking = blocking;
		result = member_try_open(&m, me, 100000, &config);
		member_await(me, m.comm, result, "ncclCommInitRankConfig");
		member_rounds(&m, 10);
		for (int i = 0; i < MEMBER_SLOTS; i++)
			member_start(&m);
		/* what is under way is finished first */
		result = me->calls.finalize(m.comm);
		member_await(me, m.comm, result, "ncclCommFinalize");
		for (int i = 0; i < MEMBER_SLOTS; i++)
			member_finish(&m);
		member_close(&m);
	}
}

/* ncclCommFinalize with collectives under way, of a communicator that does not block and of one
 * that does. */
void test_finalize(void)
{
	ranks_run(2, live_finalize, NULL);
}
