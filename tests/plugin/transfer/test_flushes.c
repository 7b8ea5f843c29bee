/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flush, read by read: of the last buffer that got bytes, over each rail that may have brought
 * some, until each has answered; and what is no flush.
 */
#include "tests/plugin/transfer/receiver.h"

#include "base/check.h"
#include "plugin/ctx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char memory[3][256];
static struct ha_mr gpu = { .rkey = { 21, 22, 23 }, .type = HA_MEM_CUDA };
static struct ha_mr host = { .rkey = { 31, 32, 33 }, .type = HA_MEM_HOST };

/* GPU memory was registered: each rail has a queue pair for flushes. */
static struct ha_recv *make_flushable(void)
{
	struct ha_recv *c = make_receiver();

	for (unsigned i = 0; i < NRAILS; i++)
		c->b.rail[i].flush.cq = flush_cq_of(i);
	atomic_store(&c->b.flushable, true);
	return c;
}

static int flush_buffers(struct ha_recv *c, const int sizes[3], struct ha_mr *const mrs[3],
			 struct ha_request **req)
{
	void *data[3] = { memory[0], memory[1], memory[2] };
	int err = ha_iflush(c, 3, data, sizes, mrs, req);

	CHECK(!atomic_load(&c->b.inside));
	return err;
}

static struct ha_request *flush_one(struct ha_recv *c)
{
	struct ha_request *req;

	CHECK_INT(flush_buffers(c, (const int[]) { 9, 9, 9 },
				(struct ha_mr *const[]) { &gpu, &gpu, &gpu }, &req),
		  0);
	CHECK(req);
	return req;
}

static void answer(unsigned rail, unsigned entry)
{
	add_completion(&flush_queue[rail],
		       (struct ibv_wc) { .opcode = IBV_WC_RDMA_READ,
					 .wr_id = ha_wr_id(HA_WR_FLUSH, entry, 0) });
}

static bool is_done(struct ha_request *req)
{
	int done = -1;

	CHECK_INT(ha_test(req, &done, NULL), 0);
	CHECK(!atomic_load(&req->bundle->inside));
	return done;
}

static void what_is_read(void)
{
	static const int all[3] = { 9, 9, 9 }, first[3] = { 9, 0, 0 }, none[3] = { 0, 0, 0 };
	static const struct {
		const int *sizes;
		struct ha_mr *mrs[3];
		int buffer; /* -1: none */
	} cases[] = { { all, { &gpu, &gpu, &gpu }, 2 },     { all, { &gpu, &gpu, &host }, 1 },
		      { all, { &gpu, NULL, NULL }, 0 },     { first, { &gpu, &gpu, &gpu }, 0 },
		      { first, { &host, &gpu, &gpu }, -1 }, { none, { &gpu, &gpu, &gpu }, -1 },
		      { all, { &host, &host, &host }, -1 } };

	for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct ha_recv *c = make_flushable();
		struct ha_request *req = &c->flush[0];

		CHECK_INT(flush_buffers(c, cases[k].sizes, cases[k].mrs, &req), 0);
		CHECK_INT(nnotes, cases[k].buffer < 0 ? 0 : NRAILS);
		CHECK(cases[k].buffer < 0 ? !req : req == &c->flush[0]);
		for (unsigned i = 0; i < nnotes; i++) {
			CHECK(notes[i].flush);
			CHECK_INT(notes[i].rail, i);
			CHECK_INT(notes[i].opcode, IBV_WR_RDMA_READ);
			CHECK_INT(notes[i].flags, IBV_SEND_SIGNALED);
			CHECK_INT(notes[i].id, ha_wr_id(HA_WR_FLUSH, 0, 0));
			CHECK_INT(notes[i].from, (uintptr_t)c->b.ring + HA_RECV_LANDING);
			CHECK_INT(notes[i].length, 1);
			CHECK_INT(notes[i].lkey, ring_lkey_of(i));
			CHECK_INT(notes[i].to, (uintptr_t)memory[cases[k].buffer]);
			CHECK_INT(notes[i].rkey, gpu.rkey[i]);
		}
		free_receiver(c);
	}
}

/* Every rail that was asked has to answer, those that are not polled too. */
static void until_all_have_answered(void)
{
	struct ha_recv *c = make_flushable();
	struct ha_request *first = flush_one(c), *second = flush_one(c);

	CHECK(second == &c->flush[1]);
	CHECK_INT(notes[NRAILS].id, ha_wr_id(HA_WR_FLUSH, 1, 0));
	CHECK_INT(notes[NRAILS].from, (uintptr_t)c->b.ring + HA_RECV_LANDING + sizeof(uint64_t));
	CHECK_INT(c->flush_busy, 3);
	CHECK(!is_done(first));
	answer(1, 0);
	CHECK(!is_done(first));
	CHECK_INT(first->pending, 5);
	answer(0, 1);
	answer(0, 0);
	CHECK(!is_done(first));
	CHECK_INT(first->pending, 4);
	CHECK_INT(second->pending, 6);
	answer(2, 0);
	CHECK(is_done(first));
	CHECK_INT(c->flush_busy, 2);
	answer(2, 1);
	answer(1, 1);
	CHECK(is_done(second));
	CHECK_INT(c->flush_busy, 0);
	CHECK_INT(data_queue[1].polls, 0); /* not for its data */
	free_receiver(c);
}

/* A rail that is being fenced may have brought data: the end of its fence answers. One that is
 * down, one without a queue pair for flushes, and one on which the buffer has no key, cannot. */
