/* SPDX-License-Identifier: BSD-3-Clause */
/* lag_step.c - the driver: what was measured, and who carries because of it */
#include "base/clock.h"
#include "plugin/balance/lag.h"
#include "plugin/balance/policy.h"
#include "plugin/balance/share.h"
#include "plugin/bundle.h"
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/report/journal.h"
#include "rdma/topo/port_errors.h"

#include <stdio.h>
#include <string.h>

#define SAMPLES 4 /* that a heartbeat asks for */
/* Of a crowd (schedule.h) each sends few messages from one heartbeat to the next. One that is
 * measured costs nearly as much as another: so many are sent before some are measured again. */
#define CROWD_MESSAGES (32 * SAMPLES)
/* Messages in a row that are quick again: the path carries again. Twice as many each time it was
 * slow again soon after: one that loses packets is quick by turns. */
#define RETURNS_FIRST 8
#define RETURNS_MOST 32
#define RELAPSE_NS (600 * HA_NS_PER_S)
#define VERIFIED 2 /* a move is good when the messages are quicker by as much */
#define COMPARE_MOST_NS (30 * HA_NS_PER_S)
/* until a message tries the slow path, twice as long each time */
#define PAUSE_FIRST_NS HA_NS_PER_S
#define PAUSE_MOST_NS (30 * HA_NS_PER_S)
#define REST_FIRST_NS (60 * HA_NS_PER_S) /* after a comparison without a result */
#define REST_MOST_NS (16 * REST_FIRST_NS)
#define MINUTE_NS (60 * HA_NS_PER_S)
#define LOAD_NS (10 * HA_NS_PER_MS) /* a device's load is counted anew after so long */

static uint64_t heartbeat_ns(const struct ha_bundle *b)
{
	return (uint64_t)b->ctx->config.heartbeat_ms * HA_NS_PER_MS;
}

void ha_lag_join(struct ha_bundle *b)
{
	struct ha_lag *g = &b->balance.lag;

	g->on = b->is_send && b->ctx->config.slow_factor && b->terms.flags & HA_FLAG_FAILOVER &&
		!(b->terms.flags & HA_FLAG_ONE_SIDED) && !b->balance.moves &&
		ha_policy_one_device(b, (1u << b->balance.ndata) - 1);
	g->rest = REST_FIRST_NS;
	ha_lag_roles(b);
}

/* ---- who carries ---- */

/* The rails of the mask carry, and no others. */
static void carry_over(struct ha_bundle *b, unsigned mask)
{
	ha_share_carry(b, mask);
	ha_policy_update(b);
}

/* ---- what was measured ---- */

/* In how many of its ends a path differs: NICs here, NICs there. */
static unsigned count_different_ends(const struct ha_rail *a, const struct ha_rail *b)
{
	return (a->dev != b->dev) + (a->setup.peer.qp.lid != b->setup.peer.qp.lid ||
				     memcmp(a->setup.peer.qp.gid, b->setup.peer.qp.gid,
					    sizeof(a->setup.peer.qp.gid)) != 0);
}

/* The path to compare with: of those that carry nothing, the one that shares least. False: none. */
static bool find_other(struct ha_bundle *b)
{
	struct ha_lag *g = &b->balance.lag;
	const struct ha_rail *home = &b->rail[ha_lag_first(g->home)];
	unsigned best = 0;

	for (unsigned i = 0; i < b->nrails; i++) {
		unsigned n = b->active >> i & 1 && !b->balance.weight[i]
				     ? count_different_ends(home, &b->rail[i])
				     : 0;

		if (n <= best)
			continue;
		best = n;
		g->other = (uint8_t)i;
	}
	return best > 0;
}

static bool may_move(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;

	if (now - g->minute >= MINUTE_NS) {
		g->minute = now;
		g->moves = 0;
	}
	return g->moves < (unsigned)b->ctx->config.slow_moves;
}

/* The other end learns of it with the next heartbeat on the other rail. */
static void bring_heartbeat_forward(struct ha_bundle *b)
{
	b->balance.lag.news |= (uint8_t)(1u << b->balance.lag.other);
	ha_due_now(b);
}

static void begin_compare(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;

	ha_lag_begin_state(g, HA_LAG_COMPARE, now);
	g->keys = (uint8_t)(1u << g->other);
	ha_policy_update(b);
	ha_lag_arm(b, !g->out);
	bring_heartbeat_forward(b);
}

static void end_compare(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;

	ha_lag_begin_state(g, HA_LAG_WATCH, now);
	g->keys = 0;
	g->rest_until = now + g->rest;
	g->rest = 2 * g->rest < REST_MOST_NS ? 2 * g->rest : REST_MOST_NS;
	ha_policy_update(b);
	bring_heartbeat_forward(b);
}

