/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/side.h"

#include <string.h>

/* Fills the operation's buffers for message m and posts it; before[] gets what they were. */
static int post_buffers(struct sim_side *s, struct sim_op *op, const struct sim_message *m,
			struct sim_buffer *before, const char **call)
{
	void *data[HA_MAX_RECVS];
	size_t sizes[HA_MAX_RECVS];
	int err = 0;

	*call = "reg_mr";
	for (unsigned i = 0; i < m->n && !err; i++) {
		before[i] = *op->buf[i];
		sim_buffer_post(op->buf[i], s->next, m->key[i], m->posted[i], m->expect[i]);
		op->buf[i]->optional = m->optional;
		data[i] = op->buf[i]->data;
		sizes[i] = m->posted[i];
		err = sim_op_register(s, op, i);
	}
	if (err)
		return err;
	*call = "irecv";
	return ha_irecv(sim_side_recv(s), (int)m->n, data, sizes, m->tag, op->mr, m->optional,
			&op->req);
}

/* There was no room for it: it comes again, with the buffers as they were. */
static void take_back(struct sim_side *s, struct sim_op *op, const struct sim_buffer *before,
		      unsigned n)
{
	struct sim_buffer *buf[HA_MAX_RECVS];

	memcpy(buf, op->buf, sizeof(buf));
	sim_op_give_back(s, op);
	for (unsigned i = 0; i < n; i++)
		sim_buffer_refused(buf[i], &before[i]);
}

/* Post the next receive. True: something moved. */
static bool post_receive(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct sim_buffer before[HA_MAX_RECVS];
	struct sim_message m;
	const char *call;
	struct sim_op *op;
	int err;

	if (s->next == c->messages)
		return false;
	op = sim_op_new(s, s->next);
	if (!op)
		return false;
	sim_message_make(c->spec, s->next, &m);
	if (!sim_op_take_buffers(s, op, m.n)) {
		sim_op_give_back(s, op);
		return false;
	}
	err = post_buffers(s, op, &m, before, &call);
	if (err) {
		sim_op_give_back(s, op);
		sim_side_ended(s, err, call);
		return true;
	}
	if (!op->req) {
		take_back(s, op, before, m.n);
		return false;
	}
	sim_trace_line(c->world, "connection %u: receive %u of %u x %u bytes%s, buffer %td",
		       c->index, s->next, m.n, m.expect[0], m.optional ? ", optional" : "",
		       op->buf[0] - s->arena.buffer);
	sim_side_event(s, 2, s->next++);
	return true;
}

/* Fill a buffer for one member of the group at the head; NULL: no room. */
static struct sim_op *prepare_send(struct sim_side *s, unsigned *member, int *err)
{
	struct sim_conn *c = s->conn;
	struct sim_op *op;
	unsigned m;

	*err = 0;
	if (s->trying && (c->head.n == 1 || sim_side_dice(s, 4))) {
		*member = s->trying_member;
		return s->trying;
	}
	if (s->trying)
		sim_op_give_back(s, s->trying); /* another member's turn */
	s->trying = NULL;
	op = sim_op_new(s, s->next);
	if (!op)
		return NULL;
	if (!sim_op_take_buffers(s, op, 1)) {
		sim_op_give_back(s, op);
		return NULL;
	}
	do
		m = (unsigned)sim_side_dice(s, c->head.n);
	while (c->head_sent >> m & 1);
	sim_buffer_fill(op->buf[0], s->next, c->head.key[m], c->head.sent[m]);
	*err = sim_op_register(s, op, 0);
	s->trying = op;
	*member = s->trying_member = m;
	return op;
}

static void note_sent(struct sim_side *s, struct sim_op *op, unsigned member)
{
	struct sim_conn *c = s->conn;

	s->trying = NULL;
	op->report = c->head.expect[member];
	sim_side_event(s, 3, s->next << 3 | member);
	c->head_sent |= (uint8_t)(1u << member);
	if (c->head_sent == (1u << c->head.n) - 1)
		s->next++;
	if (c->spec->think_ns && !sim_side_dice(s, 3))
		s->rest_until = sim_now(c->world) + sim_side_dice(s, c->spec->think_ns);
}

/* A send of the receive at the head. */
static bool post_send(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct sim_op *op;
	unsigned m = 0;
	int err;

	if (s->next == c->messages || sim_now(c->world) < s->rest_until || sim_conn_waits(c))
		return false;
	if (c->head_index != s->next || !c->head.n) {
		sim_message_make(c->spec, s->next, &c->head);
		c->head_index = s->next;
		c->head_sent = 0;
	}
	op = prepare_send(s, &m, &err);
	if (!op)
		return false;
	if (err) {
		sim_side_ended(s, err, "reg_mr");
		return true;
	}
	err = ha_isend(sim_side_send(s), op->buf[0]->data, c->head.sent[m], c->head.tag[m],
		       op->mr[0], &op->req);
	if (err)
		sim_side_ended(s, err, "isend");
	else if (op->req)
		note_sent(s, op, m);
	return err || op->req;
}

