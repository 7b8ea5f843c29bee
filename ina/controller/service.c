/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/service.h"

#include "base/log.h"
#include "ina/controller/store.h"

#include <errno.h>
#include <string.h>

/* ---- what is kept; failures show at the commit ---- */

static void keep_group(struct ha_service *s, const struct ha_group *group)
{
	s->dirty = true;
	if (s->store)
		ha_store_group(s->store, &group->r);
}

static void keep_epoch(struct ha_service *s, const struct ha_group *group)
{
	if (s->store)
		ha_store_epoch(s->store, group->home->info.name, group->r.id, group->r.epoch);
}

static void keep_switch(struct ha_service *s, const struct ha_switch *sw)
{
	s->dirty = true;
	if (s->store)
		ha_store_switch(s->store, sw);
}

/* ---- opening and closing ---- */

static int load_state(struct ha_service *s, uint64_t now, char *why, size_t size)
{
	const struct ha_group *group;
	int err;

	ha_groups_open(&s->groups, &s->settings->limits);
	s->groups.quotas = s->settings->quotas;
	for (unsigned i = 0; i < s->settings->nsw; i++)
		if (!ha_groups_switch(&s->groups, &s->settings->sw[i], now))
			return -ENOMEM;
	if (!s->store)
		return 0;
	err = ha_store_load(s->store, &s->groups, now, why, size);
	if (err)
		return err;
	for (unsigned i = 0; i < s->groups.nsw; i++)
		keep_switch(s, s->groups.sw[i]);
	LIST_FOREACH(group, &s->groups.all, link)
		if (group->r.state == HA_GROUP_CLOSED)
			keep_group(s, group);
	return 0;
}

int ha_service_open(struct ha_service *s, const struct ha_settings *settings,
		    struct ha_store *store, uint64_t now, char *why, size_t size)
{
	bool fatal;
	int err;

	memset(s, 0, sizeof(*s));
	s->settings = settings;
	s->store = store;
	err = load_state(s, now, why, size);
	if (!err && !ha_service_commit(s, now, why, size, &fatal))
		err = -EIO;
	if (err)
		ha_service_close(s);
	return err;
}

void ha_service_close(struct ha_service *s)
{
	ha_groups_close_all(&s->groups);
}

/* ---- time ---- */

static void forget_group(struct ha_service *s, struct ha_group *group)
{
	s->dirty = true;
	if (s->store)
		ha_store_group_delete(s->store, group->r.serial);
	s->count.forgotten++;
	ha_groups_forget(&s->groups, group);
}

void ha_service_tick(struct ha_service *s, uint64_t now)
{
	struct ha_group *group;

	while ((group = ha_groups_due(&s->groups, now)) != NULL) {
		if (group->r.state == HA_GROUP_CLOSED) {
			forget_group(s, group);
			continue;
		}
		HA_INFO(group->r.switch_name,
			"group %u of %s (%s): nobody has renewed it for %u ms; it has ended",
			group->r.id, group->r.tenant, *group->r.name ? group->r.name : "no name",
			group->r.lease_ms);
		s->count.expired++;
		ha_service_end(s, group, "nobody has renewed it", now);
	}
}

bool ha_service_commit(struct ha_service *s, uint64_t now, char *why, size_t size, bool *fatal)
{
	*fatal = false;
	if (!s->dirty)
		return true;
	s->dirty = false;
	if (!s->store ||
	    (!ha_store_serial(s->store, s->groups.serial) && !ha_store_commit(s->store)))
		return true;
	s->count.store_failures++;
	snprintf(why, size, "the controller cannot write its database: %s",
		 ha_store_error(s->store));
	HA_WARN("store", "%s; what was asked for has not happened", why);
	ha_store_rollback(s->store);
	ha_groups_close_all(&s->groups);
	*fatal = load_state(s, now, why, size) != 0;
	s->dirty = false; /* what loading would tidy up it will tidy up again */
	ha_store_rollback(s->store);
	return false;
}

