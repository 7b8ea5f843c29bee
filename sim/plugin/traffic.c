/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/side.h"

#include <errno.h>
#include <stdlib.h>

static bool side_round(struct sim_side *s)
{
	switch (s->phase) {
	case SIM_WAITS:
		return sim_side_begin(s);
	case SIM_OPENS:
		return s->end ? sim_side_accept(s) : sim_side_connect(s);
	case SIM_UP:
		return sim_side_exchange(s);
	case SIM_CLOSES:
		return sim_side_close(s);
	default:
		return false;
	}
}

bool sim_traffic_round(struct sim_host *h)
{
	struct sim_world *w = h->world;
	unsigned n = w->sc.nconns > SIM_CONNS_DRAWN ? w->sc.nconns : SIM_CONNS_DRAWN;
	unsigned first = (unsigned)sr_rng_below(&h->rng, n);
	bool moved = false;

	for (unsigned i = 0; i < n; i++) {
		struct sim_conn *c = w->conn[(first + i) % n];

		for (unsigned end = 0; c && end < 2 && !sim_has_finding(w); end++)
			if (c->side[end].host == h)
				moved |= side_round(&c->side[end]);
	}
	return moved;
}

void sim_traffic_drop(struct sim_host *h)
{
	for (unsigned i = 0; i < h->world->sc.nconns; i++) {
		struct sim_conn *c = h->world->conn[i];

		for (unsigned end = 0; c && end < 2; end++)
			if (c->side[end].host == h && c->side[end].phase != SIM_CLOSED) {
				sim_side_revoke(&c->side[end]);
				if (end)
					c->listen = NULL;
			}
	}
}

bool sim_traffic_done(const struct sim_world *w)
{
	for (unsigned i = 0; i < w->sc.nconns; i++)
		for (unsigned end = 0; w->conn[i] && end < 2; end++)
			if (w->conn[i]->side[end].phase != SIM_CLOSED)
				return false;
	return true;
}

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
			      spec->window * spec->group_max + (unsigned)(spec->key & 3),
			      spec->max_size);
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
	c->other_nics = c->paths && sim_promise_other_nics(&w->sc, index);
	c->messages = c->spec->messages < w->sc.shrunk.message_cap ? c->spec->messages
								   : w->sc.shrunk.message_cap;
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
