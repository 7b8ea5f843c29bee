/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages wait in memory that the NIC reads: a slot is not written again before the NIC is
 * done with it. And what is read of those that the peer's NIC has written. */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/failover/failover.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"
#include "tests/plugin/ends.h"

#include <stdlib.h>
#include <string.h>

static struct world w;
static struct ha_listen *listen;
static struct ha_send *send;
static struct ha_recv *recv;

/* A connection over one device, whose NIC completes nothing by itself. */
static void open_connection(void)
{
	world_prepare(&w);
	w.config.enable_backup = true;
	strcpy(w.config.ib_hca, "=dummy0"); /* no standby: nothing else is said */
	lines_catch();
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	world_connect(&w, &listen, &send, &recv);
}

static void close_connection(void)
{
	ha_close_send(send);
	ha_close_recv(recv);
	ha_close_listen(listen);
	world_close(&w);
}

/* Something that goes over the rail as well as over the socket. */
static void send_keys_ack(struct ha_bundle *b)
{
	b->failover->ctl[0].out.sent |= HA_SEND(RAIL_KEYS_ACK);
	b->failover->ctl[0].out.due |= HA_SEND(RAIL_KEYS_ACK);
	ha_messages_send(b, ha_clock_now(w.a->clock));
	CHECK(!b->failover->ctl[0].out.due); /* taken by one at least */
}

/* Overwritten under the NIC: found by ThreadSanitizer between a driver that repeats itself and the
 * software NIC that does so, too. */
static void not_under_the_nic(void)
{
	struct ha_board_message before[HA_BOARD_SLOTS], *staged;
	struct ha_bundle *b;
	uint32_t posted;

	open_connection();
	b = &recv->b;
	staged = ha_bundle_staged_board(b)->message[0];
	posted = b->rail[0].sq_posted;
	for (unsigned n = 1; n <= HA_BOARD_SLOTS; n++) {
		send_keys_ack(b);
		CHECK_INT(b->rail[0].sq_posted, posted + n);
	}
	memcpy(before, staged, sizeof(before));
	for (unsigned n = 0; n < 2 * HA_BOARD_SLOTS; n++)
		send_keys_ack(b); /* by the socket alone */
	CHECK(!memcmp(before, staged, sizeof(before)));
	CHECK_INT(b->rail[0].sq_posted, posted + HA_BOARD_SLOTS);
	/* The first is done, so that there is room for one more. */
	b->rail[0].sq_retired = posted + 1;
	send_keys_ack(b);
	send_keys_ack(b);
	CHECK_INT(b->rail[0].sq_posted, posted + HA_BOARD_SLOTS + 1);
	CHECK_INT(staged[0].number, HA_BOARD_SLOTS + 1);
	CHECK(!memcmp(&before[1], &staged[1], sizeof(before[1])));
	close_connection();
}

/* Two messages, and then data for so long that the counts of work requests have gone halfway round:
 * there is room for a third. */
static void long_after_the_last(void)
{
	struct ha_bundle *b;
	struct ha_rail *r;
	uint32_t posted;

	open_connection();
	b = &recv->b;
	r = &b->rail[0];
	for (unsigned n = 0; n < HA_BOARD_SLOTS; n++)
		send_keys_ack(b);
	for (unsigned part = 0; part < 5; part++) {
		r->sq_posted += 0x20000000;
		r->sq_retired = r->sq_posted;
		ha_heartbeat_step(b, r, ha_clock_now(w.a->clock));
	}
	posted = r->sq_retired = r->sq_posted;
	send_keys_ack(b);
	CHECK_INT(r->sq_posted, posted + 1);
	close_connection();
}

static unsigned taken;
static uint32_t epochs[8];

static void record_epoch(struct ha_bundle *b, const union ha_message *m)
{
	(void)b;
	epochs[taken++] = m->rail.epoch;
}

/* The peer's NIC writes message `number` over this rail. */
static struct ha_board_message *deliver_bytes(struct ha_bundle *b, unsigned rail, uint32_t number,
					      const void *message, uint32_t length)
{
	struct ha_board_message *to =
		&ha_bundle_board(b)->message[rail][(number - 1) % HA_BOARD_SLOTS];

	to->number = number;
	to->length = length;
	memcpy(to->body, message, length);
	to->check = ha_wire_board_sum(to);
	return to;
}

static struct ha_msg_rail compose_message(enum ha_msg_type type, uint32_t epoch)
{
	return (struct ha_msg_rail) { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION, (uint16_t)type,
						  sizeof(struct ha_msg_rail), 0 },
				      .epoch = epoch };
}

static struct ha_board_message *deliver_ack(struct ha_bundle *b, unsigned rail, uint32_t number,
					    uint32_t epoch)
{
	struct ha_msg_rail m = compose_message(HA_MSG_RAIL_ACK, epoch);

	return deliver_bytes(b, rail, number, &m, sizeof(m));
}

