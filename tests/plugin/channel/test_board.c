/* SPDX-License-Identifier: BSD-3-Clause */
/* The work requests that write into the peer's board: from where, to where, with whose keys; and
 * when nothing is posted. */
#include "plugin/channel/board.h"

#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/stream.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING UINT64_C(0x7000000) /* the peer's */
#define RAIL 1

static struct ibv_qp qp;
static struct ibv_send_wr posted; /* the last one, */
static struct ibv_sge data;       /* and its data */
static unsigned nposted;
static int refusal;

static int record_post(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	CHECK(to == &qp);
	CHECK(!wr->next);
	CHECK_INT(wr->num_sge, 1);
	posted = *wr;
	data = *wr->sg_list;
	nposted++;
	*bad = wr;
	return refusal;
}

static const struct ha_verbs_hot hot = { .post_send = record_post };

static struct ha_bundle *make_end(bool is_send)
{
	struct ha_bundle *b = new_end(is_send);

	CHECK(b);
	b->ring = calloc(1, is_send ? HA_SEND_RING_SIZE : HA_RECV_RING_SIZE);
	CHECK(b->ring);
	b->is_send = is_send;
	b->nrails = 2;
	b->peer_ring = RING;
	b->rail[RAIL] = (struct ha_rail) {
		.index = RAIL,
		.hot = &hot,
		.qp = &qp,
		.sq_depth = 100,
		.sq_posted = 40,
		.sq_retired = 40,
		.ring_lkey = 17,
		.ring_rkey = 19,
	};
	nposted = 0;
	refusal = 0;
	return b;
}

static void free_end(struct ha_bundle *b)
{
	free(b->ring);
	free(b);
}

/* The last one writes `length` bytes from `staged` to the same place in the peer's board. */
static void check_write(const struct ha_bundle *b, const void *staged, size_t length,
			enum ha_wr_kind kind)
{
	const struct ha_rail *r = &b->rail[RAIL];
	uint64_t board = RING + (b->is_send ? HA_RECEIVER_BOARD : HA_SENDER_BOARD);
	bool in_line = length <= r->max_inline;

	CHECK_INT(posted.opcode, IBV_WR_RDMA_WRITE);
	CHECK_INT(posted.send_flags, IBV_SEND_SIGNALED | (in_line ? IBV_SEND_INLINE : 0));
	CHECK_INT(posted.wr_id, ha_wr_id(kind, 0, r->sq_posted));
	CHECK_INT(data.addr, (uintptr_t)staged);
	CHECK_INT(data.length, length);
	CHECK_INT(data.lkey, 17);
	CHECK_INT(posted.wr.rdma.rkey, 19);
	CHECK_INT(posted.wr.rdma.remote_addr - board,
		  (const char *)staged - (const char *)ha_bundle_staged_board(b));
}

static void words_are_written(bool is_send)
{
	struct ha_bundle *b = make_end(is_send);
	struct ha_heartbeat *staged = &ha_bundle_staged_board(b)->heartbeat[RAIL];
	struct ha_rail *r = &b->rail[RAIL];

	for (unsigned i = 0; i < 3; i++) {
		uint64_t value = UINT64_C(0x100000007) + i;

		r->max_inline = 7 + i;
		CHECK_INT(ha_board_write(b, r, &staged->pong, value), 0);
		CHECK_INT(staged->pong, value);
		CHECK_INT(nposted, i + 1);
		CHECK_INT(r->sq_posted, 40 + i + 1);
		check_write(b, &staged->pong, sizeof(staged->pong), HA_WR_CONTROL);
	}
	CHECK_INT(ha_board_probe(b, r), 0);
	CHECK_INT(r->sq_posted, 44);
	check_write(b, &staged->still, sizeof(staged->still), HA_WR_PROBE);
	free_end(b);
}

/* A full queue is "not now"; what the device says is a negative errno, whichever it uses. */
static void words_are_refused(void)
{
	struct ha_bundle *b = make_end(true);
	uint64_t *word = &ha_bundle_staged_board(b)->heartbeat[RAIL].ping;
	struct ha_rail *r = &b->rail[RAIL];

	r->sq_posted = r->sq_retired + r->sq_depth;
	CHECK_INT(ha_board_write(b, r, word, 1), -EAGAIN);
	CHECK_INT(ha_board_probe(b, r), -EAGAIN);
	CHECK_INT(nposted, 0);
	CHECK_INT(r->sq_posted, 140);
	r->sq_retired++;
	CHECK_INT(ha_board_write(b, r, word, 1), 0);
	r->sq_retired = r->sq_posted;
	refusal = EIO;
	CHECK_INT(ha_board_write(b, r, word, 1), -EIO);
	refusal = -EINVAL;
	CHECK_INT(ha_board_write(b, r, word, 1), -EINVAL);
	refusal = 1;
	CHECK_INT(ha_board_write(b, r, word, 1), -1);
	free_end(b);
}