static void judge_watch(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;
	const struct ha_past_window *w = &g->side[0];
	bool slow = (w->n >= HA_LAG_FEW && ha_past_least(w, HA_LAG_FEW) >= ha_lag_factor(b)) ||
		    (w->n >= HA_LAG_WINDOW && ha_past_median(w) >= ha_lag_factor(b));

	if (slow && now >= g->rest_until && may_move(b, now) && find_other(b))
		begin_compare(b, now);
	else if (w->n >= HA_LAG_WINDOW)
		g->side[0].n = g->side[1].n = 0;
}

static double to_times(uint32_t ratio)
{
	return (double)ratio / HA_PAST_UNIT;
}

static uint8_t count_returns(const struct ha_lag *g, uint64_t now)
{
	if (!g->back_at || now - g->back_at > RELAPSE_NS)
		return RETURNS_FIRST;
	return 2 * g->returns < RETURNS_MOST ? 2 * g->returns : RETURNS_MOST;
}

static void move_away(struct ha_bundle *b, uint32_t here, uint32_t there, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;
	const struct ha_rail *home = &b->rail[ha_lag_first(g->home)], *other = &b->rail[g->other];
	uint64_t usual = ha_past_expect(&g->past, g->queued);
	char errors[128], label[IBV_SYSFS_NAME_MAX + 8];

	ha_lag_begin_state(g, HA_LAG_AWAY, now);
	g->slow = here;
	g->rest = REST_FIRST_NS;
	g->moves++;
	g->returns = count_returns(g, now);
	g->pause = PAUSE_FIRST_NS;
	g->probe_at = now + g->pause;
	g->wanted = HA_LAG_WINDOW;
	carry_over(b, 1u << g->other);
	ha_lag_arm(b, !g->out);
	bring_heartbeat_forward(b);
	ha_device_system_label(home->dev, label, sizeof(label));
	ha_port_errors_text(b->ctx->config.sysfs_root, label, errors, sizeof(errors));
	ha_journal_eventf(b->ctx,
			  &(struct ha_event) { .kind = HA_EVENT_SLOW, .bundle = b, .rail = home },
			  "messages take %.1f times as long as they used to (%.3f ms for %.0f KiB "
			  "in the queue), %.1f times on rail %u (%s), which carries from now on; "
			  "this path stands by while it stays so (HA_NCCL_SLOW_FACTOR)%s%s",
			  to_times(here), (double)usual / 1e6, (double)g->queued / 1024,
			  to_times(there), other->index, ha_device_name(other->dev),
			  *errors ? "; its port has counted " : "", errors);
}

static void judge_compare(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;
	const struct ha_past_window *home = &g->side[0], *other = &g->side[1];
	uint32_t here, there, least = ha_past_least(home, HA_PAST_SAMPLES),
			      most = ha_past_most(other);
	bool few = home->n < HA_PAST_SAMPLES || other->n < HA_PAST_SAMPLES, clear;

	if (now - g->since >= COMPARE_MOST_NS) {
		end_compare(b, now);
		return;
	}
	if (home->n < HA_LAG_FEW || other->n < HA_LAG_FEW)
		return;
	here = ha_past_median(home);
	there = ha_past_median(other);
	there = there > HA_PAST_UNIT ? there : HA_PAST_UNIT;
	most = most > HA_PAST_UNIT ? most : HA_PAST_UNIT;
	clear = least >= ha_lag_factor(b) &&
		(uint64_t)least * HA_PAST_UNIT >= (uint64_t)most * ha_lag_factor(b);
	if (few && !clear)
		return;
	if (here >= ha_lag_factor(b) &&
	    (uint64_t)here * HA_PAST_UNIT >= (uint64_t)there * ha_lag_factor(b)) {
		move_away(b, here, there, now);
		return;
	}
	if (here > HA_PAST_UNIT)
		ha_past_accept(&g->past, here);
	end_compare(b, now);
}

static void move_back(struct ha_bundle *b, uint64_t now, const char *why)
{
	struct ha_lag *g = &b->balance.lag;
	const struct ha_rail *home = &b->rail[ha_lag_first(g->home)];

	ha_lag_begin_state(g, HA_LAG_WATCH, now);
	g->keys = 0;
	g->moves++;
	g->wanted = 0;
	g->back_at = now;
	carry_over(b, g->home);
	bring_heartbeat_forward(b);
	ha_journal_eventf(
		b->ctx,
		&(struct ha_event) { .kind = HA_EVENT_FAILED_BACK, .bundle = b, .rail = home },
		"%s", why);
}

/* Is it better there? */
static void verify_move(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;
	uint32_t there = ha_past_median(&g->side[1]);
	char why[128];

	if (g->verified || g->side[1].n < HA_LAG_WINDOW)
		return;
	g->verified = true;
	g->side[1].n = 0;
	g->wanted = 0;
	if ((uint64_t)there * VERIFIED <= g->slow)
		return;
	snprintf(why, sizeof(why),
		 "with all of the traffic messages take %.1f times as long on the "
		 "other path, %.1f times here",
		 to_times(there), to_times(g->slow));
	ha_past_accept(&g->past, g->slow);
	g->rest_until = now + g->rest;
	g->rest = 2 * g->rest < REST_MOST_NS ? 2 * g->rest : REST_MOST_NS;
	move_back(b, now, why);
}

