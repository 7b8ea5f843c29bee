/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches: messages for several connections over the socket of one. Who gets them, who must not,
 * and what breaks nothing. */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/peer.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <errno.h>
#include <string.h>

#define LINES 3

static struct world w;
static struct ha_listen *listen[LINES];
static struct ha_send *send[LINES];
static struct ha_recv *recv[LINES];

/* Three connections from b to a, each from a listener, so with a nonce, of its own. */
static void open_connections(unsigned piece)
{
	char handle[HA_HANDLE_MAX];

	world_prepare(&w);
	w.config.enable_backup = true;
	strcpy(w.config.ib_hca, "=dummy0"); /* no standby: nothing else is said */
	w.net.piece = piece;
	lines_catch();
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	for (int i = 0; i < LINES; i++) {
		send[i] = NULL;
		recv[i] = NULL;
		CHECK_INT(ha_listen(w.a, 0, NULL, handle, &listen[i]), 0);
		for (int k = 0; k < 4000 && !(send[i] && recv[i]); k++) {
			if (!send[i])
				CHECK_INT(ha_connect(w.b, 0, NULL, handle, &send[i]), 0);
			if (!recv[i])
				CHECK_INT(ha_accept(listen[i], &recv[i]), 0);
		}
		CHECK(send[i] && recv[i]);
	}
}

static void close_connections(void)
{
	for (int i = 0; i < LINES; i++) {
		ha_close_send(send[i]);
		ha_close_recv(recv[i]);
		ha_close_listen(listen[i]);
	}
	world_close(&w);
}

static struct ha_msg_for compose_for(uint64_t ring)
{
	return (struct ha_msg_for) { .header = { HA_MSG_MAGIC, 1, HA_MSG_FOR,
						 sizeof(struct ha_msg_for), 0 },
				     .ring = ring };
}

static struct ha_msg_cause compose_rail_down(uint64_t nonce)
{
	return (struct ha_msg_cause) {
		.rail = { .header = { HA_MSG_MAGIC, 1, HA_MSG_RAIL_DOWN,
				      sizeof(struct ha_msg_cause), 0 },
			  .nonce = nonce },
		.cause = HA_CAUSE_PORT_DOWN,
	};
}

/* Connection 0's socket brings: for whom, and the news that its rail is lost. */
static void send_rail_down_for(uint64_t ring, uint64_t nonce)
{
	struct {
		struct ha_msg_for name;
		struct ha_msg_cause down;
	} messages = { compose_for(ring), compose_rail_down(nonce) };
	int err = ha_stream_put_all(send[0]->b.link->stream, &messages, sizeof(messages));

	CHECK(!err || err == -EAGAIN);
	world_run(&w, 30);
}

static unsigned find_lost_rails(void)
{
	unsigned mask = 0;

	for (int i = 0; i < LINES; i++)
		mask |= (unsigned)(recv[i]->b.rail[0].state != HA_RAIL_UP) << i;
	return mask;
}

static void for_another(void)
{
	open_connections(0);
	CHECK(send[0]->b.link->peer && send[0]->b.link->peer == send[2]->b.link->peer);
	send_rail_down_for(send[1]->b.peer_ring, send[1]->b.terms.nonce);
	CHECK_INT(find_lost_rails(), 2);
	close_connections();
}

static void in_pieces(void)
{
	for (unsigned piece = 1; piece < 30; piece += 7) {
		open_connections(piece);
		send_rail_down_for(send[2]->b.peer_ring, send[2]->b.terms.nonce);
		CHECK_INT(find_lost_rails(), 4);
		close_connections();
	}
}

