/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - a group at the switch: operations go in, and what becomes of them when it breaks
 *
 * Whoever sees an operation fail leaves the group and tells the others, who leave too. From then on
 * nobody's results change. The ranks agree which operations were posted to the switch at all
 * (AGREE_BREAK), and then, operation by operation, who has which segments (AGREE_OWN). An operation
 * that some rank has not posted yet waits for it there; nobody can have its result.
 */
#include "plugin/collnet/comm.h"

#include "base/clock.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

#define PAUSE_FIRST (200 * HA_NS_PER_MS)
#define PAUSE_LAST (3 * HA_NS_PER_S)
/* a group that lasted so long is not held against the next one */
#define STEADY (10 * HA_NS_PER_S)

void ha_collnet_group_pause(struct ha_collnet *c)
{
	if (c->mode == HA_COLLNET_RAILS && c->since && ha_collnet_now(c) - c->since > STEADY)
		c->pause_ns = 0;
	c->since = 0;
	c->pause_ns = c->pause_ns ? c->pause_ns * 2 : PAUSE_FIRST;
	if (c->pause_ns > PAUSE_LAST)
		c->pause_ns = PAUSE_LAST;
	c->next_try = ha_collnet_now(c) + c->pause_ns;
	c->joining = HA_COLLNET_WAITING;
}

static void leave_group(struct ha_collnet *c, int err)
{
	if (c->mode != HA_COLLNET_SWITCH)
		return;
	c->mode = HA_COLLNET_LEAVING;
	c->stats.breaks++;
	for (unsigned i = 0; i < c->rounds; i++)
		c->break_due[i] = true;
	c->ops->group_leave(c->group);
	c->group = NULL;
	if (err)
		HA_WARN(c->name,
			"the switch has left us (%s): operations from %llu on go over the rails; "
			"look at `ha-backend` on this host, at the switch, and for a rank that was "
			"late",
			strerror(-err), (unsigned long long)c->have[0] + 1);
}

void ha_collnet_group_begin(struct ha_collnet *c, uint64_t epoch, uint64_t from)
{
	c->mode = HA_COLLNET_SWITCH;
	c->epoch = epoch;
	c->switch_from = from;
	c->last_switched = from - 1;
	c->stats.epochs++;
	c->since = ha_collnet_now(c);
	ha_collnet_confirm_begin(c);
	HA_INFO(c->name, "sums of %d ranks are made by the switch, from operation %llu on",
		c->ranks, (unsigned long long)from);
}

int ha_collnet_group_post(struct ha_collnet *c, struct ha_collnet_op *op)
{
	struct ha_ina_request request = {
		.coll = HA_INA_ALL_REDUCE,
		.type = HA_INA_FLOAT32,
		.bytes = op->bytes,
		.in = op->in,
		.out = op->out,
		.memory = HA_INA_HOST,
	};
	int over = c->ops->group_state(c->group), err = over;

	op->have = !err && !op->bytes;
	if (!err && op->bytes)
		err = c->ops->post(c->group, &request, &op->ina);
	if (err) {
		op->ina = NULL;
		/* a group that has ended stays so, with whatever errno */
		if (err == -EAGAIN && !over)
			return err;
		leave_group(c, err);
		return 0;
	}
	if (c->last_switched == c->have[0])
		c->active_at = ha_collnet_now(c);
	c->last_switched = op->seq;
	return 0;
}

void ha_collnet_on_group(struct ha_collnet *c, const struct ha_collnet_msg *m)
{
	if (m->id > c->break_seen)
		c->break_seen = m->id;
}

static void on_switch(struct ha_collnet *c)
{
	struct ha_collnet_op *op;
	int result;

	if (c->break_seen >= c->epoch)
		leave_group(c, 0);
	while (c->mode == HA_COLLNET_SWITCH && (op = ha_collnet_op_find(c, c->have[0] + 1)) &&
	       op->seq <= c->last_switched) {
		result = 0;
		if (op->ina && !c->ops->test(op->ina, &result))
			break;
		if (result) {
			leave_group(c, result);
			break;
		}
		if (op->ina)
			c->ops->op_free(op->ina);
		op->ina = NULL;
		op->have = true;
		c->have[0]++;
		c->active_at = ha_collnet_now(c);
	}
	/* Backends have limits of their own; this is for one that hangs. When a peer was merely
	 * late, the ring waits for it as well. */
	if (c->mode == HA_COLLNET_SWITCH && c->have[0] < c->last_switched &&
	    ha_collnet_now(c) - c->active_at > c->silence_ns)
		leave_group(c, -ETIMEDOUT);
}

