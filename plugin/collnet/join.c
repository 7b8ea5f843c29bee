/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * join.c - the way to the switch, at the beginning and back after a break
 *
 * Rank 0 has a group created now and then and sends its ticket round the ring (OFFER). Each rank
 * joins and says whether it could, and how many operations it has posted; until the agreement is
 * there it posts HA_COLLNET_DEPTH more at most. So nobody has posted the operation which is
 * HA_COLLNET_DEPTH + 1 above the largest of these numbers, and from that one on all go to the
 * switch, if all have joined.
 */
#include "plugin/collnet/comm.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* on the way back: others post few operations more until this rank says whether it could join */
#define JOIN_LIMIT HA_NS_PER_S

static void pilot_start(struct ha_collnet *c, enum ha_pilot_task task)
{
	struct ha_pilot *p = &c->join.pilot;

	p->ops = c->params.ina;
	p->ina = c->library.context;
	p->backend = c->params.backend;
	p->give_up = c->library.give_up;
	p->member = c->team.address;
	p->ranks = (unsigned)c->ranks;
	p->rank = (unsigned)c->rank;
	p->name = c->name;
	if (task == HA_PILOT_JOIN)
		memcpy(p->ticket, c->join.ticket, sizeof(p->ticket));
	c->join.until =
		c->connected && task == HA_PILOT_JOIN ? ha_collnet_now(c) + JOIN_LIMIT : UINT64_MAX;
	c->library.context = NULL;
	if (ha_pilot_start(p, task)) {
		c->library.context = p->ina;
		p->error = -EAGAIN;
		snprintf(p->why, sizeof(p->why), "no thread for it");
		atomic_store_explicit(&p->ready, true, memory_order_relaxed);
	}
}

/* The same reason again and again is one line. */
static void report_reason(struct ha_collnet *c, const char *what)
{
	struct ha_pilot *p = &c->join.pilot;

	if (c->join.logged != p->error)
		HA_INFO(c->name, "no switch yet, %s: %s", what, p->why);
	c->join.logged = p->error;
}

static bool pilot_back(struct ha_collnet *c)
{
	struct ha_pilot *p = &c->join.pilot;

	if (p->running && ha_collnet_now(c) >= c->join.until)
		ha_pilot_hurry(p); /* a backend that hangs */
	if (p->running && !ha_pilot_ended(p))
		return false;
	c->library.context = p->ina;
	p->ina = NULL;
	return true;
}

static void enter_offered(struct ha_collnet *c, bool ok)
{
	c->join.attempt++;
	c->stats.attempts++;
	c->join.offer_ok = ok;
	c->join.offer_due = c->ranks > 1;
	c->join.state = HA_COLLNET_OFFERED;
}

static void finish_creating(struct ha_collnet *c)
{
	bool ok = !c->join.pilot.error;

	if (ok) {
		memcpy(c->join.ticket, c->join.pilot.ticket, sizeof(c->join.ticket));
	} else {
		report_reason(c, "no group");
		if (c->connected) {
			c->stats.attempts++;
			ha_collnet_group_pause(c);
			return;
		}
	}
	enter_offered(c, ok);
}

void ha_collnet_on_join(struct ha_collnet *c, const struct ha_collnet_msg *m)
{
	if (!c->rank || c->join.offer.waits || m->length != sizeof(c->join.offer.ticket)) {
		ha_collnet_fail(c, -EPROTO, "rank %u sent an offer out of turn", m->from);
		return;
	}
	c->join.offer.waits = true;
	c->join.offer.message = *m;
	memcpy(c->join.offer.ticket, m + 1, sizeof(c->join.offer.ticket));
}

static void take_offer(struct ha_collnet *c)
{
	c->join.offer.waits = false;
	c->join.attempt = c->join.offer.message.id - 1;
	memcpy(c->join.ticket, c->join.offer.ticket, sizeof(c->join.ticket));
	enter_offered(c, c->join.offer.message.a);
	c->join.offer_due = c->rank != c->ranks - 1;
}

static void pass_on(struct ha_collnet *c)
{
	struct ha_collnet_msg *m;

	if (!c->join.offer_due ||
	    !(m = ha_lane_next(&c->out[0], HA_COLLNET_OFFER, c->join.attempt)))
		return;
	m->from = (uint32_t)c->rank;
	m->a = c->join.offer_ok;
	memcpy(m + 1, c->join.ticket, sizeof(c->join.ticket));
	ha_lane_send(&c->out[0], sizeof(c->join.ticket));
	c->join.offer_due = false;
}

static void begin_agreement(struct ha_collnet *c, bool joined)
{
	ha_collnet_agree_begin(c, HA_COLLNET_JOIN, c->join.attempt, joined, c->posted);
	c->join.post_limit = c->posted + HA_COLLNET_DEPTH;
	c->join.state = HA_COLLNET_JOINED;
}

static void finish_boarding(struct ha_collnet *c)
{
	c->group.handle = c->join.pilot.error ? NULL : c->join.pilot.group;
	if (c->join.pilot.error)
		report_reason(c, "this rank cannot join");
	begin_agreement(c, c->group.handle != NULL);
}

static void finish_agreement(struct ha_collnet *c)
{
	const struct ha_collnet_agreement *g = &c->agree[HA_COLLNET_JOIN];

	c->join.post_limit = UINT64_MAX;
	if (g->a) {
		c->join.state = HA_COLLNET_WAITING;
		c->join.logged = 0;
		/* The first attempt comes while all are connecting, and nobody posts; at later ones
		 * some may have posted already. */
		ha_collnet_group_begin(c, c->join.attempt,
				       g->b + (c->join.attempt > 1 ? HA_COLLNET_DEPTH : 0) + 1);
		return;
	}
	if (c->group.handle)
		c->params.ina->group_leave(c->group.handle);
	c->group.handle = NULL;
	ha_collnet_group_pause(c);
}

/* Rank 0 asks for a group: once at the start, and again when all are connected. */
static bool create_is_due(const struct ha_collnet *c)
{
	if (c->rank || (!c->connected && c->join.attempt))
		return false;
	return ha_collnet_now(c) >= c->join.next_try;
}

static void step_waiting(struct ha_collnet *c)
{
	if (c->join.state == HA_COLLNET_WAITING && c->join.offer.waits)
		take_offer(c);
	if (c->join.state != HA_COLLNET_WAITING || !create_is_due(c))
		return;
	pilot_start(c, HA_PILOT_CREATE);
	c->join.state = HA_COLLNET_CREATING;
}

static void step_offered(struct ha_collnet *c)
{
	if (c->join.state != HA_COLLNET_OFFERED || c->join.offer_due || c->own.next <= c->own.last)
		return;
	c->join.state = HA_COLLNET_BOARDING;
	if (c->join.offer_ok)
		pilot_start(c, HA_PILOT_JOIN);
	else
		begin_agreement(c, false);
}

/* One state after the other, so that a step goes as far as it can. */
void ha_collnet_join_step(struct ha_collnet *c)
{
	pass_on(c);
	if (c->mode != HA_COLLNET_RAILS || !c->team.backends)
		return;
	step_waiting(c);
	if (c->join.state == HA_COLLNET_CREATING && pilot_back(c))
		finish_creating(c);
	step_offered(c);
	if (c->join.state == HA_COLLNET_BOARDING && pilot_back(c))
		finish_boarding(c);
	if (c->join.state == HA_COLLNET_JOINED && ha_collnet_agree_step(c, HA_COLLNET_JOIN))
		finish_agreement(c);
	pass_on(c);
}