/* ---- changes ---- */

static void count_refusal(struct ha_service *s, enum ha_refusal_kind kind)
{
	uint64_t *const counter[] = { [HA_REFUSAL_FULL] = &s->count.refused_full,
				      [HA_REFUSAL_IDS] = &s->count.refused_numbers,
				      [HA_REFUSAL_QUOTA] = &s->count.refused_quota,
				      [HA_REFUSAL_UNREACHED] = &s->count.refused_unreached,
				      [HA_REFUSAL_AWAY] = &s->count.refused_away,
				      [HA_REFUSAL_INVALID] = &s->count.invalid };

	if (kind)
		++*counter[kind];
}

struct ha_group *ha_service_create(struct ha_service *s, const struct ha_group_spec *spec,
				   uint64_t now, struct ha_refusal *why)
{
	bool again;
	struct ha_group *group = ha_groups_create(&s->groups, spec, now, &again, why);

	if (!group) {
		count_refusal(s, why->kind);
		return NULL;
	}
	if (again) {
		s->count.repeated++;
		return group;
	}
	s->count.created++;
	keep_group(s, group);
	keep_epoch(s, group);
	return group;
}

bool ha_service_join(struct ha_service *s, struct ha_group *group, unsigned rank,
		     uint64_t incarnation, uint64_t now)
{
	bool changed, joined = ha_groups_join(group, rank, incarnation, now, &changed);

	s->count.joined += joined && changed;
	s->count.joined_before += !joined;
	if (joined && changed)
		keep_group(s, group);
	return joined;
}

void ha_service_end(struct ha_service *s, struct ha_group *group, const char *why, uint64_t now)
{
	ha_groups_end(&s->groups, group, why, now);
	keep_group(s, group);
}

static bool same_info(const struct ha_switch_info *a, const struct ha_switch_info *b)
{
	if (a->address != b->address || a->slots != b->slots || a->nserves != b->nserves ||
	    a->configured != b->configured || a->registers != b->registers)
		return false;
	for (unsigned i = 0; i < a->nserves; i++)
		if (a->serves[i].addr != b->serves[i].addr || a->serves[i].len != b->serves[i].len)
			return false;
	return true;
}

/* Everything of a switch: it has changed as a whole, which is rare. */
static void keep_all_of(struct ha_service *s, const struct ha_switch *sw)
{
	keep_switch(s, sw);
	for (unsigned id = 0; id < HA_GROUP_IDS; id++)
		if (sw->group[id]) {
			keep_group(s, sw->group[id]);
			keep_epoch(s, sw->group[id]);
		}
}

/* The rows of switches whose place another one has taken. */
static void drop_evicted(struct ha_service *s, const char *name)
{
	if (s->store && *name && !ha_groups_switch_find(&s->groups, name))
		ha_store_switch_delete(s->store, name);
}

struct ha_switch *ha_service_switch(struct ha_service *s, const struct ha_switch_info *info,
				    uint64_t incarnation, uint64_t now)
{
	char before[HA_GROUPS_SWITCHES][HA_SWITCH_NAME];
	struct ha_switch *sw = ha_groups_switch_find(&s->groups, info->name);
	bool fresh = !sw || sw->incarnation != incarnation;
	unsigned n = s->groups.nsw;

	s->count.switch_heartbeats++;
	if (!sw || !same_info(&sw->info, info)) {
		for (unsigned i = 0; i < n; i++)
			strcpy(before[i], s->groups.sw[i]->info.name);
		sw = ha_groups_switch(&s->groups, info, now);
		if (!sw)
			return NULL;
		for (unsigned i = 0; i < n; i++)
			drop_evicted(s, before[i]);
		fresh = true;
	}
	if (ha_groups_switch_reported(&s->groups, sw, incarnation, now)) {
		s->count.switch_restarts++;
		HA_WARN(sw->info.name,
			"the switch has lost its memory; its groups have new epochs");
	}
	if (fresh)
		keep_all_of(s, sw);
	return sw;
}
