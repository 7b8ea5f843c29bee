/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends of a rail are fenced and have sent what they have: what was seen is complete, what was
 * not is sent again, and nothing else is.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "rdma/topo/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RAILS 3
#define LOST 1 /* the rail that was fenced */

static struct ha_topo_device topo;
static struct ha_device device = { .topo = &topo };
static struct ha_clock_virtual virtual_time = HA_CLOCK_VIRTUAL_INIT(HA_NS_PER_S);
static struct ha_ctx ctx = { .clock = &virtual_time.clock };

static void prepare_bundle(struct ha_bundle *b, bool is_send)
{
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = b->balance.ndata = RAILS;
	b->active = 5;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->ring = calloc(1, is_send ? HA_SEND_RING_SIZE : HA_RECV_RING_SIZE);
	CHECK(b->ring);
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (unsigned i = 0; i < RAILS; i++) {
		b->rail[i].index = (uint8_t)i;
		b->rail[i].state = i == LOST ? HA_RAIL_FENCED : HA_RAIL_UP;
		b->rail[i].dev = &device;
	}
}

static void free_bundle(struct ha_bundle *b)
{
	free(b->ring);
	free(b);
}

/* ---- the sender ---- */

/* Messages 254 to 257 are under way, over the end of the ring, each with a stripe on every rail;
 * the receiver has seen nothing. */
static struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();
	struct ha_fence_state *peer;

	CHECK(s);
	prepare_bundle(&s->b, true);
	s->head = 258;
	for (uint64_t idx = 254; idx < 258; idx++) {
		struct ha_send_slot *slot = &s->slot[idx % HA_SLOTS];

		slot->idx = idx;
		slot->n = 1;
		slot->held = 1;
		slot->more = s->more[idx % HA_SLOTS];
		slot->mask = slot->pending = 7;
	}
	peer = &s->b.failover->ctl[LOST].compare.peer_state;
	peer->base = 254;
	peer->head = 258;
	return s;
}

static struct ha_send_slot *send_slot_of(struct ha_send *s, uint64_t idx)
{
	return &s->slot[idx % HA_SLOTS];
}

/* What is sent again of a message: mask of its stripes. */
static unsigned reconcile_stripes(struct ha_send *s, uint64_t idx)
{
	ha_reconcile(&s->b, &s->b.rail[LOST]);
	return send_slot_of(s, idx)->parked;
}

static void stripes_of_the_lost_rail(void)
{
	struct ha_send *s = make_sender();
	struct ha_fence_state *peer = &s->b.failover->ctl[LOST].compare.peer_state;

	peer->base = 255;     /* it has 254 whole; */
	peer->head = 257;     /* it has not announced 257 */
	peer->mask[0] = 0x02; /* of 255 this rail's stripe, */
	peer->mask[1] = 0x05; /* of 256 only the others' */
	CHECK_INT(reconcile_stripes(s, 254), 0);
	CHECK_INT(send_slot_of(s, 254)->pending, 5);
	CHECK_INT(send_slot_of(s, 254)->settled, 1 << LOST);
	CHECK_INT(send_slot_of(s, 255)->parked, 0);
	CHECK_INT(send_slot_of(s, 255)->pending, 5);
	CHECK_INT(send_slot_of(s, 256)->parked, 1 << LOST);
	CHECK_INT(send_slot_of(s, 256)->pending, 7);
	CHECK_INT(send_slot_of(s, 257)->parked, 1 << LOST);
	CHECK_INT(s->b.failover->parked, 2);
	CHECK_INT(reconcile_stripes(s, 256), 1 << LOST); /* a second look changes nothing */
	CHECK_INT(s->b.failover->parked, 2);
	CHECK_INT(s->b.abort->error, 0);
	free_bundle(&s->b);
}

/* The last stripe that was missing: the message is complete, though the NIC has said nothing. */
static void complete_by_the_peers_count(void)
{
	struct ha_send *s = make_sender();

	s->b.failover->ctl[LOST].compare.peer_state.base = 255;
	send_slot_of(s, 254)->pending = 1 << LOST;
	CHECK_INT(reconcile_stripes(s, 254), 0);
	CHECK_INT(send_slot_of(s, 254)->pending, 0);
	CHECK_INT(send_slot_of(s, 254)->req.done, 1);
	CHECK_INT(send_slot_of(s, 255)->req.done, 0);
	free_bundle(&s->b);
}

/* A stripe that another rail carries instead is that rail's; one that this rail carries instead of
 * another is lost with it. */
static void who_carries_it_now(void)
{
	struct ha_send *s = make_sender();

	send_slot_of(s, 254)->moved = 1 << LOST;
	send_slot_of(s, 254)->carrier[LOST] = 2;
	send_slot_of(s, 255)->moved = 1 << 2;
	send_slot_of(s, 255)->carrier[2] = LOST;
	send_slot_of(s, 256)->moved = 1 << 0;
	send_slot_of(s, 256)->carrier[0] = LOST;
	CHECK_INT(reconcile_stripes(s, 254), 0);
	CHECK_INT(send_slot_of(s, 255)->parked, 1 << LOST | 1 << 2);
	CHECK_INT(send_slot_of(s, 256)->parked, 1 << LOST | 1 << 0);
	free_bundle(&s->b);
}