/* What has ended, with whatever result, changes no more. */
static bool freeze_op(struct ha_collnet *c, struct ha_collnet_op *op)
{
	int result;

	if (!c->ops->test(op->ina, &result))
		return false;
	for (unsigned s = 0; s < op->segments; s++) {
		bool done = !result || c->ops->op_done(op->ina, s);

		op->vote[s] =
			(struct ha_collnet_vote) { done ? (uint8_t)c->rank : HA_COLLNET_NOBODY,
						   done };
	}
	c->ops->op_free(op->ina);
	op->ina = NULL;
	op->frozen = true;
	return true;
}

static void step_leaving(struct ha_collnet *c)
{
	for (uint64_t seq = c->oldest; seq <= c->posted; seq++) {
		struct ha_collnet_op *op = ha_collnet_op_find(c, seq);

		if (op && op->ina && !freeze_op(c, op))
			return;
	}
	c->mode = HA_COLLNET_COUNTING;
	ha_collnet_agree_begin(c, HA_COLLNET_BREAKING, c->epoch, c->last_switched,
			       c->have[c->rounds]);
}

static void finish_counting(struct ha_collnet *c)
{
	const struct ha_collnet_agreement *g = &c->agree[HA_COLLNET_BREAKING];

	for (uint64_t seq = c->oldest; seq <= g->b; seq++) { /* everybody has these */
		struct ha_collnet_op *op = ha_collnet_op_find(c, seq);

		if (op && !op->done && seq >= c->switch_from) {
			ha_collnet_op_done(op);
			c->stats.switched++;
		}
	}
	c->own_next = g->b + 1;
	c->own_last = g->a;
	c->mode = HA_COLLNET_RAILS;
	c->switch_from = UINT64_MAX;
	ha_collnet_group_pause(c);
	if (c->own_next <= c->own_last)
		HA_INFO(c->name, "operations %llu to %llu are finished over the rails",
			(unsigned long long)c->own_next, (unsigned long long)c->own_last);
}

/* ---- who has what ---- */

static void begin_vote(struct ha_collnet *c)
{
	struct ha_collnet_agreement *g = &c->agree[HA_COLLNET_OWN];
	struct ha_collnet_op *op = ha_collnet_op_find(c, c->own_next);

	ha_collnet_agree_begin(c, HA_COLLNET_OWN, c->own_next, 0, 0);
	if (!op || op->done) /* so all have it, though it may be out of this rank's hands */
		return;
	g->votes = op->segments;
	for (unsigned s = 0; s < op->segments; s++) {
		if (op->have)
			g->vote[s] = (struct ha_collnet_vote) { (uint8_t)c->rank, 1 };
		else
			g->vote[s] = op->frozen ? op->vote[s]
						: (struct ha_collnet_vote) { HA_COLLNET_NOBODY, 0 };
	}
}

static void finish_vote(struct ha_collnet *c)
{
	const struct ha_collnet_agreement *g = &c->agree[HA_COLLNET_OWN];
	struct ha_collnet_op *op = ha_collnet_op_find(c, c->own_next);

	c->own_next++;
	if (!op || op->done)
		return;
	if (g->votes && g->votes != op->segments) {
		ha_collnet_fail(c, -EINVAL, "the ranks do not agree how long operation %llu is",
				(unsigned long long)op->seq);
		return;
	}
	for (unsigned s = 0; s < op->segments; s++)
		op->vote[s] =
			g->votes ? g->vote[s] : (struct ha_collnet_vote) { HA_COLLNET_NOBODY, 1 };
	op->owned = true;
}

static void step_owning(struct ha_collnet *c)
{
	while (!c->error && c->own_next <= c->own_last) {
		if (!c->agree[HA_COLLNET_OWN].active) {
			if (c->own_next > c->posted)
				return;
			begin_vote(c);
		}
		if (!ha_collnet_agree_step(c, HA_COLLNET_OWN))
			return;
		finish_vote(c);
	}
}

void ha_collnet_group_step(struct ha_collnet *c)
{
	if (c->mode == HA_COLLNET_SWITCH)
		on_switch(c);
	if (c->mode == HA_COLLNET_LEAVING)
		step_leaving(c);
	for (unsigned i = 0; i < c->rounds; i++) {
		struct ha_collnet_msg *m;

		if (!c->break_due[i] || !(m = ha_lane_next(&c->out[i], HA_COLLNET_BREAK, c->epoch)))
			continue;
		m->from = (uint32_t)c->rank;
		ha_lane_send(&c->out[i], 0);
		c->break_due[i] = false;
	}
	if (c->mode == HA_COLLNET_COUNTING && ha_collnet_agree_step(c, HA_COLLNET_BREAKING))
		finish_counting(c);
	if (c->mode == HA_COLLNET_RAILS)
		step_owning(c);
}
