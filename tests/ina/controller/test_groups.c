/* SPDX-License-Identifier: BSD-3-Clause */
/* One behaviour of groups.h after the other, with its words. */
#include "ina/controller/groups.h"

#include "base/check.h"
#include "base/clock.h"

#define S HA_NS_PER_S

static struct ha_groups g;
static struct ha_refusal why;
static bool again;

static const struct ha_groups_limits limits = { .late_ns = 10 * S,
						.silence_ns = 3 * S,
						.lease_min_ms = 1000,
						.lease_max_ms = 60000,
						.plain_lease_ms = 600000,
						.length = 1024 };

static struct ha_switch *add_switch(const char *name, uint32_t prefix, uint8_t len, uint32_t slots)
{
	struct ha_switch_info info = { .address = prefix + 254,
				       .slots = slots,
				       .nserves = 1,
				       .serves = { { prefix, len } },
				       .configured = true };
	struct ha_switch *s;

	strcpy(info.name, name);
	s = ha_groups_switch(&g, &info, 0);
	CHECK(s);
	return s;
}

static void open_groups(void)
{
	ha_groups_open(&g, &limits);
}

static void close_groups(void)
{
	const char *wrong = ha_groups_check(&g);

	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	CHECK(!wrong);
	ha_groups_close_all(&g);
}

static struct ha_group *make_of(const uint32_t *member, size_t n, uint32_t length,
				uint32_t lease_ms, uint64_t now)
{
	struct ha_group_spec w = { .tenant = "t",
				   .name = "job",
				   .member = member,
				   .members = n,
				   .length = length,
				   .least = length,
				   .lease_ms = lease_ms };

	return ha_groups_create(&g, &w, now, &again, &why);
}

static struct ha_group *make_group(uint32_t length, uint32_t lease_ms, uint64_t now)
{
	static const uint32_t two[] = { 0x0a000001, 0x0a000002 };

	return make_of(two, 2, length, lease_ms, now);
}

static void expect_refused(enum ha_refusal_kind kind, const char *text)
{
	CHECK_INT(why.kind, kind);
	if (!strstr(why.text, text))
		fprintf(stderr, "'%s' is not in '%s'\n", text, why.text);
	CHECK(strstr(why.text, text));
}

static void wrong_members_are_refused(void)
{
	static const uint32_t bad[] = { 0, 0x00000001, 0xe0000001, 0xffffffff, 0xf0000001 };
	uint32_t member[40];

	open_groups();
	add_switch("s", 0, 0, 4096);
	for (uint32_t i = 0; i < 40; i++)
		member[i] = 0x0a000001 + i;
	CHECK(!make_of(member, 0, 0, 0, 0));
	expect_refused(HA_REFUSAL_INVALID, "2 to 32 members, not 0");
	CHECK(!make_of(member, 1, 0, 0, 0));
	expect_refused(HA_REFUSAL_INVALID, "2 to 32 members, not 1");
	CHECK(!make_of(member, 33, 0, 0, 0));
	expect_refused(HA_REFUSAL_INVALID, "2 to 32 members, not 33");
	CHECK(make_of(member, 32, 0, 0, 0));
	member[7] = member[3];
	CHECK(!make_of(member, 8, 0, 0, 0));
	expect_refused(HA_REFUSAL_INVALID, "ranks 3 and 7 have the same address 10.0.0.4");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		member[1] = bad[i];
		CHECK(!make_of(member, 2, 0, 0, 0));
		expect_refused(HA_REFUSAL_INVALID, "of rank 1 is no address of a host");
	}
	close_groups();
}

static void workers_are_checked(void)
{
	static const uint32_t member[] = { 0x0a000001, 0x0a000001, 0x0a000002, 0x0a000001 };
	struct ha_group_spec w = { .tenant = "alice",
				   .name = "",
				   .member = member,
				   .members = 4,
				   .length = 16,
				   .extended = true };
	struct ha_group *group;
	bool again;

	open_groups();
	add_switch("s", 0, 0, 4096);
	CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	expect_refused(HA_REFUSAL_INVALID, "ranks 0 and 1 have the same address 10.0.0.1");
	w.workers = 3;
	CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	expect_refused(HA_REFUSAL_INVALID, "a power of two, at most 64, not 3");
	w.workers = 128;
	CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	expect_refused(HA_REFUSAL_INVALID, "a power of two, at most 64, not 128");
	w.workers = 64;
	group = ha_groups_create(&g, &w, 0, &again, &why);
	CHECK(group && group->r.workers == 64 && group->r.extended && group->r.members == 4);
	CHECK_INT(group->r.len, 128); /* two for each worker */
	close_groups();
}

