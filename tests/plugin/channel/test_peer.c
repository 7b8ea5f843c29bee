/* SPDX-License-Identifier: BSD-3-Clause */
/* Who shares a socket: connections are found by the address of their ring, those to one process
 * have one batch, and the batch goes over the socket of whoever can carry it. */
#include "plugin/channel/peer.h"

#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 4
#define BATCH_BYTES 8192 /* so many go at once */

/* A connection's socket takes everything. */
struct ha_oob_conn {
	unsigned calls;
	size_t n;
	char bytes[2 * BATCH_BYTES];
};

static ssize_t take_bytes(struct ha_oob_conn *conn, const void *bytes, size_t size)
{
	CHECK(conn->n + size <= sizeof(conn->bytes));
	memcpy(conn->bytes + conn->n, bytes, size);
	conn->n += size;
	conn->calls++;
	return (ssize_t)size;
}

static const struct ha_oob_ops oob = { .send = take_bytes };

static struct ha_ctx *ctx;
static struct ha_oob_conn socket_of[CONNECTIONS];
static struct ha_stream stream[CONNECTIONS];
static struct ha_bundle *end[CONNECTIONS];

/* Connections 0, 1 and 3 lead to one process, 2 to another one. */
static void make_connections(void)
{
	ctx = calloc(1, sizeof(*ctx));
	CHECK(ctx);
	ctx->oob.ops = &oob;
	ctx->loop.fd = -1;
	memset(socket_of, 0, sizeof(socket_of));
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct ha_bundle *b = new_end(true);

		CHECK(b);
		stream[i] = (struct ha_stream) { .ctx = ctx,
						 .conn = &socket_of[i],
						 .watch = { .fd = -1 } };
		b->ctx = ctx;
		b->ring = (void *)(uintptr_t)(0x5000 + 8 * i); /* one place of the table */
		b->peer_ring = 0x9000 + 64 * i;
		b->terms.flags = HA_FLAG_BATCHES;
		b->link->peer_context = i == 2 ? 7 : 8;
		b->link->stream = &stream[i];
		LIST_INSERT_HEAD(&ctx->bundles, b, entry);
		end[i] = b;
	}
}

static void free_connections(void)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		free(end[i]);
	free(ctx);
}

static uint64_t ring_of(unsigned i)
{
	return (uintptr_t)end[i]->ring;
}

static void check_found(unsigned mask)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		CHECK(ha_peer_find(ctx, ring_of(i)) == (mask >> i & 1 ? end[i] : NULL));
	CHECK(!ha_peer_find(ctx, 0x5004));
	CHECK(!ha_peer_find(ctx, 0x123456000));
}

/* Also when several have one place in the table, in whatever order they leave. */
static void found_by_ring(void)
{
	static const unsigned orders[][CONNECTIONS] = { { 0, 1, 2, 3 },
							{ 3, 2, 1, 0 },
							{ 2, 0, 3, 1 } };

	for (unsigned o = 0; o < 3; o++) {
		unsigned left = 0;

		make_connections();
		for (unsigned i = 0; i < CONNECTIONS; i++) {
			check_found(left);
			ha_peer_join(end[i]);
			left |= 1U << i;
		}
		for (unsigned i = 0; i < CONNECTIONS; i++) {
			check_found(left);
			ha_peer_leave(end[orders[o][i]]);
			CHECK(!end[orders[o][i]]->link->peer);
			left &= ~(1U << orders[o][i]);
		}
		check_found(0);
		CHECK(LIST_EMPTY(&ctx->peers.list));
		free_connections();
	}
}

/* A process is known as long as a connection leads to it. */
static void one_for_each_process(void)
{
	make_connections();
	end[1]->terms.flags &= ~HA_FLAG_BATCHES; /* sends for itself */
	for (unsigned i = 0; i < CONNECTIONS; i++)
		ha_peer_join(end[i]);
	CHECK(end[0]->link->peer && end[0]->link->peer == end[3]->link->peer);
	CHECK(end[2]->link->peer && end[2]->link->peer != end[0]->link->peer);
	CHECK(!end[1]->link->peer);
	ha_peer_leave(end[3]);
	ha_peer_join(end[3]);
	CHECK(end[3]->link->peer == end[0]->link->peer);
	ha_peer_leave(end[0]); /* the older one, behind the other in the list */
	ha_peer_leave(end[3]);
	ha_peer_join(end[3]);
	CHECK(end[3]->link->peer && end[3]->link->peer != end[2]->link->peer);
	for (unsigned i = 1; i < CONNECTIONS; i++)
		ha_peer_leave(end[i]);
	CHECK(LIST_EMPTY(&ctx->peers.list));
	free_connections();
}

/* What is known of a process is given back with its last connection. */
static void gives_back(void)
{
	size_t used = 0;

	for (unsigned round = 0; round < 20; round++) {
		make_connections();
		for (unsigned i = 0; i < CONNECTIONS; i++)
			ha_peer_join(end[i]);
		for (unsigned i = 0; i < CONNECTIONS; i++)
			ha_peer_leave(end[i]);
		free_connections();
		if (round == 9) /* malloc's own lists are full */
			used = mallinfo2().uordblks;
	}
	CHECK_INT(mallinfo2().uordblks, used);
}

static void open_connections(void)
{
	make_connections();
	for (unsigned i = 0; i < CONNECTIONS; i++)
		ha_peer_join(end[i]);
}

