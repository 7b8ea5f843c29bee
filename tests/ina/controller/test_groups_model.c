/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * groups.h against a naive reference: who owns each slot is an array, times are compared one by
 * one, and a request is granted exactly when looking at every block of every switch finds one.
 * Random requests, renewals, ends, jumps of time, switches that shrink, grow, vanish, come back and
 * lose their memory, and a restart (what is kept, loaded into a new one) at any point. Arguments:
 * the first seed, how many.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "ina/controller/groups.h"

#include <inttypes.h>

#define SWITCHES 3
#define TENANTS 3
#define GROUPS (SWITCHES * 255)
#define STEPS 2500
#define LATE (5 * HA_NS_PER_S)
#define SILENCE (3 * HA_NS_PER_S)

static uint64_t dice_state;

static uint32_t draw_random(uint32_t n)
{
	dice_state = dice_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((dice_state >> 33) % n);
}

static void dice_fill(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)draw_random(256);
}

/* What the reference knows of a switch. */
static struct naive_switch {
	char name[8];
	uint32_t slots;
	bool there, registers, seen_once;
	uint64_t last_seen, incarnation;
	struct ha_prefix prefix;
	uint32_t epoch[256];
} sw[SWITCHES];

static struct naive_group {
	bool used, live;
	int at;
	uint8_t id;
	uint32_t base, len, epoch, lease_ms;
	uint64_t due, key, serial;
	char tenant[8];
	uint8_t nonce;
} group[GROUPS];

static struct ha_groups g;
static uint64_t now, last_serial;
static const uint32_t quota_groups[TENANTS] = { 3, 40, 700 },
		      quota_slots[TENANTS] = { 4096, 512, 100000 };

static const struct ha_groups_limits limits = { .late_ns = LATE,
						.silence_ns = SILENCE,
						.lease_min_ms = 1000,
						.lease_max_ms = 60000,
						.plain_lease_ms = 100000,
						.length = 64 };

static struct ha_switch_info info_of(int i)
{
	struct ha_switch_info info = { .address = 0x0a0000fe + ((uint32_t)i << 8),
				       .slots = sw[i].slots,
				       .nserves = 1,
				       .configured = !sw[i].registers,
				       .registers = sw[i].registers };

	strcpy(info.name, sw[i].name);
	info.serves[0] = sw[i].prefix;
	return info;
}

static void quotas_set(void)
{
	for (int t = 0; t < TENANTS; t++) {
		struct ha_quota *q = &g.quotas.quota[g.quotas.n++];

		snprintf(q->tenant, sizeof(q->tenant), "t%d", t);
		q->groups = quota_groups[t];
		q->slots = quota_slots[t];
	}
}

static bool is_up(int i)
{
	return sw[i].there &&
	       (!sw[i].registers || (sw[i].seen_once && now - sw[i].last_seen < SILENCE));
}

static bool slot_taken(int at, uint32_t slot)
{
	for (int i = 0; i < GROUPS; i++)
		if (group[i].used && group[i].at == at && slot >= group[i].base &&
		    slot < group[i].base + group[i].len)
			return true;
	return false;
}

static bool block_free(int at, uint32_t len)
{
	static uint8_t taken[HA_BUDDY_SLOTS];

	memset(taken, 0, sw[at].slots);
	for (int i = 0; i < GROUPS; i++)
		if (group[i].used && group[i].at == at)
			for (uint32_t k = group[i].base;
			     k < group[i].base + group[i].len && k < sw[at].slots; k++)
				taken[k] = 1;
	for (uint32_t base = 0; base + len <= sw[at].slots / 16 * 16; base += len)
		if (!memchr(taken + base, 1, len))
			return true;
	return false;
}

static bool id_taken(int at, unsigned id)
{
	for (int i = 0; i < GROUPS; i++)
		if (group[i].used && group[i].at == at && group[i].id == id)
			return true;
	return false;
}

static bool id_left(int at)
{
	for (unsigned id = 1; id < 256; id++)
		if (!id_taken(at, id))
			return true;
	return false;
}

static void count_use(const char *tenant, uint32_t *groups, uint32_t *slots)
{
	*groups = *slots = 0;
	for (int i = 0; i < GROUPS; i++)
		if (group[i].used && !strcmp(group[i].tenant, tenant)) {
			++*groups;
			*slots += group[i].len;
		}
}

static bool serves_address(int at, uint32_t addr)
{
	const struct ha_prefix *p = &sw[at].prefix;

	return !p->len || (addr >> (32 - p->len)) == (p->addr >> (32 - p->len));
}

