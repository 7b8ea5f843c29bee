/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules: what is one, which wins, and a file with a mistake changes nothing. */
#include "agent/rules.h"

#include "base/check.h"

#include <arpa/inet.h>

static int share_of(const struct ha_rules *rules, const char *src, const char *dst)
{
	const struct ha_rule *rule = ha_rules_match(rules, inet_addr(src), inet_addr(dst));

	return rule ? rule->share : -1;
}

static int load_rules(struct ha_rules *rules, const char *text, char why[128])
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int err;

	CHECK(file);
	err = ha_rules_read(rules, file, why, 128);
	fclose(file);
	return err;
}

static void the_more_exact_rule_wins(void)
{
	struct ha_rules rules = { 0 };
	char why[128];

	CHECK(!load_rules(&rules,
			  "# islands\n"
			  "* * 100\n"
			  "\n"
			  "10.0.0.0/8 * 200   # from here\n"
			  "10.0.0.0/8\t10.1.0.0/16 300\n"
			  "10.0.0.1 10.1.0.1 400\n"
			  "* 10.1.0.1 1024\n"
			  "0.0.0.0/0 * 101\n",
			  why));
	CHECK_INT(rules.n, 5); /* the last is the first again */
	CHECK_INT(share_of(&rules, "192.168.0.1", "192.168.0.2"), 101);
	CHECK_INT(share_of(&rules, "10.9.9.9", "192.168.0.2"), 200);
	CHECK_INT(share_of(&rules, "10.9.9.9", "10.1.7.7"), 300);
	CHECK_INT(share_of(&rules, "10.0.0.1", "10.1.0.1"), 400);
	CHECK_INT(share_of(&rules, "10.0.0.2", "10.1.0.1"), 1024); /* 32 bits against 8 + 16 */
	CHECK_INT(share_of(&rules, "11.0.0.2", "10.1.0.2"), 101);
	ha_rules_free(&rules);
	CHECK_INT(share_of(&rules, "10.0.0.1", "10.1.0.1"), -1);
}

static void mistakes_are_refused(void)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "* * 5\n* *\n", "line 2: a rule has three words: SOURCE DESTINATION SHARE" },
		{ "* * 5 6\n", "line 1: a rule has three words: SOURCE DESTINATION SHARE" },
		{ "* * 1025\n", "line 1: the share is no number from 0 to 1024" },
		{ "* * -1\n", "line 1: the share is no number from 0 to 1024" },
		{ "* * 5x\n", "line 1: the share is no number from 0 to 1024" },
		{ "* * 99999999999999999999\n", "line 1: the share is no number from 0 to 1024" },
		{ "10.0.0.256 * 5\n", "line 1: the source is no IPv4 address, network or *" },
		{ "10.0.0 * 5\n", "line 1: the source is no IPv4 address, network or *" },
		{ "* 10.0.0.1/33 5\n", "line 1: the destination is no IPv4 address, network or *" },
		{ "* 10.0.0.1/ 5\n", "line 1: the destination is no IPv4 address, network or *" },
		{ "* ** 5\n", "line 1: the destination is no IPv4 address, network or *" },
		{ "* fd00::1 5\n", "line 1: the destination is no IPv4 address, network or *" },
	};
	struct ha_rules rules = { 0 };
	char why[128], longest[400];

	CHECK(!load_rules(&rules, "* * 7\n", why));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(load_rules(&rules, wrong[i].text, why));
		CHECK_TEXT(why, wrong[i].why);
		CHECK_INT(rules.n, 1);
		CHECK_INT(share_of(&rules, "1.2.3.4", "5.6.7.8"), 7);
	}
	memset(longest, ' ', sizeof(longest));
	strcpy(longest + 390, "* * 5\n");
	CHECK(load_rules(&rules, longest, why));
	CHECK_TEXT(why, "line 1: it is too long");
	CHECK(ha_rules_load(&rules, "/nonexistent/rules", why, sizeof(why)));
	CHECK_INT(rules.n, 1);
	CHECK(!load_rules(&rules, "* * 8", why)); /* no newline at the end */
	CHECK_INT(share_of(&rules, "1.2.3.4", "5.6.7.8"), 8);
	ha_rules_free(&rules);
}

static void what_is_printed_is_understood(void)
{
	static const char text[] = "* * 1\n10.0.0.0/8 * 2\n10.1.0.0/16 10.2.3.4/32 3\n"
				   "128.0.0.0/1 255.255.255.255/32 1024\n";
	struct ha_rules rules = { 0 };
	char why[128], *printed = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&printed, &len);

	CHECK(!load_rules(&rules, text, why));
	ha_rules_print(&rules, out);
	fclose(out);
	CHECK_TEXT(printed, text);
	free(printed);
	ha_rules_free(&rules);
}

static void set_and_unset(void)
{
	struct ha_rules rules = { 0 };
	struct ha_rule rule;

	/* the bits beyond the prefix do not count */
	CHECK(!ha_rule_parse("10.0.0.77/24", "*", "5", &rule));
	CHECK(!ha_rules_set(&rules, &rule));
	CHECK(!ha_rule_parse("10.0.0.0/24", "*", "6", &rule));
	CHECK(!ha_rules_set(&rules, &rule));
	CHECK_INT(rules.n, 1);
	CHECK_INT(share_of(&rules, "10.0.0.9", "1.1.1.1"), 6);
	CHECK(ha_rules_unset(&rules, &rule));
	CHECK(!ha_rules_unset(&rules, &rule));
	for (unsigned i = 0; i < HA_RULES_MAX; i++) {
		rule = (struct ha_rule) { .src = i, .src_len = 32 };
		CHECK(!ha_rules_set(&rules, &rule));
	}
	rule.src++;
	CHECK(ha_rules_set(&rules, &rule));
	ha_rules_free(&rules);
}

int main(void)
{
	the_more_exact_rule_wins();
	mistakes_are_refused();
	what_is_printed_is_understood();
	set_and_unset();
	return 0;
}
