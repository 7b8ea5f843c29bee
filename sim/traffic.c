/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/traffic.h"

#include "core/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIVE_UP_NS 20000000u /* the other end has failed to connect: this one stops waiting, as NCCL aborts both */

static struct ha_send *send_of(const struct sim_side *s)
{
	return (struct ha_send *)s->bundle;
}

static struct ha_recv *recv_of(const struct sim_side *s)
{
	return (struct ha_recv *)s->bundle;
}

static uint64_t dice(struct sim_side *s, uint64_t n)
{
	return sr_rng_below(&s->rng, n);
}

/* Something happened: into the trace. */
static void event(struct sim_side *s, unsigned what, uint64_t value)
{
	struct sim_world *w = s->conn->world;

	s->moved_at = sim_now(w);
	sim_mix(w, sim_now(w) ^ (uint64_t)(s->conn->index * 2 + s->end) << 48 ^ (uint64_t)what << 56 ^ value << 32);
}

static void to_close(struct sim_side *s, uint64_t linger)
{
	s->phase = SIM_CLOSES;
	s->close_at = sim_now(s->conn->world) + linger;
}

/* ---- buffers and registrations ---- */

static int register_buffer(struct sim_side *s, struct sim_op *op, unsigned m)
{
	const struct sim_conn_spec *spec = s->conn->spec;
	int err;

	op->mr[m] = s->mr;
	if (!spec->reg_each)
		return 0;
	err = ha_reg_mr(s->bundle, op->buf[m]->data, s->arena.capacity, spec->gpu ? HA_MEM_CUDA : HA_MEM_HOST, 0, -1, 0,
			&op->mr[m]);
	if (err)
		op->mr[m] = NULL;
	return err;
}

static void give_back(struct sim_side *s, struct sim_op *op)
{
	for (unsigned m = 0; m < op->n; m++) {
		if (op->mr[m] && op->mr[m] != s->mr)
			ha_dereg_mr(s->bundle, op->mr[m]);
		if (op->buf[m])
			sim_buffer_give(&s->arena, op->buf[m]);
	}
	op->used = false;
	s->nops--;
}

static struct sim_op *op_new(struct sim_side *s, uint32_t message)
{
	unsigned i = 0;

	if (s->nops == s->max_ops)
		return NULL;
	while (s->op[i].used)
		i++;
	memset(&s->op[i], 0, sizeof(s->op[i]));
	s->op[i].used = true;
	s->op[i].message = message;
	s->nops++;
	return &s->op[i];
}

static bool take_buffers(struct sim_side *s, struct sim_op *op, unsigned n)
{
	if (s->arena.nfree < n)
		return false;
	for (; op->n < n; op->n++)
		op->buf[op->n] = sim_buffer_take(&s->arena, s->conn->world);
	return true;
}

/* The buffers are their owner's again: a write from now on is a stray one, and what is read is nonsense. */
static void disown(struct sim_side *s)
{
	for (unsigned i = 0; s->arena.buffer && i < s->arena.n; i++)
		s->arena.buffer[i].optional = false;
	for (unsigned i = 0; i < s->max_ops; i++)
		if (s->op[i].used) {
			for (unsigned m = 0; m < s->op[i].n; m++)
				s->op[i].mr[m] = NULL; /* goes with the connection */
			give_back(s, &s->op[i]);
		}
	s->trying = NULL;
}

/* What allows this end to fail now; NULL: nothing does. */
static const char *excuse(const struct sim_side *s)
{
	const struct sim_side *peer = &s->conn->side[1 - s->end];
	const struct sim_promise *p = &s->conn->promise;
	uint64_t now = sim_elapsed(s->conn->world);

	if (peer->error)
		return "the other end has failed";
	if (now >= p->peer_gone[1 - s->end])
		return "the other end's host is gone";
	if (now >= p->not_opened && (!s->up_at || !peer->up_at))
		return "it was still being made";
	if (now >= p->unprotected)
		return "it has no failover";
	if (now >= p->dark)
		return "no path was left";
	if (now >= p->no_socket)
		return "sockets and paths had trouble";
	if (now >= p->not_placed)
		return "acknowledged, not placed";
	if (peer->closed_at &&
	    sim_promise_farewell_lost(&s->conn->world->sc, s->conn->index, s->end, peer->closed_at, now))
		return "the farewell and the last acknowledgement were lost";
	return NULL;
}