/* Could a group of this length be made? The best length of prefix among those that could, or -1. */
static int find_best_prefix(const uint32_t *member, size_t members, int tenant, uint32_t len)
{
	uint32_t groups, slots;
	char name[8];
	int best = -1;

	snprintf(name, sizeof(name), "t%d", tenant);
	count_use(name, &groups, &slots);
	if (groups >= quota_groups[tenant] || slots + len > quota_slots[tenant])
		return -1;
	for (int at = 0; at < SWITCHES; at++) {
		bool all = is_up(at) && block_free(at, len) && id_left(at);

		for (size_t i = 0; i < members; i++)
			all = all && serves_address(at, member[i]);
		if (all && sw[at].prefix.len > best)
			best = sw[at].prefix.len;
	}
	return best;
}

static struct naive_group *naive_find(const struct ha_group *real)
{
	for (int i = 0; i < GROUPS; i++)
		if (group[i].used && group[i].serial == real->r.serial)
			return &group[i];
	return NULL;
}

static void check_granted(const struct ha_group *real, const struct ha_group_spec *w, int best)
{
	struct naive_group *n = NULL;
	int at = -1;

	for (int i = 0; i < SWITCHES; i++)
		if (!strcmp(real->r.switch_name, sw[i].name))
			at = i;
	CHECK(at >= 0 && is_up(at));
	CHECK_INT(sw[at].prefix.len, best);
	CHECK(real->r.id && !id_taken(at, real->r.id));
	CHECK(!(real->r.base % real->r.len) && real->r.base + real->r.len <= sw[at].slots);
	for (uint32_t i = 0; i < real->r.len; i++)
		CHECK(!slot_taken(at, real->r.base + i));
	CHECK(real->r.epoch > sw[at].epoch[real->r.id]);
	CHECK(real->r.serial > last_serial);
	last_serial = real->r.serial;
	sw[at].epoch[real->r.id] = real->r.epoch;
	for (int i = 0; i < GROUPS && !n; i++)
		if (!group[i].used)
			n = &group[i];
	CHECK(n);
	*n = (struct naive_group) { .used = true,
				    .live = true,
				    .at = at,
				    .id = real->r.id,
				    .base = real->r.base,
				    .len = real->r.len,
				    .epoch = real->r.epoch,
				    .key = real->r.key,
				    .serial = real->r.serial,
				    .lease_ms = real->r.lease_ms,
				    .due = now + real->r.lease_ms * HA_NS_PER_MS,
				    .nonce = w->nonce[0] };
	strcpy(n->tenant, w->tenant);
}

/* The group that the tenant asked for with this nonce before, or NULL. */
static struct naive_group *find_by_nonce(const char *tenant, uint8_t nonce)
{
	struct naive_group *found = NULL;

	for (int i = 0; i < GROUPS; i++)
		if (group[i].used && group[i].live && group[i].nonce == nonce &&
		    !strcmp(group[i].tenant, tenant))
			found = &group[i];
	return found;
}

static void check_again(const struct ha_group *real, struct naive_group *before)
{
	CHECK(real->r.serial == before->serial && real->r.key == before->key);
	before->due = now + before->lease_ms * HA_NS_PER_MS;
}

static void create_group(void)
{
	uint32_t member[8], wanted = 16u << draw_random(6), least = draw_random(2) ? wanted : 16,
			    len;
	uint8_t nonce = (uint8_t)draw_random(255);
	int tenant = (int)draw_random(TENANTS), best = -1;
	char name[8];
	struct ha_group_spec w = { .tenant = name,
				   .name = "",
				   .member = member,
				   .members = 2 + draw_random(4),
				   .length = wanted,
				   .least = least,
				   .lease_ms = draw_random(3) ? 500 + draw_random(70000) : 0,
				   .nonce = &nonce,
				   .nonce_len = 1 };
	struct naive_group *before;
	struct ha_refusal why;
	struct ha_group *real;
	bool again;

	snprintf(name, sizeof(name), "t%d", tenant);
	for (size_t i = 0; i < w.members; i++)
		member[i] = 0x0a000001 + (uint32_t)i +
			    (draw_random(12) ? 0 : draw_random(3) << 16) + (nonce % 4 ? 0 : 1 << 8);
	before = find_by_nonce(name, nonce);
	for (len = wanted; len >= least && best < 0; len /= 2)
		best = find_best_prefix(member, w.members, tenant, len);
	len *= 2; /* the first that was possible */
	real = ha_groups_create(&g, &w, now, &again, &why);
	if (before) {
		CHECK_INT(again, real != NULL);
		if (!real)
			CHECK_INT(why.kind, HA_REFUSAL_INVALID);
		else
			check_again(real, before);
		return;
	}
	CHECK_INT(real != NULL, best >= 0);
	if (!real) {
		CHECK(why.kind > HA_REFUSAL_NONE && why.kind < HA_REFUSAL_INVALID && *why.text);
		return;
	}
	CHECK_INT(real->r.len, len);
	check_granted(real, &w, best);
}

