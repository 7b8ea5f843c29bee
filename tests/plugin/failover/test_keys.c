/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of a rail whose device had no buffers: when they are needed, who is notified, who pays.
 *
 * Keys that are given up are not sent any more. They were once, as zeros, in the rail's next
 * incarnation, for receives of the one before; where the socket was slow they came behind the keys
 * of that incarnation and voided them: the sender waited for ever (ha sim, seed 15849).
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RAIL 1

static struct ha_ctx ctx = { .clock = &ha_clock_live };
static struct ha_device device;

/* A receiver that has announced seven receives without the keys of this rail. */
static struct ha_bundle *make_receiver(void)
{
	struct ha_recv *c = new_recv();
	struct ha_control *k;

	CHECK(c);
	c->b.ctx = &ctx;
	c->b.nrails = 2;
	c->b.terms.flags = HA_FLAG_FAILOVER;
	for (unsigned i = 0; i < c->b.nrails; i++)
		c->b.rail[i].index = (uint8_t)i;
	pthread_mutex_init(&c->b.registered.lock, NULL);
	pthread_mutex_init(&c->b.registered.list_lock, NULL);
	c->head = 7;
	k = &c->b.failover->ctl[RAIL];
	k->keys.end = 7;
	k->out.due = k->out.sent = HA_SEND(RAIL_KEYS);
	return &c->b;
}

static void given_up_keys_are_not_sent(void)
{
	struct ha_bundle *b = make_receiver();
	struct ha_control *k = &b->failover->ctl[RAIL];

	ha_messages_send(b, ha_clock_now(ctx.clock));
	CHECK(k->out.repeat_at);                /* nobody has acknowledged them */
	CHECK(k->out.due & HA_SEND(RAIL_KEYS)); /* nor is there anything to carry them */

	ha_keys_forget(b, &b->rail[RAIL]);
	CHECK(!(k->out.due & HA_SEND(RAIL_KEYS)));
	ha_messages_send(b, k->out.repeat_at);
	CHECK(!(k->out.due & HA_SEND(RAIL_KEYS)));
	CHECK_INT(k->out.repeat_at, 0);
	free(b);
}

/* The driver's two steps for a rail that has come up: slow verbs, then what follows from them. */
static void register_all(struct ha_bundle *b)
{
	struct ha_control *k = &b->failover->ctl[RAIL];

	b->rail[RAIL].state = HA_RAIL_UP;
	b->balance.weight[RAIL] = 1024;
	ha_keys_step(b, &b->rail[RAIL]);
	CHECK_INT(k->keys.stage, HA_KEYS_WANTED);
	CHECK(ha_keys_register(b, &b->rail[RAIL]));
	CHECK_INT(b->registered.rails, 1 << RAIL);
	ha_keys_step(b, &b->rail[RAIL]);
	CHECK_INT(k->keys.stage, HA_KEYS_IDLE);
	ha_keys_step(b, &b->rail[RAIL]); /* and not again */
	CHECK_INT(k->keys.stage, HA_KEYS_IDLE);
}

/* The sender is sent the keys of receives that are open; where none is there is no message. */
static void sent_for_open_receives(void)
{
	for (uint64_t done = 5; done <= 7; done++) {
		struct ha_bundle *b = make_receiver();
		struct ha_control *k = &b->failover->ctl[RAIL];

		((struct ha_recv *)b)->done = done;
		k->out.due = 0;
		register_all(b);
		CHECK_INT(k->out.due, done < 7 ? HA_SEND(RAIL_KEYS) : 0);
		CHECK_INT(k->keys.next, done);
		CHECK_INT(k->keys.end, 7);
		free(b);
	}
}

/* The time goes to the rail whose failure made it necessary, on top of what that has cost. */
static void the_failed_rail_pays(void)
{
	enum ha_rail_state states[] = { HA_RAIL_FENCING, HA_RAIL_FENCED, HA_RAIL_DOWN };

	for (unsigned i = 0; i < 4; i++) {
		struct ha_bundle *b = make_receiver();
		struct ha_compare *pays = &b->failover->ctl[0].compare;
		bool expected = i != 2;

		b->rail[0].state = (uint8_t)states[i % 3];
		pays->unreported = i == 3; /* down again, and the failure is not reported yet */
		b->rail[0].state = i == 3 ? HA_RAIL_DOWN : b->rail[0].state;
		pays->registration_ns = 1000;
		b->failover->ctl[RAIL].compare.registration_ns = 5;
		b->failover->ctl[RAIL].keys.stage = HA_KEYS_REGISTERED;
		ha_keys_step(b, &b->rail[RAIL]);
		CHECK_INT(pays->registration_ns, expected ? 1005 : 1000);
		CHECK_INT(b->failover->ctl[RAIL].compare.registration_ns, 0);
		free(b);
	}
}

