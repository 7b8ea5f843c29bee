/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the peer says about a rail, message by message: of this epoch, of the next, of one that is
 * over, of one that cannot be. And when a rail whose incarnation is over may be tried again.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "rdma/topo/device.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>

#define RAIL 1
#define EPOCH 5
#define NONCE 77
#define MS HA_NS_PER_MS

static struct ha_topo_device topo;
static struct ha_device device[2] = { { .topo = &topo }, { .topo = &topo } };
static struct ha_ctx ctx = { .clock = &ha_clock_live, .devices = device, .nports = 2 };

static void prepare_bundle(struct ha_bundle *b, bool is_send)
{
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = b->balance.ndata = 2;
	b->active = 3;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->terms.nonce = NONCE;
	b->schedule->due = UINT64_MAX;
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	pthread_mutex_init(&b->registered.lock, NULL);
	pthread_mutex_init(&b->registered.list_lock, NULL);
	for (unsigned i = 0; i < 2; i++) {
		b->rail[i].index = (uint8_t)i;
		b->rail[i].state = HA_RAIL_UP;
		b->rail[i].epoch = EPOCH;
		b->rail[i].dev = &device[i];
	}
}

static struct ha_bundle *make_sender(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	prepare_bundle(&s->b, true);
	return &s->b;
}

static struct ha_bundle *make_receiver(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	prepare_bundle(&c->b, false);
	return &c->b;
}

static union ha_message compose_message(enum ha_msg_type type, uint32_t epoch)
{
	union ha_message m = { 0 };

	m.header.type = (uint16_t)type;
	m.rail.nonce = NONCE;
	m.rail.rail = RAIL;
	m.rail.epoch = epoch;
	return m;
}

static void receive_down(struct ha_bundle *b, uint32_t epoch, enum ha_event_cause cause)
{
	union ha_message m = compose_message(HA_MSG_RAIL_DOWN, epoch);

	m.cause.cause = cause;
	ha_failover_message(b, &m);
}

static void lost_at_the_peer(void)
{
	struct ha_bundle *b = make_sender();
	struct ha_control *k = &b->failover->ctl[RAIL];

	receive_down(b, EPOCH - 1, HA_CAUSE_PORT_DOWN); /* a late copy */
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_UP);
	CHECK(!k->fence.peer_knows);
	receive_down(b, EPOCH, HA_CAUSE_PORT_DOWN);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_FENCING);
	CHECK_INT(b->rail[RAIL].loss.cause, HA_CAUSE_PEER_NOTICE);
	CHECK(k->fence.peer_knows);
	CHECK_INT(b->active, 1);
	CHECK(!ha_bundle_closing(b, ha_clock_now(ctx.clock)));
	free(b);

	b = make_sender(); /* our write was refused there: it may be about to close */
	receive_down(b, EPOCH, HA_CAUSE_QUEUE_ERROR);
	CHECK(ha_bundle_closing(b, ha_clock_now(ctx.clock)));
	free(b);

	b = make_sender(); /* superfluous, which is no fault */
	receive_down(b, EPOCH, HA_CAUSE_SURPLUS);
	CHECK_INT(b->rail[RAIL].loss.cause, HA_CAUSE_SURPLUS);
	free(b);
}

/* The offer of an incarnation was lost: it is over before it began here. Only a receiver can know
 * less than its peer. */
static void lost_before_it_began(void)
{
	struct ha_bundle *b = make_receiver();

	b->rail[RAIL].state = HA_RAIL_DOWN;
	receive_down(b, EPOCH + 1, HA_CAUSE_PORT_DOWN);
	CHECK_INT(b->rail[RAIL].epoch, EPOCH + 1);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_FENCING);
	CHECK_INT(b->failover->ctl[RAIL].fence.stage, HA_FENCE_CLOSE);
	CHECK_INT(b->failover->ctl[RAIL].slow, HA_SLOW_CLOSE);
	CHECK(b->rail[RAIL].loss.suspected_at);
	free(b);

	b = make_sender();
	b->rail[RAIL].state = HA_RAIL_DOWN;
	receive_down(b, EPOCH + 1, HA_CAUSE_PORT_DOWN);
	CHECK_INT(b->rail[RAIL].epoch, EPOCH);
	CHECK_INT(b->abort->error, 0);
	free(b);
}

