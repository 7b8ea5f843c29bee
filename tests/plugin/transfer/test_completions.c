/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a receiver makes of completions: whole messages and their sizes, receives that go back to
 * the shared queue, how many completions one poll takes of which rails, and what a call does that
 * has polled in vain.
 */
#include "tests/plugin/transfer/receiver.h"

#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static void finish_next(struct ha_recv *c, unsigned rail, uint64_t idx)
{
	add_immediate(rail, ha_imm_make(idx, rail, 1U << rail, false), 10);
	ha_bundle_poll(&c->b);
}

/* Whole messages over one rail, in any order. `done` stands before the first that is missing. */
static void whole_messages(void)
{
	static const uint64_t order[] = { 1, 0, 3, 4, 2 }, done[] = { 0, 2, 2, 2, 5 };
	struct ha_recv *c = make_receiver();
	struct ha_request *req[5];

	for (unsigned i = 0; i < 5; i++)
		req[i] = receive_one(c, i == 4);
	for (unsigned i = 0; i < 4; i++)
		test_is(req[i], -1);
	for (unsigned i = 0; i < 5; i++) {
		unsigned at = (unsigned)order[i];

		add_immediate(0, ha_imm_make(at, 0, 1, false), 100 + at);
		ha_bundle_poll(&c->b);
		CHECK_INT(c->done, done[i]);
		CHECK_INT(c->slot[at].busy, HA_SLOT_HELD);
		CHECK_INT(c->slot[at].imm, ha_imm_spoiled(at));
		test_is(req[at], (int)(100 + at));
		CHECK_INT(c->slot[at].busy, 0);
	}
	CHECK_INT(c->b.abort->error, 0);
	CHECK_INT(c->b.rail[0].rq_consumed, 5);
	add_immediate(0, ha_imm_make(4, 0, 1, false), 1); /* once more */
	ha_bundle_poll(&c->b);
	CHECK_INT(c->b.abort->error, -EPROTO);
	free_receiver(c);
}

/* The stripes of a message add up; a record of sizes counts instead; no int holds more than
 * INT_MAX. */
static void sizes_are_announced(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_sizes *record = c->b.ring;
	int sizes[HA_MAX_RECVS], done;
	struct ha_request *req;

	req = receive_one(c, false);
	for (unsigned rail = 0; rail < 3; rail += 2) {
		add_immediate(0, ha_imm_make(0, rail, 5, false), 1U << 31);
		ha_bundle_poll(&c->b);
	}
	test_is(req, INT_MAX);
	req = receive_one(c, false);
	for (unsigned rail = 0; rail < 3; rail += 2) {
		add_immediate(0, ha_imm_make(1, rail, 5, false), (1U << 30) - 1 + rail / 2);
		ha_bundle_poll(&c->b);
	}
	test_is(req, INT_MAX);
	req = receive_one(c, false);
	add_immediate(0, ha_imm_make(2, 0, 1, true), 64);
	record[2].size[0] = INT_MAX;
	record[2].size[1] = 1;
	ha_bundle_poll(&c->b);
	test_is(req, INT_MAX);
	for (uint64_t idx = 3; idx < 5; idx++) { /* a group with a record, and one without */
		void *data[3] = { c, c, c };
		size_t size[3] = { 1, 1, 1 };
		struct ha_mr *mr[3] = { NULL, NULL, NULL };
		int tag[3] = { 1, 2, 3 };

		CHECK_INT(ha_irecv(c, 3, data, size, tag, mr, false, &req), 0);
		record[idx] = (struct ha_sizes) { .size = { 5, (1ULL << 31), 7, 8 } };
		add_immediate(0, ha_imm_make(idx, 0, 1, idx == 3), 9);
		for (unsigned m = 0; m < HA_MAX_RECVS; m++)
			sizes[m] = -1;
		CHECK_INT(ha_test(req, &done, sizes), 0);
		CHECK(done);
		CHECK_INT(sizes[0], idx == 3 ? 5 : 9);
		CHECK_INT(sizes[1], idx == 3 ? INT_MAX : 0);
		CHECK_INT(sizes[2], idx == 3 ? 7 : 0);
		CHECK_INT(sizes[3], -1); /* nothing of a fourth */
	}
	req = receive_one(c, false);
	add_immediate(0, ha_imm_make(5, 0, 1, false), 9);
	CHECK_INT(ha_test(req, &done, NULL), 0); /* nobody asks */
	CHECK(done);
	free_receiver(c);
}