/* When a rail needs keys: it carries, or soon may; not while it is down or the connection ends. */
static void when_they_are_needed(void)
{
	for (unsigned i = 0; i < 9; i++) {
		struct ha_bundle *b = make_receiver();
		struct ha_rail *r = &b->rail[RAIL];

		ctx.config.mr_mode = i == 1 ? HA_MR_EAGER : HA_MR_LAZY;
		r->state = i == 5 ? HA_RAIL_JOIN : HA_RAIL_UP;
		b->balance.weight[RAIL] = i >= 4;
		b->balance.lag.keys = (uint8_t)(i == 2) << RAIL;
		b->registered.wanted = (uint8_t)((i == 3) << RAIL);
		b->abort->error = i == 6 ? -EIO : 0;
		b->peer_closed = i == 7;
		b->registered.rails = (uint8_t)((i == 8) << RAIL);
		ha_keys_step(b, r);
		CHECK_INT(b->failover->ctl[RAIL].keys.stage,
			  i >= 1 && i <= 4 ? HA_KEYS_WANTED : HA_KEYS_IDLE);
		ctx.config.mr_mode = HA_MR_LAZY;
		free(b);
	}
}

/* No rail is left that has the buffers which this one's device refused: nothing would come. */
static void refused_on_the_only_rail(void)
{
	for (unsigned other = 0; other < 2; other++) {
		struct ha_bundle *b = make_receiver();

		atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
		b->failover->ctl[RAIL].keys.refused = 2;
		b->failover->ctl[RAIL].keys.stage = HA_KEYS_REGISTERED;
		b->active = (uint8_t)(1 << RAIL | other);
		b->registered.rails = (uint8_t)(1 << RAIL | other);
		b->rail[RAIL].dev = &device;
		ha_keys_step(b, &b->rail[RAIL]);
		CHECK_INT(b->abort->error, other ? 0 : -ENOMEM);
		free(b);
	}
}

static struct ha_msg_keys two_keys(uint64_t idx)
{
	return (struct ha_msg_keys) { .n = 2,
				      .next = idx + 2,
				      .keys = { { .idx = idx, .key = { 11, 12 } },
						{ .idx = idx + 1, .key = { 21 } } } };
}

/* The sender puts them where the clear-to-send of that very receive lies; one that is not here yet,
 * or not whole, has the message repeated from there. */
static void taken_where_they_belong(void)
{
	struct ha_send *s = new_send();
	struct ha_msg_keys m = two_keys(3);
	struct ha_cts *cts;

	CHECK(s);
	s->b.is_send = true;
	s->b.rail[RAIL].index = RAIL;
	s->b.ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(s->b.ring);
	s->head = 3;
	CHECK_INT(ha_keys_take(&s->b, &s->b.rail[RAIL], &m), 3); /* nothing is here */
	cts = ha_send_cts(s, 3);
	cts[0].n = 2;
	cts[0].idx = 4;
	CHECK_INT(ha_keys_take(&s->b, &s->b.rail[RAIL], &m), 3); /* its second line is not */
	cts[1].idx = 4;
	CHECK_INT(ha_keys_take(&s->b, &s->b.rail[RAIL], &m), 4); /* the next receive is not */
	CHECK_INT(cts[0].rkey[RAIL], 11);
	CHECK_INT(cts[1].rkey[RAIL], 12);
	CHECK_INT(cts[0].rkey[0], 0);
	s->head = 5; /* it was used already: of no account */
	CHECK_INT(ha_keys_take(&s->b, &s->b.rail[RAIL], &m), 5);
	CHECK_INT(ha_send_cts(s, 4)->rkey[RAIL], 0);
	free(s->b.ring);
	free(s);
}

/* After a fence a sender says which clear-to-sends it holds whole: all lines of a group. */
static void held_whole(void)
{
	struct ha_send *s = new_send();
	struct ha_fence_state state;
	struct ha_cts *cts;

	CHECK(s);
	s->b.is_send = true;
	s->b.ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(s->b.ring);
	s->head = 4;
	for (unsigned missing = 0; missing <= 3; missing++) {
		cts = ha_send_cts(s, 5);
		for (unsigned m = 0; m < 3; m++) {
			cts[m].n = 3;
			cts[m].idx = m == missing ? 0 : 6;
		}
		memset(&state, 0, sizeof(state));
		ha_reconcile_state(&s->b, &state);
		CHECK_INT(state.head, 4);
		CHECK_INT(state.base, 4);
		CHECK_INT(state.mask[0], missing == 3 ? 2 : 0); /* 4 is not announced */
	}
	ha_send_cts(s, 4)->idx = 5; /* now it is */
	memset(&state, 0, sizeof(state));
	ha_reconcile_state(&s->b, &state);
	CHECK_INT(state.mask[0], 3);
	free(s->b.ring);
	free(s);
}

