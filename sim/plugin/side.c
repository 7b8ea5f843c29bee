/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/side.h"

#include <stdio.h>
#include <string.h>

uint64_t sim_side_dice(struct sim_side *s, uint64_t n)
{
	return sr_rng_below(&s->rng, n);
}

void sim_side_event(struct sim_side *s, unsigned what, uint64_t value)
{
	struct sim_world *w = s->conn->world;

	s->moved_at = sim_now(w);
	sim_mix(w, sim_now(w) ^ (uint64_t)(s->conn->index * 2 + s->end) << 48 ^
			   (uint64_t)what << 56 ^ value << 32);
}

void sim_side_to_close(struct sim_side *s, uint64_t linger)
{
	s->phase = SIM_CLOSES;
	s->close_at = sim_now(s->conn->world) + linger;
}

int sim_op_register(struct sim_side *s, struct sim_op *op, unsigned m)
{
	const struct sim_conn_spec *spec = s->conn->spec;
	int err;

	op->mr[m] = s->mr;
	if (!spec->reg_each)
		return 0;
	err = ha_reg_mr(s->bundle, op->buf[m]->data, s->arena.capacity,
			spec->gpu ? HA_MEM_CUDA : HA_MEM_HOST, 0, -1, 0, &op->mr[m]);
	if (err)
		op->mr[m] = NULL;
	return err;
}

void sim_op_give_back(struct sim_side *s, struct sim_op *op)
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

struct sim_op *sim_op_new(struct sim_side *s, uint32_t message)
{
	unsigned i = 0;

	if (!s->nops)
		s->full = false;
	if (s->nops == s->max_ops)
		s->full = true;
	if (s->full && (s->nops == s->max_ops || s->conn->spec->batches))
		return NULL;
	while (s->op[i].used)
		i++;
	memset(&s->op[i], 0, sizeof(s->op[i]));
	s->op[i].used = true;
	s->op[i].message = message;
	s->nops++;
	return &s->op[i];
}

bool sim_op_take_buffers(struct sim_side *s, struct sim_op *op, unsigned n)
{
	if (s->arena.nfree < n)
		return false;
	for (; op->n < n; op->n++)
		op->buf[op->n] = sim_buffer_take(&s->arena, s->conn->world);
	return true;
}

static void count_received(struct sim_world *w, uint64_t bytes)
{
	uint64_t interval = w->sc.pace_ns ? sim_elapsed(w) / w->sc.pace_ns : SIM_PACE_MAX;

	w->result.bytes += bytes;
	if (interval >= SIM_PACE_MAX)
		return;
	w->result.pace[interval] += bytes;
	if (w->conn[0] && w->conn[0]->side[0].bundle)
		w->result.gate[interval] = ha_gate_bytes(w->conn[0]->side[0].bundle);
}

void sim_op_finished(struct sim_side *s, struct sim_op *op)
{
	struct sim_world *w = s->conn->world;

	for (unsigned i = 0; i < op->n; i++) {
		sim_buffer_check(&s->arena, op->buf[i], w);
		if (s->end)
			count_received(w, op->buf[i]->expect);
	}
	if (s->end)
		w->result.messages++;
	s->done += s->end;
	sim_trace_line(w, "connection %u: %s %u is complete", s->conn->index,
		       s->end ? "receive" : "send", op->message);
	sim_side_event(s, 4, op->message);
	sim_op_give_back(s, op);
}

void sim_side_disown(struct sim_side *s)
{
	for (unsigned i = 0; s->arena.buffer && i < s->arena.n; i++)
		s->arena.buffer[i].optional = false;
	for (unsigned i = 0; i < s->max_ops; i++)
		if (s->op[i].used) {
			for (unsigned m = 0; m < s->op[i].n; m++)
				s->op[i].mr[m] = NULL; /* goes with the connection */
			sim_op_give_back(s, &s->op[i]);
		}
	s->trying = NULL;
}

/* What allows this end to fail now; NULL: nothing does. */
static const char *find_excuse(const struct sim_side *s)
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
	if (now >= p->no_path)
		return "no path was left";
	if (now >= p->no_socket)
		return "sockets and paths had faults";
	if (now >= p->not_placed)
		return "acknowledged, not placed";
	if (peer->closed_at &&
	    sim_promise_bye_lost(&s->conn->world->sc, s->conn->index, s->end, peer->closed_at, now))
		return "BYE and the last acknowledgement were lost";
	return NULL;
}

void sim_side_ended(struct sim_side *s, int err, const char *call)
{
	struct sim_world *w = s->conn->world;

	sim_side_event(s, 1, (uint64_t)-err);
	sim_trace_line(w, "connection %u, %s: %s says %s (%s)", s->conn->index,
		       s->end ? "receiver" : "sender", call, strerror(-err),
		       find_excuse(s) ? find_excuse(s) : "no excuse");
	s->error = err;
	s->kept = !strncmp(call, "test", 4);
	w->result.errors++;
	if (err > 0 || err < -4095)
		sim_report_finding(w, SIM_ERROR,
				   "connection %u: %s returned %d, which is no negative errno",
				   s->conn->index, call, err);
	else if (!find_excuse(s))
		sim_report_finding(
			w, SIM_ERROR,
			"connection %u, %s (%u of %u messages done): %s says %s, and nothing "
			"excuses it",
			s->conn->index, s->end ? "receiver" : "sender", s->done, s->conn->messages,
			call, strerror(-err));
	/*
	 * A buffer that cannot be registered ends nothing: what was posted before is the core's
	 * until the close.
	 */
	if (s->bundle && strcmp(call, "reg_mr") != 0)
		sim_side_disown(s);
	sim_side_to_close(s, sim_side_dice(s, 30000000));
}