static void nearest_switch(void)
{
	static const uint32_t a[] = { 0x0a010001, 0x0a010002 }, b[] = { 0x0a010001, 0x0a020001 },
			      c[] = { 0x0a010001, 0x0b000001 }, d[] = { 0x0c000001, 0x0c000002 };
	struct ha_group *group;

	open_groups();
	add_switch("spine", 0x0a000000, 8, 65536);
	add_switch("leaf1", 0x0a010000, 16, 4096);
	add_switch("leaf2", 0x0a020000, 16, 4096);
	add_switch("other", 0x0b000000, 8, 4096);
	group = make_of(a, 2, 1024, 0, 0);
	CHECK_TEXT(group->r.switch_name, "leaf1");
	CHECK_INT(group->r.member[1], a[1]);
	CHECK_TEXT(make_of(b, 2, 1024, 0, 0)->r.switch_name, "spine");
	CHECK(!make_of(c, 2, 1024, 0, 0));
	expect_refused(HA_REFUSAL_UNREACHED, "no switch serves all 2 members");
	CHECK(!make_of(d, 2, 1024, 0, 0));
	expect_refused(HA_REFUSAL_UNREACHED, "no switch serves 12.0.0.1 (rank 0)");
	/* the leaf is full: the spine helps out */
	CHECK_TEXT(make_of(a, 2, 2048, 0, 0)->r.switch_name, "leaf1");
	CHECK_TEXT(make_of(a, 2, 2048, 0, 0)->r.switch_name, "spine");
	close_groups();
}

static void lease_and_quarantine(void)
{
	struct ha_group *group;

	open_groups();
	add_switch("s", 0, 0, 1024);
	group = make_group(1024, 5000, 100 * S);
	CHECK(group && !ha_groups_due(&g, 105 * S - 1));
	CHECK(!make_group(1024, 5000, 100 * S));
	expect_refused(HA_REFUSAL_FULL, "no 1024 aggregators in one piece; the longest is 0");
	ha_groups_renew(group, 1, 104 * S);
	CHECK(!ha_groups_due(&g, 109 * S - 1));
	CHECK(ha_groups_due(&g, 109 * S) == group);
	ha_groups_end(&g, group, "late", 109 * S);
	ha_groups_renew(group, 1, 109 * S);      /* too late */
	CHECK(!make_group(1024, 5000, 118 * S)); /* the range is nobody's for 10 s */
	expect_refused(HA_REFUSAL_FULL, "");
	CHECK(!ha_groups_due(&g, 119 * S - 1));
	CHECK(ha_groups_due(&g, 119 * S) == group);
	ha_groups_forget(&g, group);
	group = make_group(1024, 5000, 119 * S);
	CHECK(group && group->r.id == 2); /* numbers go round, too */
	close_groups();
}

static void leases_have_bounds(void)
{
	open_groups();
	add_switch("s", 0, 0, 65536);
	CHECK_INT(make_group(16, 1, 0)->r.lease_ms, 1000);
	CHECK_INT(make_group(16, 99999999, 0)->r.lease_ms, 60000);
	CHECK_INT(make_group(16, 0, 0)->r.lease_ms, 600000);
	CHECK(LIST_FIRST(&g.all)->r.plain);
	close_groups();
}

static void lengths_are_rounded(void)
{
	open_groups();
	add_switch("s", 0, 0, 65536);
	CHECK_INT(make_group(0, 0, 0)->r.len, 1024);
	CHECK_INT(make_group(1, 0, 0)->r.len, 16);
	CHECK_INT(make_group(1000, 0, 0)->r.len, 1024);
	CHECK_INT(make_group(1025, 0, 0)->r.len, 2048);
	CHECK_INT(make_group(32768, 0, 0)->r.len, 32768);
	/* what is left will do, down to a quarter */
	CHECK(!make_group(32768, 0, 0));
	{
		static const uint32_t two[] = { 0x0a000001, 0x0a000002 };
		struct ha_group_spec w = {
			.tenant = "t", .name = "", .member = two, .members = 2, .length = 32768
		};

		CHECK_INT(ha_groups_create(&g, &w, 0, &again, &why)->r.len, 16384);
		CHECK_INT(ha_groups_create(&g, &w, 0, &again, &why)->r.len, 8192);
		CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	}
	close_groups();
}