static void fenced_at_the_peer(void)
{
	struct ha_bundle *b = make_receiver();
	struct ha_control *k = &b->failover->ctl[RAIL];
	union ha_message m = compose_message(HA_MSG_RAIL_FENCED, EPOCH);

	m.fenced.state.base = 3;
	m.fenced.state.head = 9;
	ha_failover_message(b, &m);
	CHECK(k->fence.peer_knows);
	CHECK(k->compare.has_peer_state);
	CHECK_INT(k->compare.peer_state.head, 9);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_FENCING);
	m.fenced.state.head = 10; /* repeated: the first counts */
	ha_failover_message(b, &m);
	CHECK_INT(k->compare.peer_state.head, 9);
	CHECK_INT(k->out.due, 0);
	b->rail[RAIL].state = HA_RAIL_DOWN; /* our acknowledgement was lost */
	ha_failover_message(b, &m);
	CHECK_INT(k->out.due, HA_SEND(RAIL_ACK));
	m = compose_message(HA_MSG_RAIL_ACK, EPOCH);
	ha_failover_message(b, &m);
	CHECK_INT(k->compare.stage, HA_COMPARE_NONE); /* it cannot have what was not taken */
	k->compare.stage = HA_COMPARE_TAKEN;
	ha_failover_message(b, &m);
	CHECK_INT(k->compare.stage, HA_COMPARE_SETTLED);
	free(b);

	b = make_receiver(); /* of the next epoch, while this one is up: it will be repeated */
	m = compose_message(HA_MSG_RAIL_FENCED, EPOCH + 1);
	ha_failover_message(b, &m);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_UP);
	CHECK(!b->failover->ctl[RAIL].compare.has_peer_state);
	b->rail[RAIL].state = HA_RAIL_DOWN;
	ha_failover_message(b, &m);
	CHECK_INT(b->rail[RAIL].epoch, EPOCH + 1);
	CHECK(b->failover->ctl[RAIL].compare.has_peer_state);
	free(b);
}

static int error_after(enum ha_msg_type type, uint32_t epoch, bool is_send)
{
	struct ha_bundle *b = is_send ? make_sender() : make_receiver();
	union ha_message m = compose_message(type, epoch);
	int error;

	ha_failover_message(b, &m);
	error = b->abort->error;
	free(b);
	return error;
}

/* The peer is at most one epoch ahead, and answers none that was not. */
static void epochs_that_cannot_be(void)
{
	CHECK_INT(error_after(HA_MSG_RAIL_DOWN, EPOCH + 1, true), 0);
	CHECK_INT(error_after(HA_MSG_RAIL_DOWN, EPOCH + 2, true), -EPROTO);
	CHECK_INT(error_after(HA_MSG_RAIL_ACK, EPOCH, true), 0);
	CHECK_INT(error_after(HA_MSG_RAIL_ACK, EPOCH + 1, true), -EPROTO);
	CHECK_INT(error_after(HA_MSG_RAIL_ANSWER, EPOCH + 1, true), -EPROTO);
	CHECK_INT(error_after(HA_MSG_RAIL_BACK, EPOCH + 1, true), -EPROTO);
	CHECK_INT(error_after(HA_MSG_RAIL_KEYS, EPOCH + 9, true), 0);
	CHECK_INT(error_after(HA_MSG_RAIL_KEYS_ACK, EPOCH + 9, false), 0);
	CHECK_INT(error_after(HA_MSG_WINDOWS, EPOCH + 9, true), 0);
	CHECK_INT(error_after(HA_MSG_WINDOWS_ACK, EPOCH + 9, false), 0);
}

/* A wrong nonce, a rail that is not there, or no failover: nothing happens. */
static void not_for_us(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ha_bundle *b = make_sender();
		union ha_message m = compose_message(HA_MSG_ABORT, 0);

		m.rail.nonce += i == 0;
		m.rail.rail += i == 1;
		b->terms.flags = i == 2 ? 0 : HA_FLAG_FAILOVER;
		ha_failover_message(b, &m);
		CHECK_INT(b->abort->error, i == 3 ? -ECONNABORTED : 0);
		CHECK(!b->abort->due); /* the peer knows */
		free(b);
	}
}