static union ha_message compose_ack(uint64_t next)
{
	return (union ha_message) {
		.keys_ack = { .rail = { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION,
						    HA_MSG_RAIL_KEYS_ACK,
						    sizeof(struct ha_msg_keys_ack), 0 } },
			      .next = next }
	};
}

static void check_message(struct ha_bundle *b, uint32_t number, const union ha_message *m)
{
	const struct ha_board_message *staged =
		&ha_bundle_staged_board(b)->message[RAIL][(number - 1) % HA_BOARD_SLOTS];

	CHECK_INT(staged->number, number);
	CHECK_INT(staged->length, m->header.length);
	CHECK(!memcmp(staged->body, m, m->header.length));
	CHECK(staged->check == ha_wire_board_sum(staged));
	check_write(b, staged, offsetof(struct ha_board_message, body) + m->header.length,
		    HA_WR_CONTROL);
}

/* A message without a place, or without room in the queue, takes no number. */
static void messages_are_written(bool is_send)
{
	struct ha_bundle *b = make_end(is_send);
	struct ha_rail *r = &b->rail[RAIL];
	union ha_message m = compose_ack(5);
	uint32_t number = 0;

	r->max_inline = offsetof(struct ha_board_message, body) + m.header.length;
	for (; number < HA_BOARD_SLOTS; number++) {
		m = compose_ack(5 + number);
		CHECK_INT(ha_board_post(b, r, &m), 0);
		check_message(b, number + 1, &m);
		r->max_inline--;
	}
	CHECK_INT(ha_board_post(b, r, &m), -EAGAIN); /* the NIC may still read both */
	r->sq_retired = r->sq_posted;
	r->sq_posted += r->sq_depth;
	CHECK_INT(ha_board_post(b, r, &m), -EAGAIN);
	CHECK_INT(nposted, HA_BOARD_SLOTS);
	r->sq_posted = r->sq_retired;
	refusal = EIO;
	m = compose_ack(99);
	CHECK_INT(ha_board_post(b, r, &m), -EIO);
	check_message(b, HA_BOARD_SLOTS + 1, &m);
	CHECK_INT(b->link->board[RAIL].out, HA_BOARD_SLOTS + 1);
	CHECK_INT(b->link->board[0].out, 0);
	free_end(b);
}

/* Where messages may overtake each other, each is acknowledged before the next leaves. */
static void one_after_the_other(void)
{
	struct ha_bundle *b = make_end(true);
	struct ha_rail *r = &b->rail[RAIL];
	union ha_message m = compose_ack(1);

	b->terms.unordered = true;
	for (unsigned i = 0; i < 2 * HA_BOARD_SLOTS + 1; i++) {
		CHECK_INT(ha_board_post(b, r, &m), 0);
		CHECK_INT(ha_board_post(b, r, &m), -EAGAIN);
		CHECK_INT(nposted, i + 1);
		r->sq_retired = r->sq_posted;
	}
	free_end(b);
}

/* The counts of work requests wrap: a message that the NIC is done with is done for good, and one
 * that it has is not. */
static void done_for_good(void)
{
	struct ha_bundle *b = make_end(true);
	struct ha_rail *r = &b->rail[RAIL];
	uint32_t *mark = b->link->board[RAIL].mark;
	union ha_message m = compose_ack(1);

	CHECK_INT(ha_board_post(b, r, &m), 0);
	CHECK_INT(ha_board_post(b, r, &m), 0);
	r->sq_retired = mark[0];
	b->link->board[RAIL].in = 3;
	for (unsigned i = 0; i < 5; i++) {
		r->sq_retired += 0x20000000;
		mark[1] = r->sq_retired + 1; /* always one ahead */
		ha_board_settle(b, r);
		CHECK_INT(mark[0], r->sq_retired);
		CHECK_INT(mark[1], r->sq_retired + 1);
		CHECK_INT(b->link->board[RAIL].in, 3); /* what was read is another matter */
	}
	r->sq_posted = r->sq_retired + 1;
	CHECK_INT(ha_board_post(b, r, &m), 0);
	CHECK_INT(ha_board_post(b, r, &m), -EAGAIN);
	r->sq_retired = r->sq_posted;
	ha_board_settle(b, r);
	CHECK_INT(mark[0], r->sq_retired);
	CHECK_INT(mark[1], r->sq_retired);
	CHECK_INT(ha_board_post(b, r, &m), 0);
	free_end(b);
}

int main(void)
{
	words_are_written(true);
	words_are_written(false);
	words_are_refused();
	messages_are_written(true);
	messages_are_written(false);
	done_for_good();
	one_after_the_other();
	return 0;
}