/* A message holds the keys of ten receives at most, of those that are open; a buffer that is not
 * known any more has none. */
static void what_is_sent(void)
{
	struct ha_bundle *b = make_receiver();
	struct ha_recv *c = (struct ha_recv *)b;
	struct ha_mr mr = { .rkey = { 3, 4 } }, gone = mr;
	struct ha_msg_keys m = { 0 };

	LIST_INSERT_HEAD(&b->registered.list, &mr, link);
	c->done = 2;
	c->head = 20;
	b->failover->ctl[RAIL].keys.end = 20;
	for (uint64_t idx = 0; idx < 20; idx++) {
		struct ha_recv_slot *slot = &c->slot[idx];

		slot->idx = idx;
		slot->n = 2;
		slot->busy = idx == 3 ? HA_SLOT_HELD : HA_SLOT_WIRE; /* this one is complete */
		slot->buf.mr = &mr;
		slot->more = c->more[idx];
		slot->more->mr = &gone;
	}
	ha_keys_fill(b, &b->rail[RAIL], &m);
	CHECK_INT(m.n, HA_KEYS_MAX);
	CHECK_INT(m.next, 13);
	CHECK_INT(m.keys[0].idx, 2);
	CHECK_INT(m.keys[0].key[0], 4);
	CHECK_INT(m.keys[0].key[1], 0);
	CHECK_INT(m.keys[1].idx, 4);
	b->failover->ctl[RAIL].keys.next = 13;
	memset(&m, 0, sizeof(m));
	ha_keys_fill(b, &b->rail[RAIL], &m);
	CHECK_INT(m.n, 7);
	CHECK_INT(m.keys[0].idx, 13);
	CHECK_INT(m.next, 20);
	c->slot[19].idx = 19 + HA_SLOTS; /* the entry is another receive's */
	memset(&m, 0, sizeof(m));
	ha_keys_fill(b, &b->rail[RAIL], &m);
	CHECK_INT(m.n, 6);
	free(b);
}

static void keys_that_are_forgotten(void)
{
	struct ha_bundle *b = make_receiver();
	struct ha_control *k = &b->failover->ctl[RAIL];
	struct ha_mr mr = { .lkey = { 1, 2 }, .rkey = { 3, 4 } };

	LIST_INSERT_HEAD(&b->registered.list, &mr, link);
	b->registered.rails = b->registered.wanted = 3;
	k->keys.stage = HA_KEYS_WANTED;
	k->windows = (struct ha_window_counts) { .known = 3, .sent = 4 };
	ha_keys_forget(b, &b->rail[RAIL]);
	CHECK_INT(mr.lkey[RAIL] + mr.rkey[RAIL], 0);
	CHECK_INT(mr.lkey[0], 1);
	CHECK_INT(mr.rkey[0], 3);
	CHECK_INT(b->registered.rails, 1);
	CHECK_INT(b->registered.wanted, 1);
	CHECK_INT(k->keys.stage, HA_KEYS_IDLE);
	CHECK_INT(k->keys.forgotten, 1); /* which is sent to the peer, and so voids them as well */
	CHECK_INT(k->windows.known + k->windows.sent, 0);
	free(b);
}

/* A device that dies refuses memory before anybody has learned of its end: the rail is lost. */
static void the_device_is_lost(void)
{
	struct ha_bundle *b = make_receiver();
	struct ha_control *k = &b->failover->ctl[RAIL];

	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	b->rail[RAIL].state = HA_RAIL_UP;
	b->rail[RAIL].dev = &device;
	k->keys.stage = HA_KEYS_REGISTERED;
	k->keys.lost = true;
	ha_keys_step(b, &b->rail[RAIL]);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_FENCING);
	CHECK_INT(b->rail[RAIL].loss.cause, HA_CAUSE_WORK_REFUSED);
	CHECK_INT(k->keys.stage, HA_KEYS_IDLE);
	free(b);
}

/* A message waited for these keys, because the peer carries over this spare, and this end over
 * another: this end follows. A data rail's share is not the peer's to choose. */
