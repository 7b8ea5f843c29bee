/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/promise.h"

#include "sim/plugin/faults.h"

#include <string.h>

#define MS 1000000u
/* a connection without any path tries at least that often */
#define NO_PATH_RETRY_NS (UINT64_C(1000) * MS)
#define RETRY_NS (UINT64_C(30000) * MS) /* one with a path, for its others */
#define JOIN_NS (UINT64_C(2000) * MS)   /* a try that nobody answers */
#define SLACK_NS (UINT64_C(50) * MS)
/* They are tried twice, each for up to so long both times together; */
#define PASS_NS (UINT64_C(600) * MS)
/* what they say meanwhile, one way, repetitions included, is twenty messages each. */
#define PASS_BYTES (7 * 20 * 140u)

struct span {
	uint64_t from, to; /* to is outside */
};

struct spans {
	unsigned n;
	struct span at[4 * SIM_FAULTS_MAX];
};

/* A scenario, and when each fault's path is away: while it is, or until it can be back as well. */
struct view {
	const struct sim_scenario *sc;
	struct span away[SIM_FAULTS_MAX], unborn; /* and when there is no standby yet */
};

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t sooner_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum sim_effect effect_of(const struct sim_fault *f)
{
	return sim_fault_classes[f->class].effect;
}

/* Its device dies, for good or until another one is in its place. */
static bool ends_device(const struct sim_fault *f)
{
	return effect_of(f) == SIM_DEATH || effect_of(f) == SIM_DYING || effect_of(f) == SIM_RETURN;
}

static unsigned host_of(const struct sim_conn_spec *c, unsigned end)
{
	return end ? 1 - c->from : c->from;
}

/* When the path over this device is away because of this fault; from == to: it is not. */
static struct span outage_of(const struct sim_fault *f)
{
	switch (effect_of(f)) {
	case SIM_SHORT_OUTAGE:
	case SIM_OUTAGE:
	case SIM_CONNECTING:
	case SIM_HELD:
		return (struct span) { f->at, f->at + f->len };
	case SIM_BREAK:
		return (struct span) { f->at, f->at + 1 };
	case SIM_RETURN:
		return (struct span) { f->at, f->at + sim_fault_lasts(f) };
	case SIM_DEATH:
		return (struct span) { f->at + f->len, SIM_NEVER };
	case SIM_DYING:
		return (struct span) { f->at, SIM_NEVER };
	default:
		return (struct span) { 0, 0 };
	}
}

static bool covers_time(struct span s, uint64_t t)
{
	return t >= s.from && t < s.to;
}

static struct view as_it_is(const struct sim_scenario *sc)
{
	struct view v = { .sc = sc };

	for (unsigned i = 0; i < sc->nfaults; i++)
		v.away[i] = outage_of(&sc->fault[i]);
	return v;
}

static bool is_away(const struct view *v, unsigned host, unsigned dev, uint64_t t)
{
	const struct sim_scenario *sc = v->sc;

	for (unsigned i = 0; i < sc->nfaults; i++)
		if (!sc->fault[i].off && sim_fault_hits(sc, &sc->fault[i], host, dev) &&
		    covers_time(v->away[i], t))
			return true;
	return false;
}

/* It carries nothing, and its port does not say so. */
static bool is_hidden(const struct view *v, unsigned host, unsigned dev, uint64_t t)
{
	const struct sim_scenario *sc = v->sc;

	for (unsigned i = 0; i < sc->nfaults; i++) {
		const struct sim_fault *f = &sc->fault[i];
		const char *name = sim_fault_classes[f->class].name;

		if (!f->off && sim_fault_hits(sc, f, host, dev) && covers_time(v->away[i], t) &&
		    strcmp(name, "cut") != 0 && strcmp(name, "flap") != 0 &&
		    strcmp(name, "switch") != 0)
			return true;
	}
	return false;
}

/* Something that does not answer must be found out about: a NIC that reports nothing of its error,
 * or one that is not reached. */
static bool must_search(const struct view *v, const struct sim_conn_spec *c, uint64_t t)
{
	const struct sim_scenario *sc = v->sc;

	for (unsigned end = 0; end < 2; end++)
		for (unsigned d = 0; d < sc->ndevices[host_of(c, end)]; d++)
			if (is_hidden(v, host_of(c, end), d, t))
				return true;
	return sc->wire.apart;
}

