/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - a group at the switch: operations go in, and what becomes of them when it breaks
 *
 * Whoever sees an operation fail leaves the group and notifies the others, who leave too. From then
 * on nobody's results change. The ranks agree which operations were posted to the switch at all
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
	if (c->mode == HA_COLLNET_RAILS && c->group.since &&
	    ha_collnet_now(c) - c->group.since > STEADY)
		c->join.pause_ns = 0;
	c->group.since = 0;
	c->join.pause_ns = c->join.pause_ns ? c->join.pause_ns * 2 : PAUSE_FIRST;
	if (c->join.pause_ns > PAUSE_LAST)
		c->join.pause_ns = PAUSE_LAST;
	c->join.next_try = ha_collnet_now(c) + c->join.pause_ns;
	c->join.state = HA_COLLNET_WAITING;
}

static void leave_group(struct ha_collnet *c, int err)
{
	if (c->mode != HA_COLLNET_SWITCH)
		return;
	c->mode = HA_COLLNET_LEAVING;
	c->stats.breaks++;
	for (unsigned i = 0; i < c->rounds; i++)
		c->group.break_due[i] = true;
	c->params.ina->group_leave(c->group.handle);
	c->group.handle = NULL;
	if (err)
		HA_WARN(c->name,
			"the switch has left us (%s): operations from %llu on go over the rails; "
			"look at `ha-backend` on this host, at the switch, and for a rank that was "
			"late",
			strerror(-err), (unsigned long long)c->confirm.have[0] + 1);
}

void ha_collnet_group_begin(struct ha_collnet *c, uint64_t epoch, uint64_t from)
{
	c->mode = HA_COLLNET_SWITCH;
	c->group.epoch = epoch;
	c->group.from = from;
	c->group.last = from - 1;
	c->stats.epochs++;
	c->group.since = ha_collnet_now(c);
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
	int over = c->params.ina->group_state(c->group.handle), err = over;

	op->have = !err && !op->bytes;
	if (!err && op->bytes)
		err = c->params.ina->post(c->group.handle, &request, &op->ina);
	if (err) {
		op->ina = NULL;
		/* a group that has ended stays so, with whatever errno */
		if (err == -EAGAIN && !over)
			return err;
		leave_group(c, err);
		return 0;
	}
	if (c->group.last == c->confirm.have[0])
		c->group.active_at = ha_collnet_now(c);
	c->group.last = op->seq;
	return 0;
}

void ha_collnet_on_group(struct ha_collnet *c, const struct ha_collnet_msg *m)
{
	if (m->id > c->group.break_seen)
		c->group.break_seen = m->id;
}

static void on_switch(struct ha_collnet *c)
{
	struct ha_collnet_op *op;
	int result;

	if (c->group.break_seen >= c->group.epoch)
		leave_group(c, 0);
	while (c->mode == HA_COLLNET_SWITCH &&
	       (op = ha_collnet_op_find(c, c->confirm.have[0] + 1)) && op->seq <= c->group.last) {
		result = 0;
		if (op->ina && !c->params.ina->test(op->ina, &result))
			break;
		if (result) {
			leave_group(c, result);
			break;
		}
		if (op->ina)
			c->params.ina->op_free(op->ina);
		op->ina = NULL;
		op->have = true;
		c->confirm.have[0]++;
		c->group.active_at = ha_collnet_now(c);
	}
	/* Backends have limits of their own; this is for one that hangs. When a peer was merely
	 * late, the ring waits for it as well. */
	if (c->mode == HA_COLLNET_SWITCH && c->confirm.have[0] < c->group.last &&
	    ha_collnet_now(c) - c->group.active_at > c->params.silence_ns)
		leave_group(c, -ETIMEDOUT);
}

/* What has ended, with whatever result, changes no more. */
static bool freeze_op(struct ha_collnet *c, struct ha_collnet_op *op)
{
	int result;

	if (!c->params.ina->test(op->ina, &result))
		return false;
	for (unsigned s = 0; s < op->segments; s++) {
		bool done = !result || c->params.ina->op_done(op->ina, s);

		op->vote[s] =
			(struct ha_collnet_vote) { done ? (uint8_t)c->rank : HA_COLLNET_NOBODY,
						   done };
	}
	c->params.ina->op_free(op->ina);
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
	ha_collnet_agree_begin(c, HA_COLLNET_BREAKING, c->group.epoch, c->group.last,
			       c->confirm.have[c->rounds]);
}

static void finish_counting(struct ha_collnet *c)
{
	const struct ha_collnet_agreement *g = &c->agree[HA_COLLNET_BREAKING];

	for (uint64_t seq = c->oldest; seq <= g->b; seq++) { /* everybody has these */
		struct ha_collnet_op *op = ha_collnet_op_find(c, seq);

		if (op && !op->done && seq >= c->group.from) {
			ha_collnet_op_done(op);
			c->stats.switched++;
		}
	}
	c->own.next = g->b + 1;
	c->own.last = g->a;
	c->mode = HA_COLLNET_RAILS;
	c->group.from = UINT64_MAX;
	ha_collnet_group_pause(c);
	if (c->own.next <= c->own.last)
		HA_INFO(c->name, "operations %llu to %llu are finished over the rails",
			(unsigned long long)c->own.next, (unsigned long long)c->own.last);
}

/* ---- who has what ---- */

static void begin_vote(struct ha_collnet *c)
{
	struct ha_collnet_agreement *g = &c->agree[HA_COLLNET_OWN];
	struct ha_collnet_op *op = ha_collnet_op_find(c, c->own.next);

	ha_collnet_agree_begin(c, HA_COLLNET_OWN, c->own.next, 0, 0);
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
	struct ha_collnet_op *op = ha_collnet_op_find(c, c->own.next);

	c->own.next++;
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
	while (!c->error && c->own.next <= c->own.last) {
		if (!c->agree[HA_COLLNET_OWN].active) {
			if (c->own.next > c->posted)
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

		if (!c->group.break_due[i] ||
		    !(m = ha_lane_next(&c->out[i], HA_COLLNET_BREAK, c->group.epoch)))
			continue;
		m->from = (uint32_t)c->rank;
		ha_lane_send(&c->out[i], 0);
		c->group.break_due[i] = false;
	}
	if (c->mode == HA_COLLNET_COUNTING && ha_collnet_agree_step(c, HA_COLLNET_BREAKING))
		finish_counting(c);
	if (c->mode == HA_COLLNET_RAILS)
		step_owning(c);
}
