/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/side.h"

static void comm_opts(const struct sim_side *s, struct ha_comm_opts *opts)
{
	const struct sim_conn_spec *spec = s->conn->spec;

	*opts = (struct ha_comm_opts) { .traffic_class = -1,
					.nmore = (int)spec->nrails[s->end] - 1,
					.one_sided = spec->one_sided };
	for (int i = 0; i < opts->nmore; i++)
		opts->more[i] = (int)spec->rail[s->end][i + 1];
}

static void came_up(struct sim_side *s)
{
	const struct sim_conn_spec *spec = s->conn->spec;
	int err;

	sim_side_event(s, 7, 0);
	sim_trace_line(s->conn->world, "connection %u, %s: up", s->conn->index,
		       s->end ? "receiver" : "sender");
	s->phase = SIM_UP;
	s->up_at = sim_now(s->conn->world);
	err = ha_reg_mr(s->bundle, s->arena.base, s->arena.size,
			spec->gpu ? HA_MEM_CUDA : HA_MEM_HOST, 0, -1, 0, &s->mr);
	if (!err && spec->one_sided)
		err = sim_puts_offer(s);
	if (err)
		sim_side_ended(s, err, "reg_mr");
}

bool sim_side_begin(struct sim_side *s)
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
				sim_side_to_close(s, SIM_GIVE_UP_NS);
			return false;
		}
		s->phase = SIM_OPENS;
		s->moved_at = sim_now(w);
		return true;
	}
	comm_opts(s, &opts);
	err = ha_listen(s->host->ctx, (int)c->spec->rail[1][0], &opts, c->handle, &c->listen);
	sim_side_event(s, 8, (uint64_t)-err);
	s->phase = SIM_OPENS;
	if (err)
		sim_side_ended(s, err, "listen");
	else
		c->handle_at = sim_now(w) + w->sc.oob.latency_ns +
			       sim_side_dice(s, w->sc.oob.jitter_ns + 1);
	return true;
}

bool sim_side_connect(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct ha_comm_opts opts;
	struct ha_send *send = NULL;
	int err;

	comm_opts(s, &opts);
	err = ha_connect(s->host->ctx, (int)c->spec->rail[0][0], &opts, c->handle, &send);
	s->bundle = (struct ha_bundle *)send;
	if (err)
		sim_side_ended(s, err, "connect");
	else if (send)
		came_up(s);
	return err || send;
}

/* The sender believes that it is connected, and its last word was lost. */
static bool accept_timed_out(const struct sim_side *s)
{
	const struct sim_world *w = s->conn->world;

	return sim_now(w) > w->faults_over + w->sc.oob.keepalive_ns +
				    (uint64_t)w->sc.settings.connect_timeout_ms * 1000000;
}

bool sim_side_accept(struct sim_side *s)
{
	struct sim_conn *c = s->conn;
	struct ha_recv *recv = NULL;
	int err = ha_accept(c->listen, &recv);

	s->bundle = (struct ha_bundle *)recv;
	if (err)
		sim_side_ended(s, err, "accept");
	else if (recv)
		came_up(s);
	/* A listener waits for ever; NCCL learns from the other rank that it need not. */
	else if (c->side[0].phase >= SIM_CLOSES || c->side[0].host->dead)
		sim_side_to_close(s, SIM_GIVE_UP_NS);
	else if (c->world->sockets_lost && c->side[0].phase == SIM_UP && accept_timed_out(s))
		sim_side_to_close(s, 0);
	return err || recv;
}

/* After an error, every call says the same; when the peer has closed in order, test says it of what
 * is posted. */
static void check_kept(struct sim_side *s)
{
	struct ha_request *req = NULL;
	void *data = s->arena.base;
	size_t size = 0;
	int tag = 0, done, err;

	if (!s->bundle || !s->kept)
		return;
	err = s->end ? ha_irecv(sim_side_recv(s), 1, &data, &size, &tag, &s->mr, false, &req)
		     : ha_isend(sim_side_send(s), data, 0, tag, s->mr, &req);
	if (req && s->bundle->peer_closed)
		err = ha_test(req, &done, NULL);
	if (err != s->error)
		sim_report_finding(s->conn->world, SIM_ERROR,
				   "connection %u: after error %d another call says %d",
				   s->conn->index, s->error, err);
}

void sim_side_revoke(struct sim_side *s)
{
	sim_side_disown(s);
	s->phase = SIM_CLOSED;
	s->bundle = NULL;
}

static void close_bundle(struct sim_side *s)
{
	if (!s->bundle)
		return;
	if (!s->error && !s->conn->spec->one_sided && sim_side_dice(s, 2))
		ha_dereg_mr(s->bundle, s->mr);
	if (s->end)
		ha_close_recv(sim_side_recv(s));
	else
		ha_close_send(sim_side_send(s));
}

static void close_listener(struct sim_side *s)
{
	if (!s->end)
		return;
	if (s->conn->listen)
		ha_close_listen(s->conn->listen);
	s->conn->listen = NULL;
}

bool sim_side_close(struct sim_side *s)
{
	struct sim_conn *c = s->conn;

	if (sim_now(c->world) < s->close_at)
		return false;
	/* Who sees the data of an optional receive in memory sees it before its notification has
	 * come; NCCL closes much later. */
	if (s->end && !s->error && c->spec->optional && c->side[0].phase == SIM_UP)
		return false;
	/* A close waits for what was copied, by the clock on the wall; here for virtual time. */
	if (!s->end && s->bundle && !s->error && !s->bundle->error &&
	    ha_send_copies(sim_side_send(s), sim_side_send(s)->head))
		return false;
	check_kept(s);
	sim_side_event(s, 9, 0);
	sim_trace_line(c->world, "connection %u, %s: closes, %u of %u messages", c->index,
		       s->end ? "receiver" : "sender", s->end ? s->done : s->next, c->messages);
	close_bundle(s);
	close_listener(s);
	s->closed_at = s->error ? 0 : sim_elapsed(c->world);
	sim_side_revoke(s);
	return true;
}
