/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/failover/choice.h"

#include "base/clock.h"
#include "plugin/connect/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/standby.h"

#include <string.h>

#define STAY_NS                                                                                    \
	(2 * HA_NS_PER_S) /* a standby's device that is down may come back so soon, before another \
			     takes its place; */
#define STAY_TRIES 2      /* of one that seems to be well so many tries must fail */

/* A standby's device that was well is waited for, longer where another rail carries: it may be back
 * in a moment. */
static bool waits_for_device(const struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	const struct ha_control *k = &b->failover.ctl[r->index];

	if (!k->proven || atomic_load_explicit(&r->dev->failed, memory_order_acquire))
		return false;
	if (!b->is_send && !(b->terms.flags & HA_FLAG_MOVES))
		return true;
	if (ha_device_usable(r->dev))
		return k->join.attempts < (b->active ? STAY_TRIES : 1);
	return b->active && now - k->join.lost_at < STAY_NS;
}

/* The standby's candidates that are up, in their order from the one behind `after` on, which comes
 * last; NULL: from the first. */
static unsigned candidates(const struct ha_bundle *b, const struct ha_device *after,
			   struct ha_device *out[HA_TOPO_PORTS_MAX])
{
	struct ha_ctx *ctx = b->ctx;
	int order[HA_TOPO_PORTS_MAX],
		n = ha_topo_standby(ctx->topo, b->rail[0].dev->index, order, HA_TOPO_PORTS_MAX),
		from = 0;
	unsigned usable = 0;

	for (int i = 0; i < n; i++)
		if (&ctx->devices[order[i]] == after)
			from = i + 1;
	for (int i = 0; i < n; i++) {
		struct ha_device *dev = &ctx->devices[order[(from + i) % n]];

		if (ha_device_usable(dev))
			out[usable++] = dev;
	}
	return usable;
}

static struct ha_device *sender_device(struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	struct ha_device *next[HA_TOPO_PORTS_MAX];

	if (r->dev && waits_for_device(b, r, now))
		return r->dev;
	return candidates(b, r->dev, next) ? next[0] : NULL;
}

/* Which device of the peer it is, as a number. */
static uint64_t end_mark(const struct ha_wire_rail *end)
{
	uint64_t mark = end->guid;

	for (unsigned i = 0; i < sizeof(end->name) && end->name[i]; i++)
		mark = (mark ^ (uint8_t)end->name[i]) * UINT64_C(0x100000001b3);
	return mark | 1; /* 0: none */
}

/* Of which the addresses have more leading bytes in common are more likely in one network. */
static unsigned common_bytes(const struct ha_device *dev, const struct ha_wire_rail *end)
{
	const uint8_t *gid = dev->topo->gid.raw;
	unsigned n = 0;

	while (n < sizeof(end->qp.gid) && gid[n] == end->qp.gid[n])
		n++;
	return n;
}

/* Among equals the present one. */
static struct ha_device *nearest(struct ha_device *const *dev, unsigned n,
				 const struct ha_device *present, const struct ha_wire_rail *end)
{
	struct ha_device *best = dev[n - 1] == present ? dev[n - 1] : dev[0];

	for (unsigned i = 0; i < n; i++)
		if (common_bytes(dev[i], end) > common_bytes(best, end))
			best = dev[i];
	return best;
}

/* What this end has tried last with that device of the sender; a new entry takes the place of the
 * oldest. */
static struct ha_meeting *meeting(struct ha_control *k, uint64_t mark)
{
	for (unsigned i = 0; i < HA_MEETINGS; i++)
		if (k->join.met[i].sender == mark)
			return &k->join.met[i];
	return &k->join.met[k->join.meetings++ % HA_MEETINGS];
}

/*
 * The sender comes with another device after each try or two. The receiver goes through its own for
 * each of them apart, so that sooner or later every one has met every one. It begins with the
 * nearest, among equals with the one that it has.
 */
static struct ha_device *receiver_device(struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover.ctl[r->index];
	struct ha_device *next[HA_TOPO_PORTS_MAX], *dev = r->dev;
	uint64_t mark = end_mark(&k->join.offer);
	struct ha_meeting *met;
	unsigned n;

	if (!k->join.attempts)
		memset(k->join.met, 0,
		       sizeof(k->join.met)); /* it was up, and all that is long ago */
	met = meeting(k, mark);
	if (!dev || !waits_for_device(b, r, now) ||
	    (!k->join.attempts && mark != end_mark(&r->peer) && b->terms.flags & HA_FLAG_MOVES)) {
		n = candidates(b, met->sender == mark ? met->ours : dev, next);
		if (!n)
			dev = NULL;
		else if (!dev || met->sender == mark)
			dev = next[0];
		else
			dev = nearest(next, n, dev, &k->join.offer);
	}
	*met = (struct ha_meeting) { mark, dev };
	return dev;
}

struct ha_device *ha_choose_device(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	if (r->index < b->balance.ndata)
		return r->dev;
	return b->is_send ? sender_device(b, r, now) : receiver_device(b, r, now);
}

bool ha_incarnation_possible(const struct ha_bundle *b)
{
	struct ha_ctx *ctx = b->ctx;
	struct ha_standby_class class;

	for (unsigned i = 0; i < b->balance.ndata; i++)
		if (!atomic_load_explicit(&b->rail[i].dev->failed, memory_order_acquire))
			return true;
	for (int i = 0; b->nrails > b->balance.ndata && i < ctx->nports; i++)
		if (ha_standby_classify(ctx->topo, b->rail[0].dev->index, i, &class) &&
		    !atomic_load_explicit(&ctx->devices[i].failed, memory_order_acquire))
			return true;
	return false;
}
