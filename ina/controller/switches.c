/* SPDX-License-Identifier: BSD-3-Clause */
/* What groups.h says about switches. */
#include "ina/controller/groups.h"

#include <stdlib.h>
#include <string.h>

static bool can_forget(const struct ha_groups *g, const struct ha_switch *s, uint64_t now)
{
	return ha_groups_switch_empty(s) &&
	       (s->gone || (!s->info.configured && !ha_groups_switch_up(g, s, now)));
}

struct ha_switch *ha_groups_switch_same(const struct ha_groups *g,
					const struct ha_switch_info *info, uint64_t now)
{
	bool fresh = !ha_groups_switch_find(g, info->name);

	for (unsigned i = 0; i < g->nsw; i++) {
		struct ha_switch *s = g->sw[i];

		if (!s->gone && s->info.address == info->address &&
		    strcmp(s->info.name, info->name) && !(fresh && can_forget(g, s, now)))
			return s;
	}
	return NULL;
}

static struct ha_switch *place_new(struct ha_groups *g)
{
	struct ha_switch *s = g->nsw < HA_GROUPS_SWITCHES ? calloc(1, sizeof(*s)) : NULL;

	if (s)
		g->sw[g->nsw++] = s;
	return s;
}

/*
 * A place in the table: that of a switch that has another name now; a new one; that of a switch
 * that nobody has use for.
 */
static struct ha_switch *find_place(struct ha_groups *g, uint32_t address, uint64_t now)
{
	struct ha_switch *s;

	for (unsigned i = 0; i < g->nsw; i++) {
		s = g->sw[i];
		if (s->info.address == address && !s->gone && can_forget(g, s, now)) {
			memset(s, 0, sizeof(*s));
			return s;
		}
	}
	s = place_new(g);
	if (s)
		return s;
	for (unsigned i = 0; i < g->nsw; i++) {
		s = g->sw[i];
		if (can_forget(g, s, now)) {
			memset(s, 0, sizeof(*s));
			return s;
		}
	}
	return NULL;
}

/* A new allocator, with what the switch holds. */
static void rebuild_allocator(struct ha_groups *g, struct ha_switch *s, uint64_t now)
{
	ha_buddy_open(&s->buddy, s->info.slots);
	for (unsigned id = 0; id < HA_GROUP_IDS; id++) {
		struct ha_group *group = s->group[id];

		if (!group)
			continue;
		ha_buddy_reserve(&s->buddy, group->r.base, group->r.len);
		if (group->r.base + group->r.len > s->buddy.slots &&
		    group->r.state == HA_GROUP_LIVE)
			ha_groups_end(g, group, "the switch has fewer aggregators now", now);
	}
}

static void all_end(struct ha_groups *g, struct ha_switch *s, const char *why, uint64_t now)
{
	for (unsigned id = 0; id < HA_GROUP_IDS; id++)
		if (s->group[id] && s->group[id]->r.state == HA_GROUP_LIVE)
			ha_groups_end(g, s->group[id], why, now);
}

struct ha_switch *ha_groups_switch_restore(struct ha_groups *g, const struct ha_switch_info *info,
					   uint64_t now)
{
	struct ha_switch *s = place_new(g);

	if (!s)
		return NULL;
	s->version = ++g->versions;
	s->info = *info;
	rebuild_allocator(g, s, now);
	return s;
}

struct ha_switch *ha_groups_switch(struct ha_groups *g, const struct ha_switch_info *info,
				   uint64_t now)
{
	struct ha_switch *s = ha_groups_switch_find(g, info->name);
	bool fresh = !s;

	if (fresh) {
		s = find_place(g, info->address, now);
		if (!s)
			return NULL;
		s->version = ++g->versions;
	} else if (s->info.address != info->address) {
		all_end(g, s, "the switch has another address now", now);
	}
	if (fresh || s->info.slots != info->slots) {
		s->info = *info;
		rebuild_allocator(g, s, now);
	}
	s->info = *info;
	s->gone = false;
	return s;
}

void ha_groups_switch_gone(struct ha_groups *g, struct ha_switch *s, uint64_t now)
{
	s->gone = true;
	all_end(g, s, "the switch is no longer in the settings, or another one has its address",
		now);
}

bool ha_groups_switch_reported(struct ha_groups *g, struct ha_switch *s, uint64_t incarnation,
			       uint64_t now)
{
	bool lost = s->incarnation && s->incarnation != incarnation;

	s->last_seen = now;
	s->ever_seen = true;
	s->incarnation = incarnation;
	if (!lost)
		return false;
	for (unsigned id = 0; id < HA_GROUP_IDS; id++)
		if (s->group[id] && s->group[id]->r.state == HA_GROUP_LIVE)
			s->group[id]->r.epoch = ++s->epoch[id];
	s->version = ++g->versions;
	return true;
}