/* Nothing was posted for a message that is being gathered, nor for an entry of the ring that is
 * empty, or of an older round. */
static void what_was_never_sent(void)
{
	struct ha_send *s = make_sender();

	send_slot_of(s, 254)->open = 1;
	send_slot_of(s, 255)->n = 0;
	send_slot_of(s, 256)->idx = 258;
	CHECK_INT(reconcile_stripes(s, 254), 0);
	CHECK_INT(send_slot_of(s, 255)->parked, 0);
	CHECK_INT(send_slot_of(s, 256)->parked, 0);
	CHECK_INT(send_slot_of(s, 257)->parked, 1 << LOST);
	free_bundle(&s->b);
}

/* The NIC called it sent, and the receiver never had it. While NCCL holds the request, or its data
 * is copied, it is sent again; else the data is lost, and the connection must end. */
static void acknowledged_but_not_placed(void)
{
	struct ha_send *s = make_sender();

	send_slot_of(s, 254)->req.done = 1;
	send_slot_of(s, 254)->pending = 0;
	CHECK_INT(reconcile_stripes(s, 254), 1 << LOST);
	CHECK_INT(send_slot_of(s, 254)->req.done, 0); /* not complete after all */
	CHECK_INT(send_slot_of(s, 254)->pending, 1 << LOST);
	CHECK_INT(s->b.abort->error, 0);
	free_bundle(&s->b);

	s = make_sender(); /* every request of a group */
	send_slot_of(s, 254)->n = 2;
	send_slot_of(s, 254)->held = 3;
	send_slot_of(s, 254)->req.done = send_slot_of(s, 254)->more[0].done = 1;
	CHECK_INT(reconcile_stripes(s, 254), 1 << LOST);
	CHECK_INT(send_slot_of(s, 254)->req.done + send_slot_of(s, 254)->more[0].done, 0);
	free_bundle(&s->b);

	s = make_sender();
	send_slot_of(s, 254)->copied = true;
	send_slot_of(s, 254)->held = 0;
	send_slot_of(s, 254)->req.done = 1;
	send_slot_of(s, 254)->pending = 0;
	CHECK_INT(reconcile_stripes(s, 254), 1 << LOST);
	CHECK_INT(send_slot_of(s, 254)->req.done, 1); /* the buffer is NCCL's again */
	CHECK_INT(s->b.abort->error, 0);
	free_bundle(&s->b);

	for (unsigned held = 0; held < 3; held++) {
		s = make_sender();
		send_slot_of(s, 255)->n = 2; /* of a group one request is given back */
		send_slot_of(s, 255)->held = (uint8_t)held;
		CHECK_INT(reconcile_stripes(s, 255), 0);
		CHECK_INT(s->b.abort->error, -EIO);
		CHECK_INT(s->b.abort->cause, HA_CAUSE_DATA_LOST);
		free_bundle(&s->b);
	}
}

/* ---- the receiver ---- */

/* Receives 300 to 303 are announced, over the lost rail. */
static struct ha_recv *make_receiver(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	prepare_bundle(&c->b, false);
	c->done = 300;
	c->head = 304;
	for (uint64_t idx = 300; idx < 304; idx++)
		c->slot[idx % HA_SLOTS] = (struct ha_recv_slot) {
			.idx = idx, .busy = HA_SLOT_WIRE, .n = 1, .cts_rail = LOST
		};
	return c;
}

static struct ha_recv_slot *recv_slot_of(struct ha_recv *c, uint64_t idx)
{
	return &c->slot[idx % HA_SLOTS];
}

static void clear_to_sends_of_the_lost_rail(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_fence_state *peer = &c->b.failover->ctl[LOST].compare.peer_state;

	peer->head = peer->base = 301;      /* the sender has used 300, */
	peer->mask[0] = 1;                  /* holds 301, */
	recv_slot_of(c, 302)->cts_rail = 2; /* and 302 went over another rail */
	c->b.delivered_sent = 299;
	ha_reconcile(&c->b, &c->b.rail[LOST]);
	for (uint64_t idx = 300; idx < 304; idx++)
		CHECK_INT(recv_slot_of(c, idx)->cts_parked, idx == 303);
	CHECK_INT(c->b.failover->parked, 1);
	CHECK_INT(c->b.delivered_sent, 0); /* the rail may have carried the last count */
	ha_reconcile(&c->b, &c->b.rail[LOST]);
	CHECK_INT(c->b.failover->parked, 1);
	free_bundle(&c->b);

	c = make_receiver(); /* what has arrived needs none */
	recv_slot_of(c, 301)->busy = HA_SLOT_HELD;
	ha_reconcile(&c->b, &c->b.rail[LOST]);
	CHECK(!recv_slot_of(c, 301)->cts_parked);
	CHECK_INT(c->b.failover->parked, 3);
	free_bundle(&c->b);
}

