/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a receiver makes of the immediates of a message's stripes: in any order, with the sizes
 * record or without, each once, all of one receive that is posted. Everything else ends the
 * connection, but for what is late of a receive that was called complete before.
 */
#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "tests/plugin/ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MASK 0x5U /* rails 0 and 2 */
#define BYTES 100U

static struct ibv_wc arriving;
static int arrivals;

static struct ha_cts announced[HA_MAX_RECVS];
static size_t lines;

/* A receiver posts nothing but clear-to-sends. */
static int post_announcement(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	CHECK(wr->sg_list->length <= sizeof(announced));
	memcpy(announced, (const void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
	lines = wr->sg_list->length / sizeof(announced[0]);
	return 0;
}

static int poll_arriving(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int found = arrivals;

	(void)cq;
	(void)n;
	*wc = arriving;
	arrivals = 0;
	return found;
}

static const struct ha_verbs_hot hot = { .post_send = post_announcement, .poll_cq = poll_arriving };

static struct ha_recv *make_receiver(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	c->b.ctx = calloc(1, sizeof(*c->b.ctx));
	c->b.ring = calloc(1, HA_RECV_RING_SIZE);
	CHECK(c->b.ctx && c->b.ring);
	c->b.nrails = 3;
	c->b.active = 7;
	c->b.poll.batch = c->b.poll.most = 16;
	for (unsigned i = 0; i < 3; i++)
		c->b.rail[i] =
			(struct ha_rail) { .index = (uint8_t)i, .hot = &hot, .sq_depth = 1024 };
	ha_recv_prepare(c);
	for (unsigned i = 0; i < 3; i++)
		ha_recv_prepare_rail(c, &c->b.rail[i]);
	ha_policy_poll(&c->b, 1);
	return c;
}

static struct ha_request *post_receive(struct ha_recv *c)
{
	struct ha_mr *mr = NULL;
	size_t size = 2 * BYTES;
	struct ha_request *req;
	void *data = NULL;
	int tag = 0;

	CHECK_INT(ha_irecv(c, 1, &data, &size, &tag, &mr, false, &req), 0);
	CHECK(req);
	return req;
}

/* The word that the connection ends with, 0: none. */
static int deliver_stripe(struct ha_recv *c, uint32_t imm)
{
	arriving = (struct ibv_wc) { .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
				     .byte_len = BYTES,
				     .imm_data = htonl(imm) };
	arrivals = 1;
	c->b.rail[0].rq_consumed = 0; /* there is no device to give receives back to */
	/* the driver is called already: there is no loop to wake */
	atomic_fetch_or(&c->b.attention, HA_ATTN_DRIVE);
	ha_bundle_poll(&c->b);
	atomic_store(&c->b.attention, 0);
	CHECK_INT(arrivals, 0);
	return c->b.abort->error;
}

static void free_receiver(struct ha_recv *c)
{
	free(c->b.ring);
	free(c->b.ctx);
	free(c);
}

static void in_any_order(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req;

	/* all slots, and then some: what the last message left in one is of no account */
	for (uint64_t idx = 0; idx < 2 * HA_SLOTS + 3; idx++) {
		unsigned first = idx & 1 ? 2 : 0;
		int done = 0, size = 0;

		req = post_receive(c);
		CHECK_INT(deliver_stripe(c, ha_imm_make(idx, first, MASK, idx & 2)), 0);
		CHECK(!req->done);
		CHECK_INT(c->slot[idx % HA_SLOTS].seen, 1 << first);
		CHECK_INT(deliver_stripe(c, ha_imm_make(idx, 2 - first, MASK, false)), 0);
		CHECK(req->done);
		CHECK_INT(ha_test(req, &done, &size), 0);
		CHECK(done);
		if (!(idx & 2))
			CHECK_INT(size, 2 * BYTES);
	}
	free_receiver(c);
}

/* One receive is posted, its first stripe is here; then `imm`. */
static int after_the_first(uint32_t imm)
{
	struct ha_recv *c = make_receiver();
	int error;

	post_receive(c);
	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 0, MASK, false)), 0);
	error = deliver_stripe(c, imm);
	free_receiver(c);
	return error;
}