/* Each portion of receives that was consumed is given back at once; a portion may be smaller than
 * the last. A queue that takes none now gets them later. */
static void receives_are_given_back(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_rail *r = &c->b.rail[0];
	uint64_t idx = 0;

	for (unsigned portion = HA_REFILL; portion; portion /= 2) {
		unsigned before = refills;

		atomic_store(&device[0].portion, portion);
		while (refills == before) {
			CHECK(receive_one(c, false));
			finish_next(c, 0, idx++);
			c->slot[(idx - 1) % HA_SLOTS].busy = 0;
		}
		CHECK_INT(all_refilled, idx);
		CHECK_INT(r->rq_base, HA_REFILL - portion);
		CHECK_INT(r->rq_consumed, r->rq_base);
	}
	CHECK_INT(last_refill, 2);
	CHECK_INT(all_refilled, 2 * HA_REFILL + HA_REFILL - 2);
	refill_refusal = ENOMEM;
	for (unsigned i = 0; i < 3; i++) {
		CHECK(receive_one(c, false));
		finish_next(c, 0, idx++);
		c->slot[(idx - 1) % HA_SLOTS].busy = 0;
	}
	CHECK_INT(r->rq_consumed, HA_REFILL + 2);
	refill_refusal = 0;
	CHECK(receive_one(c, false));
	finish_next(c, 0, idx++);
	CHECK_INT(last_refill, 1);
	CHECK_INT(r->rq_consumed, HA_REFILL - 1 + 3); /* one portion; three are missing yet */
	CHECK_INT(r->rq_base, HA_REFILL - 1);
	free_receiver(c);
}

/* A receive that a broken queue pair gives back is consumed as well; other work is out of the send
 * queue. */
static void failed_work(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_rail *r = &c->b.rail[0];

	add_completion(&data_queue[0], (struct ibv_wc) { .status = IBV_WC_WR_FLUSH_ERR });
	ha_bundle_poll(&c->b);
	CHECK_INT(r->rq_consumed, 1);
	CHECK_INT(r->sq_retired, 0);
	CHECK_INT(r->state, HA_RAIL_FENCING);
	add_completion(&data_queue[0], (struct ibv_wc) { .status = IBV_WC_WR_FLUSH_ERR,
							 .wr_id = ha_wr_id(HA_WR_CTS, 0, 7) });
	CHECK_INT(ha_rail_poll(&c->b, r), 1);
	CHECK_INT(r->rq_consumed, 1);
	CHECK_INT(r->sq_retired, 7);
	CHECK_INT(c->b.rail[0].loss.marker, HA_MARKER_NONE);
	add_completion(&data_queue[0], (struct ibv_wc) { .status = IBV_WC_WR_FLUSH_ERR,
							 .wr_id = ha_wr_id(HA_WR_MARKER, 0, 8) });
	CHECK_INT(ha_rail_poll(&c->b, r), 1);
	CHECK_INT(c->b.rail[0].loss.marker, HA_MARKER_BACK);
	free_receiver(c);
}

static void set_limits(struct ha_recv *c, unsigned batch, unsigned most, unsigned polled)
{
	c->b.poll.batch = (uint16_t)batch;
	c->b.poll.most = (uint16_t)most;
	ha_policy_poll(&c->b, polled);
	memset(data_queue, 0, sizeof(data_queue));
	for (unsigned i = 0; i < NRAILS; i++)
		add_others(i, 25);
}

/* One rail was asked so often, for so many each time. */
static void check_asked(unsigned rail, unsigned n, const int *asked)
{
	CHECK_INT(data_queue[rail].polls, n);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(data_queue[rail].asked[i], asked[i]);
}

