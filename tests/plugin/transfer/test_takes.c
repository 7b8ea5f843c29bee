/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided, the receiver: messages are taken in order, each once, those without a record by
 * nobody; the room is sent to the sender in steps; windows are offered and withdrawn.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/transfer/one_sided.h"
#include "tests/plugin/ends.h"
#include "tests/plugin/idle_cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static unsigned rounds, writes;
static uint64_t announced;
static int word_refusal; /* what posting returns */

static void make_round(struct ha_ctx *ctx)
{
	(void)ctx;
	rounds++;
}

static int take_write(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	memcpy(&announced, (const void *)(uintptr_t)wr->sg_list->addr, sizeof(announced));
	writes++;
	return word_refusal;
}

static const struct ha_verbs_hot hot = { .post_send = take_write, .poll_cq = poll_nothing };
static struct ha_ctx ctx = { .clock = &ha_clock_live,
			     .progress = make_round,
			     .loop.threaded = true };

static struct ha_recv *make_receiver(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	c->b.ctx = &ctx;
	c->b.ring = calloc(1, HA_RECV_RING_SIZE);
	CHECK(c->b.ring);
	c->b.nrails = 1;
	c->b.active = 1;
	c->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_ONE_SIDED;
	c->b.poll.batch = c->b.poll.most = 16;
	c->b.poll.idle_limit = 3;
	c->b.rail[0] = (struct ha_rail) { .hot = &hot, .sq_depth = 64, .state = HA_RAIL_UP };
	pthread_mutex_init(&c->b.registered.list_lock, NULL);
	CHECK_INT(ha_one_sided_new(&c->b), 0);
	ha_recv_prepare(c);
	CHECK(!c->more[0][0].data); /* what lies behind the last slot */
	ha_recv_prepare_rail(c, &c->b.rail[0]);
	ha_policy_poll(&c->b, 1);
	rounds = writes = 0;
	return c;
}

static void free_receiver(struct ha_recv *c)
{
	ha_one_sided_free(&c->b);
	free(c->b.ring);
	free(c);
}

/* Message `idx` is here, whole. */
static void deliver_message(struct ha_recv *c, uint64_t idx, const char *record)
{
	struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

	CHECK_INT(slot->idx, idx);
	CHECK_INT(slot->busy, HA_SLOT_WIRE);
	CHECK_INT(slot->n, 1);
	CHECK_INT(slot->imm, ha_imm_identity(idx));
	CHECK_INT(slot->common, ha_imm_identity(idx));
	CHECK_INT(slot->seen | slot->missing | slot->sized | slot->cts_parked, 0);
	CHECK_INT(slot->cts_rail, 0xff); /* no rail's fence waits for a clear-to-send of it */
	CHECK(!slot->req.done);
	slot->seen = slot->missing = 1; /* what this message may leave */
	slot->cts_rail = 0;
	slot->cts_parked = true;
	slot->n = 5;
	slot->sized = record != NULL;
	if (record)
		strcpy((char *)((struct ha_sizes *)c->b.ring + idx % HA_SLOTS), record);
	ha_recv_arrived(c, slot);
}

static bool take_message(struct ha_recv *c, char *record)
{
	bool got;

	CHECK_INT(ha_take(c, record, &got), 0);
	CHECK(!atomic_load(&c->b.inside));
	return got;
}

static void in_order(void)
{
	struct ha_recv *c = make_receiver();
	char record[HA_RECORD_SIZE];

	CHECK(!take_message(c, record));
	deliver_message(c, 1, "one");
	CHECK(!take_message(c, record)); /* the one before is missing */
	deliver_message(c, 2, NULL);
	deliver_message(c, 3, "three");
	deliver_message(c, 0, NULL);
	CHECK(take_message(c, record));
	CHECK_TEXT(record, "one");
	CHECK(take_message(c, record));
	CHECK_TEXT(record, "three");
	CHECK(!take_message(c, record));
	CHECK_INT(c->takes->taken, 4);
	CHECK_INT(c->head, HA_SLOTS + 4);
	/* Their slots expect the next that use them, and nothing of the last is left. */
	deliver_message(c, HA_SLOTS, "");
	CHECK_INT(ha_imm_identity(HA_SLOTS + 1), c->slot[1].imm);
	CHECK(!c->slot[1].sized && !c->slot[1].req.done);
	free_receiver(c);
}

