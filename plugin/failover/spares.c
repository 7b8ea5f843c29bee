/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/failover/spares.h"

#include "base/clock.h"
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/control.h"
#include "plugin/failover/protection.h"
#include "plugin/transfer/suspect.h"
#include "rdma/topo/device.h"

#include <string.h>

/* Without any rail the second spare is tried then, the third after twice that, and so on; */
#define START_NS (10 * HA_NS_PER_MS)
/* so soon, one after the other, once the peer has answered. The best is up by then, or silent. */
#define STAGGER_NS HA_NS_PER_MS
/* How long the first tries wait for an answer, at least, and EXCHANGE_PART times as long as the end
 * of the last incarnation took both ends; at most ANSWER_MAX_NS. */
#define ANSWER_NS (200 * HA_NS_PER_MS)
#define EXCHANGE_PART 8
#define ANSWER_MAX_NS HA_NS_PER_S
/* For the probes, at least, and PROBE_PART times as long as that end. Both are twice as long in
 * each further pass over all pairs, PASSES_MAX times. */
#define PROBE_NS (40 * HA_NS_PER_MS)
#define PROBE_PART 2
#define PASSES_MAX 4
/* From the first offer so many times as long as making a queue pair takes here: the peer makes one
 * as well, for the way back, too, both connect them, and the probes go to and fro. All of it is
 * done by the thread that makes them. */
#define MAKE_PART 4
#define MAKE_MAX_NS (200 * HA_NS_PER_MS)
/* As this thread also ends incarnations, this connection's and others', which the peers wait for:
 * those come first, for so much of what making a queue pair takes after the loss. */
#define HELD_PART 4
/* From the end of a pass to the next, twice as long each time. */
#define PAUSE_NS (100 * HA_NS_PER_MS)
#define PAUSE_MAX_NS HA_NS_PER_S
/* A lost rail may be back so soon; what is lost with it goes on before the next standby is made. */
#define BEHIND_NS (250 * HA_NS_PER_MS)
/* A port is back: its rails come first, and perhaps no better standby is needed then. */
#define IMPROVE_NS HA_NS_PER_S
#define IMPROVES_MAX 5                 /* tries without result, each after twice the time */
#define SETTLE_NS (500 * HA_NS_PER_MS) /* a spare that is up may be closed then */
#define TRIES_MAX 255
/* A pair on each of the two leaf switches that a data path crosses. */
#define CROSSED_FURTHER 2
/* No path gives a sign: further spares are offered for so long, and not again for at least so long,
 * twice as long each time that no path was given up for it. */
#define ADD_NS HA_NS_PER_S
#define ADD_AGAIN_NS HA_NS_PER_S
#define ADDED_MAX 6 /* a minute */

unsigned ha_spares_count(const struct ha_bundle *b)
{
	if (b->terms.flags & HA_FLAG_PAIRS)
		return b->rail[0].dev->ports * b->failover->spares.peer_ports > 1
			       ? HA_MAX_RAILS - b->balance.ndata
			       : 0;
	return b->terms.flags & HA_FLAG_DUAL_PATH ? 1 : 0;
}

/* ---- pairs ---- */

struct ha_pair *ha_spares_pair(struct ha_bundle *b, uint64_t peer, const struct ha_device *ours)
{
	struct ha_spares *s = &b->failover->spares;
	struct ha_pair *pair;

	for (unsigned i = 0; i < HA_PAIRS_MAX && s->pair[i].ours; i++)
		if (s->pair[i].peer == peer && s->pair[i].ours == ours)
			return &s->pair[i];
	pair = &s->pair[s->npairs++ % HA_PAIRS_MAX];
	*pair = (struct ha_pair) { .peer = peer, .ours = ours };
	return pair;
}

static uint64_t peer_of(const struct ha_bundle *b, const struct ha_rail *r)
{
	return b->is_send ? 0 : ha_peer_device(&r->setup.peer);
}

/* What failed long ago says less than what failed a moment ago. */
static void age_tries(struct ha_spares *s)
{
	for (unsigned i = 0; i < HA_PAIRS_MAX; i++)
		s->pair[i].tries /= 2;
}

void ha_spares_tried(struct ha_bundle *b, uint64_t peer, const struct ha_device *ours)
{
	struct ha_pair *pair = ha_spares_pair(b, peer, ours);

	pair->turn = ++b->failover->spares.turns;
	if (++pair->tries >= TRIES_MAX)
		age_tries(&b->failover->spares);
}

