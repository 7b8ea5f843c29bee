/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree.c - all ranks come to the same value
 *
 * Round i: what this rank knows goes over control lane i, what lane i brings is merged into it.
 * Merging twice changes nothing (least, greatest, and), so it does not matter that the ranks'
 * shares overlap when their number is no power of two. Agreements of one topic follow each other in
 * the same order at all ranks.
 */
#include "plugin/collnet/comm.h"

#include <errno.h>
#include <string.h>

static const uint16_t type_of[HA_COLLNET_TOPICS] = {
	[HA_COLLNET_JOIN] = HA_COLLNET_AGREE_JOIN,
	[HA_COLLNET_BREAKING] = HA_COLLNET_AGREE_BREAK,
	[HA_COLLNET_OWN] = HA_COLLNET_AGREE_OWN,
};

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void ha_collnet_agree_begin(struct ha_collnet *c, enum ha_collnet_topic topic, uint64_t id,
			    uint64_t a, uint64_t b)
{
	struct ha_collnet_agreement *g = &c->agree[topic];

	g->active = true;
	g->sent = false;
	g->round = 0;
	g->id = id;
	g->a = a;
	g->b = b;
	g->votes = 0;
}

void ha_collnet_on_agree(struct ha_collnet *c, unsigned lane, const struct ha_collnet_msg *m)
{
	unsigned topic = m->type - HA_COLLNET_AGREE_JOIN;
	struct ha_collnet_stash *s = c->agree[topic].stash[lane];

	if (m->length > sizeof(s->vote) || m->length % sizeof(s->vote[0]) || m->hop != lane) {
		ha_collnet_fail(c, -EPROTO, "rank %u sent an agreement that is none", m->from);
		return;
	}
	if (s->used)
		s++;
	if (s->used) {
		ha_collnet_fail(c, -EPROTO, "rank %u is three agreements ahead", m->from);
		return;
	}
	s->used = true;
	s->id = m->id;
	s->a = m->a;
	s->b = m->b;
	s->votes = m->length / (uint32_t)sizeof(s->vote[0]);
	memcpy(s->vote, m + 1, m->length);
}

/* No votes: all of the operation was there. */
static void merge_votes(struct ha_collnet *c, struct ha_collnet_agreement *g,
			const struct ha_collnet_stash *s)
{
	if (!s->votes)
		return;
	if (!g->votes) {
		g->votes = s->votes;
		memcpy(g->vote, s->vote, s->votes * sizeof(s->vote[0]));
		return;
	}
	if (g->votes != s->votes) {
		ha_collnet_fail(c, -EINVAL, "the ranks do not agree how long operation %llu is",
				(unsigned long long)g->id);
		return;
	}
	for (uint32_t i = 0; i < g->votes; i++) {
		if (s->vote[i].owner < g->vote[i].owner)
			g->vote[i].owner = s->vote[i].owner;
		g->vote[i].all &= s->vote[i].all;
	}
}

static void merge_stash(struct ha_collnet *c, enum ha_collnet_topic topic,
			const struct ha_collnet_stash *s)
{
	struct ha_collnet_agreement *g = &c->agree[topic];

	if (topic == HA_COLLNET_JOIN)
		g->a &= s->a;
	else
		g->a = max_u64(g->a, s->a);
	g->b = max_u64(g->b, s->b);
	merge_votes(c, g, s);
}

static bool send_round(struct ha_collnet *c, enum ha_collnet_topic topic)
{
	struct ha_collnet_agreement *g = &c->agree[topic];
	struct ha_collnet_msg *m = ha_lane_next(&c->out[g->round], type_of[topic], g->id);
	size_t bytes = g->votes * sizeof(g->vote[0]);

	if (!m)
		return false;
	m->hop = (uint16_t)g->round;
	m->from = (uint32_t)c->rank;
	m->a = g->a;
	m->b = g->b;
	memcpy(m + 1, g->vote, bytes);
	ha_lane_send(&c->out[g->round], bytes);
	return true;
}

bool ha_collnet_agree_step(struct ha_collnet *c, enum ha_collnet_topic topic)
{
	struct ha_collnet_agreement *g = &c->agree[topic];

	while (g->active && !c->error) {
		struct ha_collnet_stash *s;

		if (g->round == c->rounds) {
			g->active = false;
			return true;
		}
		if (!g->sent && !send_round(c, topic))
			break;
		g->sent = true;
		s = g->stash[g->round];
		if (!(s->used && s->id == g->id))
			s++;
		if (!(s->used && s->id == g->id))
			break;
		merge_stash(c, topic, s);
		s->used = false;
		g->round++;
		g->sent = false;
	}
	return false;
}