static void the_peer_was_first(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ha_send *s = new_send();
		struct ha_bundle *b = &s->b;

		CHECK(s);
		b->ctx = &ctx;
		b->is_send = true;
		b->nrails = 3;
		b->balance.ndata = i == 1 ? 2 : 1;
		b->active = 6;
		pthread_mutex_init(&b->registered.list_lock, NULL);
		for (unsigned k = 0; k < b->nrails; k++) {
			b->rail[k].index = (uint8_t)k;
			b->rail[k].dev = &device;
			b->rail[k].state = k ? HA_RAIL_UP : HA_RAIL_DOWN;
		}
		b->balance.weight[2] = i == 3 ? 0 : 1024;
		b->balance.weight[1] = i == 3 ? 7 : 0;
		b->registered.wanted = (uint8_t)(i == 2 ? 0 : 1 << RAIL);
		b->failover->ctl[RAIL].keys.stage = HA_KEYS_REGISTERED;
		ha_keys_step(b, &b->rail[RAIL]);
		CHECK_INT(b->balance.weight[RAIL] != 0, i == 0 || i == 3);
		CHECK_INT(b->balance.weight[2] != 0, i == 1 || i == 2);
		CHECK_INT(b->registered.wanted, 0);
		free(s);
	}
}

/* A receiver's clear-to-sends with keys that it gives up are waited for, on every rail that is up.
 */
static void given_up_keys_on_their_way(void)
{
	static const struct {
		bool is_send, registered;
		uint8_t state, behind;
	} cases[] = {
		{ false, true, HA_RAIL_UP, 1 },     { false, true, HA_RAIL_FENCING, 1 },
		{ false, true, HA_RAIL_FENCED, 0 }, { false, false, HA_RAIL_UP, 0 },
		{ true, true, HA_RAIL_UP, 0 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ha_bundle *b = make_receiver();
		struct ha_late_keys *keys = &b->failover->ctl[RAIL].keys;

		b->is_send = cases[i].is_send;
		b->registered.rails = cases[i].registered ? 1 << RAIL : 0;
		b->rail[0].state = cases[i].state;
		b->rail[0].sq_posted = UINT32_MAX; /* the counts wrap */
		b->rail[0].sq_retired = UINT32_MAX - 3;
		ha_keys_forget(b, &b->rail[RAIL]);
		CHECK_INT(keys->behind, cases[i].behind);
		free(b);
	}
}

/* They end by an acknowledgement, by the rail's fence, or with its next incarnation. */
static void given_up_keys_arrive(void)
{
	uint64_t now = ha_clock_now(ctx.clock);

	for (unsigned end = 0; end < 3; end++) {
		struct ha_bundle *b = make_receiver();
		struct ha_late_keys *keys = &b->failover->ctl[RAIL].keys;
		struct ha_heartbeat_watch *heartbeat = &b->failover->ctl[0].heartbeat;

		b->registered.rails = 1 << RAIL;
		b->rail[0].state = HA_RAIL_UP;
		b->rail[0].sq_posted = 2;
		ha_keys_forget(b, &b->rail[RAIL]);
		b->rail[0].sq_posted = 5; /* what follows has other keys */
		heartbeat->at = now + 1000;
		heartbeat->sent_at = now - 1; /* one is on its way, and not behind all */
		b->schedule->due = UINT64_MAX;
		ha_keys_follow(b, &b->rail[RAIL], now);
		CHECK_INT(keys->behind, 1);
		CHECK_INT(heartbeat->at, now + 1000);
		CHECK(b->schedule->due > now && b->schedule->due < now + 1000000);
		heartbeat->sent_at = 0;
		ha_keys_follow(b, &b->rail[RAIL], now);
		CHECK_INT(heartbeat->at, now);
		b->rail[0].sq_retired = 1;
		b->rail[0].state = HA_RAIL_FENCING;
		ha_keys_follow(b, &b->rail[RAIL], now);
		CHECK_INT(keys->behind, 1);
		if (end == 0)
			b->rail[0].sq_retired = 2;
		if (end == 1)
			b->rail[0].state = HA_RAIL_FENCED;
		if (end == 2)
			ha_keys_incarnation(b, &b->rail[0]);
		ha_keys_follow(b, &b->rail[RAIL], now);
		CHECK_INT(keys->behind, 0);
		free(b);
	}
}

int main(void)
{
	given_up_keys_on_their_way();
	given_up_keys_arrive();
	given_up_keys_are_not_sent();
	sent_for_open_receives();
	the_failed_rail_pays();
	when_they_are_needed();
	refused_on_the_only_rail();
	taken_where_they_belong();
	held_whole();
	what_is_sent();
	keys_that_are_forgotten();
	the_device_is_lost();
	the_peer_was_first();
	return 0;
}