/* A default below what will do at least used to end in a refusal without words. */
static void least_above_the_default(void)
{
	static const uint32_t two[] = { 0x0a000001, 0x0a000002 };
	struct ha_group_spec w = {
		.tenant = "t", .name = "", .member = two, .members = 2, .least = 3000
	};

	open_groups();
	add_switch("s", 0, 0, 8192);
	CHECK_INT(ha_groups_create(&g, &w, 0, &again, &why)->r.len, 4096);
	w.least = 1000; /* the default is more */
	CHECK_INT(ha_groups_create(&g, &w, 0, &again, &why)->r.len, 1024);
	w.least = 4097;
	CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	expect_refused(HA_REFUSAL_FULL, "switch s has no 8192 aggregators in one piece");
	w.least = 32769;
	CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	expect_refused(HA_REFUSAL_INVALID,
		       "at least 32769 aggregators wanted, but no group has more than 32768");
	w.length = UINT32_MAX; /* as much as there is, and a little will do */
	w.least = 1;
	CHECK_INT(ha_groups_create(&g, &w, 0, &again, &why)->r.len, 2048);
	close_groups();
}

static void all_numbers(void)
{
	struct ha_group *group, *first = NULL;
	uint32_t epoch;

	open_groups();
	add_switch("s", 0, 0, 65536);
	for (unsigned i = 1; i < 256; i++) {
		group = make_group(16, 5000, 0);
		CHECK(group);
		CHECK_INT(group->r.id, i);
		first = first ? first : group;
	}
	CHECK(!make_group(16, 5000, 0));
	expect_refused(HA_REFUSAL_IDS, "no group number left; 255 are");
	epoch = first->r.epoch;
	ha_groups_end(&g, first, "test", 0);
	CHECK(!make_group(16, 5000, 0));
	ha_groups_forget(&g, first);
	group = make_group(16, 5000, 0);
	CHECK_INT(group->r.id, 1);
	CHECK_INT(group->r.epoch, epoch + 1);
	close_groups();
}

/* NetCCL's DestroyGroup names a group by its number alone: two switches give different ones while
 * they can. */
static void numbers_differ_between_switches(void)
{
	static const uint32_t a[] = { 0x0a000001, 0x0a000002 }, b[] = { 0x0b000001, 0x0b000002 };

	open_groups();
	add_switch("a", 0x0a000000, 8, 65536);
	add_switch("b", 0x0b000000, 8, 65536);
	for (int i = 0; i < 127; i++) {
		uint8_t id = make_of(a, 2, 16, 0, 0)->r.id;

		CHECK(make_of(b, 2, 16, 0, 0)->r.id != id);
	}
	/* No number is left that the other switch has not given: one twice, and not none. */
	CHECK(make_of(a, 2, 16, 0, 0));
	CHECK(make_of(a, 2, 16, 0, 0));
	close_groups();
}

static void quotas_are_kept(void)
{
	open_groups();
	add_switch("s", 0, 0, 65536);
	g.quotas.others = (struct ha_quota) { .groups = 2, .slots = 1024 };
	CHECK(make_group(512, 0, 0));
	CHECK(!make_group(1024, 0, 0));
	expect_refused(HA_REFUSAL_QUOTA,
		       "t has 512 aggregators of 1024 that it may have, and wants 1024 more");
	CHECK(make_group(256, 0, 0));
	CHECK(!make_group(16, 0, 0));
	expect_refused(HA_REFUSAL_QUOTA, "t has 2 groups, in quarantine or not, of 2");
	ha_groups_end(&g, LIST_FIRST(&g.all), "test", 0); /* in quarantine it still counts */
	CHECK(!make_group(16, 0, 0));
	ha_groups_forget(&g, LIST_FIRST(&g.all));
	CHECK(make_group(16, 0, 0));
	strcpy(g.quotas.quota[0].tenant, "t");
	g.quotas.quota[0].groups = 5;
	g.quotas.quota[0].slots = 100000;
	g.quotas.n = 1;
	CHECK(make_group(16384, 0, 0));
	close_groups();
}

