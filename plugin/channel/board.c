/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board.c - memory that the peer's NIC writes: control messages, counts, probes
 *
 * A control message is an RDMA write into the peer's board; a number and a sum in front show
 * whether it is new and whole. Nobody is interrupted by it: owners look at the board when their
 * polls are fruitless, drivers in every round.
 */
#include "plugin/channel/board.h"

#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/stream.h"
#include "plugin/device/device.h"
#include "plugin/device/send_queue.h"

#include <errno.h>
#include <string.h>

static uint64_t peer_board(const struct ha_bundle *b)
{
	return b->peer_ring + (b->is_send ? HA_RECEIVER_BOARD : HA_SENDER_BOARD);
}

static int write_board(struct ha_bundle *b, struct ha_rail *r, enum ha_wr_kind kind, void *staged,
		       uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)staged, .length = length, .lkey = r->ring_lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | (length <= r->max_inline ? IBV_SEND_INLINE : 0),
		.wr.rdma = { .remote_addr =
				     peer_board(b) +
				     (uint64_t)((char *)staged - (char *)ha_bundle_staged_board(b)),
			     .rkey = r->ring_rkey },
	};
	int err;

	if (!ha_rail_room(r))
		return -EAGAIN;
	wr.wr_id = ha_wr_id(kind, 0, ha_rail_count_post(r));
	err = r->hot->post_send(r->qp, &wr, &bad);
	return err > 0 ? -err : err;
}

int ha_board_write(struct ha_bundle *b, struct ha_rail *r, uint64_t *word, uint64_t value)
{
	*word = value;
	return write_board(b, r, HA_WR_CONTROL, word, sizeof(*word));
}

int ha_board_probe(struct ha_bundle *b, struct ha_rail *r)
{
	uint64_t *still =
		&ha_bundle_staged_board(b)->heartbeat[r->index].still; /* nobody reads it */

	return write_board(b, r, HA_WR_PROBE, still, sizeof(*still));
}

/* ---- control messages ---- */

static bool is_written(const struct ha_board_state *state, const struct ha_rail *r, uint32_t number)
{
	return (int32_t)(r->sq_retired - state->mark[number % HA_BOARD_SLOTS]) >= 0;
}

/* The NIC, which may send it again and again, reads a slot until its write is complete. Where
 * writes may overtake each other, the peer would take one that was overtaken for one that it has
 * had: each waits for the one before. */
static bool slot_free(const struct ha_bundle *b, const struct ha_board_state *state,
		      const struct ha_rail *r)
{
	if (b->terms.unordered && state->out && !is_written(state, r, state->out - 1))
		return false;
	return state->out < HA_BOARD_SLOTS || is_written(state, r, state->out);
}

void ha_board_settle(struct ha_bundle *b, const struct ha_rail *r)
{
	uint32_t *mark = b->link->board[r->index].mark;

	for (unsigned i = 0; i < HA_BOARD_SLOTS; i++)
		if ((int32_t)(r->sq_retired - mark[i]) >= 0)
			mark[i] = r->sq_retired;
}

int ha_board_post(struct ha_bundle *b, struct ha_rail *r, const union ha_message *m)
{
	struct ha_board_state *state = &b->link->board[r->index];
	unsigned slot = state->out % HA_BOARD_SLOTS;
	struct ha_board_message *message = &ha_bundle_staged_board(b)->message[r->index][slot];
	int err;

	if (!ha_rail_room(r) || !slot_free(b, state, r))
		return -EAGAIN;
	message->number = ++state->out;
	message->length = m->header.length;
	memcpy(message->body, m, m->header.length);
	message->check = ha_wire_board_sum(message);
	err = write_board(b, r, HA_WR_CONTROL, message,
			  (uint32_t)offsetof(struct ha_board_message, body) + message->length);
	state->mark[slot] = r->sq_posted;
	return err;
}

/* The first 8 bytes of a message: number and length. */
static uint32_t number_of(const struct ha_board_message *message)
{
	/* Acquire: the NIC writes it before the rest, so this only says that something new begins
	 * here. */
	return (uint32_t)__atomic_load_n((const uint64_t *)(const void *)message, __ATOMIC_ACQUIRE);
}

bool ha_board_has_message(const struct ha_bundle *b)
{
	const struct ha_board *board = ha_bundle_board(b);

	for (unsigned i = 0; i < b->nrails; i++)
		for (unsigned n = 0; n < HA_BOARD_SLOTS; n++)
			if (number_of(&board->message[i][n]) > b->link->board[i].in)
				return true;
	return false;
}

/* A copy, word by word, because the peer's NIC may be writing the next one at this moment. */
static bool copy_message(const struct ha_board_message *from, struct ha_board_message *to)
{
	const uint64_t *words = (const uint64_t *)(const void *)from;

	for (unsigned i = 0; i < sizeof(*to) / sizeof(uint64_t); i++) {
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);

		memcpy((char *)to + i * sizeof(word), &word, sizeof(word));
	}
	return to->length <= HA_BOARD_BODY && to->check == ha_wire_board_sum(to);
}

static void read_one(struct ha_bundle *b, unsigned i, const struct ha_board_message *from,
		     ha_message_taker take)
{
	struct ha_board_state *state = &b->link->board[i];
	union ha_message m;
	struct ha_board_message message;

	if (number_of(from) <= state->in || !copy_message(from, &message) ||
	    message.number <= state->in)
		return;
	state->in = message.number;
	memcpy(&m, message.body, message.length);
	if (message.length >= sizeof(struct ha_msg_rail) && m.header.type >= HA_MSG_RAIL_DOWN &&
	    !ha_wire_check_message(&m, message.length))
		take(b, &m);
}

void ha_board_read(struct ha_bundle *b, ha_message_taker take)
{
	const struct ha_board *board = ha_bundle_board(b);

	for (unsigned i = 0; i < b->nrails; i++) {
		uint32_t next = b->link->board[i].in; /* the older first */

		for (unsigned n = 0; n < HA_BOARD_SLOTS; n++)
			read_one(b, i, &board->message[i][(next + n) % HA_BOARD_SLOTS], take);
	}
}