static void what_ends_it(void)
{
	CHECK_INT(after_the_first(ha_imm_make(0, 2, MASK, false)), 0);
	CHECK_INT(after_the_first(ha_imm_make(0, 0, MASK, false)), -EPROTO); /* a second time */
	CHECK_INT(after_the_first(ha_imm_make(0, 1, MASK, false)), -EPROTO); /* not of the mask */
	CHECK_INT(after_the_first(ha_imm_make(0, 2, 0x7, false)), -EPROTO);  /* another mask */
	CHECK_INT(after_the_first(ha_imm_make(0, 2, 0x4, false)), -EPROTO);  /* whole all at once */
	CHECK_INT(after_the_first(ha_imm_make(256, 2, MASK, false)), -EPROTO); /* a later one */
	CHECK_INT(after_the_first(ha_imm_make(1, 2, MASK, false)), -EPROTO);   /* none is posted */
}

static void of_no_receive(void)
{
	struct ha_recv *c = make_receiver();

	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 0, MASK, false)), -EPROTO);
	free_receiver(c);
	c = make_receiver();
	post_receive(c);
	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 0, MASK, false)), 0);
	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 2, MASK, false)), 0);
	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 2, MASK, false)), -EPROTO);
	free_receiver(c);
}

/* A fence called it complete because its data had been used. */
static void late_stripes(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req = post_receive(c);

	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 0, MASK, false)), 0);
	c->superseded++;
	ha_recv_arrived(c, &c->slot[0]);
	CHECK(req->done);
	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 2, MASK, false)), 0);
	CHECK_INT(c->slot[0].seen, 1);
	free_receiver(c);
}

/* Of the message that the slot waits for now, a second time is an error all the same: what is late
 * is known by the absolute index, not by the slot. */
static void late_for_a_slot_in_use(void)
{
	struct ha_recv *c = make_receiver();
	int done, size;

	for (uint64_t idx = 0; idx < HA_SLOTS; idx++) {
		struct ha_request *req = post_receive(c);

		CHECK_INT(deliver_stripe(c, ha_imm_make(idx, 0, MASK, false)), 0);
		c->superseded++;
		ha_recv_arrived(c, &c->slot[idx]);
		CHECK_INT(ha_test(req, &done, &size), 0);
		CHECK(done);
	}
	post_receive(c);
	CHECK_INT(deliver_stripe(c, ha_imm_make(HA_SLOTS, 0, MASK, false)), 0);
	CHECK_INT(deliver_stripe(c, ha_imm_make(0, 2, MASK, false)), 0);
	CHECK_INT(c->slot[0].missing, 4);
	CHECK_INT(deliver_stripe(c, ha_imm_make(HA_SLOTS, 0, MASK, false)), -EPROTO);
	free_receiver(c);
}

/* What the sender gets of a receive: nothing of the slot's last one is left in it. */
static void what_is_announced(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_mr known = { .rkey = { 5, 6, 7 } }, *mr[] = { NULL, &known };
	void *data[] = { c, c + 1 };
	size_t size[] = { 10, 20 };
	int tag[] = { 3, 4 };
	struct ha_request *req;

	for (unsigned n = 2; n >= 1; n--) {
		memset((char *)c->b.ring + HA_RECV_CTS, 0xff, HA_RECV_RING_SIZE - HA_RECV_CTS);
		CHECK_INT(ha_irecv(c, (int)n, data, size, tag, mr, false, &req), 0);
		CHECK(req);
		CHECK_INT(lines, n);
		for (unsigned m = 0; m < n; m++) {
			CHECK(announced[m].addr == (uintptr_t)data[m]);
			CHECK_INT(announced[m].size, size[m]);
			CHECK_INT(announced[m].tag, tag[m]);
			CHECK_INT(announced[m].n, n);
			CHECK_INT(announced[m].idx, c->head);
			for (unsigned i = 0; i < 3; i++)
				CHECK_INT(announced[m].rkey[i], mr[m] ? known.rkey[i] : 0);
		}
	}
	free_receiver(c);
}

int main(void)
{
	what_is_announced();
	in_any_order();
	what_ends_it();
	of_no_receive();
	late_stripes();
	late_for_a_slot_in_use();
	return 0;
}