static void asked_again(void)
{
	static const uint32_t two[] = { 0x0a000001, 0x0a000002 },
			      others[] = { 0x0a000002, 0x0a000001 };
	struct ha_group_spec w = { .tenant = "t",
				   .name = "",
				   .member = two,
				   .members = 2,
				   .nonce = (const uint8_t *)"abc",
				   .nonce_len = 3,
				   .lease_ms = 5000 };
	struct ha_group *group;

	open_groups();
	add_switch("s", 0, 0, 65536);
	group = ha_groups_create(&g, &w, 0, &again, &why);
	CHECK(group && !again);
	CHECK(ha_groups_create(&g, &w, S, &again, &why) == group && again);
	CHECK_INT(group->due, 6 * S);
	w.member = others;
	CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	expect_refused(HA_REFUSAL_INVALID, "other members");
	w.tenant = "somebody else";
	CHECK(ha_groups_create(&g, &w, 0, &again, &why) != group && !again);
	w.tenant = "t";
	w.member = two;
	ha_groups_end(&g, group, "test", 0);
	CHECK(ha_groups_create(&g, &w, 0, &again, &why) != group && !again);
	w.nonce_len = 33;
	CHECK(!ha_groups_create(&g, &w, 0, &again, &why));
	expect_refused(HA_REFUSAL_INVALID, "32 bytes at most, not 33");
	close_groups();
}

static void switch_that_registers(void)
{
	struct ha_switch_info info = {
		.name = "s", .address = 1, .slots = 1024, .nserves = 1, .registers = true
	};
	struct ha_group *group;
	struct ha_switch *s;
	uint64_t version;

	open_groups();
	s = ha_groups_switch(&g, &info, 0);
	CHECK(!make_group(16, 5000, 0));
	expect_refused(HA_REFUSAL_AWAY, "switch s does not answer");
	CHECK(!ha_groups_switch_reported(&g, s, 77, S));
	group = make_group(16, 5000, S);
	CHECK(group && group->r.epoch == 1);
	version = s->version;
	CHECK(!ha_groups_switch_reported(&g, s, 77, 2 * S));
	CHECK(s->version == version);
	/* it has lost its memory: whoever waits for an answer of the old incarnation must know
	 * it */
	CHECK(ha_groups_switch_reported(&g, s, 78, 3 * S));
	CHECK(s->version != version && group->r.epoch == 2);
	CHECK(!make_group(16, 5000, 6 * S));
	expect_refused(HA_REFUSAL_AWAY, "");
	CHECK(group->r.state == HA_GROUP_LIVE);
	close_groups();
}

static void silent_ranks(void)
{
	struct ha_group *group;

	open_groups();
	add_switch("s", 0, 0, 1024);
	group = make_group(16, 5000, 0);
	CHECK_INT(ha_groups_silent(group, 100 * S), 0); /* nobody has sent anything yet */
	ha_groups_renew(group, 0, 1 * S);
	ha_groups_renew(group, 1, 2 * S);
	CHECK_INT(ha_groups_silent(group, 6 * S - 1), 0);
	CHECK_INT(ha_groups_silent(group, 6 * S), 1);
	ha_groups_renew(group, 0, 7 * S);
	CHECK_INT(ha_groups_silent(group, 7 * S), 2);
	close_groups();
}

/* A switch that comes back smaller: what straddles its new end is ended, and its part before the
 * end rests as well. */
static void switch_shrinks(void)
{
	struct ha_group *group;

	open_groups();
	add_switch("s", 0, 0, 2048);
	group = make_group(2048, 5000, 0);
	add_switch("s", 0, 0, 1024);
	CHECK_INT(group->r.state, HA_GROUP_CLOSED);
	CHECK(!make_group(16, 5000, 0));
	ha_groups_forget(&g, group);
	CHECK(make_group(1024, 5000, 0));
	close_groups();
}

static void switch_moves(void)
{
	struct ha_switch_info info = {
		.name = "s", .address = 1, .slots = 1024, .nserves = 1, .configured = true
	};

	open_groups();
	ha_groups_switch(&g, &info, 0);
	CHECK(make_group(16, 5000, 0));
	info.address = 2;
	ha_groups_switch(&g, &info, 0);
	CHECK_INT(LIST_FIRST(&g.all)->r.state, HA_GROUP_CLOSED);
	close_groups();
}