/* What the last message that tried the slow path says; all before it were quick. */
static void judge_probe(struct ha_lag *g, uint32_t most, uint64_t now)
{
	g->judged = g->side[0].n;
	if (g->side[0].ratio[g->judged - 1] <= most)
		return;
	g->side[0].n = g->judged = 0;
	g->pause = 2 * g->pause < PAUSE_MOST_NS ? 2 * g->pause : PAUSE_MOST_NS;
	g->probe_at = now + g->pause;
}

static void judge_away(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;
	char why[128];

	verify_move(b, now);
	if (g->state != HA_LAG_AWAY || g->out || g->probe)
		return;
	if (g->side[0].n > g->judged)
		judge_probe(g, ha_lag_factor(b) / 2, now);
	if (g->side[0].n >= g->returns && may_move(b, now)) {
		snprintf(why, sizeof(why),
			 "%u messages in a row took %.1f times as long as they used to, %.1f times "
			 "before",
			 g->side[0].n, to_times(ha_past_median(&g->side[0])), to_times(g->slow));
		move_back(b, now, why);
	} else if (g->side[0].n < g->returns && now >= g->probe_at) {
		g->probe = true;
		g->probe_at = now + heartbeat_ns(b);
		ha_lag_arm(b, true);
	}
}

/* ---- a step ---- */

/* Work requests that senders of this process have on the device now. */
static uint32_t load_of(const struct ha_ctx *ctx, const struct ha_device *dev)
{
	uint32_t load = 0;
	const struct ha_bundle *b;

	LIST_FOREACH(b, &ctx->bundles, entry)
		for (unsigned i = 0; b->is_send && i < b->nrails; i++)
			if (b->rail[i].dev == dev)
				load += ha_rail_outstanding(&b->rail[i]);
	return load;
}

/* Others' share of the queue that a message stands in. */
static uint32_t load_of_others(const struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	struct ha_device *dev = r->dev;
	uint32_t own = ha_rail_outstanding(r);

	if (now - dev->load_at >= LOAD_NS + ha_crowd_ns(b->ctx->round.connections)) {
		dev->load_at = now;
		dev->load = load_of(b->ctx, dev);
	}
	return dev->load > own ? dev->load - own : 0;
}

static bool has_sent_enough(struct ha_bundle *b)
{
	struct ha_lag *g = &b->balance.lag;
	uint64_t sent = ((const struct ha_send *)b)->head;

	if (b->ctx->round.connections > HA_CROWD_FROM && sent - g->asked < CROWD_MESSAGES)
		return false;
	g->asked = sent;
	return true;
}

/* The messages of the next heartbeat. */
static void ask_for_samples(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;

	if (now < g->look_at || !g->home)
		return;
	g->look_at = now + heartbeat_ns(b);
	g->beside[0] = load_of_others(b, &b->rail[ha_lag_first(g->home)], now);
	if (g->state != HA_LAG_WATCH)
		g->beside[1] = load_of_others(b, &b->rail[g->other], now);
	else if (find_other(b) && has_sent_enough(b))
		g->wanted = SAMPLES;
	if (g->wanted && !g->out)
		ha_lag_arm(b, true);
}

void ha_lag_step(struct ha_bundle *b, uint64_t now)
{
	struct ha_lag *g = &b->balance.lag;

	if (!g->on || b->error || b->abort->error || b->peer_closed)
		return;
	switch (g->state) {
	case HA_LAG_WATCH:
		judge_watch(b, now);
		break;
	case HA_LAG_COMPARE:
		judge_compare(b, now);
		break;
	case HA_LAG_AWAY:
		judge_away(b, now);
		break;
	}
	ask_for_samples(b, now);
}

/* ---- the receiver follows ---- */

void ha_lag_read(struct ha_bundle *b, const struct ha_rail *r, uint64_t word)
{
	struct ha_lag *g = &b->balance.lag;
	uint8_t bit = (uint8_t)(1u << r->index);
	bool follows = g->state == HA_LAG_AWAY && g->other == r->index;

	g->keys = word & HA_LAG_WANTS_KEYS ? g->keys | bit : g->keys & (uint8_t)~bit;
	if (word & HA_LAG_CARRIES && g->state == HA_LAG_WATCH && b->active & bit &&
	    !b->balance.weight[r->index]) {
		g->state = HA_LAG_AWAY;
		g->other = r->index;
		carry_over(b, bit);
	} else if (!(word & HA_LAG_CARRIES) && follows) {
		g->state = HA_LAG_WATCH;
		carry_over(b, g->home);
	}
}