/* HA_NCCL_POLL_BATCH at once, HA_NCCL_TEST_MAX_POLL in all, in equal parts of the rails that are
 * polled; no call for what cannot be there. */
static void as_many_as_allowed(void)
{
	struct ha_recv *c = make_receiver();

	set_limits(c, 4, 10, 1);
	CHECK_INT(ha_bundle_poll(&c->b), 10);
	check_asked(0, 3, (const int[]) { 4, 4, 2 });
	check_asked(1, 0, NULL);
	CHECK_INT(ha_bundle_poll(&c->b), 10);
	CHECK_INT(ha_bundle_poll(&c->b), 5);
	check_asked(0, 8, (const int[]) { 4, 4, 2, 4, 4, 2, 4, 4 });
	CHECK_INT(ha_bundle_poll(&c->b), 0);
	CHECK_INT(data_queue[0].polls, 9);

	set_limits(c, 4, 10, 5);
	CHECK_INT(ha_bundle_poll(&c->b), 10);
	check_asked(0, 2, (const int[]) { 4, 1 });
	check_asked(1, 0, NULL);
	check_asked(2, 2, (const int[]) { 4, 1 });

	set_limits(c, 4, 8, 5); /* what one call brings is all */
	CHECK_INT(ha_bundle_poll(&c->b), 8);
	check_asked(0, 1, (const int[]) { 4 });

	set_limits(c, 16, 6, 1);
	CHECK_INT(ha_bundle_poll(&c->b), 6);
	check_asked(0, 1, (const int[]) { 6 });

	set_limits(c, 4, 2, 7); /* one each */
	CHECK_INT(ha_bundle_poll(&c->b), 3);
	check_asked(1, 1, (const int[]) { 1 });

	set_limits(c, 4, 10, 1);
	CHECK_INT(ha_rail_poll(&c->b, &c->b.rail[1]), 10);
	check_asked(1, 3, (const int[]) { 4, 4, 2 });
	set_limits(c, 5, 10, 1);
	CHECK_INT(ha_rail_poll(&c->b, &c->b.rail[1]), 10);
	check_asked(1, 2, (const int[]) { 5, 5 });
	c->b.rail[1].cq = NULL; /* there is none */
	CHECK_INT(ha_rail_poll(&c->b, &c->b.rail[1]), 0);
	check_asked(1, 2, (const int[]) { 5, 5 });
	free_receiver(c);
}

