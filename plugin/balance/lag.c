/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/lag.h"

#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"

#include <string.h>

#define HELD_UP_NS (50 * HA_NS_PER_MS) /* less than a NIC's time-out, more than a busy host */
#define HELD_UP_LIMITS 4               /* times the slow factor */
#define HELD_UP_WEIGHT 4

uint32_t ha_lag_factor(const struct ha_bundle *b)
{
	return (uint32_t)b->ctx->config.slow_factor * HA_PAST_UNIT;
}

void ha_lag_arm(struct ha_bundle *b, bool on)
{
	unsigned carriers = b->balance.carriers;

	b->balance.lag.armed = on;
	if (!(carriers & (carriers - 1)))
		b->balance.stripe_min = on ? 0 : UINT64_MAX;
}

/* ---- owner ---- */

unsigned ha_lag_choose(const struct ha_bundle *b)
{
	const struct ha_lag *g = &b->balance.lag;
	unsigned home = g->home >> b->balance.first & 1 ? b->balance.first : ha_lag_first(g->home);
	bool there = (g->state == HA_LAG_COMPARE && g->side[1].n < g->side[0].n) ||
		     (g->state == HA_LAG_AWAY && !g->probe);
	unsigned rail = there ? g->other : home;

	return b->active & 1u << rail;
}

static bool is_there(const struct ha_lag *g, unsigned rail)
{
	return g->state != HA_LAG_WATCH && rail == g->other;
}

void ha_lag_begin(struct ha_bundle *b, unsigned rail, unsigned entry, uint64_t bytes)
{
	struct ha_lag *g = &b->balance.lag;
	const struct ha_rail *r = &b->rail[rail];

	g->at = ha_clock_now(b->ctx->clock);
	g->queued = bytes * (1 + ha_rail_outstanding(r) + g->beside[is_there(g, rail)]);
	g->rail = (uint8_t)rail;
	g->entry = (uint8_t)entry;
	g->out = true;
	g->probe = false;
	g->wanted -= g->wanted > 0;
	ha_lag_arm(b, false);
}

/* A message that the NIC's time-outs have held up counts for several: a busy host does not delay
 * one for so long, and no other message is measured meanwhile. */
static void add_sample(struct ha_past_window *w, uint32_t ratio, uint32_t limit, uint64_t ns)
{
	bool held_up = ns >= HELD_UP_NS && ratio >= HELD_UP_LIMITS * limit;

	for (unsigned i = 0; i < (held_up ? HELD_UP_WEIGHT : 1); i++)
		ha_past_add(w, ratio);
}

static void take_watch_sample(struct ha_lag *g, uint32_t limit, uint64_t ns)
{
	uint32_t ratio = ha_past_ratio(&g->past, g->queued, ns);
	bool known = ha_past_knows(&g->past, g->queued);

	if (known)
		add_sample(&g->side[0], ratio, limit, ns);
	if (!known || ratio < limit / 2)
		ha_past_learn(&g->past, g->queued, ns);
}

static void take_compare_sample(struct ha_lag *g, unsigned rail, uint32_t limit, uint64_t ns)
{
	bool there = is_there(g, rail);

	if (there || ha_past_knows(&g->past, g->queued))
		add_sample(&g->side[there], ha_past_ratio(&g->past, g->queued, ns), limit, ns);
}

static bool has_enough_samples(const struct ha_lag *g)
{
	switch (g->state) {
	case HA_LAG_WATCH:
		return g->side[0].n >= HA_LAG_FEW;
	case HA_LAG_COMPARE:
		return g->side[0].n >= HA_LAG_FEW && g->side[1].n >= HA_LAG_FEW;
	default:
		return g->side[0].n > g->judged || g->side[1].n >= HA_LAG_WINDOW;
	}
}

void ha_lag_done(struct ha_bundle *b, unsigned stripe, unsigned entry)
{
	struct ha_lag *g = &b->balance.lag;
	uint64_t ns;

	if (!g->out || stripe != g->rail || entry != g->entry)
		return;
	g->out = false;
	ns = ha_clock_now(b->ctx->clock) - g->at;
	if (g->state != HA_LAG_WATCH)
		take_compare_sample(g, stripe, ha_lag_factor(b), ns);
	else if (g->home >> stripe & 1)
		take_watch_sample(g, ha_lag_factor(b), ns);
	if (g->wanted || g->state == HA_LAG_COMPARE)
		ha_lag_arm(b, true);
	if (has_enough_samples(g))
		ha_bundle_drive_soon(b);
}

/* ---- driver: who carries ---- */

static void forget_samples(struct ha_lag *g)
{
	g->side[0].n = g->side[1].n = 0;
}

void ha_lag_begin_state(struct ha_lag *g, enum ha_lag_state state, uint64_t now)
{
	g->state = state;
	g->since = now;
	g->probe = g->verified = false;
	g->judged = 0;
	forget_samples(g);
}

static unsigned carriers_of(const struct ha_bundle *b)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < b->nrails; i++)
		mask |= b->active >> i & 1 && b->balance.weight[i] ? 1u << i : 0;
	return mask;
}

/* What is done about a slow path is still what the rails do: none of them was lost, and nobody else
 * has given any its share back. */
static bool has_expected_carriers(const struct ha_bundle *b)
{
	const struct ha_lag *g = &b->balance.lag;
	unsigned now = carriers_of(b), other = 1u << g->other;

	if ((g->home | other) & ~(unsigned)b->active)
		return false;
	return g->state == HA_LAG_AWAY ? now == other : now == g->home;
}

static void watch_carriers(struct ha_bundle *b)
{
	struct ha_lag *g = &b->balance.lag;
	unsigned now = carriers_of(b);
	const struct ha_device *dev = now ? b->rail[ha_lag_first(now)].dev : NULL;

	if (now != g->home || dev != g->dev)
		forget_samples(g);
	if (dev != g->dev)
		memset(&g->past, 0, sizeof(g->past));
	g->home = (uint8_t)now;
	g->dev = dev;
}

void ha_lag_roles(struct ha_bundle *b)
{
	struct ha_lag *g = &b->balance.lag;

	if (g->out && !(b->active >> g->rail & 1))
		g->out = false;
	if (g->state != HA_LAG_WATCH && !has_expected_carriers(b)) {
		ha_lag_begin_state(g, HA_LAG_WATCH, 0);
		g->keys = 0;
	}
	if (g->state == HA_LAG_WATCH)
		watch_carriers(b);
	if (g->on)
		ha_lag_arm(b, g->armed && g->home);
}

unsigned ha_lag_polled(const struct ha_bundle *b)
{
	const struct ha_lag *g = &b->balance.lag;

	return g->state == HA_LAG_WATCH ? 0 : b->active & (g->home | 1u << g->other);
}

bool ha_lag_rests(const struct ha_bundle *b, const struct ha_rail *r)
{
	return ha_lag_polled(b) >> r->index & 1;
}

/* ---- what the two ends say ---- */

uint64_t ha_lag_heartbeat(const struct ha_bundle *b, const struct ha_rail *r)
{
	const struct ha_lag *g = &b->balance.lag;
	bool other = b->is_send && g->state != HA_LAG_WATCH && r->index == g->other;
	uint64_t wants =
		g->state == HA_LAG_AWAY ? HA_LAG_WANTS_KEYS | HA_LAG_CARRIES : HA_LAG_WANTS_KEYS;

	return r->sq_posted | (other ? wants : 0);
}