/* A data rail has this pair, and no other rail is ever on it. */
static bool data_pair(const struct sim_conn_spec *c, const struct sim_promise *p, unsigned here,
		      unsigned there)
{
	for (unsigned i = 0; i < p->nrails; i++)
		if (c->rail[0][i] == here && c->rail[1][i] == there)
			return true;
	return false;
}

/* Behind the data rails there is room for others, and one pair of devices at least is well. */
static bool spare_good(const struct view *v, const struct sim_conn_spec *c,
		       const struct sim_promise *p, uint64_t t)
{
	const struct sim_scenario *sc = v->sc;
	unsigned hosts[2] = { host_of(c, 0), host_of(c, 1) };

	for (unsigned i = 0; i < sc->ndevices[hosts[0]]; i++)
		for (unsigned k = 0; k < sc->ndevices[hosts[1]]; k++)
			if ((!sc->wire.apart || i == k) && !data_pair(c, p, i, k) &&
			    !is_away(v, hosts[0], i, t) && !is_away(v, hosts[1], k, t))
				return true;
	return false;
}

/* What one pass says takes as long as a socket that trickles needs for it: each round of a driver
 * takes three pieces, on average. */
static uint64_t exchange_time(const struct sim_scenario *sc)
{
	uint64_t round = 20000 + sc->thread.service_ns / 2, pieces = 3 * (sc->oob.piece + 1) / 2;

	return sc->oob.piece ? PASS_BYTES * round / pieces : 0;
}

/* As many pairs are tried at once as there are rails behind the data rails. */
static uint64_t search_time(const struct sim_scenario *sc, const struct sim_promise *p)
{
	return (1 + sc->ndevices[0] * sc->ndevices[1] / (HA_MAX_RAILS - p->nrails)) *
	       (PASS_NS + exchange_time(sc));
}

/* From a path's return to a rail that carries data again, at the latest: a try that is under way
 * fails, the pause, the next. All other pairs that are tried meanwhile use the same socket. */
static uint64_t recovery_time(const struct sim_scenario *sc)
{
	return NO_PATH_RETRY_NS + 2 * sim_scenario_window(sc) + SLACK_NS + exchange_time(sc);
}

static unsigned count_paths(const struct sim_promise *p)
{
	return p->nrails + p->standby;
}

static bool path_good(const struct view *v, const struct sim_conn_spec *c,
		      const struct sim_promise *p, unsigned path, uint64_t t)
{
	uint64_t found;

	if (path == p->nrails) {
		found = must_search(v, c, t) ? search_time(v->sc, p) : 0;
		return found + recovery_time(v->sc) <= p->retry_limit &&
		       !covers_time(v->unborn, t) && spare_good(v, c, p, t);
	}
	return !is_away(v, host_of(c, 0), c->rail[0][path], t) &&
	       !is_away(v, host_of(c, 1), c->rail[1][path], t);
}

static bool any_path_good(const struct view *v, const struct sim_conn_spec *c,
			  const struct sim_promise *p, uint64_t t)
{
	for (unsigned i = 0; i < count_paths(p); i++)
		if (path_good(v, c, p, i, t))
			return true;
	return false;
}

/* ---- without any path ---- */

static void insert_time(uint64_t *times, unsigned *n, uint64_t t)
{
	unsigned i = (*n)++;

	for (; i && times[i - 1] > t; i--)
		times[i] = times[i - 1];
	times[i] = t;
}

#define CHANGES_MAX (2 * SIM_FAULTS_MAX + 3)

/* Everything that may change at all, in order. */
static unsigned list_changes(const struct view *v, uint64_t *times)
{
	unsigned n = 0;

	insert_time(times, &n, 0);
	insert_time(times, &n, v->unborn.from);
	insert_time(times, &n, v->unborn.to);
	for (unsigned i = 0; i < v->sc->nfaults; i++) {
		if (v->sc->fault[i].off || v->away[i].from == v->away[i].to)
			continue;
		insert_time(times, &n, v->away[i].from);
		insert_time(times, &n, v->away[i].to);
	}
	return n;
}

