/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/groups.h"

#include "base/clock.h"
#include "base/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ha_switch *ha_groups_switch_find(const struct ha_groups *g, const char *name)
{
	for (unsigned i = 0; i < g->nsw; i++)
		if (!strcmp(g->sw[i]->info.name, name))
			return g->sw[i];
	return NULL;
}

bool ha_groups_switch_empty(const struct ha_switch *s)
{
	for (unsigned id = 0; id < HA_GROUP_IDS; id++)
		if (s->group[id])
			return false;
	return true;
}

bool ha_groups_switch_up(const struct ha_groups *g, const struct ha_switch *s, uint64_t now)
{
	if (s->gone)
		return false;
	if (!s->info.registers)
		return true;
	return s->ever_seen && now - s->last_seen < g->limits.silence_ns;
}

/* ---- refusals ---- */

static bool set_refusal(struct ha_refusal *why, enum ha_refusal_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static bool set_refusal(struct ha_refusal *why, enum ha_refusal_kind kind, const char *fmt, ...)
{
	va_list ap;

	why->kind = kind;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return false;
}

#define IP_FMT "%u.%u.%u.%u"
#define IP(a) (a) >> 24, (a) >> 16 & 255, (a) >> 8 & 255, (a)&255

/* ---- set-up and end ---- */

void ha_groups_open(struct ha_groups *g, const struct ha_groups_limits *limits)
{
	memset(g, 0, sizeof(*g));
	g->limits = *limits;
	g->quotas.others = (struct ha_quota) { .groups = HA_GROUP_IDS * HA_GROUPS_SWITCHES,
					       .slots = HA_BUDDY_SLOTS * HA_GROUPS_SWITCHES };
	/*
	 * A switch that remembers a table of our last incarnation must not take it for one of this
	 * incarnation.
	 */
	g->versions = (ha_random_u64() >> 1 & ~UINT64_C(0xffffffff)) + 1;
}

static void unlink_group(struct ha_group *group)
{
	LIST_REMOVE(group, link);
	group->home->group[group->r.id] = NULL;
	free(group);
}

void ha_groups_close_all(struct ha_groups *g)
{
	while (!LIST_EMPTY(&g->all))
		unlink_group(LIST_FIRST(&g->all));
	for (unsigned i = 0; i < g->nsw; i++)
		free(g->sw[i]);
	g->nsw = g->live = g->closed = 0;
}

static struct ha_group *add_group(struct ha_groups *g, struct ha_switch *s,
				  const struct ha_group_record *r)
{
	struct ha_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->r = *r;
	group->home = s;
	LIST_INSERT_HEAD(&g->all, group, link);
	s->group[r->id] = group;
	return group;
}

static uint64_t lease_ns(const struct ha_group *group)
{
	return group->r.lease_ms * HA_NS_PER_MS;
}

void ha_groups_renew(struct ha_group *group, int rank, uint64_t now)
{
	if (group->r.state != HA_GROUP_LIVE)
		return;
	group->due = now + lease_ns(group);
	if (rank < 0 || rank >= group->r.members)
		return;
	group->renewed |= 1u << rank;
	group->last_seen[rank] = now;
}

bool ha_groups_join(struct ha_group *group, unsigned rank, uint64_t incarnation, uint64_t now,
		    bool *changed)
{
	*changed = !group->r.joined[rank];
	if (!*changed && group->r.joined[rank] != incarnation)
		return false;
	group->r.joined[rank] = incarnation;
	ha_groups_renew(group, (int)rank, now);
	return true;
}

bool ha_groups_leave(struct ha_group *group, unsigned rank)
{
	group->left |= 1u << rank;
	return group->left == UINT32_MAX >> (32 - group->r.members);
}

uint32_t ha_groups_silent(const struct ha_group *group, uint64_t now)
{
	uint32_t silent = 0;

	for (unsigned i = 0; i < group->r.members; i++)
		if (group->renewed & ~group->left & 1u << i &&
		    now - group->last_seen[i] >= lease_ns(group))
			silent |= 1u << i;
	return silent;
}

void ha_groups_end(struct ha_groups *g, struct ha_group *group, const char *why, uint64_t now)
{
	if (group->r.state != HA_GROUP_LIVE)
		return;
	group->r.state = HA_GROUP_CLOSED;
	group->why = why;
	group->due = now + g->limits.late_ns;
	group->home->version = ++g->versions;
	g->live--;
	g->closed++;
}

void ha_groups_forget(struct ha_groups *g, struct ha_group *group)
{
	if (group->r.state != HA_GROUP_CLOSED)
		return;
	ha_buddy_give(&group->home->buddy, group->r.base, group->r.len);
	g->closed--;
	unlink_group(group);
}

struct ha_group *ha_groups_due(const struct ha_groups *g, uint64_t now)
{
	struct ha_group *group;

	LIST_FOREACH(group, &g->all, link)
		if (now >= group->due)
			break;
	return group;
}

/* Later by so much, but nothing that was set after that time. */
static uint64_t shift_time(uint64_t t, uint64_t still, uint64_t most)
{
	if (t + still < most)
		return t + still;
	return t < most ? most : t;
}

void ha_groups_stood_still(struct ha_groups *g, uint64_t still, uint64_t now)
{
	struct ha_group *group;

	LIST_FOREACH(group, &g->all, link) {
		group->due =
			shift_time(group->due, still,
				   now + (group->r.state == HA_GROUP_LIVE ? lease_ns(group)
									  : g->limits.late_ns));
		for (unsigned i = 0; i < group->r.members; i++)
			group->last_seen[i] = shift_time(group->last_seen[i], still, now);
	}
	for (unsigned i = 0; i < g->nsw; i++)
		g->sw[i]->last_seen = shift_time(g->sw[i]->last_seen, still, now);
}

/* ---- what a request may be ---- */

static bool address_valid(uint32_t a)
{
	return a >> 24 != 0 && a >> 24 < 224;
}

static bool members_valid(const struct ha_group_spec *w, struct ha_refusal *why)
{
	if (w->members < HA_GROUP_MEMBERS_MIN || w->members > HA_GROUP_MEMBERS_MAX)
		return set_refusal(why, HA_REFUSAL_INVALID, "a group has %u to %u members, not %zu",
				   HA_GROUP_MEMBERS_MIN, HA_GROUP_MEMBERS_MAX, w->members);
	for (size_t i = 0; i < w->members; i++) {
		if (!address_valid(w->member[i]))
			return set_refusal(why, HA_REFUSAL_INVALID,
					   IP_FMT " of rank %zu is no address of a host",
					   IP(w->member[i]), i);
		for (size_t k = 0; !w->workers && k < i; k++)
			if (w->member[i] == w->member[k])
				return set_refusal(why, HA_REFUSAL_INVALID,
						   "ranks %zu and %zu have the same address " IP_FMT
						   "; each rank of a group needs its own",
						   k, i, IP(w->member[i]));
	}
	return true;
}

static bool spec_valid(const struct ha_group_spec *w, struct ha_refusal *why)
{
	if (!members_valid(w, why))
		return false;
	if (w->workers > HA_GROUP_WORKERS_MAX || w->workers & (w->workers - 1))
		return set_refusal(why, HA_REFUSAL_INVALID,
				   "the workers of a rank are a power of two, at most %u, not %u",
				   HA_GROUP_WORKERS_MAX, w->workers);
	if (w->nonce_len > HA_GROUP_NONCE)
		return set_refusal(why, HA_REFUSAL_INVALID,
				   "a request's number has %u bytes at most, not %zu",
				   HA_GROUP_NONCE, w->nonce_len);
	if (strlen(w->name) >= HA_GROUP_NAME)
		return set_refusal(why, HA_REFUSAL_INVALID, "a group's name has %u bytes at most",
				   HA_GROUP_NAME - 1);
	if (strlen(w->tenant) >= HA_TENANT_NAME)
		return set_refusal(why, HA_REFUSAL_INVALID, "a client's name has %u bytes at most",
				   HA_TENANT_NAME - 1);
	if (w->least > HA_BUDDY_LONGEST)
		return set_refusal(why, HA_REFUSAL_INVALID,
				   "at least %u aggregators wanted, but no group has more than %u",
				   w->least, HA_BUDDY_LONGEST);
	if (w->length && w->least > w->length)
		return set_refusal(why, HA_REFUSAL_INVALID,
				   "at least %u aggregators wanted, but only %u", w->least,
				   w->length);
	return true;
}

static uint32_t power_of_two(uint32_t n)
{
	if (n <= HA_BUDDY_UNIT)
		return HA_BUDDY_UNIT;
	if (n >= HA_BUDDY_LONGEST)
		return HA_BUDDY_LONGEST;
	return 1u << (32 - __builtin_clz(n - 1));
}

static bool same_members(const struct ha_group *group, const struct ha_group_spec *w)
{
	return group->r.members == w->members &&
	       !memcmp(group->r.member, w->member, w->members * sizeof(w->member[0])) &&
	       group->r.workers == w->workers && group->r.extended == w->extended;
}

static struct ha_group *asked_before(const struct ha_groups *g, const struct ha_group_spec *w)
{
	struct ha_group *group;

	if (!w->nonce_len)
		return NULL;
	LIST_FOREACH(group, &g->all, link)
		if (group->r.state == HA_GROUP_LIVE && group->r.nonce_len == w->nonce_len &&
		    !memcmp(group->r.nonce, w->nonce, w->nonce_len) &&
		    !strcmp(group->r.tenant, w->tenant))
			break;
	return group;
}

/* ---- which switch ---- */

static bool prefix_has(const struct ha_prefix *p, uint32_t addr)
{
	return !p->len || !((addr ^ p->addr) >> (32 - p->len));
}

/* 1 + the longest prefix of the switch that the address is in; 0 = none. */
static unsigned match_longest_prefix(const struct ha_switch *s, uint32_t addr)
{
	unsigned best = 0;

	for (unsigned i = 0; i < s->info.nserves; i++)
		if (prefix_has(&s->info.serves[i], addr) && 1u + s->info.serves[i].len > best)
			best = 1u + s->info.serves[i].len;
	return best;
}

/* The nearer it is to the member that is farthest, the better; 0 = it does not reach all. */
static unsigned measure_reach(const struct ha_switch *s, const struct ha_group_spec *w)
{
	unsigned worst = 33;

	for (size_t i = 0; i < w->members && worst; i++) {
		unsigned one = match_longest_prefix(s, w->member[i]);

		worst = one < worst ? one : worst;
	}
	return worst;
}

static uint8_t id_free(const struct ha_groups *g, const struct ha_switch *s)
{
	uint8_t here = 0;

	for (unsigned i = 1; i < HA_GROUP_IDS; i++) {
		uint8_t id = (uint8_t)(1 + (s->last_id + i - 1) % (HA_GROUP_IDS - 1));
		bool elsewhere = false;

		if (s->group[id])
			continue;
		for (unsigned k = 0; k < g->nsw && !elsewhere; k++)
			elsewhere = g->sw[k]->group[id];
		if (!elsewhere) /* NetCCL's DestroyGroup names a group by this number alone */
			return id;
		if (!here)
			here = id;
	}
	return here;
}

/*
 * A switch that is gone, and was the same machine under another name, and still holds groups: their
 * packets may be late.
 */
static const struct ha_switch *find_former_switch(const struct ha_groups *g,
						  const struct ha_switch *s)
{
	for (unsigned i = 0; i < g->nsw; i++)
		if (g->sw[i] != s && g->sw[i]->info.address == s->info.address &&
		    !ha_groups_switch_empty(g->sw[i]))
			return g->sw[i];
	return NULL;
}

static bool is_better_switch(unsigned reach, const struct ha_switch *s, unsigned best_reach,
			     const struct ha_switch *best)
{
	if (!best || reach != best_reach)
		return !best || reach > best_reach;
	if (s->buddy.free != best->buddy.free)
		return s->buddy.free > best->buddy.free;
	return strcmp(s->info.name, best->info.name) < 0;
}

static struct ha_switch *choose_switch(const struct ha_groups *g, const struct ha_group_spec *w,
				       uint32_t len, uint64_t now)
{
	struct ha_switch *best = NULL;
	unsigned best_reach = 0;

	for (unsigned i = 0; i < g->nsw; i++) {
		struct ha_switch *s = g->sw[i];
		unsigned r = measure_reach(s, w);

		if (!r || !ha_groups_switch_up(g, s, now) || ha_buddy_longest(&s->buddy) < len ||
		    !id_free(g, s) || find_former_switch(g, s))
			continue;
		if (is_better_switch(r, s, best_reach, best)) {
			best = s;
			best_reach = r;
		}
	}
	return best;
}

static bool refuse_unreached(const struct ha_groups *g, const struct ha_group_spec *w,
			     struct ha_refusal *why)
{
	for (size_t i = 0; i < w->members; i++) {
		bool any = false;

		for (unsigned k = 0; k < g->nsw && !any; k++)
			any = !g->sw[k]->gone && match_longest_prefix(g->sw[k], w->member[i]);
		if (!any)
			return set_refusal(why, HA_REFUSAL_UNREACHED,
					   "no switch serves " IP_FMT " (rank %zu)",
					   IP(w->member[i]), i);
	}
	return set_refusal(why, HA_REFUSAL_UNREACHED, "no switch serves all %zu members",
			   w->members);
}

/* No switch can give `len` slots: why not. */
static bool no_room(const struct ha_groups *g, const struct ha_group_spec *w, uint32_t len,
		    uint64_t now, struct ha_refusal *why)
{
	const struct ha_switch *away = NULL, *full = NULL, *ids = NULL, *resting = NULL;

	for (unsigned i = 0; i < g->nsw; i++) {
		const struct ha_switch *s = g->sw[i];

		if (s->gone || !measure_reach(s, w))
			continue;
		if (!ha_groups_switch_up(g, s, now))
			away = s;
		else if (find_former_switch(g, s))
			resting = s;
		else if (!id_free(g, s))
			ids = s;
		else
			full = s;
	}
	if (full)
		return set_refusal(
			why, HA_REFUSAL_FULL,
			"switch %s has no %u aggregators in one piece; the longest is %u",
			full->info.name, len, ha_buddy_longest(&full->buddy));
	if (resting)
		return set_refusal(
			why, HA_REFUSAL_FULL,
			"switch %s was %s, whose groups are not over yet; try again later",
			resting->info.name, find_former_switch(g, resting)->info.name);
	if (ids)
		return set_refusal(
			why, HA_REFUSAL_IDS,
			"switch %s has no group number left; %u are in use or in quarantine",
			ids->info.name, HA_GROUP_IDS - 1);
	if (away)
		return set_refusal(why, HA_REFUSAL_AWAY, "switch %s does not answer",
				   away->info.name);
	return refuse_unreached(g, w, why);
}

/* ---- quotas ---- */

struct use {
	uint32_t groups, slots;
};

static struct use use_of(const struct ha_groups *g, const char *tenant)
{
	const struct ha_group *group;
	struct use use = { 0, 0 };

	LIST_FOREACH(group, &g->all, link)
		if (!strcmp(group->r.tenant, tenant)) {
			use.groups++;
			use.slots += group->r.len;
		}
	return use;
}

static bool quota_allows(const struct ha_quota *quota, const struct use *use, const char *tenant,
			 uint32_t len, struct ha_refusal *why)
{
	if (use->groups >= quota->groups)
		return set_refusal(why, HA_REFUSAL_QUOTA,
				   "%s has %u groups, in quarantine or not, of %u that it may have",
				   tenant, use->groups, quota->groups);
	if (quota->slots < use->slots || len > quota->slots - use->slots)
		return set_refusal(
			why, HA_REFUSAL_QUOTA,
			"%s has %u aggregators of %u that it may have, and wants %u more", tenant,
			use->slots, quota->slots, len);
	return true;
}

/* ---- create ---- */

/* The longest of the lengths that will do, and where. 0 and why. */
static uint32_t choose_length(const struct ha_groups *g, const struct ha_group_spec *w,
			      uint64_t now, struct ha_switch **at, struct ha_refusal *why)
{
	uint32_t usual = g->limits.length > w->least ? g->limits.length : w->least;
	uint32_t len = power_of_two(w->length ? w->length : usual);
	uint32_t least = power_of_two(w->least ? w->least : len / 4);
	const struct ha_quota *quota = ha_quota_of(&g->quotas, w->tenant);
	struct use use = use_of(g, w->tenant);

	if (least < 2 * w->workers)
		least = 2 * w->workers;
	if (len < least)
		len = least;
	for (; len >= least && len >= HA_BUDDY_UNIT; len /= 2) {
		*at = choose_switch(g, w, len, now);
		if (!*at)
			no_room(g, w, len, now, why);
		else if (quota_allows(quota, &use, w->tenant, len, why))
			return len;
	}
	return 0;
}

static uint32_t lease_of(const struct ha_groups *g, uint32_t wanted)
{
	if (!wanted)
		return g->limits.plain_lease_ms;
	if (wanted < g->limits.lease_min_ms)
		return g->limits.lease_min_ms;
	return wanted > g->limits.lease_max_ms ? g->limits.lease_max_ms : wanted;
}

static void record_fill(struct ha_groups *g, struct ha_group_record *r,
			const struct ha_group_spec *w, struct ha_switch *s, uint32_t len)
{
	memset(r, 0, sizeof(*r));
	r->serial = ++g->serial;
	do
		r->key = ha_random_u64();
	while (!r->key);
	r->created = w->created;
	r->id = id_free(g, s);
	r->epoch = ++s->epoch[r->id];
	r->len = len;
	r->lease_ms = lease_of(g, w->lease_ms);
	r->plain = !w->lease_ms;
	r->workers = (uint8_t)w->workers;
	r->extended = w->extended;
	r->members = (uint8_t)w->members;
	memcpy(r->member, w->member, w->members * sizeof(w->member[0]));
	r->state = HA_GROUP_LIVE;
	r->nonce_len = (uint8_t)w->nonce_len;
	if (w->nonce_len)
		memcpy(r->nonce, w->nonce, w->nonce_len);
	strcpy(r->switch_name, s->info.name);
	strcpy(r->tenant, w->tenant);
	strcpy(r->name, w->name);
}

struct ha_group *ha_groups_create(struct ha_groups *g, const struct ha_group_spec *w, uint64_t now,
				  bool *again, struct ha_refusal *why)
{
	struct ha_group_record r;
	struct ha_switch *s = NULL;
	struct ha_group *group;
	uint32_t len;

	*again = false;
	memset(why, 0, sizeof(*why));
	if (!spec_valid(w, why))
		return NULL;
	group = asked_before(g, w);
	if (group) {
		*again = same_members(group, w);
		if (!*again)
			set_refusal(
				why, HA_REFUSAL_INVALID,
				"another request with this number had other members, workers or "
				"frames");
		else
			ha_groups_renew(group, -1, now);
		return *again ? group : NULL;
	}
	len = choose_length(g, w, now, &s, why);
	if (!len)
		return NULL;
	memset(why, 0, sizeof(*why));
	record_fill(g, &r, w, s, len);
	group = add_group(g, s, &r);
	if (!group) {
		set_refusal(why, HA_REFUSAL_FULL, "the controller has no memory left");
		return NULL;
	}
	group->r.base = (uint32_t)ha_buddy_take(&s->buddy, len);
	s->last_id = r.id;
	s->version = ++g->versions;
	g->live++;
	ha_groups_renew(group, -1, now);
	return group;
}

/* ---- restart ---- */

static bool record_sound(const struct ha_group_record *r)
{
	return r->serial && r->id && r->members >= HA_GROUP_MEMBERS_MIN &&
	       r->members <= HA_GROUP_MEMBERS_MAX && r->workers <= HA_GROUP_WORKERS_MAX &&
	       !(r->workers & (r->workers - 1)) && ha_buddy_length_valid(r->len) &&
	       r->base < HA_BUDDY_SLOTS && !(r->base % r->len) && r->nonce_len <= HA_GROUP_NONCE &&
	       (r->state == HA_GROUP_LIVE || r->state == HA_GROUP_CLOSED);
}

bool ha_groups_restore(struct ha_groups *g, const struct ha_group_record *r, uint64_t now)
{
	struct ha_switch *s = ha_groups_switch_find(g, r->switch_name);
	struct ha_group *group;

	if (!s || !record_sound(r) || s->group[r->id] ||
	    !ha_buddy_reserve(&s->buddy, r->base, r->len))
		return false;
	group = add_group(g, s, r);
	if (!group)
		return false;
	if (s->epoch[r->id] < r->epoch)
		s->epoch[r->id] = r->epoch;
	if (g->serial < r->serial)
		g->serial = r->serial;
	s->version = ++g->versions;
	group->r.state = HA_GROUP_LIVE;
	g->live++;
	ha_groups_renew(group, -1, now);
	if (r->state == HA_GROUP_CLOSED)
		ha_groups_end(g, group, "it ended before the controller began", now);
	else if (r->base + r->len > s->buddy.slots)
		ha_groups_end(g, group, "the switch has fewer aggregators now", now);
	else if (s->moved)
		ha_groups_end(g, group, "the switch has another address now", now);
	else if (s->gone)
		ha_groups_end(
			g, group,
			"the switch is no longer in the settings, or another one has its address",
			now);
	return true;
}

/* ---- for tests ---- */

static const char *check_one(const struct ha_group *group)
{
	const struct ha_group_record *r = &group->r;

	if (!record_sound(r))
		return "a record that makes no sense";
	if (group->home->group[r->id] != group)
		return "a group that its switch does not have";
	if (r->epoch > group->home->epoch[r->id])
		return "an epoch from the future";
	if (r->state == HA_GROUP_LIVE && r->base + r->len > group->home->buddy.slots)
		return "a live group behind the end of its switch";
	for (const struct ha_group *o = LIST_NEXT(group, link); o; o = LIST_NEXT(o, link))
		if (o->home == group->home && o->r.base < r->base + r->len &&
		    r->base < o->r.base + o->r.len)
			return "two groups with the same aggregator";
	return NULL;
}

/* Slots of the group before the end of its switch. */
static uint32_t count_slots_inside(const struct ha_group *group, uint32_t slots)
{
	if (group->r.base >= slots)
		return 0;
	return group->r.base + group->r.len > slots ? slots - group->r.base : group->r.len;
}

const char *ha_groups_check(const struct ha_groups *g)
{
	unsigned live = 0, closed = 0, there = 0;
	const struct ha_group *group;
	const char *wrong;

	LIST_FOREACH(group, &g->all, link) {
		wrong = check_one(group);
		if (wrong)
			return wrong;
		live += group->r.state == HA_GROUP_LIVE;
		closed += group->r.state == HA_GROUP_CLOSED;
	}
	for (unsigned i = 0; i < g->nsw; i++) {
		uint32_t held = 0;

		for (unsigned id = 0; id < HA_GROUP_IDS; id++) {
			group = g->sw[i]->group[id];
			there += group != NULL;
			held += group ? count_slots_inside(group, g->sw[i]->buddy.slots) : 0;
		}
		if (held + g->sw[i]->buddy.free != g->sw[i]->buddy.slots)
			return "aggregators that nobody has";
	}
	return live != g->live || closed != g->closed || there != live + closed
		       ? "groups are counted wrongly"
		       : NULL;
}