unsigned ha_spares_recent(const struct ha_bundle *b, const struct ha_pair *pair)
{
	uint32_t ago = b->failover->spares.turns - pair->turn;

	return pair->turn && ago < HA_TURNS_MAX ? HA_TURNS_MAX - ago : 0;
}

/* What failed while nothing worked says nothing about a pair: else the next standby would be tried
 * on those that were spared then, though they may be the ones that cannot be. */
static void forget_tries(struct ha_spares *s)
{
	for (unsigned i = 0; i < HA_PAIRS_MAX; i++)
		s->pair[i].tries = 0;
}

void ha_spares_up(struct ha_bundle *b, const struct ha_rail *r)
{
	if (b->active == 1u << r->index)
		forget_tries(&b->failover->spares);
	if (r->index >= b->balance.ndata)
		ha_spares_pair(b, peer_of(b, r), r->dev)->tries = 0;
}

void ha_spares_lost(struct ha_bundle *b, const struct ha_rail *r)
{
	if (r->index >= b->balance.ndata)
		ha_spares_tried(b, peer_of(b, r), r->dev);
}

/* Those there are now, but for the data rails' own. At least one: a port may come up any time. */
static unsigned possible_pairs(const struct ha_bundle *b)
{
	unsigned usable = 0, pairs, data = 0;

	for (int i = 0; i < b->ctx->nports; i++)
		usable +=
			b->ctx->devices[i].topo->is_ethernet == b->rail[0].dev->topo->is_ethernet &&
			ha_device_usable(&b->ctx->devices[i]);
	for (unsigned i = 0; i < b->balance.ndata; i++)
		data += b->balance.lead[i] == i && ha_device_usable(b->rail[i].dev);
	pairs = usable * b->failover->spares.peer_ports;
	return pairs > data ? pairs - data : 1;
}

/* ---- no rail is up ---- */

bool ha_spares_hurry(const struct ha_bundle *b, const struct ha_rail *r)
{
	return r->index >= b->balance.ndata && !b->active && b->terms.flags & HA_FLAG_PAIRS;
}

static unsigned count_passes(const struct ha_bundle *b)
{
	unsigned n = b->failover->spares.failed / possible_pairs(b);

	return n < PASSES_MAX ? n : PASSES_MAX;
}

uint64_t ha_spares_pause_ns(const struct ha_bundle *b)
{
	unsigned n = count_passes(b);
	uint64_t pause = n ? PAUSE_NS << (n - 1) : 0;

	return pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
}

/* What the rest of an incarnation's beginning takes where a queue pair takes long to make. */
static uint64_t making_ns(const struct ha_bundle *b)
{
	uint64_t ns = MAKE_PART * b->failover->spares.open_ns;

	return ns < MAKE_MAX_NS ? ns : MAKE_MAX_NS;
}

/* Two ends that are slow to end an incarnation (a busy host, a slow socket) are slow to begin one.
 */
static uint64_t limit_ns(const struct ha_bundle *b, unsigned part, uint64_t least)
{
	uint64_t exchange = part * b->failover->spares.exchange_ns;

	if (exchange > ANSWER_MAX_NS)
		exchange = ANSWER_MAX_NS;
	return ((exchange > least ? exchange : least) + making_ns(b)) << count_passes(b);
}

uint64_t ha_spares_answer_ns(const struct ha_bundle *b)
{
	return limit_ns(b, EXCHANGE_PART, ANSWER_NS);
}

uint64_t ha_spares_probe_ns(const struct ha_bundle *b)
{
	return limit_ns(b, PROBE_PART, PROBE_NS);
}

/* Its first moment: no back-off counts any more, and what is under way has no more time than the
 * others. Where the socket is slow, a crowd of offers would make it slower. */
static void hurry_all(struct ha_bundle *b, uint64_t now)
{
	uint64_t answer = ha_spares_answer_ns(b);

	for (unsigned i = b->balance.ndata, n = 0; i < b->nrails; i++) {
		struct ha_join *join = &b->failover->ctl[i].join;

		if (b->rail[i].state == HA_RAIL_DOWN) {
			join->attempts = 0;
			join->retry_at = now + (n ? START_NS << (n - 1) : 0);
			n++;
		} else if (join->deadline > now + answer) {
			join->deadline = now + answer;
		}
	}
	ha_due(b, now);
}