static void close_connections(void)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		ha_peer_leave(end[i]);
	free_connections();
}

static bool add_message(unsigned i, uint32_t epoch)
{
	union ha_message m = { .cause = {
				       .rail = { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION,
							     HA_MSG_RAIL_DOWN, sizeof(m.cause), 0 },
						 .epoch = epoch } } };

	return ha_peer_add(end[i], &m);
}

/* What add_message() makes of one: whom it is for, and the message. */
struct in_batch {
	struct ha_msg_for name;
	struct ha_msg_cause message;
};
static_assert(BATCH_BYTES % sizeof(struct in_batch) == 0, "so many fill it to the byte");

static void check_sent(unsigned carrier, unsigned place, unsigned from, uint32_t epoch)
{
	struct in_batch in;

	CHECK((place + 1) * sizeof(in) <= socket_of[carrier].n);
	memcpy(&in, socket_of[carrier].bytes + place * sizeof(in), sizeof(in));
	CHECK_INT(ha_wire_check_message(&in.name, sizeof(in.name)), 0);
	CHECK_INT(in.name.header.type, HA_MSG_FOR);
	CHECK_INT(in.name.header.ports, 0);
	CHECK_INT(in.name.ring, end[from]->peer_ring);
	CHECK_INT(ha_wire_check_message(&in.message, sizeof(in.message)), 0);
	CHECK_INT(in.message.rail.epoch, epoch);
}

/* Messages sent by each socket. */
static void check_counts(unsigned n0, unsigned n1, unsigned n2, unsigned n3)
{
	unsigned n[CONNECTIONS] = { n0, n1, n2, n3 };

	for (unsigned i = 0; i < CONNECTIONS; i++)
		CHECK_INT(socket_of[i].n, n[i] * sizeof(struct in_batch));
}

/* One for each process, over the socket of the first who added to it. */
static void batches_are_carried(void)
{
	open_connections();
	for (unsigned round = 0; round < 2; round++) {
		CHECK(add_message(1, 11));
		CHECK(add_message(2, 12));
		CHECK(add_message(0, 10));
		check_counts(0, 2 * round, round, 0);
		ha_peers_send(ctx);
		check_counts(0, 2 * round + 2, round + 1, 0);
		check_sent(1, 2 * round, 1, 11);
		check_sent(1, 2 * round + 1, 0, 10);
		check_sent(2, round, 2, 12);
		CHECK_INT(socket_of[1].calls, round + 1);
		ha_peers_send(ctx); /* there is nothing */
		CHECK_INT(socket_of[1].calls, round + 1);
	}
	close_connections();
}

static void cannot_carry(struct ha_stream *s)
{
	CHECK(!add_message(0, 10));
	end[0]->link->stream = s;
	s->read_stopped = s->write_stopped = false;
	s->out_len = 0;
	end[0]->link->stream_error = 0;
	CHECK(add_message(0, 10));
	ha_peers_send(ctx);
	check_counts(1, 0, 0, 0);
	check_sent(0, 0, 0, 10);
	socket_of[0].n = 0;
}

/* A socket that has ended, or is not read any more, or has something on its way. */
static void sends_for_itself(void)
{
	open_connections();
	end[0]->link->stream = NULL;
	cannot_carry(&stream[0]);
	stream[0].read_stopped = true;
	cannot_carry(&stream[0]);
	stream[0].write_stopped = true;
	cannot_carry(&stream[0]);
	stream[0].out_len = 1;
	cannot_carry(&stream[0]);
	end[0]->link->stream_error = -EPIPE;
	cannot_carry(&stream[0]);
	close_connections();
}

/* The socket that was to carry it has ended in this very round: another one to the same process
 * does; there is none: it is lost, and the next batch does not begin with it. */
static void another_carries(void)
{
	open_connections();
	CHECK(add_message(3, 13));
	end[3]->link->stream_error = -EPIPE;
	stream[0].out_len = 1;
	ha_peers_send(ctx);
	check_counts(0, 1, 0, 0);
	check_sent(1, 0, 3, 13);
	CHECK(add_message(1, 14));
	end[1]->link->stream_error = -EPIPE;
	ha_peers_send(ctx);
	check_counts(0, 1, 0, 0);
	stream[0].out_len = 0;
	CHECK(add_message(0, 15));
	ha_peers_send(ctx);
	check_counts(1, 1, 0, 0);
	check_sent(0, 0, 0, 15);
	close_connections();
}

/* So much that the peer can begin with it goes at once. */
static void full_batches_go(void)
{
	unsigned many = BATCH_BYTES / sizeof(struct in_batch);

	open_connections();
	for (unsigned i = 0; i < many; i++) {
		check_counts(0, 0, 0, 0);
		CHECK(add_message(0, i));
	}
	check_counts(many, 0, 0, 0);
	CHECK_INT(socket_of[0].calls, 1);
	for (unsigned i = 0; i < many; i++)
		check_sent(0, i, 0, i);
	CHECK(add_message(1, 99));
	ha_peers_send(ctx);
	check_counts(many, 1, 0, 0);
	close_connections();
}

int main(void)
{
	found_by_ring();
	one_for_each_process();
	gives_back();
	batches_are_carried();
	sends_for_itself();
	another_carries();
	full_batches_go();
	return 0;
}