static void ended(struct sim_side *s, int err, const char *call)
{
	struct sim_world *w = s->conn->world;

	event(s, 1, (uint64_t)-err);
	sim_say(w, "connection %u, %s: %s says %s (%s)", s->conn->index, s->end ? "receiver" : "sender", call, strerror(-err),
		excuse(s) ? excuse(s) : "no excuse");
	s->error = err;
	s->kept = !strncmp(call, "test", 4);
	w->result.errors++;
	if (err > 0 || err < -4095)
		sim_found(w, SIM_ERROR, "connection %u: %s returned %d, which is no negative errno", s->conn->index,
			  call, err);
	else if (!excuse(s))
		sim_found(w, SIM_ERROR,
			  "connection %u, %s (%u of %u messages done): %s says %s, and nothing excuses it",
			  s->conn->index, s->end ? "receiver" : "sender", s->done, s->conn->messages, call,
			  strerror(-err));
	/* A buffer that cannot be registered ends nothing: what was posted before is the core's until the close. */
	if (s->bundle && strcmp(call, "reg_mr") != 0)
		disown(s);
	to_close(s, dice(s, 30000000));
}

/* ---- messages ---- */

/* Post the next receive. True: something moved. */
static bool post_receive(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	void *data[HA_MAX_RECVS];
	size_t sizes[HA_MAX_RECVS];
	struct sim_buffer before[HA_MAX_RECVS], *buf[HA_MAX_RECVS];
	struct sim_message m;
	const char *call = "reg_mr";
	struct sim_op *op;
	int err = 0;

	if (s->next == c->messages)
		return false;
	op = op_new(s, s->next);
	if (!op)
		return false;
	sim_message_make(c->spec, s->next, &m);
	if (!take_buffers(s, op, m.n)) {
		give_back(s, op);
		return false;
	}
	for (unsigned i = 0; i < m.n && !err; i++) {
		buf[i] = op->buf[i];
		before[i] = *buf[i];
		sim_buffer_post(op->buf[i], s->next, m.key[i], m.posted[i], m.expect[i]);
		op->buf[i]->optional = m.optional;
		data[i] = op->buf[i]->data;
		sizes[i] = m.posted[i];
		err = register_buffer(s, op, i);
	}
	if (!err) {
		call = "irecv";
		err = ha_irecv(recv_of(s), (int)m.n, data, sizes, m.tag, op->mr, m.optional, &op->req);
	}
	if (err || !op->req)
		give_back(s, op);
	for (unsigned i = 0; !err && !op->req && i < m.n; i++)
		sim_buffer_refused(buf[i], &before[i]);
	if (err)
		ended(s, err, call);
	if (err || !op->req)
		return err != 0;
	sim_say(c->world, "connection %u: receive %u of %u x %u bytes%s, buffer %td", c->index, s->next, m.n, m.expect[0],
		m.optional ? ", optional" : "", op->buf[0] - s->arena.buffer);
	event(s, 2, s->next++);
	return true;
}

/* Fill a buffer for one member of the group at the head; NULL: no room. */
static struct sim_op *prepare_send(struct sim_side *s, unsigned *member, int *err)
{
	struct sim_conn *c = s->conn;
	struct sim_op *op;
	unsigned m;