/* A rail that cannot be asked has failed; the others are asked all the same. */
static void polls_that_fail(void)
{
	struct ha_recv *c = make_receiver();

	set_limits(c, 16, 16, 3);
	data_queue[0].error = -EIO;
	CHECK_INT(ha_bundle_poll(&c->b), 8);
	CHECK_INT(c->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(c->b.rail[1].state, HA_RAIL_UP);
	data_queue[2].error = -EIO;
	CHECK_INT(ha_rail_poll(&c->b, &c->b.rail[2]), 0);
	CHECK_INT(c->b.rail[2].state, HA_RAIL_FENCING);
	free_receiver(c);
}

/* HA_NCCL_POLL_ALWAYS: each poll is counted on the device of the first polled rail, if there is
 * one. */
static void polls_are_counted(void)
{
	struct ha_recv *c = make_receiver();

	ha_bundle_poll(&c->b);
	CHECK_INT(atomic_load(&device[0].polls), 0);
	c->b.poll.always = true;
	ha_policy_poll(&c->b, 6);
	ha_bundle_poll(&c->b);
	ha_bundle_poll(&c->b);
	CHECK_INT(atomic_load(&device[0].polls), 0);
	CHECK_INT(atomic_load(&device[1].polls), 2);
	CHECK_INT(atomic_load(&device[2].polls), 0);
	ha_policy_poll(&c->b, 0);
	CHECK_INT(ha_bundle_poll(&c->b), 0);
	free_receiver(c);
}

static bool is_called(struct ha_recv *c)
{
	return atomic_exchange(&c->b.attention, 0) & HA_ATTN_DRIVE;
}

/* Where a poll does not look each time: the rails that are not polled, of those that are up. One
 * that brings data is polled from then on. */
static void looks_around(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_board_message *message = &ha_bundle_board(&c->b)->message[2][1];

	c->b.active = 3;
	c->b.poll.idle = 9;
	add_others(1, 1);
	CHECK(!ha_bundle_look_around(&c->b)); /* the service thread makes the rounds */
	CHECK_INT(c->b.poll.idle, 0);
	CHECK_INT(data_queue[0].polls, 0);
	CHECK_INT(data_queue[1].polls, 1);
	CHECK_INT(data_queue[2].polls, 0);
	CHECK_INT(c->b.poll.rails, 1);
	CHECK(!is_called(c));
	c->b.active = 7;
	CHECK(receive_one(c, false));
	add_immediate(2, ha_imm_make(0, 2, 4, false), 9);
	CHECK(!ha_bundle_look_around(&c->b));
	CHECK_INT(c->b.poll.rails, 5);
	CHECK(c->b.poll.list[1] == &c->b.rail[2]);
	CHECK_INT(c->slot[0].busy, HA_SLOT_HELD);
	CHECK(!is_called(c));
	message->number = 1; /* the peer's driver has written */
	CHECK(!ha_bundle_look_around(&c->b));
	CHECK(is_called(c));
	c->b.ctx->loop.threaded = false;
	CHECK(ha_bundle_look_around(&c->b));
	free_receiver(c);
}

/* Every so many calls in vain. Without a service thread they make a round, or see to it that the
 * next call does. */
static void idle_calls(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req = receive_one(c, false);

	c->b.poll.idle_limit = 3;
	for (unsigned i = 1; i <= 7; i++) {
		test_is(req, -1);
		CHECK_INT(data_queue[1].polls, i / 3);
		CHECK_INT(c->b.poll.idle, i % 3);
	}
	CHECK_INT(rounds, 0);
	c->b.ctx->loop.threaded = false;
	c->b.poll.idle = 0;
	for (unsigned i = 1; i <= 7; i++) {
		test_is(req, -1);
		CHECK_INT(rounds, i / 3);
	}
	c->b.poll.idle = 0;
	for (unsigned i = 1; i <= 7; i++) {
		ha_bundle_count_idle(&c->b);
		CHECK_INT(is_called(c), i % 3 == 0);
	}
	c->b.ctx->loop.threaded = true;
	c->b.poll.idle = 2;
	ha_bundle_count_idle(&c->b);
	CHECK(!is_called(c));
	CHECK_INT(rounds, 2);
	free_receiver(c);
}

/* What came before an error counts; where nothing has come, the error is returned. Nobody enters
 * while the driver is inside. */
static void with_attention(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req[3];
	int done, size;

	for (unsigned i = 0; i < 3; i++)
		req[i] = receive_one(c, false);
	add_immediate(0, ha_imm_make(0, 0, 1, false), 9);
	atomic_store(&c->b.attention, HA_ATTN_HELD);
	test_is(req[0], -1);
	CHECK_INT(data_queue[0].polls, 0);
	c->b.error = -EIO;
	atomic_store(&c->b.attention, HA_ATTN_ERROR);
	test_is(req[0], 9);
	CHECK_INT(ha_test(req[1], &done, &size), -EIO);
	CHECK(!done);
	CHECK(!atomic_load(&c->b.inside));
	req[1]->done = 1; /* by a fence */
	test_is(req[1], 0);
	CHECK_INT(c->slot[1].busy & HA_SLOT_HELD, 0);
	c->b.error = 0;
	atomic_store(&c->b.attention, HA_ATTN_DRIVE); /* no error, and nothing has come */
	test_is(req[2], -1);
	CHECK_INT(c->slot[2].busy & HA_SLOT_HELD, HA_SLOT_HELD);
	free_receiver(c);
}

int main(void)
{
	whole_messages();
	sizes_are_announced();
	receives_are_given_back();
	failed_work();
	as_many_as_allowed();
	polls_that_fail();
	polls_are_counted();
	looks_around();
	idle_calls();
	with_attention();
	return 0;
}