static void keys_are_acknowledged(void)
{
	struct ha_bundle *b = make_receiver();
	struct ha_control *k = &b->failover->ctl[RAIL];
	union ha_message m = compose_message(HA_MSG_RAIL_KEYS_ACK, EPOCH);

	k->keys.next = 4;
	k->keys.end = 9;
	m.keys_ack.next = 4;
	ha_failover_message(b, &m); /* nothing new */
	CHECK_INT(k->out.due, 0);
	m.keys_ack.next = 8;
	ha_failover_message(b, &m);
	CHECK_INT(k->keys.next, 8);
	CHECK_INT(k->out.due, HA_SEND(RAIL_KEYS)); /* the rest */
	k->out.due = 0;
	m.keys_ack.next = 9;
	ha_failover_message(b, &m);
	CHECK_INT(k->keys.next, 9);
	CHECK_INT(k->out.due, 0);
	free(b);
}

/* A rail's incarnation is over; `suspected` ns ago it was suspected. */
static uint64_t end_incarnation(struct ha_bundle *b, uint64_t now, uint64_t suspected)
{
	struct ha_control *k = &b->failover->ctl[RAIL];

	b->rail[RAIL].state = HA_RAIL_DOWN;
	b->rail[RAIL].loss.suspected_at = now - suspected;
	b->schedule->due = UINT64_MAX;
	ha_incarnation_over(b, &b->rail[RAIL], now);
	CHECK(b->schedule->due == k->join.retry_at);
	CHECK_INT(b->failover->spares.exchange_ns, suspected);
	return k->join.retry_at;
}

/* Each one that does not come up, or comes up for a moment, makes the next pause longer; not before
 * what the operator has set; a receiver never waits. */
static void tried_again(void)
{
	struct ha_bundle *b = make_sender();
	struct ha_control *k = &b->failover->ctl[RAIL];
	uint64_t now = 1000000 * MS;

	b->active = 1;
	b->rail[RAIL].proven = true;
	for (unsigned i = 1; i <= 3; i++) {
		CHECK_INT(end_incarnation(b, now, 0), now + (100 * MS << i));
		CHECK_INT(k->join.attempts, i);
	}
	ctx.config.ib_recovery_start_delay = 5000;
	CHECK_INT(end_incarnation(b, now, 1000 * MS), now + 4000 * MS);
	ctx.config.ib_recovery_start_delay = 500;
	CHECK_INT(end_incarnation(b, now, 0), now + (100 * MS << 5));
	ctx.config.ib_recovery_start_delay = 0;
	b->active = 0; /* every second counts */
	CHECK_INT(end_incarnation(b, now, 0), now + 1000 * MS);
	k->join.attempts = 0;
	k->working = true; /* it was up until now: at once */
	k->join.up_since = now - 20000 * MS;
	CHECK_INT(end_incarnation(b, now, 0), now);
	CHECK_INT(k->join.flaps, 0);
	b->active = 1;
	for (unsigned i = 1; i <= 12; i++) {
		unsigned flaps = i < 9 ? i : 9;

		k->join.up_since = now - 9999 * MS;
		CHECK_INT(end_incarnation(b, now, 0), now + (100 * MS << (flaps - 1)));
		CHECK_INT(k->join.flaps, flaps);
	}
	free(b);

	b = make_receiver();
	b->rail[RAIL].proven = true;
	CHECK_INT(end_incarnation(b, now, 0), 0);
	free(b);
}

/* A sender takes keys of this incarnation, and says how far; a receiver has none to take. */
static void keys_arrive(void)
{
	for (unsigned i = 0; i < 3; i++) {
		struct ha_bundle *b = i == 1 ? make_receiver() : make_sender();
		struct ha_control *k = &b->failover->ctl[RAIL];
		union ha_message m = compose_message(HA_MSG_RAIL_KEYS, i == 2 ? EPOCH + 1 : EPOCH);

		m.keys.next = 4;
		ha_failover_message(b, &m);
		CHECK_INT(k->out.due, i ? 0 : HA_SEND(RAIL_KEYS_ACK));
		CHECK_INT(k->keys.next, i ? 0 : 4);
		free(b);
	}
	for (unsigned i = 0; i < 3; i++) { /* the other way round */
		struct ha_bundle *b = i == 1 ? make_sender() : make_receiver();
		union ha_message m =
			compose_message(HA_MSG_RAIL_KEYS_ACK, i == 2 ? EPOCH + 1 : EPOCH);

		b->failover->ctl[RAIL].keys.end = 9;
		m.keys_ack.next = 4;
		ha_failover_message(b, &m);
		CHECK_INT(b->failover->ctl[RAIL].keys.next, i ? 0 : 4);
		free(b);
	}
}