/* One machine under two names must not give the same aggregators twice, not even those that
 * rest. */
static void one_address_under_two_names(void)
{
	struct ha_switch_info a = { .name = "a",
				    .address = 1,
				    .slots = 1024,
				    .nserves = 1,
				    .registers = true },
			      b = a;
	struct ha_group *group;
	struct ha_switch *s;

	open_groups();
	s = ha_groups_switch(&g, &a, 0);
	ha_groups_switch_reported(&g, s, 1, 0);
	strcpy(b.name, "b");
	CHECK(!ha_groups_switch_same(&g, &a, 0));
	CHECK(ha_groups_switch_same(&g, &b, 0) == s);
	group = make_group(16, 5000, 0);
	CHECK(ha_groups_switch_same(&g, &b, 100 * S) == s); /* away, but it holds a group */
	ha_groups_switch_gone(&g, s, 100 * S);
	CHECK(!ha_groups_switch_same(&g, &b, 100 * S));
	ha_groups_switch_reported(&g, ha_groups_switch(&g, &b, 100 * S), 1, 100 * S);
	CHECK(!make_group(16, 5000, 101 * S));
	expect_refused(HA_REFUSAL_FULL, "switch b was a, whose groups are not over yet");
	ha_groups_forget(&g, group);
	CHECK_TEXT(make_group(16, 5000, 102 * S)->r.switch_name, "b");
	close_groups();
	open_groups();
	/* a new name of a switch that is silent and empty */
	ha_groups_switch_reported(&g, ha_groups_switch(&g, &a, 0), 1, 0);
	CHECK(ha_groups_switch_same(&g, &b, 2 * S));
	CHECK(!ha_groups_switch_same(&g, &b, 4 * S));
	CHECK(ha_groups_switch(&g, &b, 4 * S) && g.nsw == 1 && !ha_groups_switch_find(&g, "a"));
	close_groups();
	open_groups();
	a.configured = b.configured = true; /* the settings alone say what it is called */
	a.registers = false;
	ha_groups_switch(&g, &a, 0);
	CHECK(ha_groups_switch_same(&g, &b, 100 * S));
	close_groups();
}

static void too_many_switches(void)
{
	struct ha_switch_info info = {
		.address = 1, .slots = 1024, .nserves = 1, .registers = true
	};

	open_groups();
	for (int i = 0; i < 200; i++) {
		struct ha_switch *s;

		snprintf(info.name, sizeof(info.name), "s%d", i);
		/* from the hundredth on the first ones have been silent for long, and have no
		 * groups */
		s = ha_groups_switch(&g, &info, i < 100 ? 0 : 100 * S);
		CHECK_INT(s != NULL, i < 64 || (i >= 100 && i < 164));
		if (s)
			ha_groups_switch_reported(&g, s, 1, i < 100 ? 0 : 100 * S);
	}
	close_groups();
}

static void a_record_that_contradicts(void)
{
	struct ha_group_record r;

	open_groups();
	add_switch("s", 0, 0, 1024);
	r = make_group(64, 5000, 0)->r;
	CHECK(!ha_groups_restore(&g, &r, 0)); /* the number is taken */
	r.id++;
	CHECK(!ha_groups_restore(&g, &r, 0)); /* the range is taken */
	r.base = 64;
	strcpy(r.switch_name, "nobody");
	CHECK(!ha_groups_restore(&g, &r, 0));
	strcpy(r.switch_name, "s");
	r.len = 63;
	CHECK(!ha_groups_restore(&g, &r, 0));
	r.len = 64;
	r.members = 33;
	CHECK(!ha_groups_restore(&g, &r, 0));
	r.members = 2;
	CHECK(ha_groups_restore(&g, &r, 0));
	close_groups();
}

int main(void)
{
	wrong_members_are_refused();
	workers_are_checked();
	nearest_switch();
	lease_and_quarantine();
	leases_have_bounds();
	lengths_are_rounded();
	least_above_the_default();
	all_numbers();
	numbers_differ_between_switches();
	quotas_are_kept();
	asked_again();
	switch_that_registers();
	silent_ranks();
	switch_shrinks();
	switch_moves();
	one_address_under_two_names();
	too_many_switches();
	a_record_that_contradicts();
	return 0;
}