	*err = 0;
	if (s->trying && (c->head.n == 1 || dice(s, 4))) {
		*member = s->trying_member;
		return s->trying;
	}
	if (s->trying)
		give_back(s, s->trying); /* another member's turn */
	s->trying = NULL;
	op = op_new(s, s->next);
	if (!op)
		return NULL;
	if (!take_buffers(s, op, 1)) {
		give_back(s, op);
		return NULL;
	}
	do
		m = (unsigned)dice(s, c->head.n);
	while (c->head_sent >> m & 1);
	sim_buffer_fill(op->buf[0], s->next, c->head.key[m], c->head.sent[m]);
	*err = register_buffer(s, op, 0);
	s->trying = op;
	*member = s->trying_member = m;
	return op;
}

static void sent(struct sim_side *s, struct sim_op *op, unsigned member)
{
	struct sim_conn *c = s->conn;

	s->trying = NULL;
	op->report = c->head.expect[member];
	event(s, 3, s->next << 3 | member);
	c->head_sent |= (uint8_t)(1u << member);
	if (c->head_sent == (1u << c->head.n) - 1)
		s->next++;
	if (c->spec->think_ns && !dice(s, 3))
		s->rest_until = sim_now(c->world) + dice(s, c->spec->think_ns);
}

/* ---- every path up again? ---- */

static bool weights_right(const struct ha_bundle *b, bool failback)
{
	unsigned with = 0, active = 0;

	for (unsigned i = 0; i < b->nrails; i++) {
		active += b->active >> i & 1;
		with += (b->active >> i & 1) && b->weight[i];
	}
	if (b->ndata > 1)
		return with == active; /* all share */
	return with == 1 && (!failback || !(b->active & 1) || b->weight[0]);
}

/* This end has every rail that it should have, each in its role. */
static bool whole(const struct sim_side *s)
{
	const struct ha_bundle *b = s->bundle;

	return (s->phase == SIM_UP || s->phase == SIM_CLOSES) && b && (b->active & s->conn->paths) == s->conn->paths && !b->parked &&
	       weights_right(b, s->conn->world->sc.host[s->host->index].failback);
}

/* A connection that stays waits with its last messages until all is over and every path is up that can be. */
static bool waits(struct sim_conn *c)
{
	struct sim_world *w = c->world;

	if (!c->spec->stays || !c->paths || c->side[0].next + SIM_TAIL < c->messages || c->side[1].error ||
	    c->side[1].phase == SIM_CLOSED)
		return false;
	if (sim_now(w) > w->faults_over && whole(&c->side[0]) && whole(&c->side[1]))
		return false;
	c->side[0].moved_at = sim_now(w);
	if (sim_elapsed(w) > c->paths_until)
		sim_found(w, SIM_UNPROTECTED, "connection %u: rails 0x%x should be up; sender: 0x%x, receiver: 0x%x", c->index,
			  c->paths, c->side[0].bundle->active, c->side[1].bundle ? c->side[1].bundle->active : 0);
	return true;
}

/* A send of the receive at the head. */
static bool post_send(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct sim_op *op;
	unsigned m = 0;
	int err;

	if (s->next == c->messages || sim_now(c->world) < s->rest_until || waits(c))
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
		ended(s, err, "reg_mr");
		return true;
	}
	err = ha_isend(send_of(s), op->buf[0]->data, c->head.sent[m], c->head.tag[m], op->mr[0], &op->req);
	if (err)
		ended(s, err, "isend");
	else if (op->req)
		sent(s, op, m);
	return err || op->req;
}

/* A send whose tag nobody waits for is not taken. */
static void post_premature(struct sim_side *s)
{
	struct ha_request *req = NULL;
	int err = ha_isend(send_of(s), s->arena.base, 0, 0x7ffffff0, s->mr, &req);

	if (err)
		ended(s, err, "isend");
	else if (req)
		sim_found(s->conn->world, SIM_WRONG_SIZE, "connection %u: a send was taken whose tag no receive has",
			  s->conn->index);
}

