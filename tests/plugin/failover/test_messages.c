/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages: what is in them, which carriers they take, and when one that nobody has
 * answered goes out again. Whole messages are caught on the socket and on the rails.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/peer.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/one_sided.h"
#include "rdma/topo/device.h"
#include "tests/plugin/ends.h"
#include "tests/plugin/idle_cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RAILS 3
#define MS HA_NS_PER_MS
#define NONCE 77
#define CAUGHT_MAX 64
#define ON_SOCKET RAILS

/* What went out, in order: where, and the message. */
static struct {
	unsigned carrier;
	union ha_message m;
} caught[CAUGHT_MAX];
static unsigned ncaught;
static bool socket_blocked, rails_blocked;
static struct ibv_qp qp[RAILS];
static struct ibv_mr ring_mr;

static void catch_message(unsigned carrier, const void *bytes, size_t size)
{
	CHECK(ncaught < CAUGHT_MAX);
	CHECK(size <= sizeof(caught[0].m));
	CHECK_INT(ha_wire_check_message(bytes, size), 0);
	caught[ncaught].carrier = carrier;
	memcpy(&caught[ncaught++].m, bytes, size);
}

static int catch_write(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ha_board_message *message = (const void *)(uintptr_t)wr->sg_list[0].addr;

	(void)bad;
	if (rails_blocked)
		return EIO;
	CHECK(message->check == ha_wire_board_sum(message));
	catch_message((unsigned)(to - qp), message->body, message->length);
	return 0;
}

static ssize_t catch_bytes(struct ha_oob_conn *conn, const void *data, size_t size)
{
	const struct ha_msg_header *header = data;

	(void)conn;
	if (socket_blocked)
		return -EPIPE;
	for (size_t at = 0; at < size; at += header->length) {
		header = (const void *)((const char *)data + at);
		catch_message(ON_SOCKET, header, header->length);
	}
	return (ssize_t)size;
}

static const struct ha_verbs_hot hot = { .post_send = catch_write, .poll_cq = poll_nothing };
static const struct ha_oob_ops oob = { .send = catch_bytes };
static struct ha_topo_device topo = { .place.rail_id = 2, .place.plane_id = -1 };
static struct ha_device device = { .topo = &topo, .name = "nic0:1" };
static struct ha_ctx ctx = { .clock = &ha_clock_live, .oob.ops = &oob, .devices = &device };
static struct ha_stream stream = { .ctx = &ctx };
static const uint64_t now = 1000000 * MS;

static struct ha_bundle *make_bundle(bool is_send)
{
	struct ha_bundle *b = new_end(is_send);

	CHECK(b);
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = RAILS;
	b->balance.ndata = 1;
	b->active = 7;
	b->terms.flags = HA_FLAG_FAILOVER | HA_FLAG_PAIRS;
	b->terms.nonce = NONCE;
	b->link->stream = &stream;
	b->ring = calloc(1, is_send ? HA_SEND_RING_SIZE : HA_RECV_RING_SIZE);
	CHECK(b->ring);
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	pthread_mutex_init(&b->registered.list_lock, NULL);
	pthread_mutex_init(&device.lock, NULL);
	for (unsigned i = 0; i < RAILS; i++) {
		qp[i].qp_num = 100 + i;
		b->rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						.hot = &hot,
						.qp = &qp[i],
						.sq_depth = 1 << 20,
						.state = HA_RAIL_UP,
						.epoch = 5,
						.setup.ring_mr = &ring_mr,
						.setup.self = { .mtu = IBV_MTU_1024 },
						.dev = &device };
	}
	ncaught = 0;
	socket_blocked = rails_blocked = false;
	return b;
}

static void free_bundle(struct ha_bundle *b)
{
	free(b->ring);
	free(b);
}

/* What goes out at that time, from the first entry of caught[] on; how many. What went out before
 * was acknowledged. */
static unsigned send_at(struct ha_bundle *b, uint64_t at)
{
	for (unsigned i = 0; i < RAILS; i++)
		b->rail[i].sq_retired = b->rail[i].sq_posted;
	ncaught = 0;
	b->schedule->due = UINT64_MAX;
	ha_messages_send(b, at);
	return ncaught;
}

static void take_down(struct ha_bundle *b, unsigned rail)
{
	b->rail[rail].state = HA_RAIL_DOWN;
	b->active &= (uint8_t) ~(1u << rail);
}