/* Questions and answers are about one incarnation. An answer to the last one is none. */
static void signs_of_this_incarnation(void)
{
	for (uint32_t epoch = EPOCH - 1; epoch <= EPOCH + 1; epoch++) {
		struct ha_bundle *b = make_sender();
		struct ha_control *k = &b->failover->ctl[RAIL];
		union ha_message m = compose_message(HA_MSG_RAIL_ALIVE, epoch);

		k->sign.stage = HA_SIGN_ASKED;
		k->sign.number = m.sign.number = 3;
		ha_failover_message(b, &m);
		CHECK_INT(k->sign.alive, epoch == EPOCH);
		m = compose_message(HA_MSG_RAIL_ASK, epoch);
		m.sign.number = 2;
		b->rail[RAIL].sq_depth = 0; /* no room for an answer yet */
		k->heartbeat.at = UINT64_MAX;
		ha_failover_message(b, &m);
		CHECK_INT(k->answer.due, epoch == EPOCH);
		CHECK_INT(k->heartbeat.at != UINT64_MAX,
			  epoch == EPOCH); /* it may have noticed first */
		free(b);
	}
}

/* The receiver's port is down, and it will say when it is back: then nothing waits, also where the
 * next incarnation is being offered in vain. A late copy of the first news says nothing. */
static void port_of_the_peer(void)
{
	struct ha_bundle *b = make_sender(), *other;
	struct ha_control *k = &b->failover->ctl[RAIL];
	union ha_message m = compose_message(HA_MSG_RAIL_BACK, EPOCH);

	receive_down(b, EPOCH, HA_CAUSE_PORT_DOWN);
	CHECK(k->fence.peer_port);
	k->fence.peer_port = false;
	receive_down(b, EPOCH, HA_CAUSE_PORT_DOWN);
	CHECK(!k->fence.peer_port);
	b->rail[RAIL].state = HA_RAIL_DOWN;
	k->fence.peer_port = true;
	k->join.retry_at = UINT64_MAX;
	ha_failover_message(b, &m);
	CHECK(!k->fence.peer_port);
	CHECK_INT(k->join.retry_at, 0);
	CHECK(b->failover->spares.improve);
	free(b);

	for (unsigned i = 0; i < 4; i++) {
		b = i == 1 ? make_receiver() : make_sender();
		k = &b->failover->ctl[RAIL];
		b->rail[RAIL].state = i == 2 ? HA_RAIL_PROBE : HA_RAIL_JOIN;
		k->join.retry_at = UINT64_MAX;
		m = compose_message(HA_MSG_RAIL_BACK, EPOCH - 1 - (i == 3));
		ha_failover_message(b, &m);
		CHECK_INT(k->out.due, i ? 0 : HA_SEND(RAIL_OFFER));
		free(b);
	}
	for (unsigned i = 0; i < 2; i++) { /* a silence is others' business, too */
		b = make_sender();
		other = make_receiver();
		LIST_INSERT_HEAD(&ctx.bundles, other, entry);
		other->failover->ctl[RAIL].heartbeat.watched = true;
		receive_down(b, EPOCH, i ? HA_CAUSE_TIMEOUT : HA_CAUSE_PORT_CHANGED);
		CHECK_INT(other->failover->ctl[RAIL].heartbeat.doubted, i);
		LIST_REMOVE(other, entry);
		free(other);
		free(b);
	}
}

/* The hint that a port is back meets an incarnation that the receiver does not know, and that has
 * just been given up here: it is the only news of that port, so a better standby is looked for. */