/* What the two ends need to agree on a new incarnation stands still. */
static struct span pause_of(const struct sim_fault *f)
{
	switch (effect_of(f)) {
	case SIM_HELD:
	case SIM_HOST_PAUSE:
	case SIM_SOCKET_PAUSE:
	case SIM_LOSSY:
		return (struct span) { f->at, f->at + f->len };
	default:
		return (struct span) { 0, 0 };
	}
}

/* A path that could be back at `to`: a pause that begins before it must be back keeps it away. */
static uint64_t held_up(const struct sim_scenario *sc, uint64_t to)
{
	uint64_t gap = recovery_time(sc);
	bool again = to != SIM_NEVER;

	while (again) {
		again = false;
		for (unsigned i = 0; i < sc->nfaults; i++) {
			struct span s = pause_of(&sc->fault[i]);

			if (sc->fault[i].off || s.to <= to || s.from > to + gap)
				continue;
			to = s.to;
			again = true;
		}
	}
	return to;
}

/* The same, with what pauses make of it; a standby is not there from the first moment on either. */
static struct view as_it_lasts(const struct sim_scenario *sc, const struct sim_conn_spec *c)
{
	struct view v = as_it_is(sc);
	uint64_t start = later_of(c->start_ns[0], c->start_ns[1]);

	for (unsigned i = 0; i < sc->nfaults; i++)
		if (!sc->fault[i].off && v.away[i].from != v.away[i].to)
			v.away[i].to = held_up(sc, v.away[i].to);
	v.unborn = (struct span) { start, held_up(sc, start) };
	return v;
}

/*
 * Whoever comes back too late to be up before the next outage was not back; pauses meanwhile make
 * it longer.
 */
static void stretch_spans(const struct sim_scenario *sc, struct spans *no_path)
{
	uint64_t gap = recovery_time(sc);
	bool again = true;

	while (again) {
		again = false;
		for (unsigned i = 0; i < no_path->n; i++)
			for (unsigned k = 0; k < sc->nfaults; k++) {
				struct span s = pause_of(&sc->fault[k]), *d = &no_path->at[i];

				if (sc->fault[k].off || d->to == SIM_NEVER || s.to <= d->to ||
				    s.from > d->to + gap)
					continue;
				d->to = s.to;
				again = true;
			}
		for (unsigned i = 0; i + 1 < no_path->n; i++) {
			struct span *d = &no_path->at[i];

			if (d->to != SIM_NEVER && d[1].from > d->to + gap)
				continue;
			d->to = later_of(d->to, d[1].to);
			memmove(d + 1, d + 2, (no_path->n - i - 2) * sizeof(*d));
			no_path->n--;
			again = true;
		}
	}
}

/*
 * Nor was a path back, or a standby up for the first time, that had a fault less than a recovery
 * before.
 */
static void reach_back(const struct sim_scenario *sc, struct spans *no_path)
{
	uint64_t gap = recovery_time(sc);
	bool again = true;

	while (again) {
		again = false;
		for (unsigned i = 0; i < no_path->n; i++)
			for (unsigned k = 0; k < sc->nfaults; k++) {
				struct span s = outage_of(&sc->fault[k]), *d = &no_path->at[i];

				if (sc->fault[k].off || s.from == s.to || s.from >= d->from ||
				    (s.to != SIM_NEVER && s.to + gap < d->from))
					continue;
				d->from = s.from;
				again = true;
			}
	}
}

static void find_no_path(const struct sim_scenario *sc, const struct sim_conn_spec *c,
			 const struct sim_promise *p, struct spans *no_path)
{
	struct view v = as_it_lasts(sc, c);
	uint64_t times[CHANGES_MAX];
	unsigned n = list_changes(&v, times);

	no_path->n = 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t end = i + 1 < n ? times[i + 1] : SIM_NEVER;

		if (times[i] == end || any_path_good(&v, c, p, times[i]))
			continue;
		if (no_path->n && no_path->at[no_path->n - 1].to == times[i])
			no_path->at[no_path->n - 1].to = end;
		else
			no_path->at[no_path->n++] = (struct span) { times[i], end };
	}
	reach_back(sc, no_path);
	stretch_spans(sc, no_path);
}

static bool death_in(const struct sim_scenario *sc, const struct span *no_path)
{
	for (unsigned i = 0; i < sc->nfaults; i++)
		if (!sc->fault[i].off && ends_device(&sc->fault[i]) &&
		    outage_of(&sc->fault[i]).from < no_path->to &&
		    held_up(sc, outage_of(&sc->fault[i]).to) > no_path->from)
			return true;
	return false;
}