/* ---- contents ---- */

static const union ha_message *send_message(struct ha_bundle *b, enum ha_msg_type type,
					    unsigned rail)
{
	b->failover->ctl[rail].out.due = 1u << type;
	CHECK_INT(send_at(b, now), 2);
	CHECK_INT(b->failover->ctl[rail].out.due, 0);
	CHECK_INT(caught[0].m.header.type, type);
	CHECK_INT(caught[0].m.header.magic, HA_MSG_MAGIC);
	CHECK_INT(caught[0].m.rail.rail, rail);
	CHECK_INT(caught[0].m.rail.epoch, 5);
	CHECK_INT(caught[0].m.rail.nonce, NONCE);
	CHECK(!memcmp(&caught[0].m, &caught[1].m, caught[0].m.header.length));
	return &caught[0].m;
}

static void what_is_in_them(void)
{
	struct ha_bundle *b = make_bundle(true);
	struct ha_control *k = &b->failover->ctl[1];

	b->rail[1].loss.cause = HA_CAUSE_PORT_DOWN;
	k->compare.state.head = 9;
	k->sign.number = 3;
	k->answer.number = 4;
	k->keys.next = 6;
	k->keys.forgotten = 0x102;
	k->windows.known = 8;
	CHECK_INT(send_message(b, HA_MSG_RAIL_DOWN, 1)->cause.cause, HA_CAUSE_PORT_DOWN);
	CHECK_INT(send_message(b, HA_MSG_RAIL_FENCED, 1)->fenced.state.head, 9);
	CHECK_INT(send_message(b, HA_MSG_RAIL_ACK, 1)->header.length, sizeof(struct ha_msg_rail));
	CHECK_INT(send_message(b, HA_MSG_RAIL_ASK, 1)->sign.number, 3);
	CHECK_INT(send_message(b, HA_MSG_RAIL_ALIVE, 1)->sign.number, 4);
	CHECK_INT(send_message(b, HA_MSG_RAIL_KEYS_ACK, 1)->keys_ack.next, 6);
	CHECK_INT(send_message(b, HA_MSG_WINDOWS_ACK, 1)->windows_ack.next, 8);
	free_bundle(b);
}

/* An offer names the device; how often its keys were forgotten; and, if the peer understands it,
 * its place in the fabric. */
static void what_is_offered(void)
{
	struct ha_bundle *b = make_bundle(true);
	const struct ha_wire_rail *end_of_rail;

	b->failover->ctl[1].keys.forgotten = 0x102;
	end_of_rail = &send_message(b, HA_MSG_RAIL_OFFER, 1)->incarnation.end;
	CHECK_TEXT(end_of_rail->name, "nic0:1");
	CHECK_INT(ha_wire_place(end_of_rail->keys), ha_device_place(&device));
	CHECK_INT(end_of_rail->keys & 0xff, 2);
	b->terms.flags = HA_FLAG_FAILOVER;
	CHECK_INT(send_message(b, HA_MSG_RAIL_OFFER, 1)->incarnation.end.keys, 0x102);
	free_bundle(b);
}

/* A switch in the place of a rail goes only to a peer that knows of switches. */
static void which_switch_is_offered(void)
{
	struct ha_bundle *b = make_bundle(true);

	topo.place.rail_id = -1;
	strcpy(topo.place.at.id, "mac:1");
	b->failover->ctl[1].keys.forgotten = 3;
	CHECK_INT(send_message(b, HA_MSG_RAIL_OFFER, 1)->incarnation.end.keys, 3);
	b->terms.flags |= HA_FLAG_SWITCHES;
	CHECK_INT(send_message(b, HA_MSG_RAIL_OFFER, 1)->incarnation.end.keys,
		  ha_leaf_of_switch("mac:1") << 8 | 3);
	topo.place.rail_id = 2;
	free_bundle(b);
}

/* ---- carriers ---- */

/* The rails that carried what went out, in order, as digits; the socket's part is always there. */
static unsigned rails_used(void)
{
	unsigned used = 0;

	for (unsigned i = 0; i < ncaught; i++) {
		CHECK_INT(caught[i].carrier == ON_SOCKET, i % 2 == 0);
		if (i % 2)
			used = 10 * used + caught[i].carrier + 1;
	}
	return used;
}

/* Over the socket and a rail at once; the next message over the next rail, never over the one that
 * it is about if there is another. */