void ha_spares_answered(struct ha_bundle *b, uint64_t now)
{
	if (b->failover->spares.answered)
		return;
	b->failover->spares.answered = true;
	for (unsigned i = b->balance.ndata; i < b->nrails; i++) {
		uint64_t at = now + (i - b->balance.ndata) * STAGGER_NS;

		if (b->rail[i].state == HA_RAIL_DOWN && b->failover->ctl[i].join.retry_at > at)
			b->failover->ctl[i].join.retry_at = at;
	}
	ha_due(b, now);
}

static void want_all(struct ha_bundle *b, uint64_t now)
{
	struct ha_spares *s = &b->failover->spares;
	unsigned pairs = possible_pairs(b);

	if (!s->no_rail_since) {
		s->no_rail_since = now;
		s->failed = 0;
		s->answered = false;
		age_tries(s);
		hurry_all(b, now);
	}
	s->wanted = 0;
	for (unsigned i = b->balance.ndata; i < b->nrails && i - b->balance.ndata < pairs; i++)
		s->wanted |= (uint8_t)(1u << i);
}

/* ---- rails are up, and none gives a sign ---- */

bool ha_spares_may_add(const struct ha_bundle *b)
{
	unsigned up = 0;

	if (!b->is_send || !(b->terms.flags & HA_FLAG_PAIRS) || b->nrails == b->balance.ndata)
		return false;
	for (unsigned i = b->balance.ndata; i < b->nrails; i++)
		up += b->rail[i].state == HA_RAIL_UP;
	return b->balance.ndata + up < b->nrails && up < possible_pairs(b);
}

void ha_spares_add(struct ha_bundle *b, uint64_t now)
{
	struct ha_spares *s = &b->failover->spares;

	if (now < s->add_from || !ha_spares_may_add(b))
		return;
	s->add_until = now + ADD_NS;
	s->add_from = s->add_until + (ADD_AGAIN_NS << s->added);
	if (s->added < ADDED_MAX)
		s->added++;
	for (unsigned i = b->balance.ndata; i < b->nrails; i++)
		if (b->rail[i].state == HA_RAIL_DOWN)
			b->failover->ctl[i].join.retry_at = 0;
	ha_due(b, now);
}

bool ha_spares_adding(const struct ha_bundle *b, uint64_t now)
{
	return now < b->failover->spares.add_until;
}

void ha_spares_added(struct ha_bundle *b)
{
	b->failover->spares.add_until = b->failover->spares.add_from = 0;
	b->failover->spares.added = 0;
}

/* All that are down, as long as there are pairs for them. */
static void want_more(struct ha_bundle *b, uint64_t now)
{
	unsigned pairs = possible_pairs(b), n = 0;

	if (now >= b->failover->spares.add_until)
		return;
	for (unsigned i = b->balance.ndata; i < b->nrails; i++)
		n += b->rail[i].state != HA_RAIL_DOWN;
	for (unsigned i = b->balance.ndata; i < b->nrails && n < pairs; i++)
		if (b->rail[i].state == HA_RAIL_DOWN) {
			b->failover->spares.wanted |= (uint8_t)(1u << i);
			n++;
		}
}

/* ---- a rail is up ---- */

/* All NICs that are up here hang on one leaf switch: no pair avoids it. */
static bool has_one_switch(const struct ha_bundle *b)
{
	uint32_t place = ha_device_place(b->rail[0].dev);

	for (int i = 0; place && i < b->ctx->nports; i++) {
		struct ha_device *dev = &b->ctx->devices[i];

		if (dev->topo->is_ethernet == b->rail[0].dev->topo->is_ethernet &&
		    ha_device_usable(dev) && ha_device_place(dev) != place)
			return false;
	}
	return place;
}

bool ha_spares_crossed(const struct ha_bundle *b)
{
	unsigned carriers = 0;

	if (b->ctx->config.standbys || b->rail[0].dev->ports < 2 ||
	    b->failover->spares.peer_ports < 2 || has_one_switch(b))
		return false;
	for (unsigned i = 0; i < b->nrails; i++)
		carriers |= b->balance.weight[i] ? b->active & 1u << i : 0;
	return ha_protection_crosses(b, carriers);
}

