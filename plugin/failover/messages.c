/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages.c - control messages between the two drivers: over a rail that is up and over the
 * socket, both at once
 *
 * A message is made anew from the state of its rail each time that it goes out, so there is no
 * queue and nothing stale. What the end of an incarnation needs is said first on a socket, together
 * with what other connections to the same process have to send (peer.h), since a device that is
 * lost has all of its connections send at once. Everything else, and everything that is repeated,
 * goes over two carriers because neither is known to work: a rail's NIC may have died a moment ago,
 * and so may the network between the sockets. What needs an answer is said again, over the next
 * rail, until the answer comes.
 *
 * Over a rail a message is a write into the board (board.h).
 */
#include "base/clock.h"
#include "plugin/channel/board.h"
#include "plugin/channel/peer.h"
#include "plugin/channel/stream.h"
#include "plugin/device/device.h"
#include "plugin/device/rail.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/protection.h"

#include <errno.h>
#include <string.h>

/* Each with ha_crowd_ns() of the peer's connections: a peer that is still at work on the others has
 * lost nothing, and what is repeated is more work for it. */
#define REPEAT_FIRST_NS (10 * HA_NS_PER_MS) /* for the first time, then */
#define REPEAT_NS (20 * HA_NS_PER_MS)       /* and then twice as long each time, up to */
#define REPEAT_MAX_NS HA_NS_PER_S
#define BLOCKED_NS HA_NS_PER_MS /* no carrier took it: the next try */

/* ---- what is said ---- */

static void begin_message(const struct ha_bundle *b, const struct ha_rail *r, enum ha_msg_type type,
			  uint32_t length, union ha_message *m)
{
	memset(m, 0, length);
	m->rail.header = (struct ha_msg_header) { HA_MSG_MAGIC, HA_WIRE_VERSION_MIN, (uint16_t)type,
						  length, 0 };
	m->rail.nonce = b->terms.nonce;
	m->rail.rail = r ? r->index : 0;
	m->rail.epoch = r ? r->epoch : 0;
}

static void make_message(struct ha_bundle *b, const struct ha_rail *r, enum ha_msg_type type,
			 union ha_message *m)
{
	const struct ha_control *k = &b->failover->ctl[r->index];

	switch (type) {
	case HA_MSG_RAIL_DOWN:
		begin_message(b, r, type, sizeof(m->cause), m);
		m->cause.cause = r->loss.cause;
		break;
	case HA_MSG_RAIL_FENCED:
		begin_message(b, r, type, sizeof(m->fenced), m);
		m->fenced.state = k->compare.state;
		break;
	case HA_MSG_RAIL_OFFER:
	case HA_MSG_RAIL_ANSWER:
		begin_message(b, r, type, sizeof(m->incarnation), m);
		ha_rail_describe_whole(r, &m->incarnation.end);
		m->incarnation.end.keys = b->failover->ctl[r->index].keys.forgotten;
		if (b->terms.flags & HA_FLAG_PAIRS)
			m->incarnation.end.keys =
				ha_sent_place(b, r->dev) << 8 | (m->incarnation.end.keys & 0xff);
		break;
	case HA_MSG_RAIL_KEYS:
		begin_message(b, r, type, sizeof(m->keys), m);
		ha_keys_fill(b, r, &m->keys);
		break;
	case HA_MSG_RAIL_KEYS_ACK:
		begin_message(b, r, type, sizeof(m->keys_ack), m);
		m->keys_ack.next = k->keys.next;
		break;
	case HA_MSG_WINDOWS:
		begin_message(b, r, type, sizeof(m->windows), m);
		ha_windows_fill(b, r, &m->windows);
		break;
	case HA_MSG_WINDOWS_ACK:
		begin_message(b, r, type, sizeof(m->windows_ack), m);
		m->windows_ack.next = k->windows.known;
		break;
	case HA_MSG_RAIL_ASK:
	case HA_MSG_RAIL_ALIVE:
		begin_message(b, r, type, sizeof(m->sign), m);
		m->sign.number = type == HA_MSG_RAIL_ASK ? k->sign.number : k->answer.number;
		m->sign.lossy = type == HA_MSG_RAIL_ASK && k->sign.waited;
		break;
	default:
		begin_message(b, r, type, sizeof(m->rail), m);
		break;
	}
}

/* ---- carriers ---- */

/* A rail that is up, not the one that the message is about unless there is no other; each time the
 * next. */
static struct ha_rail *next_carrier(struct ha_bundle *b, unsigned about)
{
	for (unsigned n = 0; n < b->nrails; n++) {
		unsigned i = b->link->message_rail++ % b->nrails;

		if (b->active >> i & 1 && i != about)
			return &b->rail[i];
	}
	return about < b->nrails && b->active >> about & 1 ? &b->rail[about] : NULL;
}