static struct ha_group *pick_group(void)
{
	struct ha_group *real = LIST_FIRST(&g.all);

	for (unsigned n = g.live + g.closed ? draw_random(g.live + g.closed) : 0; n; n--)
		real = LIST_NEXT(real, link);
	return real;
}

static void naive_end(struct naive_group *n)
{
	if (!n->live)
		return;
	n->live = false;
	n->due = now + LATE;
}

static void pass_time(void)
{
	struct ha_group *real;

	now += draw_random(4) ? draw_random(800) * HA_NS_PER_MS : draw_random(30000) * HA_NS_PER_MS;
	while ((real = ha_groups_due(&g, now)) != NULL) {
		struct naive_group *n = naive_find(real);

		CHECK(n && now >= n->due);
		CHECK_INT(n->live, real->r.state == HA_GROUP_LIVE);
		if (n->live) {
			naive_end(n);
			ha_groups_end(&g, real, "test", now);
		} else {
			n->used = false;
			ha_groups_forget(&g, real);
		}
	}
	for (int i = 0; i < GROUPS; i++)
		CHECK(!group[i].used || now < group[i].due);
}

/* Groups that do not fit into a smaller switch are over. */
static void switch_resize(int i)
{
	uint32_t before = sw[i].slots;
	struct ha_switch_info info;

	sw[i].slots = 256 + draw_random(3000);
	sw[i].there = true;
	info = info_of(i);
	CHECK(ha_groups_switch(&g, &info, now));
	for (int k = 0; k < GROUPS && before != sw[i].slots; k++)
		if (group[k].used && group[k].at == i &&
		    group[k].base + group[k].len > sw[i].slots / 16 * 16)
			naive_end(&group[k]);
}

static void switch_remove(int i)
{
	if (!sw[i].there)
		return;
	sw[i].there = false;
	ha_groups_switch_gone(&g, ha_groups_switch_find(&g, sw[i].name), now);
	for (int k = 0; k < GROUPS; k++)
		if (group[k].used && group[k].at == i)
			naive_end(&group[k]);
}

/* It reports a new incarnation: its groups get other epochs, unless it is the first. */
static void switch_restarted(int i)
{
	bool first = !sw[i].incarnation;

	sw[i].incarnation++;
	CHECK_INT(ha_groups_switch_reported(&g, ha_groups_switch_find(&g, sw[i].name),
					    sw[i].incarnation, now),
		  !first);
	for (int k = 0; k < GROUPS && !first; k++)
		if (group[k].used && group[k].live && group[k].at == i)
			sw[i].epoch[group[k].id] = ++group[k].epoch;
}

/* It reports that it runs, rarely with its memory lost. */
static void switch_report(int i)
{
	if (!sw[i].there) {
		struct ha_switch_info info = info_of(i);

		sw[i].there = true;
		CHECK(ha_groups_switch(&g, &info, now));
	}
	if (!draw_random(10) || !sw[i].incarnation)
		switch_restarted(i);
	else
		CHECK(!ha_groups_switch_reported(&g, ha_groups_switch_find(&g, sw[i].name),
						 sw[i].incarnation, now));
	sw[i].last_seen = now;
	sw[i].seen_once = true;
}

static void switch_change(void)
{
	int i = (int)draw_random(SWITCHES);

	switch (draw_random(4)) {
	case 0:
		switch_resize(i);
		break;
	case 1: /* back at the next chance */
		switch_remove(i);
		break;
	default:
		switch_report(i);
	}
}

static struct ha_group_record kept[GROUPS];
static struct ha_groups old;