/* A send whose tag nobody waits for is not taken, or fails: the peer has closed in order. */
static void post_premature(struct sim_side *s)
{
	struct ha_request *req = NULL;
	int done, err = ha_isend(sim_side_send(s), s->arena.base, 0, 0x7ffffff0, s->mr, &req);

	if (req && s->bundle->peer_closed)
		err = ha_test(req, &done, NULL);
	if (err)
		sim_side_ended(s, err, "isend");
	else if (req)
		sim_report_finding(s->conn->world, SIM_WRONG_SIZE,
				   "connection %u: a send was taken whose tag no receive has",
				   s->conn->index);
}

static void check_sizes(struct sim_side *s, const struct sim_op *op, const int *sizes)
{
	for (unsigned i = 0; i < op->n; i++) {
		uint32_t want = s->end ? op->buf[i]->expect : op->report;

		if ((uint32_t)sizes[i] != want)
			sim_report_finding(
				s->conn->world, SIM_WRONG_SIZE,
				"connection %u, message %u: the %s reports %d bytes, not %u",
				s->conn->index, op->message, s->end ? "receive" : "send", sizes[i],
				want);
	}
}

/* Received into memory of a GPU: the flush, then it is finished. */
static void post_flush(struct sim_side *s, struct sim_op *op, const int *sizes)
{
	void *data[HA_MAX_RECVS];
	int err;

	for (unsigned i = 0; i < op->n; i++)
		data[i] = op->buf[i]->data;
	err = ha_iflush(sim_side_recv(s), (int)op->n, data, sizes, op->mr, &op->flush);
	if (err)
		sim_side_ended(s, err, "iflush");
	else if (!op->flush)
		sim_op_finished(s, op);
}

static bool test_flush(struct sim_side *s, struct sim_op *op)
{
	int done, err = ha_test(op->flush, &done, NULL);

	if (err)
		sim_side_ended(s, err, "test of a flush");
	else if (done)
		sim_op_finished(s, op);
	return err || done;
}

/*
 * Nobody asks the core about it any more: NCCL would wait until its next call for another receive.
 */
static bool watch_op(struct sim_side *s, struct sim_op *op)
{
	bool done = sim_buffer_whole(op->buf[0]);

	if (done)
		sim_op_finished(s, op);
	else if (s->bundle->error)
		sim_side_ended(s, s->bundle->error, "the next call");
	return done || s->error;
}

/* True: something moved. */
static bool test_op(struct sim_side *s, struct sim_op *op)
{
	int sizes[HA_MAX_RECVS] = { 0 }, done = 0, err;
	struct sim_message m;

	if (op->watched)
		return watch_op(s, op);
	if (op->flush)
		return test_flush(s, op);
	err = ha_test(op->req, &done, sizes);
	if (err) {
		sim_side_ended(s, err, "test");
		return true;
	}
	if (!done)
		return false;
	sim_message_make(s->conn->spec, op->message, &m);
	if (s->end && m.optional) {
		op->watched = true;
		sim_side_event(s, 5, op->message);
		return true;
	}
	check_sizes(s, op, sizes);
	if (s->end && s->conn->spec->gpu)
		post_flush(s, op, sizes);
	else
		sim_op_finished(s, op);
	return true;
}

static bool test_some(struct sim_side *s)
{
	unsigned i, first = (unsigned)sim_side_dice(s, s->max_ops),
		    left = s->nops ? 1 + (unsigned)sim_side_dice(s, s->nops) : 0;
	bool moved = false;

	for (i = 0; i < s->max_ops && left && s->phase == SIM_UP; i++) {
		struct sim_op *op = &s->op[(first + i) % s->max_ops];

		if (!op->used || op == s->trying)
			continue;
		left--;
		moved |= test_op(s, op);
	}
	return moved;
}

/*
 * The receiver has given up before it was connected, and there is no socket left to say so: NCCL
 * aborts both ranks.
 */
static bool is_abandoned(const struct sim_side *s)
{
	const struct sim_side *peer = &s->conn->side[1];

	return !s->end && !s->next && s->conn->world->sockets_lost && peer->phase == SIM_CLOSED &&
	       peer->next == 0;
}

static bool two_sided_call(struct sim_side *s)
{
	if (sim_side_dice(s, 2))
		return s->end ? post_receive(s) : post_send(s);
	return test_some(s);
}

static bool one_sided_call(struct sim_side *s)
{
	if (sim_side_dice(s, 2))
		return s->end ? sim_puts_expose(s) : sim_puts_post(s);
	return s->end ? sim_puts_take(s) : test_some(s);
}

bool sim_side_exchange(struct sim_side *s)
{
	bool moved = false;

	if (is_abandoned(s)) {
		sim_side_to_close(s, SIM_GIVE_UP_NS);
		return true;
	}
	for (unsigned k = 1 + (unsigned)sim_side_dice(s, 4); k && s->phase == SIM_UP; k--)
		moved |= s->conn->spec->one_sided ? one_sided_call(s) : two_sided_call(s);
	if (!s->end && s->phase == SIM_UP && s->next < s->conn->messages && !sim_side_dice(s, 64)) {
		if (s->conn->spec->one_sided)
			sim_puts_post_nowhere(s);
		else
			post_premature(s);
	}
	if (s->phase == SIM_UP && s->next == s->conn->messages && !s->nops) {
		sim_side_event(s, 6, 0);
		sim_side_to_close(s, s->conn->spec->linger_ns[s->end]);
	}
	return moved;
}