/* The end comes when the time limit has passed, or at once where a device is gone. */
static uint64_t no_path_excuse(const struct sim_scenario *sc, const struct sim_promise *p,
			       const struct spans *no_path)
{
	uint64_t excuse = SIM_NEVER;

	for (unsigned i = 0; i < no_path->n; i++) {
		const struct span *d = &no_path->at[i];

		if (d->to != SIM_NEVER && d->to - d->from + recovery_time(sc) <= p->retry_limit)
			continue;
		excuse = sooner_of(excuse, death_in(sc, d) ? d->from : d->from + p->retry_limit);
	}
	return excuse;
}

/* ---- the other excuses ---- */

static bool on_data_device(const struct sim_scenario *sc, const struct sim_conn_spec *c,
			   const struct sim_promise *p, const struct sim_fault *f)
{
	for (unsigned end = 0; end < 2; end++)
		for (unsigned i = 0; i < p->nrails; i++)
			if (sim_fault_hits(sc, f, host_of(c, end), c->rail[end][i]))
				return true;
	return false;
}

/* Before the two have agreed on the number, each has opened as many as it was asked for. */
static bool on_asked_device(const struct sim_scenario *sc, const struct sim_conn_spec *c,
			    const struct sim_fault *f)
{
	for (unsigned end = 0; end < 2; end++)
		for (unsigned i = 0; i < c->nrails[end]; i++)
			if (sim_fault_hits(sc, f, host_of(c, end), c->rail[end][i]))
				return true;
	return false;
}

/* The first fault of the data path that has none for longest. */
static uint64_t every_path_had_fault(const struct sim_scenario *sc, const struct sim_conn_spec *c,
				     const struct sim_promise *p)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < p->nrails; i++) {
		uint64_t first = SIM_NEVER;

		for (unsigned k = 0; k < sc->nfaults; k++) {
			const struct sim_fault *f = &sc->fault[k];
			struct span s = outage_of(f);
			bool ours = sim_fault_hits(sc, f, host_of(c, 0), c->rail[0][i]) ||
				    sim_fault_hits(sc, f, host_of(c, 1), c->rail[1][i]);

			if (!f->off && s.from != s.to && ours)
				first = sooner_of(first, s.from);
		}
		last = later_of(last, first);
	}
	return last;
}

/* Data may come to this device: it is a rail's, or may be the standby's. */
static bool receives_on(const struct sim_scenario *sc, const struct sim_conn_spec *c,
			const struct sim_promise *p, const struct sim_fault *f)
{
	if (f->host != host_of(c, 1))
		return false;
	for (unsigned i = 0; i < p->nrails; i++)
		if (f->dev == c->rail[1][i])
			return true;
	return p->standby;
}

/*
 * From when on (ns from the start) a dying device may take with it what it has acknowledged and the
 * host has not seen:
 * data that it has not placed, or completions that it holds back. SIM_NEVER: it takes nothing.
 */
static uint64_t takes_along(const struct sim_scenario *sc, const struct sim_fault *death)
{
	struct span d = outage_of(death);
	uint64_t since = SIM_NEVER;

	if (!strcmp(sim_fault_classes[death->class].name, "kill-acked"))
		return d.from;
	for (unsigned i = 0; i < sc->nfaults; i++) {
		const struct sim_fault *f = &sc->fault[i];
		struct span h = outage_of(f);
		uint64_t both = later_of(h.from, d.from);

		if (f->off || effect_of(f) != SIM_HELD || f->host != death->host ||
		    f->dev != death->dev || both >= h.to)
			continue;
		if (effect_of(death) == SIM_DYING || covers_time(h, d.from))
			since = sooner_of(since, both);
	}
	return since;
}