/* As a store would: switches with their epochs, then groups; times begin anew. */
static void restart_controller(void)
{
	struct ha_group *real;
	unsigned n = 0;

	old = g;
	LIST_INIT(&old.all);
	while ((real = LIST_FIRST(&g.all))) {
		kept[n++] = real->r;
		LIST_REMOVE(real, link);
		LIST_INSERT_HEAD(&old.all, real, link);
	}
	now = HA_NS_PER_S * (1 + draw_random(1000)); /* another clock */
	ha_groups_open(&g, &limits);
	quotas_set();
	g.serial = old.serial;
	for (int i = 0; i < SWITCHES; i++) {
		struct ha_switch_info info = info_of(i);
		struct ha_switch *s, *was = ha_groups_switch_find(&old, sw[i].name);

		CHECK(was->version <= old.versions && old.versions != g.versions);
		s = ha_groups_switch(&g, &info, now);
		memcpy(s->epoch, was->epoch, sizeof(s->epoch));
		s->incarnation = was->incarnation;
		if (!sw[i].there)
			ha_groups_switch_gone(&g, s, now);
		sw[i].seen_once = false;
	}
	for (unsigned i = 0; i < n; i++)
		CHECK(ha_groups_restore(&g, &kept[i], now));
	ha_groups_close_all(&old);
	for (int i = 0; i < GROUPS; i++)
		group[i].due = now + (group[i].live ? group[i].lease_ms * HA_NS_PER_MS : LATE);
}

static void compare_groups(void)
{
	unsigned live = 0, closed = 0;
	const char *wrong = ha_groups_check(&g);
	const struct ha_group *real;

	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	CHECK(!wrong);
	LIST_FOREACH(real, &g.all, link) {
		const struct naive_group *n = naive_find(real);

		CHECK(n);
		CHECK_INT(real->r.state == HA_GROUP_LIVE, n->live);
		CHECK_INT(real->due, n->due);
		CHECK_INT(real->r.epoch, n->epoch);
		CHECK(real->r.base == n->base && real->r.len == n->len && real->r.id == n->id &&
		      real->r.key == n->key);
	}
	for (int i = 0; i < GROUPS; i++) {
		live += group[i].used && group[i].live;
		closed += group[i].used && !group[i].live;
	}
	CHECK_INT(g.live, live);
	CHECK_INT(g.closed, closed);
}

static void run_step(void)
{
	struct ha_group *real;
	struct naive_group *n;

	switch (draw_random(12)) {
	case 0:
	case 1:
		pass_time();
		break;
	case 2:
		real = pick_group();
		if (real) {
			naive_end(naive_find(real));
			ha_groups_end(&g, real, "test", now);
		}
		break;
	case 3:
	case 4:
	case 5:
		real = pick_group();
		n = real ? naive_find(real) : NULL;
		if (!n)
			break;
		ha_groups_renew(real, (int)draw_random(8) - 1, now);
		if (n->live)
			n->due = now + n->lease_ms * HA_NS_PER_MS;
		break;
	case 6:
		switch_change();
		break;
	case 7:
		if (!draw_random(20))
			restart_controller();
		break;
	default:
		create_group();
	}
}

static void run_world(uint64_t seed, unsigned long *made, unsigned long *refused)
{
	dice_state = seed * 77777 + 5;
	memset(group, 0, sizeof(group));
	memset(sw, 0, sizeof(sw));
	now = HA_NS_PER_S;
	last_serial = 0;
	ha_groups_open(&g, &limits);
	quotas_set();
	for (int i = 0; i < SWITCHES; i++) {
		static const uint8_t bits[] = { 24, 16 };
		struct ha_switch_info info;

		snprintf(sw[i].name, sizeof(sw[i].name), "s%d", i);
		sw[i].slots = 128 + draw_random(4000);
		sw[i].registers = draw_random(2);
		sw[i].prefix = (struct ha_prefix) { 0x0a000000, i < 2 ? bits[i] : 8 };
		sw[i].there = true;
		info = info_of(i);
		CHECK(ha_groups_switch(&g, &info, now));
	}
	for (int i = 0; i < STEPS; i++) {
		run_step();
		compare_groups();
	}
	*made += last_serial;
	*refused += STEPS - last_serial;
	ha_groups_close_all(&g);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
		 n = argc > 2 ? strtoull(argv[2], NULL, 10) : 40;
	unsigned long made = 0, refused = 0;

	ha_random_set_source(dice_fill);
	for (uint64_t i = 0; i < n; i++) {
		run_world(seed + i, &made, &refused);
	}
	printf("%" PRIu64 " worlds of %d steps, %lu groups made\n", n, STEPS, made);
	CHECK(made > n * 50);
	return 0;
}