static void read_board(struct ha_bundle *b, unsigned expected)
{
	taken = 0;
	CHECK_INT(ha_board_has_message(b), expected > 0);
	ha_board_read(b, record_epoch);
	CHECK_INT(taken, expected);
}

/* Something is there, once, and none of it is a message. */
static void read_nothing(struct ha_bundle *b)
{
	CHECK(ha_board_has_message(b));
	taken = 0;
	ha_board_read(b, record_epoch);
	CHECK_INT(taken, 0);
	CHECK(!ha_board_has_message(b));
}

static struct ha_bundle *make_reader(void)
{
	struct ha_send *s = new_send();
	struct ha_bundle *b = &s->b;

	CHECK(s);
	b->is_send = true;
	b->nrails = 2;
	b->ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(b->ring);
	return b;
}

static void free_reader(struct ha_bundle *b)
{
	free(b->ring);
	free(b);
}

/* Each once, the older first; half a message is none. */
static void read_in_order(void)
{
	struct ha_bundle *b = make_reader();
	struct ha_msg_cause down = { .rail = compose_message(HA_MSG_RAIL_DOWN, 11) };
	struct ha_board_message *half;

	down.rail.header.length = sizeof(down);
	read_board(b, 0);
	deliver_bytes(b, 0, 1, &down, sizeof(down));
	read_board(b, 1);
	read_board(b, 0);
	for (uint32_t older = 2; older < 6; older += 3) {
		deliver_ack(b, 0, older + 1, 10 + older + 1); /* over the place of older - 1 */
		deliver_ack(b, 0, older, 10 + older);
		read_board(b, 2); /* in one look, the older first */
		CHECK_INT(epochs[0], 10 + older);
		CHECK_INT(epochs[1], 10 + older + 1);
		deliver_ack(b, 0, older + 2, 10 + older + 2);
		read_board(b, 1);
	}
	half = deliver_ack(b, 0, 8, 18);
	half->check ^= 1; /* the NIC is not done with it */
	taken = 0;
	ha_board_read(b, record_epoch);
	CHECK_INT(taken, 0);
	half->check ^= 1;
	read_board(b, 1);
	CHECK_INT(epochs[0], 18);
	free_reader(b);
}

/* Each rail has numbers of its own; there is nothing behind the last. */
static void read_each_rail(void)
{
	struct ha_bundle *b = make_reader();

	deliver_ack(b, 1, 1, 21);
	read_board(b, 1);
	CHECK_INT(epochs[0], 21);
	CHECK_INT(b->link->board[1].in, 1);
	CHECK_INT(b->link->board[0].in, 0);
	read_board(b, 0); /* the next rail's messages are not this one's */
	deliver_ack(b, 0, 1, 11);
	deliver_ack(b, 1, 2, 22);
	read_board(b, 2);
	deliver_ack(b, 2, 1, 31);
	read_board(b, 0);
	free_reader(b);
}

/* What does not belong on a board: messages of the bootstrap, one that names a connection, one of a
 * rail that cannot be, a length that cannot be. They are looked at once. */
static void read_no_other(void)
{
	struct ha_bundle *b = make_reader();
	struct ha_msg_rail unsound = compose_message(HA_MSG_RAIL_ACK, 1),
			   ready = compose_message(HA_MSG_READY, 1);
	struct ha_msg_refuse refuse = { .header = { HA_MSG_MAGIC, 1, HA_MSG_REFUSE, sizeof(refuse),
						    0 } };
	struct ha_msg_for name = { .header = { HA_MSG_MAGIC, 1, HA_MSG_FOR, sizeof(name), 0 } };
	struct ha_board_message *to;

	deliver_bytes(b, 0, 1, &ready, sizeof(ready));
	read_nothing(b);
	deliver_bytes(b, 0, 2, &refuse, sizeof(refuse));
	read_nothing(b);
	deliver_bytes(b, 0, 3, &name, sizeof(name));
	read_nothing(b);
	unsound.rail = HA_MAX_RAILS;
	deliver_bytes(b, 0, 4, &unsound, sizeof(unsound));
	read_nothing(b);
	to = deliver_ack(b, 0, 5, 15);
	to->length = UINT32_MAX;
	to->check = ha_wire_board_sum(to);
	CHECK(ha_board_has_message(b));
	taken = 0;
	ha_board_read(b, record_epoch);
	CHECK_INT(taken, 0);
	deliver_ack(b, 0, 5, 15);
	read_board(b, 1);
	CHECK_INT(epochs[0], 15);
	free_reader(b);
}

int main(void)
{
	not_under_the_nic();
	long_after_the_last();
	read_in_order();
	read_each_rail();
	read_no_other();
	return 0;
}
