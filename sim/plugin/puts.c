/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * puts.c - a one-sided connection's messages: the receiver says which buffer is whose next, the
 * sender puts there, records say what has come
 *
 * Some puts have a record, which covers those before it that have none. Every record must come
 * once, in order, when all bytes that it covers are there; from then on nobody may write them.
 */
#include "sim/plugin/side.h"

#include <string.h>

#define WINDOW 5 /* its number, at both ends */

struct record {
	uint8_t kind;
	uint8_t reserved[7];
	uint64_t number; /* of the message */
	uint8_t unused[HA_RECORD_SIZE - 16];
};
static_assert(sizeof(struct record) == HA_RECORD_SIZE, "what a put brings");

static bool has_record(const struct sim_conn *c, uint32_t message)
{
	uint64_t mixed = (c->spec->key + message) * UINT64_C(0x9e3779b97f4a7c15);

	/* One in each window, or the receiver would run out of places before it learns of any. */
	return mixed >> 62 || (message + 1) % c->spec->window == 0 || message + 1 == c->messages;
}

int sim_puts_offer(struct sim_side *s)
{
	return s->end ? ha_offer(sim_side_recv(s), WINDOW, s->mr) : 0;
}

/* A buffer for the next message; the sender may put there at once. */
bool sim_puts_expose(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct sim_message m;
	struct sim_op *op;

	if (s->next == c->messages)
		return false;
	op = sim_op_new(s, s->next);
	if (!op)
		return false;
	sim_message_make(c->spec, s->next, &m);
	if (!sim_op_take_buffers(s, op, 1)) {
		sim_op_give_back(s, op);
		return false;
	}
	sim_buffer_post(op->buf[0], s->next, m.key[0], m.posted[0], m.expect[0]);
	op->mr[0] = s->mr;
	c->exposed[s->next % SIM_WINDOW_MAX] = (uint64_t)(op->buf[0]->data - s->arena.base);
	sim_trace_line(c->world, "connection %u: a place for put %u of %u bytes", c->index, s->next,
		       m.expect[0]);
	sim_side_event(s, 2, s->next++);
	return true;
}

static struct sim_op *prepare_put(struct sim_side *s, const struct sim_message *m)
{
	struct sim_op *op = s->trying;

	if (op)
		return op;
	op = sim_op_new(s, s->next);
	if (!op)
		return NULL;
	if (!sim_op_take_buffers(s, op, 1)) {
		sim_op_give_back(s, op);
		return NULL;
	}
	sim_buffer_fill(op->buf[0], s->next, m->key[0], m->expect[0]);
	op->mr[0] = s->mr;
	op->report = m->expect[0];
	return s->trying = op;
}

bool sim_puts_post(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct record record = { .kind = 1, .number = s->next };
	struct sim_message m;
	struct sim_op *op;
	struct ha_put put;
	int err;

	if (s->next == c->messages || s->next >= c->side[1].next ||
	    sim_now(c->world) < s->rest_until || sim_conn_waits(c))
		return false;
	sim_message_make(c->spec, s->next, &m);
	op = prepare_put(s, &m);
	if (!op)
		return false;
	put = (struct ha_put) { .data = op->buf[0]->data,
				.size = m.expect[0],
				.mr = op->mr[0],
				.window = WINDOW,
				.offset = c->exposed[s->next % SIM_WINDOW_MAX],
				.record = has_record(c, s->next) ? &record : NULL };
	err = ha_put(sim_side_send(s), &put, &op->req);
	if (err)
		sim_side_ended(s, err, "put");
	if (err || !op->req)
		return err != 0;
	s->trying = NULL;
	sim_side_event(s, 3, s->next++);
	if (c->spec->think_ns && !sim_side_dice(s, 3))
		s->rest_until = sim_now(c->world) + sim_side_dice(s, c->spec->think_ns);
	return true;
}

void sim_puts_post_nowhere(struct sim_side *s)
{
	const struct ha_put put = {
		.data = s->arena.base, .size = 1, .mr = s->mr, .window = WINDOW + 1
	};
	struct ha_request *req = NULL;
	int err = ha_put(sim_side_send(s), &put, &req);

	if (err)
		sim_side_ended(s, err, "put");
	else if (req)
		sim_report_finding(
			s->conn->world, SIM_WRONG_SIZE,
			"connection %u: a put was taken into a window that nobody has offered",
			s->conn->index);
}

static struct sim_op *op_of(struct sim_side *s, uint32_t message)
{
	for (unsigned i = 0; i < s->max_ops; i++)
		if (s->op[i].used && s->op[i].message == message)
			return &s->op[i];
	return NULL;
}

/* Everything up to this message has come, if its turn it is. */
static void finish_puts(struct sim_side *s, uint64_t number)
{
	struct sim_conn *c = s->conn;
	uint32_t next = s->done;
	struct sim_op *op;

	while (next < s->next && !has_record(c, next))
		next++;
	if (number != next || next == s->next) {
		sim_report_finding(
			c->world, SIM_WRONG_SIZE,
			"connection %u: the record of put %llu came; it is put %u's turn, and %u "
			"have a place",
			c->index, (unsigned long long)number, next, s->next);
		return;
	}
	while (s->done <= next && !sim_has_finding(c->world)) {
		op = op_of(s, s->done);
		if (!op)
			break;
		sim_op_finished(s, op);
	}
}

bool sim_puts_take(struct sim_side *s)
{
	struct record record;
	bool got;
	int err;

	if (s->done == s->conn->messages)
		return false; /* behind the last record comes the peer's close, which is an error */
	err = ha_take(sim_side_recv(s), &record, &got);
	if (got)
		finish_puts(s, record.number);
	else if (err)
		sim_side_ended(s, err, "take");
	return got || err;
}