static void check_sizes(struct sim_side *s, const struct sim_op *op, const int *sizes)
{
	for (unsigned i = 0; i < op->n; i++) {
		uint32_t want = s->end ? op->buf[i]->expect : op->report;

		if ((uint32_t)sizes[i] != want)
			sim_found(s->conn->world, SIM_WRONG_SIZE,
				  "connection %u, message %u: the %s reports %d bytes, not %u", s->conn->index,
				  op->message, s->end ? "receive" : "send", sizes[i], want);
	}
}

static void received(struct sim_world *w, uint64_t bytes)
{
	uint64_t interval = w->sc.pace_ns ? sim_elapsed(w) / w->sc.pace_ns : SIM_PACE_MAX;

	w->result.bytes += bytes;
	if (interval < SIM_PACE_MAX)
		w->result.pace[interval] += bytes;
}

static void finished(struct sim_side *s, struct sim_op *op)
{
	struct sim_world *w = s->conn->world;

	for (unsigned i = 0; i < op->n; i++) {
		sim_buffer_check(&s->arena, op->buf[i], w);
		if (s->end)
			received(w, op->buf[i]->expect);
	}
	if (s->end)
		w->result.messages++;
	s->done += s->end;
	sim_say(w, "connection %u: %s %u is complete", s->conn->index, s->end ? "receive" : "send", op->message);
	event(s, 4, op->message);
	give_back(s, op);
}

/* Received into memory of a GPU: the flush, then it is finished. */
static void flush(struct sim_side *s, struct sim_op *op, const int *sizes)
{
	void *data[HA_MAX_RECVS];
	int err;

	for (unsigned i = 0; i < op->n; i++)
		data[i] = op->buf[i]->data;
	err = ha_iflush(recv_of(s), (int)op->n, data, sizes, op->mr, &op->flush);
	if (err)
		ended(s, err, "iflush");
	else if (!op->flush)
		finished(s, op);
}

static bool test_flush(struct sim_side *s, struct sim_op *op)
{
	int done, err = ha_test(op->flush, &done, NULL);

	if (err)
		ended(s, err, "test of a flush");
	else if (done)
		finished(s, op);
	return err || done;
}

/* Nobody asks the core about it any more: NCCL would wait until its next call for another receive. */
static bool watch(struct sim_side *s, struct sim_op *op)
{
	bool done = sim_buffer_whole(op->buf[0]);

	if (done)
		finished(s, op);
	else if (s->bundle->error)
		ended(s, s->bundle->error, "the next call");
	return done || s->error;
}

/* True: something moved. */
static bool test_op(struct sim_side *s, struct sim_op *op)
{
	int sizes[HA_MAX_RECVS] = { 0 }, done = 0, err;
	struct sim_message m;

	if (op->watched)
		return watch(s, op);
	if (op->flush)
		return test_flush(s, op);
	err = ha_test(op->req, &done, sizes);
	if (err) {
		ended(s, err, "test");
		return true;
	}
	if (!done)
		return false;
	sim_message_make(s->conn->spec, op->message, &m);
	if (s->end && m.optional) {
		op->watched = true;
		event(s, 5, op->message);
		return true;
	}
	check_sizes(s, op, sizes);
	if (s->end && s->conn->spec->gpu)
		flush(s, op, sizes);
	else
		finished(s, op);
	return true;
}