/* Standbys that may stay beyond the one that protects against the loss of a NIC. */
static unsigned count_further(const struct ha_bundle *b)
{
	if (b->ctx->config.standbys)
		return (unsigned)b->ctx->config.standbys - 1;
	return ha_spares_crossed(b) ? CROSSED_FURTHER : 0;
}

/* Of them, those that are made: for the sake of the switches as long as one takes all along. */
static unsigned count_missing(const struct ha_bundle *b)
{
	unsigned further = count_further(b);

	if (b->ctx->config.standbys || !further)
		return further;
	return ha_protection_presumed_switch(b, b->active).mark ? further : 0;
}

/* How many spares should be: for protection, and those that the configuration adds. */
static unsigned count_needed(const struct ha_bundle *b)
{
	unsigned data = b->active & ((1u << b->balance.ndata) - 1), pairs = possible_pairs(b);
	unsigned n = 2, further = count_missing(b);

	if (data)
		n = ha_protection_rank(ha_protection(b, data)) < ha_protection_rank(HA_AGAINST_NIC);
	while (n < pairs && further--)
		n++;
	return n;
}

bool ha_spares_improve_due(const struct ha_bundle *b, uint64_t now)
{
	return b->failover->spares.improve && now >= b->failover->spares.improve_at;
}

static bool may_improve(const struct ha_bundle *b, uint64_t now)
{
	return ha_spares_improve_due(b, now) &&
	       ha_protection_rank(ha_protection(b, b->active)) < ha_protection_rank(HA_AGAINST_NIC);
}

/* When a rail that was up was last suspected, 0: never. From that moment on its end comes first,
 * not only when it is over. */
static uint64_t last_loss(const struct ha_bundle *b)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < b->nrails; i++)
		if (b->rail[i].loss.lost_at > last)
			last = b->rail[i].loss.lost_at;
	return last;
}

uint64_t ha_spares_turn_at(const struct ha_bundle *b, const struct ha_rail *r)
{
	uint64_t at = last_loss(b) + b->failover->spares.open_ns / HELD_PART;

	for (unsigned i = b->balance.ndata; i < b->nrails; i++) {
		const struct ha_control *k = &b->failover->ctl[i];

		if (i == r->index)
			continue;
		if (k->slow == HA_SLOW_OPEN)
			return UINT64_MAX;
		if ((b->rail[i].state == HA_RAIL_JOIN || b->rail[i].state == HA_RAIL_PROBE) &&
		    k->join.since + making_ns(b) > at)
			at = k->join.since + making_ns(b);
	}
	return at;
}

/* The first spare that does nothing, or 0; *up: how many are up; *busy: one is coming or going. */
static unsigned find_idle(const struct ha_bundle *b, unsigned *up, bool *busy)
{
	unsigned idle = 0;

	*up = 0;
	*busy = false;
	for (unsigned i = b->balance.ndata; i < b->nrails; i++) {
		const struct ha_control *k = &b->failover->ctl[i];

		if (b->rail[i].state == HA_RAIL_UP)
			++*up;
		else if (b->rail[i].state != HA_RAIL_DOWN ||
			 (k->slow != HA_SLOW_NONE && k->slow != HA_SLOW_TIDY))
			*busy = true;
		else if (!idle)
			idle = i;
	}
	return idle;
}

static void want_one(struct ha_bundle *b, unsigned idle, uint64_t now)
{
	struct ha_join *join = &b->failover->ctl[idle].join;
	struct ha_spares *s = &b->failover->spares;
	uint64_t lost_at = last_loss(b);

	s->wanted = (uint8_t)(1u << idle);
	if (ha_spares_improve_due(b, now))
		join->retry_at = 0;
	else if (lost_at && join->retry_at < lost_at + BEHIND_NS)
		join->retry_at = lost_at + BEHIND_NS;
	ha_due(b, join->retry_at);
}

/* Of the spares in `idle`, which carry nothing, the ones that the others can do without: one that
 * protects as well as all of them is better than two. */
static unsigned find_useless(const struct ha_bundle *b, unsigned idle)
{
	enum ha_status_against all = ha_protection(b, b->active);
	unsigned rest = b->active & ~idle;

	if (!idle || ha_protection(b, rest) == all)
		return rest ? idle : 0;
	for (unsigned left = idle; left; left &= left - 1)
		if (ha_protection(b, rest | (left & -left)) == all)
			return idle & ~(left & -left);
	for (unsigned left = idle; left; left &= left - 1)
		if (ha_protection(b, b->active & ~(left & -left)) == all)
			return left & -left;
	return 0;
}