/* A quarter of all slots at a time. */
static void room_is_announced(void)
{
	struct ha_recv *c = make_receiver();
	char record[HA_RECORD_SIZE];

	for (uint64_t idx = 0; idx < 2 * HA_ROOM_STEP; idx++) {
		deliver_message(c, idx, "x");
		CHECK(take_message(c, record));
		CHECK_INT(writes, (idx + 1) / HA_ROOM_STEP);
	}
	CHECK_INT(announced, 2 * HA_ROOM_STEP);
	c->b.active = 0; /* over no rail */
	for (uint64_t idx = 2 * HA_ROOM_STEP; idx < 3 * HA_ROOM_STEP; idx++) {
		deliver_message(c, idx, "x");
		CHECK(take_message(c, record));
	}
	CHECK_INT(writes, 2);
	c->b.active = 1;
	c->b.rail[0].sq_posted = c->b.rail[0].sq_retired + 64; /* nor where it has no room */
	CHECK(!take_message(c, record));
	CHECK_INT(writes, 2);
	c->b.rail[0].sq_retired++;
	CHECK(!take_message(c, record));
	CHECK_INT(writes, 3);
	CHECK_INT(announced, 3 * HA_ROOM_STEP);
	free_receiver(c);
}

/* HA_NCCL_ACK=memory: each receive that is complete is counted to the sender, over the rail that is
 * first; a rail that refuses the word has failed. */
static void receives_are_announced(void)
{
	struct ha_recv *c = make_receiver();
	char record[HA_RECORD_SIZE];
	bool got = true;

	ha_one_sided_free(&c->b);
	c->takes = NULL;
	CHECK_INT(ha_take(c, record, &got), -EINVAL); /* two-sided */
	CHECK(!got);
	c->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_ACK_MEMORY;
	ha_bundle_delivery(&c->b);
	CHECK_INT(writes, 0);
	for (uint64_t done = 1; done <= 3; done++) {
		c->done = done;
		ha_bundle_delivery(&c->b);
		ha_bundle_delivery(&c->b); /* once */
		CHECK_INT(writes, done);
		CHECK_INT(announced, done);
		CHECK_INT(c->b.delivered_sent, done);
	}
	c->done = 4;
	c->b.terms.flags = HA_FLAG_FAILOVER; /* not agreed on */
	ha_bundle_delivery(&c->b);
	CHECK_INT(writes, 3);
	c->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_ACK_MEMORY;
	c->b.peer_closed = true; /* no event */
	atomic_store(&c->b.attention, HA_ATTN_DRIVE);
	word_refusal = EIO;
	ha_bundle_delivery(&c->b);
	CHECK_INT(c->b.delivered_sent, 3);
	CHECK_INT(c->b.rail[0].state, HA_RAIL_FENCING);
	word_refusal = 0;
	free_receiver(c);
}

/* Each rail's word only grows, and the largest counts. */
static void words_of_all_rails(void)
{
	struct ha_send *s = new_send();
	struct ha_board *board;

	CHECK(s);
	s->b.ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(s->b.ring);
	s->b.is_send = true;
	s->b.nrails = 3;
	board = ha_bundle_board(&s->b);
	CHECK_INT(ha_delivery_count(s), 0);
	for (unsigned i = 0; i < 3; i++) {
		board->heartbeat[i].count = 5;
		board->heartbeat[(i + 1) % 3].count = 3;
		board->heartbeat[(i + 2) % 3].count = 4;
		CHECK_INT(ha_delivery_count(s), 5);
	}
	board->heartbeat[3].count = 9; /* there is no such rail */
	CHECK_INT(ha_delivery_count(s), 5);
	free(s->b.ring);
	free(s);
}

/* Without the service thread takes that find nothing make rounds, now and then. */
static void rounds_in_vain(void)
{
	struct ha_recv *c = make_receiver();
	char record[HA_RECORD_SIZE];

	for (unsigned i = 1; i <= 9; i++)
		CHECK(!take_message(c, record));
	CHECK_INT(rounds, 0); /* the thread makes them */
	ctx.loop.threaded = false;
	for (unsigned i = 1; i <= 9; i++) {
		CHECK(!take_message(c, record));
		CHECK_INT(rounds, i / 3);
	}
	ctx.loop.threaded = true;
	free_receiver(c);
}

/* What came before the error is taken first. */
static void after_an_error(void)
{
	struct ha_recv *c = make_receiver();
	char record[HA_RECORD_SIZE];
	bool got;

	deliver_message(c, 0, "last");
	c->b.error = -EIO;
	atomic_store(&c->b.attention, HA_ATTN_ERROR);
	CHECK(take_message(c, record));
	CHECK_TEXT(record, "last");
	CHECK_INT(ha_take(c, record, &got), -EIO);
	CHECK(!got);
	atomic_store(&c->b.attention, HA_ATTN_HELD);
	CHECK_INT(ha_take(c, record, &got), 0);
	CHECK(!got);
	free_receiver(c);
}