static void rails_take_turns(void)
{
	struct ha_bundle *b = make_bundle(true);

	b->failover->ctl[0].out.due =
		HA_SEND(RAIL_OFFER) | HA_SEND(RAIL_ASK) | HA_SEND(RAIL_ALIVE) | HA_SEND(RAIL_BACK);
	CHECK_INT(send_at(b, now), 8);
	CHECK_INT(rails_used(), 2323);
	take_down(b, 2);
	b->failover->ctl[0].out.due = HA_SEND(RAIL_OFFER) | HA_SEND(RAIL_ASK);
	CHECK_INT(send_at(b, now), 4);
	CHECK_INT(rails_used(), 22);
	take_down(b, 1); /* it is its own only carrier */
	b->failover->ctl[0].out.due = HA_SEND(RAIL_ASK);
	CHECK_INT(send_at(b, now), 2);
	CHECK_INT(rails_used(), 1);
	take_down(b, 0);
	b->failover->ctl[0].out.due = HA_SEND(RAIL_OFFER);
	CHECK_INT(send_at(b, now), 1); /* the socket alone */
	free_bundle(b);
}

/* One carrier is enough; with none it is tried again in a millisecond. */
static void no_carrier(void)
{
	struct ha_bundle *b = make_bundle(true);
	struct ha_control *k = &b->failover->ctl[1];

	b->link->stream = NULL;
	k->out.due = HA_SEND(RAIL_ASK);
	CHECK_INT(send_at(b, now), 1);
	CHECK_INT(k->out.due, 0);
	take_down(b, 0);
	take_down(b, 1);
	take_down(b, 2);
	k->out.due = HA_SEND(RAIL_BACK);
	CHECK_INT(send_at(b, now), 0);
	CHECK_INT(k->out.due, HA_SEND(RAIL_BACK));
	CHECK(!(k->out.sent & HA_SEND(RAIL_BACK)));
	CHECK_INT(b->schedule->due, now + MS);
	b->link->stream = &stream;
	CHECK_INT(send_at(b, now + MS), 1);
	CHECK_INT(k->out.due, 0);
	socket_blocked = true;
	k->out.due = HA_SEND(RAIL_BACK);
	CHECK_INT(send_at(b, now + 2 * MS), 0);
	CHECK_INT(k->out.due, HA_SEND(RAIL_BACK));
	free_bundle(b);
}

/* A rail that refuses the write is lost; one without room carries nothing, and is not. */
static void rail_refuses(void)
{
	struct ha_bundle *b = make_bundle(true);

	rails_blocked = true;
	b->failover->ctl[0].out.due = HA_SEND(RAIL_ASK);
	CHECK_INT(send_at(b, now), 1);
	CHECK_INT(b->failover->ctl[0].out.due, 0); /* the socket has it */
	CHECK_INT(b->rail[1].state, HA_RAIL_FENCING);
	CHECK_INT(b->rail[1].loss.cause, HA_CAUSE_WORK_REFUSED);
	rails_blocked = false;
	b->rail[2].sq_depth = 0;
	b->failover->ctl[0].out.due = HA_SEND(RAIL_ALIVE);
	CHECK_INT(send_at(b, now), 1);
	CHECK_INT(b->rail[2].state, HA_RAIL_UP);
	free_bundle(b);
}

/* What all connections of a lost device say at once goes as one batch, the first time; said again,
 * it takes its own carriers. An offer always does. */
static void first_by_batch(void)
{
	struct ha_bundle *b = make_bundle(true);
	struct ha_control *k = &b->failover->ctl[1];

	b->terms.flags |= HA_FLAG_BATCHES;
	b->peer_ring = 4711;
	LIST_INSERT_HEAD(&ctx.bundles, b, entry);
	ha_peer_join(b);
	take_down(b, 1);
	k->out.due = HA_SEND(RAIL_DOWN) | HA_SEND(RAIL_FENCED) | HA_SEND(RAIL_ACK);
	CHECK_INT(send_at(b, now), 0);
	CHECK_INT(k->out.due, 0);
	ncaught = 0;
	ha_peers_send(&ctx);
	CHECK_INT(ncaught, 6); /* each behind the name of its connection */
	for (unsigned i = 0; i < 6; i++)
		CHECK_INT(caught[i].carrier, ON_SOCKET);
	CHECK_INT(caught[0].m.header.type, HA_MSG_FOR);
	CHECK_INT(caught[0].m.about.ring, 4711);
	CHECK_INT(caught[1].m.header.type, HA_MSG_RAIL_DOWN);
	CHECK_INT(caught[5].m.header.type, HA_MSG_RAIL_ACK);
	k->out.due = HA_SEND(RAIL_FENCED);
	CHECK_INT(send_at(b, now), 2);
	k->out.due = HA_SEND(RAIL_OFFER);
	k->out.sent = 0;
	CHECK_INT(send_at(b, now), 2);
	k->out.due = HA_SEND(RAIL_FENCED); /* of the next incarnation */
	CHECK_INT(send_at(b, now), 0);
	ha_peers_send(&ctx);
	ha_peer_leave(b);
	LIST_REMOVE(b, entry);
	free_bundle(b);
}