/* Standbys that stay beyond protection's. Where all spares are up and a better one is to be tried,
 * one of them makes room. */
static unsigned count_kept(const struct ha_bundle *b, uint64_t now)
{
	unsigned further = count_further(b), up;
	bool busy;

	return further && may_improve(b, now) && !find_idle(b, &up, &busy) && !busy ? further - 1
										    : further;
}

/* Of them, as many stay as the configuration adds to what protection needs. */
static unsigned find_surplus(const struct ha_bundle *b, uint64_t now)
{
	unsigned idle = 0, surplus;

	for (unsigned i = b->balance.ndata; i < b->nrails; i++)
		idle |= b->balance.weight[i] ? 0 : b->active & 1u << i;
	surplus = find_useless(b, idle);
	for (unsigned n = count_kept(b, now); n && surplus; n--)
		surplus &= surplus - 1;
	return surplus;
}

/* One at a time comes up. Idle ones are tried in the order of their numbers, so that each waits out
 * its back-off. */
static void want_some(struct ha_bundle *b, uint64_t now)
{
	struct ha_spares *s = &b->failover->spares;
	unsigned up, idle, want = count_needed(b) + may_improve(b, now);
	bool busy;

	s->no_rail_since = 0;
	s->wanted = 0;
	idle = find_idle(b, &up, &busy);
	if (idle && up < want && !busy)
		want_one(b, idle, now);
	if (s->improve && now < s->improve_at)
		ha_due(b, s->improve_at);
	else if (!busy && up >= want && !(may_improve(b, now) && find_surplus(b, now)))
		s->improve = false;
}

static void close_surplus(struct ha_bundle *b, uint64_t now)
{
	for (unsigned left = find_surplus(b, now); left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint64_t from = b->failover->ctl[i].join.up_since + SETTLE_NS;

		if (now < from)
			ha_due(b, from);
		else
			ha_rail_suspect(b, &b->rail[i], HA_CAUSE_SURPLUS,
					"other rails protect as well without it");
	}
}

void ha_spares_step(struct ha_bundle *b, uint64_t now)
{
	if (!b->is_send || b->nrails == b->balance.ndata || !(b->terms.flags & HA_FLAG_PAIRS) ||
	    b->error || b->abort->error || b->peer_closed)
		return;
	if (!b->active) {
		want_all(b, now);
		return;
	}
	want_some(b, now);
	want_more(b, now);
	close_surplus(b, now);
}

bool ha_spares_wanted(const struct ha_bundle *b, const struct ha_rail *r)
{
	return r->index < b->balance.ndata || !(b->terms.flags & HA_FLAG_PAIRS) ||
	       b->failover->spares.wanted >> r->index & 1;
}

/* What is up protects less than two NICs could: a better spare is tried after a while. */
static void look_for_better(struct ha_bundle *b, uint64_t now)
{
	struct ha_spares *s = &b->failover->spares;

	if (!b->is_send || !b->active || s->improves == IMPROVES_MAX ||
	    ha_protection_rank(ha_protection(b, b->active)) >= ha_protection_rank(HA_AGAINST_NIC))
		return;
	s->improves++;
	s->improve = true;
	s->improve_at = now + (IMPROVE_NS << s->improves);
	ha_due(b, s->improve_at);
}

void ha_spares_failed(struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	b->failover->spares.failed += ha_spares_hurry(b, r);
	if (r->index >= b->balance.ndata)
		look_for_better(b, now);
}

void ha_spares_beside(struct ha_bundle *b, uint64_t now)
{
	if (b->active & (b->active - 1) && !b->failover->spares.improve)
		look_for_better(b, now);
}

void ha_spares_port_back(struct ha_bundle *b)
{
	/* Some of them failed because of this port, and nobody knows which. */
	for (unsigned i = 0; i < HA_PAIRS_MAX; i++)
		b->failover->spares.pair[i].tries = 0;
	b->failover->spares.improve = true;
	b->failover->spares.improves = 0;
	b->failover->spares.improve_at = ha_clock_now(b->ctx->clock) + IMPROVE_NS;
	ha_due_now(b);
}