/* Nobody has that ring, or its nonce is another: void; what follows is received again. */
static void for_nobody(void)
{
	struct ha_msg_cause own;

	open_connections(0);
	own = compose_rail_down(send[0]->b.terms.nonce);
	send_rail_down_for(0x1000, send[1]->b.terms.nonce);
	CHECK_INT(find_lost_rails(), 0);
	send_rail_down_for(send[1]->b.peer_ring, send[2]->b.terms.nonce);
	CHECK_INT(find_lost_rails(), 0);
	send_rail_down_for(send[1]->b.peer_ring + 8, send[1]->b.terms.nonce);
	CHECK_INT(find_lost_rails(), 0);
	CHECK_INT(ha_stream_put_all(send[0]->b.link->stream, &own, sizeof(own)), 0);
	world_run(&w, 30);
	CHECK_INT(find_lost_rails(), 1);
	close_connections();
}

/* An end that has not agreed to batches takes none, neither for others nor for itself. */
static void not_agreed(void)
{
	open_connections(0);
	recv[0]->b.terms.flags &= ~HA_FLAG_BATCHES;
	send_rail_down_for(send[1]->b.peer_ring, send[1]->b.terms.nonce);
	send_rail_down_for(send[0]->b.peer_ring, send[0]->b.terms.nonce);
	CHECK_INT(find_lost_rails(), 0);
	close_connections();
}

/* A BYE message is nobody else's. */
static void no_close(void)
{
	struct {
		struct ha_msg_for name;
		struct ha_msg_bye bye;
	} messages;

	open_connections(0);
	messages.name = compose_for(send[1]->b.peer_ring);
	messages.bye = (struct ha_msg_bye) { .header = { HA_MSG_MAGIC, 1, HA_MSG_BYE,
							 sizeof(messages.bye), 0 } };
	CHECK_INT(ha_stream_put_all(send[0]->b.link->stream, &messages, sizeof(messages)), 0);
	world_run(&w, 30);
	CHECK(!recv[0]->b.peer_closed && !recv[1]->b.peer_closed);
	close_connections();
}

/* The connection is gone when the batch comes. */
static void closed_meanwhile(void)
{
	struct ha_recv *gone;
	char handle[HA_HANDLE_MAX];
	uint64_t ring, nonce;

	open_connections(0);
	gone = recv[1];
	ring = send[1]->b.peer_ring;
	nonce = send[1]->b.terms.nonce;
	ha_close_recv(gone);
	CHECK(!ha_peer_find(w.a, ring));
	send_rail_down_for(ring, nonce);
	CHECK(recv[0]->b.rail[0].state == HA_RAIL_UP);
	ha_close_send(send[1]);
	send[1] = NULL;
	recv[1] = NULL;
	ha_close_listen(listen[1]);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &listen[1]), 0);
	for (int k = 0; k < 4000 && !(send[1] && recv[1]); k++) {
		if (!send[1])
			CHECK_INT(ha_connect(w.b, 0, NULL, handle, &send[1]), 0);
		if (!recv[1])
			CHECK_INT(ha_accept(listen[1], &recv[1]), 0);
	}
	CHECK(send[1]->b.link->peer && send[1]->b.link->peer == send[0]->b.link->peer);
	close_connections();
}

/* A port goes down under all three: one socket carries it, and only one. */
static void all_at_once(void)
{
	uint64_t before;

	open_connections(0);
	world_run(&w, 1);
	ha_failover_device(send[0]->b.rail[0].dev, HA_CAUSE_PORT_DOWN);
	before = w.net.bytes;
	ha_ctx_progress(w.b);
	CHECK_INT(w.net.bytes - before,
		  LINES * (sizeof(struct ha_msg_for) + sizeof(struct ha_msg_cause)));
	CHECK(send[0]->b.link->peer && !ha_stream_busy(send[0]->b.link->stream));
	world_run(&w, 1);
	CHECK_INT(find_lost_rails(), 7);
	for (int i = 0; i < LINES; i++)
		CHECK_INT(recv[i]->b.rail[0].loss.cause, HA_CAUSE_PEER_NOTICE);
	close_connections();
}

int main(void)
{
	for_another();
	in_pieces();
	for_nobody();
	not_agreed();
	no_close();
	closed_meanwhile();
	all_at_once();
	return 0;
}
