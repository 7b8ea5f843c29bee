/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/failover/control.h"
#include "plugin/failover/protection.h"
#include "sim/plugin/side.h"

#include <stdio.h>

static bool weights_right(const struct ha_bundle *b, bool failback)
{
	unsigned with = 0, wanted = 0, standby = 0;

	for (unsigned i = 0; i < b->nrails; i++) {
		wanted += (b->active >> i & 1) && b->balance.share[i];
		with += (b->active >> i & 1) && b->balance.weight[i];
		standby += i >= b->balance.ndata && (b->active >> i & 1) && b->balance.weight[i];
	}
	/* All that should share do, or the standby alone, if nobody wants the old roles back. */
	if (standby)
		return with == 1 && (!wanted || !failback);
	return wanted ? with == wanted : with > 0;
}

/* The data rails that are up, and as the one behind them any other. */
static unsigned paths_of(const struct ha_bundle *b)
{
	unsigned data = b->active & ((1u << b->balance.ndata) - 1);

	return data | (unsigned)(b->active != data) << b->balance.ndata;
}

/* This end has every rail that it should have, each in its role. */
static bool is_whole(const struct sim_side *s)
{
	const struct ha_bundle *b = s->bundle;

	return (s->phase == SIM_UP || s->phase == SIM_CLOSES) && b &&
	       (paths_of(b) & s->conn->paths) == s->conn->paths && !b->failover->parked &&
	       (!s->conn->other_nics || ha_protection_rank(ha_protection(b, b->active)) >=
						ha_protection_rank(HA_AGAINST_NIC)) &&
	       weights_right(b, s->conn->world->sc.host[s->host->index].failback);
}

bool sim_conn_waits(struct sim_conn *c)
{
	struct sim_world *w = c->world;

	if (!c->spec->stays || !c->paths || c->side[0].next + SIM_TAIL < c->messages ||
	    c->side[1].error || c->side[1].phase == SIM_CLOSED)
		return false;
	if (sim_now(w) > w->faults_over && is_whole(&c->side[0]) && is_whole(&c->side[1]))
		return false;
	c->side[0].moved_at = sim_now(w);
	if (sim_elapsed(w) > c->paths_until)
		sim_report_finding(
			w, SIM_UNPROTECTED,
			"connection %u: rails 0x%x should be up%s; sender: 0x%x, receiver: 0x%x",
			c->index, c->paths, c->other_nics ? ", on two NICs at both ends" : "",
			c->side[0].bundle->active,
			c->side[1].bundle ? c->side[1].bundle->active : 0);
	return true;
}

/* Says how far every end has come. */
static void sim_traffic_print(const struct sim_world *w, char *text, size_t size)
{
	static const char *const phases[] = { "waits", "opens", "up", "closes", "closed" };
	size_t at = 0;

	text[0] = 0;
	for (unsigned i = 0; i < w->sc.nconns; i++)
		for (unsigned end = 0; w->conn[i] && end < 2 && at < size; end++) {
			const struct sim_side *s = &w->conn[i]->side[end];

			if (s->phase != SIM_CLOSED)
				at += (size_t)snprintf(text + at, size - at,
						       "; connection %u %s %s, %u posted, %u out",
						       i, end ? "receiver" : "sender",
						       phases[s->phase], s->next, s->nops);
		}
}

/*
 * How long both ends may stand still while a path is without a fault, or once all faults are over:
 * until the fault is noticed (a queue pair's whole window, the soft time-out) and fenced, and
 * what the pauses of dialling and of closing take. Where no path is left, also the time limit of
 * the core, of connecting and of the sockets' keep-alive.
 */
static uint64_t calm_limit(const struct sim_world *w)
{
	/* Those that do not reach each other are found out one by one. */
	uint64_t pairs = w->sc.wire.apart ? (uint64_t)w->sc.ndevices[0] * w->sc.ndevices[1] : 0;

	return 3 * sim_scenario_window(&w->sc) + UINT64_C(5000000000) * (1 + pairs);
}

static uint64_t last_limit(const struct sim_conn *c)
{
	const struct sim_world *w = c->world;
	uint64_t a = sim_scenario_retry_limit(&w->sc, 0), b = sim_scenario_retry_limit(&w->sc, 1);

	return calm_limit(w) + (a > b ? a : b) +
	       (uint64_t)w->sc.settings.connect_timeout_ms * 1000000 + w->sc.oob.keepalive_ns +
	       UINT64_C(5000000000);
}

static void look_at(struct sim_conn *c)
{
	struct sim_world *w = c->world;
	uint64_t now = sim_now(w), start = now - sim_elapsed(w), moved = c->side[0].moved_at, calm,
		 limit;
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
	sim_report_finding(w, SIM_HANG, "nothing has moved on connection %u for %.1f s%s", c->index,
			   (double)(now - moved) / 1e9, text);
}

void sim_traffic_watch(struct sim_world *w)
{
	for (unsigned i = 0; i < w->sc.nconns && !sim_has_finding(w); i++)
		if (w->conn[i])
			look_at(w->conn[i]);
}

static unsigned tried_now(const struct ha_bundle *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->nrails; i++)
		n += b->rail[i].state == HA_RAIL_JOIN || b->rail[i].state == HA_RAIL_PROBE;
	return n;
}

void sim_traffic_count_tries(struct sim_host *h)
{
	struct sim_world *w = h->world;

	for (unsigned i = 0; i < w->sc.nconns; i++) {
		const struct sim_side *s = w->conn[i] ? &w->conn[i]->side[0] : NULL;
		unsigned n;

		if (!s || s->host != h || s->phase != SIM_UP || !s->bundle || s->bundle->active)
			continue;
		n = tried_now(s->bundle);
		if (n > w->result.tried_at_once)
			w->result.tried_at_once = n;
	}
}