static void from_fault(const struct sim_scenario *sc, const struct sim_conn_spec *c,
		       const struct sim_fault *f, struct sim_promise *p)
{
	struct span s = outage_of(f);

	switch (effect_of(f)) {
	case SIM_PEER_END:
		for (unsigned end = 0; end < 2; end++)
			if (f->host == host_of(c, end))
				p->peer_gone[end] = sooner_of(p->peer_gone[end], f->at);
		return;
	case SIM_SOCKETS_LOST:
		p->not_opened = sooner_of(p->not_opened, f->at);
		return;
	case SIM_CONNECTING:
		if (on_asked_device(sc, c, f))
			p->not_opened = sooner_of(p->not_opened, s.from);
		return;
	case SIM_OUTAGE:
	case SIM_BREAK:
	case SIM_DEATH:
	case SIM_RETURN:
	case SIM_DYING:
		if (!p->failover && on_data_device(sc, c, p, f))
			p->unprotected = sooner_of(p->unprotected, s.from);
		if (ends_device(f) && on_asked_device(sc, c, f))
			p->not_opened = sooner_of(p->not_opened, s.from);
		if (ends_device(f) && receives_on(sc, c, p, f) && !sc->host[0].ack_memory &&
		    !sc->host[1].ack_memory)
			p->not_placed = sooner_of(p->not_placed, takes_along(sc, f));
		return;
	default:
		return;
	}
}

void sim_promise_make(const struct sim_scenario *sc, unsigned conn, struct sim_promise *p)
{
	const struct sim_conn_spec *c = &sc->conn[conn];
	struct spans no_path;

	*p = (struct sim_promise) { .unprotected = SIM_NEVER,
				    .no_path = SIM_NEVER,
				    .no_socket = SIM_NEVER,
				    .not_placed = SIM_NEVER,
				    .not_opened = SIM_NEVER,
				    .peer_gone = { SIM_NEVER, SIM_NEVER } };
	p->failover = sc->host[0].backup && sc->host[1].backup;
	p->nrails = c->nrails[0] < c->nrails[1] ? c->nrails[0] : c->nrails[1];
	p->standby =
		p->failover && p->nrails < HA_MAX_RAILS && sc->ndevices[0] * sc->ndevices[1] > 1;
	p->retry_limit =
		sooner_of(sim_scenario_retry_limit(sc, 0), sim_scenario_retry_limit(sc, 1));
	for (unsigned i = 0; i < sc->nfaults; i++)
		if (!sc->fault[i].off)
			from_fault(sc, c, &sc->fault[i], p);
	if (!p->failover)
		return;
	find_no_path(sc, c, p, &no_path);
	p->no_path = no_path_excuse(sc, p, &no_path);
	if (p->not_opened != SIM_NEVER) {
		uint64_t lost = SIM_NEVER;

		for (unsigned i = 0; i < sc->nfaults; i++)
			if (!sc->fault[i].off && effect_of(&sc->fault[i]) == SIM_SOCKETS_LOST)
				lost = sooner_of(lost, sc->fault[i].at);
		if (lost != SIM_NEVER)
			p->no_socket = later_of(lost, every_path_had_fault(sc, c, p));
	}
}

bool sim_promise_survives(const struct sim_promise *p)
{
	return p->unprotected == SIM_NEVER && p->no_path == SIM_NEVER &&
	       p->no_socket == SIM_NEVER && p->not_placed == SIM_NEVER &&
	       p->peer_gone[0] == SIM_NEVER && p->peer_gone[1] == SIM_NEVER;
}

/* When packets of this device may be lost because of this fault. */
static struct span loss_of(const struct sim_fault *f)
{
	const char *name = sim_fault_classes[f->class].name;

	if (!strcmp(name, "loss") || !strcmp(name, "ack-loss"))
		return (struct span) { f->at, f->at + f->len };
	return effect_of(f) == SIM_HELD || effect_of(f) == SIM_CONNECTING ? (struct span) { 0, 0 }
									  : outage_of(f);
}

bool sim_promise_bye_lost(const struct sim_scenario *sc, unsigned conn, unsigned end,
			  uint64_t closed, uint64_t now)
{
	const struct sim_conn_spec *c = &sc->conn[conn];
	uint64_t since = closed - sooner_of(closed, sim_scenario_window(sc));
	/* a NIC's last acknowledgement goes with the queue pair that its owner destroys */
	bool lost = !end, no_socket = false;
	struct sim_promise p;

	sim_promise_make(sc, conn, &p);
	for (unsigned i = 0; i < sc->nfaults; i++) {
		const struct sim_fault *f = &sc->fault[i];
		struct span s = loss_of(f);

		if (f->off)
			continue;
		no_socket |= effect_of(f) == SIM_SOCKETS_LOST && f->at <= now;
		lost |= (on_data_device(sc, c, &p, f) || p.standby) && s.from <= closed + MS &&
			s.to > since;
	}
	/* without failover nobody reads BYE: the queue pair alone decides */
	return lost && (no_socket || !p.failover);
}