/* What every connection of a lost device has to say, and says for the first time in this
 * incarnation. */
static bool goes_by_batch(const struct ha_control *k, enum ha_msg_type type)
{
	const uint32_t types = HA_SEND(RAIL_DOWN) | HA_SEND(RAIL_FENCED) | HA_SEND(RAIL_ACK) |
			       HA_SEND(RAIL_KEYS) | HA_SEND(RAIL_KEYS_ACK) | HA_SEND(WINDOWS) |
			       HA_SEND(WINDOWS_ACK);

	return types & ~k->out.sent & 1u << type;
}

/* Over a rail and over the socket, whichever are there. False: nobody took it. */
static bool send_message(struct ha_bundle *b, unsigned about, const union ha_message *m,
			 bool *on_socket)
{
	struct ha_rail *r = next_carrier(b, about);
	bool taken = false;
	int err;

	if (b->link->stream) {
		err = ha_stream_put(b->link->stream, m);
		taken = !err || err == -EAGAIN;
	}
	*on_socket = taken;
	if (r) {
		err = ha_board_post(b, r, m);
		if (err && err != -EAGAIN)
			ha_rail_failed(b, r, NULL, err);
		taken |= !err;
	}
	return taken;
}

/* What is to be said once more, now that no answer has come. */
static uint32_t find_unanswered(const struct ha_bundle *b, const struct ha_rail *r)
{
	const struct ha_control *k = &b->failover->ctl[r->index];
	uint32_t say = 0;

	if ((r->state == HA_RAIL_FENCED || r->state == HA_RAIL_DOWN) &&
	    k->compare.stage == HA_COMPARE_TAKEN)
		say |= HA_SEND(RAIL_FENCED);
	if (b->is_send && r->state == HA_RAIL_JOIN && !k->join.has_offer)
		say |= HA_SEND(RAIL_OFFER);
	if (!b->is_send && k->keys.next < k->keys.end)
		say |= HA_SEND(RAIL_KEYS);
	if (!b->is_send && r->state == HA_RAIL_UP && k->windows.known < k->windows.sent)
		say |= HA_SEND(WINDOWS);
	return say;
}

static void repeat_unanswered(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint32_t say = find_unanswered(b, r);
	uint64_t crowd = ha_crowd_ns(ha_peer_connections(b)), pause;

	if (!say) {
		k->out.repeat_at = 0;
		k->out.repeats = 0;
		return;
	}
	if (!k->out.repeat_at) {
		k->out.repeat_at = now + REPEAT_FIRST_NS + crowd;
	} else if (now >= k->out.repeat_at) {
		k->out.due |= say;
		pause = REPEAT_NS << (k->out.repeats < 10 ? k->out.repeats++ : 10);
		k->out.repeat_at = now + crowd + (pause < REPEAT_MAX_NS ? pause : REPEAT_MAX_NS);
	}
	ha_due(b, k->out.repeat_at);
}

static void send_about(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	bool on_socket;

	for (uint32_t left = k->out.due; left; left &= left - 1) {
		enum ha_msg_type type = (enum ha_msg_type)__builtin_ctz(left);
		union ha_message m;

		make_message(b, r, type, &m);
		if ((goes_by_batch(k, type) && ha_peer_add(b, &m)) ||
		    send_message(b, r->index, &m, &on_socket)) {
			k->out.sent |= 1u << type;
			k->out.due &= ~(1u << type);
		} else {
			ha_due(b, now + BLOCKED_NS);
		}
	}
}

static void send_abort(struct ha_bundle *b)
{
	union ha_message m;
	bool on_socket;

	begin_message(b, NULL, HA_MSG_ABORT, sizeof(m.cause), &m);
	m.cause.cause = b->abort->cause;
	m.cause.error = -b->abort->error;
	(void)send_message(b, HA_MAX_RAILS, &m, &on_socket);
	/* The rail's queue pair is fenced in a moment: only what the socket took arrives for
	 * certain. */
	b->abort->due = b->link->stream && !b->link->stream->read_stopped && !on_socket;
}

void ha_messages_send(struct ha_bundle *b, uint64_t now)
{
	bool failover = b->terms.flags & HA_FLAG_FAILOVER;

	if (!(failover || b->terms.flags & HA_FLAG_ONE_SIDED) || b->peer_closed)
		return;
	b->abort->due &= failover; /* a peer without it takes nothing but windows */
	if (b->abort->due)
		send_abort(b);
	for (unsigned i = 0; i < b->nrails && !b->abort->error; i++) {
		if (!failover)
			b->failover->ctl[i].out.due &= HA_SEND(WINDOWS) | HA_SEND(WINDOWS_ACK);
		repeat_unanswered(b, &b->rail[i], now);
		send_about(b, &b->rail[i], now);
	}
	if (b->abort->due)
		ha_due(b, now + BLOCKED_NS);
}