static void windows_are_offered(void)
{
	static struct ha_mr mr;
	struct ha_recv *c = make_receiver();
	struct ha_takes *t = c->takes;

	atomic_store(&ctx.round.called, true); /* there is no loop to wake */
	for (unsigned i = 0; i < 40; i++)
		CHECK_INT(ha_offer(c, 100 + i, &mr), 0);
	CHECK_INT(t->noffered, 40);
	CHECK_INT(atomic_load(&c->b.attention), HA_ATTN_DRIVE); /* who sends it to the peer */
	CHECK_INT(ha_offer(c, HA_WINDOWS_MAX - 1, &mr), 0);
	CHECK_INT(ha_offer(c, HA_WINDOWS_MAX, &mr), -EINVAL);
	CHECK_INT(t->noffered, 41);
	ha_withdraw(c, 120);
	for (unsigned i = 0; i < 40; i++) {
		CHECK_INT(t->offered[i].window, 100 + i);
		CHECK(t->offered[i].mr == (i == 20 ? NULL : &mr));
	}
	free_receiver(c);
}

/* As many as there are numbers, and no more. */
static void as_many_windows_as_can_be(void)
{
	static struct ha_mr mr;
	struct ha_recv *c = make_receiver();

	atomic_store(&c->b.attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (unsigned i = 0; i < HA_WINDOWS_MAX; i++)
		CHECK_INT(ha_offer(c, i, &mr), 0);
	CHECK_INT(ha_offer(c, 0, &mr), -ENOMEM);
	CHECK_INT(c->takes->noffered, HA_WINDOWS_MAX);
	CHECK_INT(c->takes->offered[HA_WINDOWS_MAX - 1].window, HA_WINDOWS_MAX - 1);
	free_receiver(c);
}

/* Each end has its own part, and gives it back; there may be none. */
static void parts_of_the_ends(void)
{
	struct ha_send *s = new_send();
	struct ha_recv *c = new_recv();

	CHECK(s && c);
	s->b.is_send = true;
	ha_one_sided_free(&s->b);
	ha_one_sided_free(&c->b);
	CHECK_INT(ha_one_sided_new(&s->b), 0);
	CHECK(s->puts && !s->puts->window && !s->puts->room);
	CHECK_INT(ha_puts_grow(s->puts, 3), 0);
	CHECK_INT(ha_one_sided_new(&c->b), 0);
	CHECK(c->takes && !c->takes->offered && !c->takes->taken);
	ha_one_sided_free(&s->b);
	ha_one_sided_free(&c->b);
	free(s);
	free(c);
}

/* HA_NCCL_ACK=memory: a send waits for the receiver's delivery count and for its own completion. */
static void delivery_is_awaited(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	for (unsigned i = 0; i < 4; i++) {
		s->slot[i].idx = i;
		s->slot[i].n = 1;
		s->slot[i].pending = i == 1 ? HA_AWAIT_DELIVERY | 1 : HA_AWAIT_DELIVERY;
	}
	s->head = 3;
	ha_delivery_take(s, 2);
	CHECK(s->slot[0].req.done);
	CHECK(!s->slot[1].req.done); /* its data may be read once more */
	CHECK_INT(s->slot[1].pending, 1);
	CHECK_INT(s->slot[2].pending, HA_AWAIT_DELIVERY);
	ha_delivery_take(s, 9); /* no more than was sent */
	CHECK(s->slot[2].req.done);
	CHECK_INT(s->slot[3].pending, HA_AWAIT_DELIVERY);
	CHECK_INT(s->b.delivered_sent, 3);
	s->head = 5;
	s->slot[3].idx = 3 + HA_SLOTS; /* used for a later one */
	s->slot[4].pending = HA_AWAIT_DELIVERY;
	s->slot[4].idx = 4;
	s->slot[4].n = 3;
	s->slot[4].more = s->more[4];
	ha_delivery_take(s, 5);
	CHECK_INT(s->slot[3].pending, HA_AWAIT_DELIVERY);
	CHECK(s->slot[4].req.done && s->more[4][0].done && s->more[4][1].done);
	CHECK(!s->more[4][2].done);
	free(s);
}

int main(void)
{
	in_order();
	room_is_announced();
	receives_are_announced();
	words_of_all_rails();
	rounds_in_vain();
	after_an_error();
	windows_are_offered();
	as_many_windows_as_can_be();
	parts_of_the_ends();
	delivery_is_awaited();
	return 0;
}