/* The sender's mask ends with the ring: bit 127 is a receive, whatever is behind it is not. */
static void to_the_end_of_the_ring(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_fence_state *peer = &c->b.failover->ctl[LOST].compare.peer_state;

	peer->head = 303 - (HA_SLOTS - 1);
	memset(peer->mask, 0, sizeof(peer->mask));
	peer->mask[(HA_SLOTS - 1) / 8] = 0x80;
	ha_reconcile(&c->b, &c->b.rail[LOST]);
	CHECK(!recv_slot_of(c, 303)->cts_parked);
	CHECK(recv_slot_of(c, 302)->cts_parked);
	free_bundle(&c->b);

	c = make_receiver();
	peer = &c->b.failover->ctl[LOST].compare.peer_state;
	peer->head = 303 - HA_SLOTS;
	memset(peer->mask, 0xff, sizeof(peer->mask));
	ha_reconcile(&c->b, &c->b.rail[LOST]);
	CHECK(recv_slot_of(c, 303)->cts_parked);
	CHECK(!recv_slot_of(c, 302)->cts_parked);
	free_bundle(&c->b);
}

/* What a receiver sends: by receive the stripes that it has seen, all of them for one that is
 * complete. */
static void what_a_receiver_has(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_fence_state state;

	recv_slot_of(c, 300)->seen = 2;
	recv_slot_of(c, 301)->busy = HA_SLOT_HELD;
	memset(&state, 0x55, sizeof(state));
	ha_reconcile_state(&c->b, &state);
	CHECK_INT(state.base, 300);
	CHECK_INT(state.head, 304);
	CHECK_INT(state.mask[0], 2);
	CHECK_INT(state.mask[1], 0xff);
	CHECK_INT(state.mask[2], 0);
	CHECK_INT(state.mask[4], 0);
	free_bundle(&c->b);
}

/* Of all pairs of stages those six; any other is a defect, and one line says so. */
static void stages_of_a_comparison(void)
{
	static const bool follows[3][3] = {
		[HA_COMPARE_NONE] = { true, true, true },
		[HA_COMPARE_TAKEN] = { [HA_COMPARE_NONE] = true, [HA_COMPARE_SETTLED] = true },
		[HA_COMPARE_SETTLED] = { [HA_COMPARE_NONE] = true },
	};
	struct ha_send *s = make_sender();
	struct ha_compare *compare = &s->b.failover->ctl[LOST].compare;

	for (unsigned from = 0; from < 3; from++)
		for (unsigned to = 0; to < 3; to++) {
			lines_catch();
			compare->stage = (uint8_t)from;
			ha_compare_enter(&s->b, &s->b.rail[LOST], to);
			CHECK_INT(compare->stage, to);
			CHECK_INT(lines_warnings(), !follows[from][to]);
		}
	CHECK(lines_contain("comparison 'settled' does not lead to 'settled'"));
	free_bundle(&s->b);
}

/* The peer says more than once that it has our state; before it was taken nobody can have it. */
static void settled_by_the_peer(void)
{
	struct ha_send *s = make_sender();
	struct ha_compare *compare = &s->b.failover->ctl[LOST].compare;
	static const uint8_t after[] = {
		[HA_COMPARE_NONE] = HA_COMPARE_NONE,
		[HA_COMPARE_TAKEN] = HA_COMPARE_SETTLED,
		[HA_COMPARE_SETTLED] = HA_COMPARE_SETTLED,
	};

	lines_catch();
	for (unsigned stage = 0; stage < 3; stage++) {
		compare->stage = (uint8_t)stage;
		ha_compare_settle(&s->b, &s->b.rail[LOST]);
		CHECK_INT(compare->stage, after[stage]);
	}
	CHECK_INT(lines_warnings(), 0);
	free_bundle(&s->b);
}

/* What no rail takes now is tried again soon, as long as one is up and the connection goes on. */
static void what_cannot_be_sent_yet(void)
{
	for (unsigned i = 0; i < 5; i++) {
		struct ha_send *s = make_sender();

		pthread_mutex_init(&s->b.registered.list_lock, NULL);
		send_slot_of(s, 254)->parked = 1 << LOST;
		send_slot_of(s, 254)->req.size = 8; /* its buffer is given back at this moment */
		s->b.failover->parked = i != 1;
		s->b.active = i == 2 ? 0 : 5;
		s->b.abort->held = i == 3 ? -EIO : 0;
		s->b.abort->error = i == 4 ? -EIO : 0;
		s->b.schedule->due = UINT64_MAX;
		ha_replay(&s->b);
		CHECK_INT(s->b.schedule->due == virtual_time.now + 100000, i == 0);
		CHECK(i == 0 || s->b.schedule->due == UINT64_MAX);
		CHECK_INT(send_slot_of(s, 254)->parked, 1 << LOST);
		free_bundle(&s->b);
	}
}

int main(void)
{
	stripes_of_the_lost_rail();
	complete_by_the_peers_count();
	who_carries_it_now();
	what_was_never_sent();
	acknowledged_but_not_placed();
	clear_to_sends_of_the_lost_rail();
	to_the_end_of_the_ring();
	what_a_receiver_has();
	stages_of_a_comparison();
	settled_by_the_peer();
	what_cannot_be_sent_yet();
	return 0;
}