static void port_of_the_peer_meanwhile(void)
{
	static const enum ha_rail_state states[] = { HA_RAIL_JOIN, HA_RAIL_FENCING, HA_RAIL_FENCED,
						     HA_RAIL_DOWN };
	const unsigned nstates = sizeof(states) / sizeof(states[0]);

	for (unsigned i = 0; i < 2 * nstates; i++) {
		bool is_send = i < nstates;
		struct ha_bundle *b = is_send ? make_sender() : make_receiver();
		union ha_message m = compose_message(HA_MSG_RAIL_BACK, EPOCH - 1);

		b->rail[RAIL].state = states[i % nstates];
		b->failover->ctl[RAIL].join.retry_at = UINT64_MAX;
		b->failover->spares.improves = 5;
		ha_failover_message(b, &m);
		CHECK_INT(b->failover->spares.improve, is_send);
		CHECK_INT(b->failover->spares.improves, is_send ? 0 : 5);
		CHECK_INT(b->failover->ctl[RAIL].join.retry_at, UINT64_MAX); /* another's */
		free(b);
	}
}

/* With HA_NCCL_ACK=memory what the receiver has is what its count would have said. */
static void the_state_counts_as_delivery(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct ha_bundle *b = make_sender();
		struct ha_send *s = (struct ha_send *)b;
		union ha_message m = compose_message(HA_MSG_RAIL_FENCED, EPOCH);

		b->await = i ? HA_AWAIT_DELIVERY : 0;
		s->head = 1;
		s->slot[0].n = 1;
		s->slot[0].pending = HA_AWAIT_DELIVERY;
		m.fenced.state.base = 1;
		ha_failover_message(b, &m);
		CHECK_INT(s->slot[0].req.done, i);
		free(b);
	}
}

/* An offer is for the receiver, of the next incarnation; an answer for the sender, of this one. */
static void offers_and_answers(void)
{
	for (unsigned is_send = 0; is_send < 2; is_send++) {
		struct ha_bundle *b = is_send ? make_sender() : make_receiver();
		struct ha_control *k = &b->failover->ctl[RAIL];
		union ha_message m = compose_message(HA_MSG_RAIL_OFFER, EPOCH + 1);

		b->ring = calloc(1, is_send ? HA_SEND_RING_SIZE : HA_RECV_RING_SIZE);
		CHECK(b->ring);
		m.incarnation.end.guid = 6;
		b->rail[RAIL].state = HA_RAIL_DOWN;
		ha_failover_message(b, &m);
		CHECK_INT(k->join.has_offer, !is_send);
		CHECK_INT(k->join.offer.guid, is_send ? 0 : 6);
		k->join.has_offer = false;
		b->rail[RAIL].state = HA_RAIL_JOIN;
		m = compose_message(HA_MSG_RAIL_ANSWER, EPOCH);
		m.incarnation.end.guid = 7;
		ha_failover_message(b, &m);
		CHECK_INT(k->slow == HA_SLOW_CONNECT, is_send);
		CHECK_INT(k->join.offer.guid, is_send ? 7 : 6);
		free(b->ring);
		free(b);
	}
}

/* They are sent without failover, too; keys of another incarnation may be of another device. */
static void windows_of_this_incarnation(void)
{
	for (uint32_t epoch = EPOCH - 1; epoch <= EPOCH + 1; epoch++) {
		struct ha_bundle *b = make_receiver();
		union ha_message m = compose_message(HA_MSG_WINDOWS_ACK, epoch);

		b->terms.flags = HA_FLAG_ONE_SIDED;
		b->failover->ctl[RAIL].windows.sent = 4;
		m.windows_ack.next = 4;
		ha_failover_message(b, &m);
		CHECK_INT(b->failover->ctl[RAIL].windows.known, epoch == EPOCH ? 4 : 0);
		free(b);
	}
}

int main(void)
{
	lost_at_the_peer();
	lost_before_it_began();
	fenced_at_the_peer();
	epochs_that_cannot_be();
	not_for_us();
	keys_are_acknowledged();
	tried_again();
	keys_arrive();
	signs_of_this_incarnation();
	port_of_the_peer();
	port_of_the_peer_meanwhile();
	the_state_counts_as_delivery();
	offers_and_answers();
	windows_of_this_incarnation();
	return 0;
}