static bool test_some(struct sim_side *s)
{
	unsigned i, first = (unsigned)dice(s, s->max_ops), left = s->nops ? 1 + (unsigned)dice(s, s->nops) : 0;
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

/* The receiver has given up before it was connected, and there is no socket left to say so: NCCL aborts both ranks. */
static bool abandoned(const struct sim_side *s)
{
	const struct sim_side *peer = &s->conn->side[1];

	return !s->end && !s->next && s->conn->world->sockets_lost && peer->phase == SIM_CLOSED && peer->next == 0;
}

static bool exchange(struct sim_side *s)
{
	bool moved = false;

	if (abandoned(s)) {
		to_close(s, GIVE_UP_NS);
		return true;
	}
	for (unsigned k = 1 + (unsigned)dice(s, 4); k && s->phase == SIM_UP; k--) {
		if (dice(s, 2))
			moved |= s->end ? post_receive(s) : post_send(s);
		else
			moved |= test_some(s);
	}
	if (!s->end && s->phase == SIM_UP && s->next < s->conn->messages && !dice(s, 64))
		post_premature(s);
	if (s->phase == SIM_UP && s->next == s->conn->messages && !s->nops) {
		event(s, 6, 0);
		to_close(s, s->conn->spec->linger_ns[s->end]);
	}
	return moved;
}

/* ---- the way up and down ---- */

static void comm_opts(const struct sim_side *s, struct ha_comm_opts *opts)
{
	const struct sim_conn_spec *spec = s->conn->spec;

	*opts = (struct ha_comm_opts){ .traffic_class = -1, .nmore = (int)spec->nrails[s->end] - 1 };
	for (int i = 0; i < opts->nmore; i++)
		opts->more[i] = (int)spec->rail[s->end][i + 1];
}

static void came_up(struct sim_side *s)
{
	const struct sim_conn_spec *spec = s->conn->spec;
	int err;

	event(s, 7, 0);
	sim_say(s->conn->world, "connection %u, %s: up", s->conn->index, s->end ? "receiver" : "sender");
	s->phase = SIM_UP;
	s->up_at = sim_now(s->conn->world);
	err = ha_reg_mr(s->bundle, s->arena.base, s->arena.size, spec->gpu ? HA_MEM_CUDA : HA_MEM_HOST, 0, -1, 0,
			&s->mr);
	if (err)
		ended(s, err, "reg_mr");
}

static bool begin(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct sim_world *w = c->world;
	struct ha_comm_opts opts;
	int err;

	if (sim_elapsed(w) < c->spec->start_ns[s->end])
		return false;
	if (!s->end) {
		if (!c->handle_at || sim_now(w) < c->handle_at) {
			if (c->side[1].phase >= SIM_CLOSES)
				to_close(s, GIVE_UP_NS);
			return false;
		}
		s->phase = SIM_OPENS;
		s->moved_at = sim_now(w);
		return true;
	}
	comm_opts(s, &opts);
	err = ha_listen(s->host->ctx, (int)c->spec->rail[1][0], &opts, c->handle, &c->listen);
	event(s, 8, (uint64_t)-err);
	s->phase = SIM_OPENS;
	if (err)
		ended(s, err, "listen");
	else
		c->handle_at = sim_now(w) + w->sc.oob_latency_ns + dice(s, w->sc.oob_jitter_ns + 1);
	return true;
}

static bool open_sender(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct ha_comm_opts opts;
	struct ha_send *send = NULL;
	int err;

	comm_opts(s, &opts);
	err = ha_connect(s->host->ctx, (int)c->spec->rail[0][0], &opts, c->handle, &send);
	s->bundle = (struct ha_bundle *)send;
	if (err)
		ended(s, err, "connect");
	else if (send)
		came_up(s);
	return err || send;
}

/* The sender believes that it is connected, and its last word was lost. */
static bool patience_of_accept(const struct sim_side *s)
{
	const struct sim_world *w = s->conn->world;

	return sim_now(w) > w->faults_over + w->sc.keepalive_ns + (uint64_t)w->sc.connect_timeout_ms * 1000000;
}

static bool open_receiver(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct ha_recv *recv = NULL;
	int err = ha_accept(c->listen, &recv);

	s->bundle = (struct ha_bundle *)recv;
	if (err)
		ended(s, err, "accept");
	else if (recv)
		came_up(s);
	/* A listener waits for ever; NCCL learns from the other rank that it need not. */
	else if (c->side[0].phase >= SIM_CLOSES || c->side[0].host->dead)
		to_close(s, GIVE_UP_NS);
	else if (c->world->sockets_lost && c->side[0].phase == SIM_UP && patience_of_accept(s))
		to_close(s, 0);
	return err || recv;
}

/* After an error, every call says the same. */
static void check_kept(struct sim_side *s)
{
	struct ha_request *req = NULL;
	void *data = s->arena.base;
	size_t size = 0;
	int tag = 0, err;

	if (!s->bundle || !s->kept)
		return;
	err = s->end ? ha_irecv(recv_of(s), 1, &data, &size, &tag, &s->mr, false, &req)
		     : ha_isend(send_of(s), data, 0, tag, s->mr, &req);
	if (err != s->error)
		sim_found(s->conn->world, SIM_ERROR, "connection %u: after error %d another call says %d",
			  s->conn->index, s->error, err);
}

static void revoke(struct sim_side *s)
{
	disown(s);
	s->phase = SIM_CLOSED;
	s->bundle = NULL;
}

static bool close_side(struct sim_side *s)
{
	struct sim_conn *c = s->conn;

	if (sim_now(c->world) < s->close_at)
		return false;
	/* Who sees the data of an optional receive in memory sees it before its notification has come; NCCL closes much
	 * later. */
	if (s->end && !s->error && c->spec->optional && c->side[0].phase == SIM_UP)
		return false;
	check_kept(s);
	event(s, 9, 0);
	sim_say(c->world, "connection %u, %s: closes, %u of %u messages", c->index, s->end ? "receiver" : "sender",
		s->end ? s->done : s->next, c->messages);
	if (s->bundle && !s->error && dice(s, 2))
		ha_dereg_mr(s->bundle, s->mr);
	if (s->bundle && s->end)
		ha_close_recv(recv_of(s));
	else if (s->bundle)
		ha_close_send(send_of(s));
	if (s->end && c->listen)
		ha_close_listen(c->listen);
	if (s->end)
		c->listen = NULL;
	s->closed_at = s->error ? 0 : sim_elapsed(c->world);
	revoke(s);
	return true;
}

static bool side_round(struct sim_side *s)
{
	switch (s->phase) {
	case SIM_WAITS:
		return begin(s);
	case SIM_OPENS:
		return s->end ? open_receiver(s) : open_sender(s);
	case SIM_UP:
		return exchange(s);
	case SIM_CLOSES:
		return close_side(s);
	default:
		return false;
	}
}

bool sim_traffic_round(struct sim_host *h)
{
	struct sim_world *w = h->world;
	unsigned first = (unsigned)sr_rng_below(&h->rng, SIM_CONNS_MAX);
	bool moved = false;

	for (unsigned i = 0; i < SIM_CONNS_MAX; i++) {
		struct sim_conn *c = w->conn[(first + i) % SIM_CONNS_MAX];

		for (unsigned end = 0; c && end < 2 && !sim_over(w); end++)
			if (c->side[end].host == h)
				moved |= side_round(&c->side[end]);
	}
	return moved;
}

void sim_traffic_drop(struct sim_host *h)
{
	for (unsigned i = 0; i < SIM_CONNS_MAX; i++) {
		struct sim_conn *c = h->world->conn[i];

		for (unsigned end = 0; c && end < 2; end++)
			if (c->side[end].host == h && c->side[end].phase != SIM_CLOSED) {
				revoke(&c->side[end]);
				if (end)
					c->listen = NULL;
			}
	}
}

bool sim_traffic_done(const struct sim_world *w)
{
	for (unsigned i = 0; i < SIM_CONNS_MAX; i++)
		for (unsigned end = 0; w->conn[i] && end < 2; end++)
			if (w->conn[i]->side[end].phase != SIM_CLOSED)
				return false;
	return true;
}

void sim_traffic_print(const struct sim_world *w, char *text, size_t size)
{
	static const char *const phases[] = { "waits", "opens", "up", "closes", "closed" };
	size_t at = 0;

	text[0] = 0;
	for (unsigned i = 0; i < SIM_CONNS_MAX; i++)
		for (unsigned end = 0; w->conn[i] && end < 2 && at < size; end++) {
			const struct sim_side *s = &w->conn[i]->side[end];

			if (s->phase != SIM_CLOSED)
				at += (size_t)snprintf(text + at, size - at, "; connection %u %s %s, %u posted, %u out",
						       i, end ? "receiver" : "sender", phases[s->phase], s->next,
						       s->nops);
		}
}

/*
 * How long both ends may stand still while a path is without trouble, or once all faults are over: until the trouble
 * is noticed (a queue pair's whole window, the soft time-out) and fenced, and what the pauses of dialling and of a farewell
 * take. Where no path is left, also the patience of the core, of connecting and of the sockets' keep-alive.
 */
static uint64_t calm_limit(const struct sim_world *w)
{
	return 3 * sim_scenario_window(&w->sc) + UINT64_C(5000000000);
}

static uint64_t last_limit(const struct sim_conn *c)
{
	const struct sim_world *w = c->world;
	uint64_t a = sim_scenario_patience(&w->sc, 0), b = sim_scenario_patience(&w->sc, 1);

	return calm_limit(w) + (a > b ? a : b) + (uint64_t)w->sc.connect_timeout_ms * 1000000 + w->sc.keepalive_ns +
	       UINT64_C(5000000000);
}

static void look_at(struct sim_conn *c)
{
	struct sim_world *w = c->world;
	uint64_t now = sim_now(w), start = now - sim_elapsed(w), moved = c->side[0].moved_at, calm, limit;
	bool up = c->side[0].up_at && c->side[1].up_at && !c->side[0].error && !c->side[1].error &&
		  c->promise.peer_gone[0] == SIM_NEVER && c->promise.peer_gone[1] == SIM_NEVER;
	char text[256];

	if (c->side[0].phase == SIM_CLOSED && c->side[1].phase == SIM_CLOSED)
		return;
	if (c->side[1].moved_at > moved)
		moved = c->side[1].moved_at;
	if (!moved)
		moved = start;
	limit = up ? calm_limit(w) : last_limit(c);
	if (now < moved + limit)
		return;
	calm = up ? start + sim_promise_calm_since(&w->sc, c->index, now - start) : now;
	if (now < calm + limit && now < w->faults_over + last_limit(c))
		return;
	sim_traffic_print(w, text, sizeof(text));
	sim_found(w, SIM_HANG, "nothing has moved on connection %u for %.1f s%s", c->index, (double)(now - moved) / 1e9, text);
}

void sim_traffic_watch(struct sim_world *w)
{
	for (unsigned i = 0; i < SIM_CONNS_MAX && !sim_over(w); i++)
		if (w->conn[i])
			look_at(w->conn[i]);
}

/* ---- birth and death ---- */

static int side_open(struct sim_conn *c, unsigned end)
{
	const struct sim_conn_spec *spec = c->spec;
	struct sim_side *s = &c->side[end];

	s->conn = c;
	s->end = end;
	s->host = &c->world->host[end ? 1 - spec->from : spec->from];
	s->rng.state = spec->key * (2 * end + 1) + 77;
	s->max_ops = end ? spec->window : spec->window * spec->group_max;
	return sim_arena_open(&s->arena, &c->world->pool, c->index, end,
			      spec->window * spec->group_max + (unsigned)(spec->key & 3), spec->max_size);
}

int sim_conn_open(struct sim_world *w, unsigned index)
{
	struct sim_conn *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	w->conn[index] = c;
	c->world = w;
	c->index = index;
	c->spec = &w->sc.conn[index];
	sim_promise_make(&w->sc, index, &c->promise);
	c->paths = sim_promise_paths(&w->sc, index, &c->paths_until);
	c->messages = c->spec->messages < w->sc.message_cap ? c->spec->messages : w->sc.message_cap;
	err = side_open(c, 0);
	return err ? err : side_open(c, 1);
}

void sim_conn_free(struct sim_conn *c)
{
	if (!c)
		return;
	for (unsigned end = 0; end < 2; end++)
		sim_arena_close(&c->side[end].arena, c->world);
	free(c);
}
