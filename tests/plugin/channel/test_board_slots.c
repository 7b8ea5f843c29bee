/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages wait in memory that the NIC reads: a slot is not written again before the NIC is
 * done with it. And what is read of those that the peer's NIC has written. */
#include "base/check.h"
#include "plugin/channel/board.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/ctx.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/bundle.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

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
	b->failover.ctl[0].out.sent |= HA_SEND(RAIL_KEYS_ACK);
	b->failover.ctl[0].out.due |= HA_SEND(RAIL_KEYS_ACK);
	ha_messages_send(b, ha_clock_now(w.a->clock));
	CHECK(!b->failover.ctl[0].out.due); /* taken by one at least */
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
	staged = ha_bundle_staged_board(b)->mail[0];
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

/* The peer's NIC writes message `number`. */
static void deliver_message(struct ha_bundle *b, uint32_t number, enum ha_msg_type type,
			    uint32_t epoch)
{
	struct ha_board_message *mail = &ha_bundle_board(b)->mail[0][(number - 1) % HA_BOARD_SLOTS];
	struct ha_msg_rail m = { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION, (uint16_t)type,
					     sizeof(m), 0 },
				 .epoch = epoch };

	mail->number = number;
	mail->length = sizeof(m);
	memcpy(mail->body, &m, sizeof(m));
	mail->check = ha_wire_board_sum(mail);
}

static void read_board(struct ha_bundle *b, unsigned expected)
{
	taken = 0;
	CHECK_INT(ha_board_has_message(b), expected > 0);
	ha_board_read(b, record_epoch);
	CHECK_INT(taken, expected);
}

/* Each once, the older first; half a message, or one of another kind, is none. */
static void read_in_order(void)
{
	struct ha_send *s = calloc(1, sizeof(*s));
	struct ha_bundle *b = &s->b;

	CHECK(s);
	b->is_send = true;
	b->nrails = 2;
	b->ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(b->ring);
	read_board(b, 0);
	deliver_message(b, 1, HA_MSG_RAIL_ACK, 11);
	read_board(b, 1);
	read_board(b, 0);
	deliver_message(b, 3, HA_MSG_RAIL_ACK, 13); /* over the first's place */
	deliver_message(b, 2, HA_MSG_RAIL_ACK, 12);
	read_board(b, 2); /* in one look, the older first */
	CHECK_INT(epochs[0], 12);
	CHECK_INT(epochs[1], 13);
	deliver_message(b, 4, HA_MSG_RAIL_ACK, 14);
	ha_bundle_board(b)->mail[0][1].check ^= 1; /* the NIC is not done with it */
	taken = 0;
	ha_board_read(b, record_epoch);
	CHECK_INT(taken, 0);
	ha_bundle_board(b)->mail[0][1].check ^= 1;
	read_board(b, 1);
	CHECK_INT(epochs[0], 14);
	deliver_message(b, 5, HA_MSG_READY, 15); /* of the bootstrap: not on a board */
	taken = 0;
	ha_board_read(b, record_epoch);
	CHECK_INT(taken, 0);
	free(b->ring);
	free(s);
}

int main(void)
{
	not_under_the_nic();
	long_after_the_last();
	read_in_order();
	return 0;
}