/* The data rails that are up do not stand by for each other. */
static bool spare_wanted(const struct sim_conn_spec *c, const struct sim_promise *p, unsigned up)
{
	bool several[2] = { false, false };

	for (unsigned end = 0; up && end < 2; end++)
		for (unsigned i = 0; i < p->nrails; i++)
			several[end] |=
				up >> i & 1 && c->rail[end][i] != c->rail[end][__builtin_ctz(up)];
	return !several[0] || !several[1];
}

unsigned sim_promise_paths(const struct sim_scenario *sc, unsigned conn, uint64_t *until)
{
	const struct sim_conn_spec *c = &sc->conn[conn];
	uint64_t end = sim_faults_over(sc);
	struct view v = as_it_is(sc);
	struct sim_promise p;
	unsigned mask = 0;

	sim_promise_make(sc, conn, &p);
	if (!p.failover || !sim_promise_survives(&p))
		return 0;
	for (unsigned i = 0; i < p.nrails; i++)
		if (path_good(&v, c, &p, i, end + 1))
			mask |= 1u << i;
	if (p.standby && spare_wanted(c, &p, mask) && !must_search(&v, c, end + 1) &&
	    path_good(&v, c, &p, p.nrails, end + 1))
		mask |= 1u << p.nrails;
	*until = end + RETRY_NS + JOIN_NS + recovery_time(sc);
	return mask;
}

/* A port that comes back says so: only then does anybody look for a better standby. */
static bool all_announced(const struct sim_scenario *sc)
{
	for (unsigned i = 0; i < sc->nfaults; i++) {
		const char *name = sim_fault_classes[sc->fault[i].class].name;

		if (!sc->fault[i].off && strcmp(name, "cut") != 0 && strcmp(name, "flap") != 0 &&
		    strcmp(name, "switch") != 0 && strcmp(name, "return") != 0 &&
		    strcmp(name, "qp-error") != 0)
			return false;
	}
	return true;
}

bool sim_promise_other_nics(const struct sim_scenario *sc, unsigned conn)
{
	const struct sim_conn_spec *c = &sc->conn[conn];
	uint64_t end = sim_faults_over(sc) + 1;
	struct view v = as_it_is(sc);
	struct sim_promise p;
	unsigned both = 0, here = 0, there = 0;

	sim_promise_make(sc, conn, &p);
	/* Two spares that are up leave no room for a better third. */
	if (sc->wire.shared_nics || p.nrails + 3 > HA_MAX_RAILS || !p.standby ||
	    !sim_promise_survives(&p) || !all_announced(sc))
		return false;
	for (unsigned i = 0; i < SIM_DEVICES_MAX; i++) {
		bool good_here =
			     i < sc->ndevices[host_of(c, 0)] && !is_away(&v, host_of(c, 0), i, end),
		     good_there =
			     i < sc->ndevices[host_of(c, 1)] && !is_away(&v, host_of(c, 1), i, end);

		here += good_here;
		there += good_there;
		both += good_here && good_there;
	}
	return sc->wire.apart ? both > 1 : here > 1 && there > 1;
}

uint64_t sim_promise_calm_since(const struct sim_scenario *sc, unsigned conn, uint64_t now)
{
	const struct sim_conn_spec *c = &sc->conn[conn];
	uint64_t times[CHANGES_MAX], calm = now;
	struct view v = as_it_is(sc);
	struct sim_promise p;
	unsigned n = list_changes(&v, times);

	sim_promise_make(sc, conn, &p);
	for (unsigned path = 0; path < count_paths(&p); path++) {
		uint64_t since = now;

		for (unsigned i = n; i--;) {
			if (times[i] > now)
				continue;
			if (!path_good(&v, c, &p, path, times[i]))
				break;
			since = times[i];
		}
		calm = sooner_of(calm, since);
	}
	for (unsigned i = 0; i < sc->nfaults; i++) {
		struct span s = pause_of(&sc->fault[i]);

		if (!sc->fault[i].off && s.from <= now)
			calm = later_of(calm, sooner_of(s.to, now));
	}
	return calm;
}