/* ---- repetition ---- */

/* Which type goes out again when nothing was asked for; 0: none. Its first time is ten
 * milliseconds later, then twenty, forty, up to a second. */
static enum ha_msg_type follow_repeats(struct ha_bundle *b)
{
	static const unsigned at[] = { 10, 30, 70, 150, 310, 630, 1270, 2270, 3270 };
	struct ha_control *k = &b->failover->ctl[1];
	enum ha_msg_type type;

	CHECK_INT(send_at(b, now), 0);
	if (!k->out.repeat_at)
		return 0;
	CHECK_INT(b->schedule->due, now + 10 * MS);
	CHECK_INT(send_at(b, now + 10 * MS - 1), 0);
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		CHECK(send_at(b, now + at[i] * MS) > 0);
		type = caught[0].m.header.type;
		CHECK(b->schedule->due > now + at[i] * MS);
		CHECK_INT(send_at(b, b->schedule->due - 1), 0);
	}
	return type;
}

static void until_it_is_answered(void)
{
	struct ha_bundle *b = make_bundle(true);
	struct ha_control *k = &b->failover->ctl[1];

	CHECK_INT(follow_repeats(b), 0);
	take_down(b, 1);
	CHECK_INT(follow_repeats(b), 0); /* nothing of this incarnation to say */
	k->compare.stage = HA_COMPARE_TAKEN;
	CHECK_INT(follow_repeats(b), HA_MSG_RAIL_FENCED);
	k->compare.stage = HA_COMPARE_SETTLED;
	CHECK_INT(follow_repeats(b), 0);
	CHECK_INT(k->out.repeats, 0);
	k->compare.stage = HA_COMPARE_TAKEN;
	b->rail[1].state = HA_RAIL_FENCED;
	CHECK_INT(follow_repeats(b), HA_MSG_RAIL_FENCED);
	b->rail[1].state = HA_RAIL_FENCING; /* not yet again */
	CHECK_INT(follow_repeats(b), 0);

	b->rail[1].state = HA_RAIL_JOIN;
	CHECK_INT(follow_repeats(b), HA_MSG_RAIL_OFFER);
	k->join.has_offer = true; /* the answer has come */
	CHECK_INT(follow_repeats(b), 0);
	free_bundle(b);

	b = make_bundle(false); /* a receiver answers offers that come again, and repeats nothing */
	b->rail[1].state = HA_RAIL_JOIN;
	CHECK_INT(follow_repeats(b), 0);
	b->rail[1].state = HA_RAIL_UP;
	b->failover->ctl[1].keys.end = 2;
	CHECK_INT(follow_repeats(b), HA_MSG_RAIL_KEYS);
	b->failover->ctl[1].keys.next = 2;
	CHECK_INT(follow_repeats(b), 0);
	free_bundle(b);
}

#define MANY (HA_CROWD_FROM + 10)

/* A peer to which many connections lead is still at work on the others: it is given more time. */
static void later_where_there_are_many(void)
{
	struct ha_bundle *all[MANY], *b;

	for (unsigned i = 0; i < MANY; i++) {
		all[i] = make_bundle(true);
		all[i]->terms.flags |= HA_FLAG_BATCHES;
		all[i]->link->peer_context = 1;
		ha_peer_join(all[i]);
	}
	b = all[0];
	take_down(b, 1);
	b->failover->ctl[1].compare.stage = HA_COMPARE_TAKEN;
	b->failover->ctl[1].out.sent = HA_SEND(RAIL_FENCED); /* with the batch */
	CHECK_INT(send_at(b, now), 0);
	CHECK_INT(b->schedule->due, now + 11 * MS);
	CHECK_INT(send_at(b, now + 11 * MS - 1), 0);
	CHECK(send_at(b, now + 11 * MS) > 0);
	CHECK_INT(b->schedule->due, now + 32 * MS);
	for (unsigned i = 0; i < MANY; i++) {
		ha_peer_leave(all[i]);
		free_bundle(all[i]);
	}
}

