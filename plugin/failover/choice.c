/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice.c - of all devices of this end, the one for a spare's next incarnation
 *
 * Each candidate gets a number, and the smallest is taken. From the most to the least significant:
 * how often it has been tried without success, or without any rail how recently; whether it is on a
 * leaf switch that all rails share which are up; whether rails that are up lie on it; whether it is
 * on a leaf switch that carries data; how likely it reaches the other end's device (leaf switch,
 * network, name); its place in the standby order (`ha topo`), behind which come the data rails'
 * own.
 */
#include "plugin/failover/choice.h"

#include "base/clock.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/control.h"
#include "plugin/failover/protection.h"
#include "rdma/topo/gid.h"
#include "rdma/topo/leaf.h"
#include "rdma/topo/standby.h"

#include <string.h>

/* a standby's device that is down may come back so soon, before another takes its place; of one
 * that seems to be well so many tries must fail */
#define STAY_NS (2 * HA_NS_PER_S)
#define STAY_TRIES 2

/* The number's parts. */
#define TRIES_SHIFT 19
#define SHARED_SWITCH_SHIFT 18 /* on a leaf switch that takes all rails along that are up */
#define SHARED_SHIFT 16        /* 2: with a rail that carries, 1: with one that waits */
#define SWITCH_SHIFT 15
#define PLACE_SHIFT 14
#define NETWORK_SHIFT 9 /* leading bytes of the network that are different, of 16 */
#define NAME_SHIFT 8
static_assert(HA_TOPO_PORTS_MAX <= 1 << NAME_SHIFT, "the order's part");

struct candidates {
	unsigned n;
	struct ha_device *dev[HA_TOPO_PORTS_MAX];
	unsigned rank[HA_TOPO_PORTS_MAX]; /* its place in the order */
};

/* 0: no other rail that is up is on this device; 2: one that carries, or two. */
static unsigned sharing_of_device(const struct ha_bundle *b, const struct ha_rail *r,
				  const struct ha_device *dev)
{
	unsigned most = 0;

	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && i != r->index && b->rail[i].dev == dev)
			most = most < 2 && !b->balance.weight[i] ? 1 : 2;
	return most;
}

/* A standby's device that was well is waited for, longer where another rail carries: it may be back
 * in a moment. */
static bool waits_for_device(const struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	const struct ha_control *k = &b->failover->ctl[r->index];

	if (!r->dev || !r->proven || atomic_load_explicit(&r->dev->failed, memory_order_acquire))
		return false;
	if (!b->is_send && !(b->terms.flags & HA_FLAG_MOVES))
		return true;
	/* Others are on it: elsewhere it protects better. */
	if (sharing_of_device(b, r, r->dev))
		return false;
	/* So it does where one is wanted now, and this one is away. */
	if (ha_spares_improve_due(b, now) && !ha_device_usable(r->dev))
		return false;
	if (!b->active && b->terms.flags & HA_FLAG_PAIRS)
		return false;
	if (ha_device_usable(r->dev))
		return k->join.attempts < (b->active ? STAY_TRIES : 1);
	return b->active && now - r->loss.lost_at < STAY_NS;
}

/* Those that are up. An old peer expects that the standby is never on the data rails' device. */
static void list_candidates(const struct ha_bundle *b, struct candidates *c)
{
	struct ha_ctx *ctx = b->ctx;
	int order[HA_TOPO_PORTS_MAX + 1],
		n = ha_topo_standby(ctx->topo, b->rail[0].dev->index, order, HA_TOPO_PORTS_MAX);

	c->n = 0;
	n = n < 0 ? 0 : n;
	if (b->terms.flags & HA_FLAG_PAIRS)
		order[n++] = b->rail[0].dev->index;
	for (int i = 0; i < n; i++) {
		struct ha_device *dev = &ctx->devices[order[i]];

		if (!ha_device_usable(dev))
			continue;
		c->dev[c->n] = dev;
		c->rank[c->n++] = (unsigned)i;
	}
}

/* Is this device on a leaf switch that a rail with weight has an end on? By name where no place is
 * known: on hosts that are alike, NICs of one name mostly hang on one switch. */
static bool on_switch_of_data(const struct ha_bundle *b, const struct ha_device *dev)
{
	uint32_t place = ha_device_place(dev);

	for (unsigned i = 0; i < b->nrails; i++) {
		const struct ha_rail *r = &b->rail[i];
		uint32_t there = ha_peer_place(b, &r->setup.peer);

		if (!(b->active >> i & 1) || !b->balance.weight[i])
			continue;
		if (place && (place == ha_device_place(r->dev) || place == there))
			return true;
		if (!ha_leaf_comparable(place, there) &&
		    !strcmp(r->setup.peer.name, ha_device_name(dev)))
			return true;
	}
	return false;
}

static bool is_on_several_devices(const struct ha_bundle *b)
{
	enum ha_status_against against = ha_protection(b, b->active);

	return against != HA_AGAINST_NOTHING && against != HA_AGAINST_NIC_THERE;
}

/* Several rails are up and one leaf switch takes all of them along: this device is on it. While one
 * device here takes all of them along that comes first. */
static bool on_shared_switch(const struct ha_bundle *b, const struct ha_device *dev)
{
	struct ha_presumed_switch shared;

	if (!(b->active & (b->active - 1)) || !is_on_several_devices(b))
		return false;
	shared = ha_protection_presumed_switch(b, b->active);
	return ha_protection_is_on(&shared, dev);
}