static void rails_that_take_no_part(void)
{
	static const enum ha_rail_state states[] = { HA_RAIL_FENCING, HA_RAIL_FENCED, HA_RAIL_DOWN,
						     HA_RAIL_JOIN };
	struct ha_request *req;
	struct ha_recv *c;

	for (unsigned i = 0; i < 4; i++) {
		c = make_flushable();
		c->b.rail[1].state = (uint8_t)states[i];
		req = flush_one(c);
		CHECK_INT(req->pending, states[i] == HA_RAIL_FENCING ? 7 : 5);
		CHECK_INT(nnotes, 2);
		CHECK_INT(notes[1].rail, 2);
		answer(1, 0); /* of an older incarnation: nobody asks there */
		answer(0, 0);
		answer(2, 0);
		CHECK_INT(is_done(req), states[i] != HA_RAIL_FENCING);
		free_receiver(c);
	}
	c = make_flushable();
	c->b.rail[0].flush.cq = NULL;
	c->b.rail[1].state = HA_RAIL_DOWN;
	gpu.rkey[2] = 0;
	req = flush_one(c);
	CHECK_INT(nnotes, 0);
	CHECK(req->done);
	CHECK(is_done(req));
	gpu.rkey[2] = 23;
	free_receiver(c);
}

static void reads_that_fail(void)
{
	static const int refusals[] = { EIO, -EIO };
	struct ha_request *req;
	struct ha_recv *c;

	for (unsigned i = 0; i < 2; i++) {
		c = make_flushable();
		c->b.rail[1].state = c->b.rail[2].state = HA_RAIL_DOWN;
		post_refusal = refusals[i];
		req = flush_one(c);
		CHECK_INT(c->b.rail[0].state, HA_RAIL_FENCING);
		CHECK_INT(req->pending, 1); /* which its fence answers */
		CHECK(!req->done);
		free_receiver(c);
	}
	c = make_flushable();
	req = flush_one(c);
	add_completion(&flush_queue[0], (struct ibv_wc) { .status = IBV_WC_WR_FLUSH_ERR,
							  .wr_id = ha_wr_id(HA_WR_FLUSH, 0, 0) });
	answer(1, 0);
	answer(2, 0);
	CHECK(!is_done(req)); /* other rails are polled from here on */
	CHECK(!is_done(req));
	CHECK_INT(req->pending, 1);
	CHECK_INT(c->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(c->b.rail[1].state, HA_RAIL_UP);
	free_receiver(c);
}

/* Four answers by one poll at most, and 32 flushes under way. */
static void many(void)
{
	struct ha_recv *c = make_flushable();
	struct ha_request *req[HA_FLUSHES], *more;

	c->b.rail[1].state = c->b.rail[2].state = HA_RAIL_DOWN;
	for (unsigned i = 0; i < HA_FLUSHES; i++) {
		req[i] = flush_one(c);
		CHECK(req[i] == &c->flush[i]);
	}
	CHECK_INT(flush_buffers(c, (const int[]) { 9, 0, 0 },
				(struct ha_mr *const[]) { &gpu, NULL, NULL }, &more),
		  -EAGAIN);
	CHECK(!more);
	CHECK_INT(nnotes, HA_FLUSHES);
	for (unsigned i = 0; i < 6; i++)
		answer(0, 20 + i);
	ha_bundle_poll(&c->b);
	for (unsigned i = 0; i < HA_FLUSHES; i++)
		CHECK_INT(req[i]->done, i >= 20 && i < 24);
	CHECK(is_done(req[22]));
	CHECK(flush_one(c) == req[22]); /* the first that is free */
	CHECK(!req[22]->done);
	free_receiver(c);
}

/* Not wanted: done at once. Wanted and not possible: an error. */
static void without_queue_pairs(void)
{
	struct ha_recv *c = make_flushable();
	struct ha_mr *const mrs[3] = { &gpu, &gpu, &gpu };
	const int sizes[3] = { 9, 9, 9 };
	struct ha_request *req;

	atomic_store(&c->b.flushable, false);
	CHECK_INT(flush_buffers(c, sizes, mrs, &req), -ENOTCONN);
	CHECK(!req);
	c->b.ctx->config.gdr_flush_disable = true;
	CHECK_INT(flush_buffers(c, sizes, mrs, &req), 0);
	CHECK(!req);
	CHECK_INT(nnotes, 0);
	free_receiver(c);
}

/* After an error nothing is flushed, but what a peer had sent that has closed. */
static void after_the_end(void)
{
	struct ha_recv *c = make_flushable();
	struct ha_mr *const mrs[3] = { &gpu, &gpu, &gpu };
	const int sizes[3] = { 9, 9, 9 };
	struct ha_request *req;

	c->b.peer_closed = false;
	c->b.error = -EIO;
	atomic_store(&c->b.attention, HA_ATTN_ERROR);
	CHECK_INT(flush_buffers(c, sizes, mrs, &req), -EIO);
	CHECK(!req);
	CHECK_INT(nnotes, 0);
	c->b.peer_closed = true;
	CHECK_INT(flush_buffers(c, sizes, mrs, &req), 0);
	CHECK(req);
	CHECK_INT(nnotes, NRAILS);
	free_receiver(c);
}

int main(void)
{
	what_is_read();
	until_all_have_answered();
	rails_that_take_no_part();
	reads_that_fail();
	many();
	without_queue_pairs();
	after_the_end();
	return 0;
}