static void windows_until_they_are_known(void)
{
	struct ha_bundle *b = make_bundle(false);
	struct ha_takes *takes = calloc(1, sizeof(*takes));
	struct ha_offered offered = { .window = 3 };

	CHECK(takes);
	takes->offered = &offered;
	takes->noffered = 1;
	((struct ha_recv *)b)->takes = takes;
	b->failover->ctl[1].windows.sent = 1;
	CHECK_INT(follow_repeats(b), HA_MSG_WINDOWS);
	b->failover->ctl[1].windows = (struct ha_window_counts) { .known = 1, .sent = 1 };
	CHECK_INT(follow_repeats(b), 0);
	b->failover->ctl[1].windows.known = 0;
	take_down(b, 1); /* the next incarnation sends them */
	CHECK_INT(follow_repeats(b), 0);
	free(takes);
	free_bundle(b);
}

/* ---- the end ---- */

/* The peer is sent what the connection failed of, over the socket for certain: a rail is fenced in
 * a moment. Nothing else goes out. */
static void abort_is_sent(void)
{
	struct ha_bundle *b = make_bundle(true);

	b->failover->ctl[1].out.due = HA_SEND(RAIL_ASK);
	ha_bundle_abort(b, -EIO, HA_CAUSE_WORK_FAILED, "test");
	CHECK_INT(send_at(b, now), 2);
	CHECK_INT(caught[0].m.header.type, HA_MSG_ABORT);
	CHECK_INT(caught[0].m.header.length, sizeof(struct ha_msg_cause));
	CHECK_INT(caught[0].m.cause.cause, HA_CAUSE_WORK_FAILED);
	CHECK_INT(caught[0].m.cause.error, EIO);
	CHECK_INT(caught[0].m.rail.nonce, NONCE);
	CHECK_INT(caught[0].m.rail.epoch, 0);
	CHECK_INT(send_at(b, now), 0); /* once */
	free_bundle(b);

	b = make_bundle(true);
	socket_blocked = true;
	ha_bundle_abort(b, -EIO, HA_CAUSE_WORK_FAILED, "test");
	CHECK_INT(send_at(b, now), 1);
	CHECK_INT(b->schedule->due, now + MS); /* again, until the socket takes it */
	socket_blocked = false;
	CHECK_INT(send_at(b, now + MS), 2);
	CHECK_INT(send_at(b, now + 2 * MS), 0);
	free_bundle(b);

	b = make_bundle(true);
	b->link->stream = NULL;
	ha_bundle_abort(b, -EIO, HA_CAUSE_WORK_FAILED, "test");
	CHECK_INT(send_at(b, now), 1);
	CHECK_INT(send_at(b, now + MS), 0);
	free_bundle(b);
}

/* A peer without failover takes nothing but windows, and only if it is one-sided; one that has
 * closed takes nothing. */
static void peers_that_take_less(void)
{
	struct ha_bundle *b = make_bundle(true);

	b->peer_closed = true;
	b->failover->ctl[1].out.due = HA_SEND(RAIL_DOWN);
	CHECK_INT(send_at(b, now), 0);
	b->peer_closed = false;
	b->terms.flags = 0;
	CHECK_INT(send_at(b, now), 0);
	b->terms.flags = HA_FLAG_ONE_SIDED;
	b->abort->due = true;
	b->failover->ctl[1].out.due |= HA_SEND(WINDOWS_ACK);
	CHECK_INT(send_at(b, now), 2);
	CHECK_INT(caught[0].m.header.type, HA_MSG_WINDOWS_ACK);
	CHECK(!b->abort->due);
	free_bundle(b);
}

int main(void)
{
	what_is_in_them();
	what_is_offered();
	which_switch_is_offered();
	rails_take_turns();
	no_carrier();
	rail_refuses();
	first_by_batch();
	until_it_is_answered();
	later_where_there_are_many();
	windows_until_they_are_known();
	abort_is_sent();
	peers_that_take_less();
	return 0;
}