/* Leading bytes in which the addresses' networks differ; the host's part says nothing. */
static unsigned network_apart(const struct ha_device *dev, const struct ha_wire_rail *end)
{
	const union ibv_gid *gid = &dev->topo->address.gid;
	unsigned n = 0, most = ha_gid_is_ipv4(gid) ? 15 : 8;

	while (n < most && gid->raw[n] == end->qp.gid[n])
		n++;
	return 16 - n;
}

/* ---- the sender ---- */

/* Other rails that are on it, or may be soon; a device has a pair with each of the peer's, and not
 * more. */
static unsigned rails_on(const struct ha_bundle *b, const struct ha_rail *r,
			 const struct ha_device *dev)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->nrails; i++) {
		const struct ha_rail *o = &b->rail[i];
		bool there = i < b->balance.ndata
				     ? b->balance.lead[i] == i
				     : o->state == HA_RAIL_UP || o->state == HA_RAIL_JOIN ||
					       o->state == HA_RAIL_PROBE ||
					       b->failover->ctl[i].slow == HA_SLOW_OPEN;

		n += there && i != r->index && o->dev == dev;
	}
	return n;
}

static struct ha_device *sender_device(struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	struct ha_device *best = NULL;
	unsigned smallest = UINT32_MAX;
	struct candidates c;

	if (waits_for_device(b, r, now))
		return r->dev;
	list_candidates(b, &c);
	for (unsigned i = 0; i < c.n; i++) {
		const struct ha_pair *pair = ha_spares_pair(b, 0, c.dev[i]);
		unsigned rails = rails_on(b, r, c.dev[i]), number;

		if (b->terms.flags & HA_FLAG_PAIRS && rails >= b->failover->spares.peer_ports)
			continue;
		if (b->active)
			number = pair->tries / STAY_TRIES << TRIES_SHIFT |
				 (unsigned)on_shared_switch(b, c.dev[i]) << SHARED_SWITCH_SHIFT |
				 sharing_of_device(b, r, c.dev[i]) << SHARED_SHIFT |
				 (unsigned)on_switch_of_data(b, c.dev[i]) << SWITCH_SHIFT;
		else
			number = ha_spares_recent(b, pair) << TRIES_SHIFT;
		number |= c.rank[i];
		if (number < smallest) {
			smallest = number;
			best = c.dev[i];
		}
	}
	return best;
}

/* ---- the receiver ---- */

/* Another rail is on this pair, or about to be. */
static bool is_pair_taken(const struct ha_bundle *b, const struct ha_rail *r, uint64_t peer,
			  const struct ha_device *dev)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		const struct ha_rail *o = &b->rail[i];
		const struct ha_control *k = &b->failover->ctl[i];
		bool opens = o->state == HA_RAIL_DOWN && k->slow != HA_SLOW_NONE &&
			     k->slow != HA_SLOW_TIDY;

		if (i == r->index || o->dev != dev)
			continue;
		if (opens && ha_peer_device(&k->join.offer) == peer)
			return true;
		if ((i < b->balance.ndata || o->state == HA_RAIL_UP || o->state == HA_RAIL_JOIN) &&
		    ha_peer_device(&o->setup.peer) == peer)
			return true;
	}
	return false;
}

static unsigned receiver_number(struct ha_bundle *b, const struct ha_rail *r,
				const struct ha_device *dev, const struct ha_pair *pair)
{
	const struct ha_wire_rail *end = &b->failover->ctl[r->index].join.offer;
	uint32_t here = ha_device_place(dev), there = ha_peer_place(b, end);
	unsigned number = (unsigned)(ha_leaf_comparable(here, there) && here != there)
				  << PLACE_SHIFT |
			  network_apart(dev, end) << NETWORK_SHIFT |
			  (unsigned)!!strcmp(ha_device_name(dev), end->name) << NAME_SHIFT;

	if (!b->active)
		return number | ha_spares_recent(b, pair) << TRIES_SHIFT;
	return number | pair->tries / STAY_TRIES << TRIES_SHIFT |
	       (unsigned)on_shared_switch(b, dev) << SHARED_SWITCH_SHIFT |
	       sharing_of_device(b, r, dev) << SHARED_SHIFT |
	       (unsigned)on_switch_of_data(b, dev) << SWITCH_SHIFT;
}

static struct ha_device *receiver_device(struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	const struct ha_wire_rail *end = &b->failover->ctl[r->index].join.offer;
	uint64_t peer = ha_peer_device(end);
	bool same = peer == ha_peer_device(&r->setup.peer) || !(b->terms.flags & HA_FLAG_MOVES);
	unsigned smallest = UINT32_MAX;
	struct ha_device *best = NULL;
	struct candidates c;

	if (same && waits_for_device(b, r, now) && !is_pair_taken(b, r, peer, r->dev))
		return r->dev;
	list_candidates(b, &c);
	for (unsigned i = 0; i < c.n; i++) {
		unsigned number;

		if (is_pair_taken(b, r, peer, c.dev[i]))
			continue;
		number = receiver_number(b, r, c.dev[i], ha_spares_pair(b, peer, c.dev[i])) |
			 c.rank[i];
		if (number < smallest) {
			smallest = number;
			best = c.dev[i];
		}
	}
	return best;
}

struct ha_device *ha_choose_device(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_device *dev;

	if (r->index < b->balance.ndata)
		return r->dev;
	dev = b->is_send ? sender_device(b, r, now) : receiver_device(b, r, now);
	if (dev)
		ha_spares_tried(
			b, b->is_send ? 0 : ha_peer_device(&b->failover->ctl[r->index].join.offer),
			dev);
	if (b->active && ha_spares_improve_due(b, now))
		b->failover->spares.improve = false;
	return dev;
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
