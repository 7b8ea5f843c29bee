/* SPDX-License-Identifier: BSD-3-Clause */
/* test_group_file.c - the groups that both switches read from a file: what each statement means,
 * and each line that is refused */
#include "ina/switch/group_file.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <unistd.h>

#define NOW UINT64_C(1000000000)

static struct ina_group_config c;

static const char *parse_line(const char *text)
{
	char copy[1024];

	snprintf(copy, sizeof(copy), "%s", text);
	return ina_group_line(copy, NOW, &c);
}

static void whole_line_is_parsed(void)
{
	CHECK(!parse_line(
		"group 7 epoch 3 slots 128 1024 frames old workers 4 first 4294967290 lease "
		"250 members 10.0.0.1 10.0.0.2 10.0.0.3\n"));
	CHECK_INT(c.id, 7);
	CHECK_INT(c.epoch, 3);
	CHECK_INT(c.base, 128);
	CHECK_INT(c.len, 1024);
	CHECK(!c.extended);
	CHECK_INT(c.workers, 4);
	CHECK_INT(c.first_psn, 4294967290u);
	CHECK_INT(c.lease_until, NOW + 250000000);
	CHECK_INT(c.ranks, 3);
	CHECK_INT(c.member[0].addr, 0x0a000001);
	CHECK_INT(c.member[2].addr, 0x0a000003);
}

static void defaults_are_filled_in(void)
{
	CHECK(!parse_line("group 255 slots 0 16 members 10.0.0.1 10.0.0.1"));
	CHECK_INT(c.epoch, 1);
	CHECK_INT(c.workers, 1);
	CHECK_INT(c.first_psn, 0);
	CHECK(c.extended);
	CHECK(c.lease_until == UINT64_MAX);
}

/* In ms from now; 0 is none. */
static void lease_is_in_ms(void)
{
	CHECK(!parse_line("group 1 slots 0 16 lease 0 members 10.0.0.1 10.0.0.2"));
	CHECK(c.lease_until == UINT64_MAX);
	CHECK(!parse_line("group 1 slots 0 16 lease 4294967295 members 10.0.0.1 10.0.0.2"));
	CHECK(c.lease_until == NOW + UINT64_C(4294967295) * 1000000);
}

static void empty_lines_give_no_group(void)
{
	CHECK(!parse_line("") && !c.id);
	CHECK(!parse_line(" \t\r\n") && !c.id);
	CHECK(!parse_line("# group 1 slots 0 16 members 10.0.0.1 10.0.0.2") && !c.id);
}

static void wrong_lines(void)
{
	static const char *const lines[][2] = {
		{ "grope 1", "a line begins with group and its number, 1 to 255" },
		{ "group 0 slots 0 16 members 10.0.0.1 10.0.0.2",
		  "a line begins with group and its number, 1 to 255" },
		{ "group 256 slots 0 16 members 10.0.0.1 10.0.0.2",
		  "a line begins with group and its number, 1 to 255" },
		{ "group 1 members 10.0.0.1 10.0.0.2", "it has no slots" },
		{ "group 1 slots 0 16", "a group has 2 to 32 members" },
		{ "group 1 slots 0 16 members 10.0.0.1", "a group has 2 to 32 members" },
		{ "group 1 slots 0", "slots: the first one and how many, as in slots 0 1024" },
		{ "group 1 slots 65536 16 members 10.0.0.1 10.0.0.2",
		  "slots: the first one and how many, as in slots 0 1024" },
		{ "group 1 slots 0 16 members 10.0.0.1 me",
		  "members: IPv4 addresses in the order of ranks, to the end of the line" },
		{ "group 1 slots 0 16 frames new members 10.0.0.1 10.0.0.2",
		  "frames: old or extended" },
		{ "group 1 slots 0 16 epoch -1 members 10.0.0.1 10.0.0.2",
		  "a number is missing or too large" },
		{ "group 1 slots 0 16 lease 4294967296 members 10.0.0.1 10.0.0.2",
		  "a number is missing or too large" },
		{ "group 1 slots 0 16 lease", "a number is missing or too large" },
		{ "group 1 slot 0 16 members 10.0.0.1 10.0.0.2",
		  "not understood: epoch, slots, frames, workers, first, lease, members are" },
	};
	char many[1024] = "group 1 slots 0 16 members";

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *wrong = parse_line(lines[i][0]);

		CHECK_TEXT(wrong ? wrong : "nothing", lines[i][1]);
	}
	for (unsigned r = 0; r < INA_RANKS_MAX; r++)
		strcat(many, " 10.0.0.1");
	CHECK(!parse_line(many));
	CHECK_INT(c.ranks, INA_RANKS_MAX);
	strcat(many, " 10.0.0.1");
	CHECK_TEXT(parse_line(many), "more than 32 members");
}

static int load_text(const char *text, struct ina_group_config *wanted, char *why, size_t size)
{
	char path[] = "/tmp/ha-test-groups-XXXXXX";
	int fd = mkstemp(path), err;

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	err = ina_group_file(path, NOW, wanted, why, size);
	unlink(path);
	return err;
}

/* By number; the line of a mistake is named; what is no file says why. */
static void files_are_read(void)
{
	static struct ina_group_config wanted[INA_GROUPS];
	char why[256] = "", endless[1200];

	CHECK_INT(load_text("# two\ngroup 9 slots 16 16 members 10.0.0.1 10.0.0.2\n\ngroup 3 slots "
			    "0 16 "
			    "members 10.0.0.1 10.0.0.2",
			    wanted, why, sizeof(why)),
		  0);
	for (unsigned id = 0; id < INA_GROUPS; id++)
		CHECK_INT(wanted[id].id, id == 9 || id == 3 ? id : 0);
	CHECK_INT(wanted[9].base, 16);
	CHECK_INT(
		load_text(
			"group 3 slots 0 16 members 10.0.0.1 10.0.0.2\ngroup 3 slots 16 16 members "
			"10.0.0.1 10.0.0.2\n",
			wanted, why, sizeof(why)),
		-EINVAL);
	CHECK(strstr(why, ":2: this group is there already"));
	memset(endless, ' ', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = 0;
	CHECK_INT(load_text(endless, wanted, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, ":1: the line is too long"));
	CHECK_INT(ina_group_file("/nowhere/groups", NOW, wanted, why, sizeof(why)), -ENOENT);
	CHECK_TEXT(why, "/nowhere/groups: No such file or directory");
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "whole", whole_line_is_parsed }, { "defaults", defaults_are_filled_in },
		{ "lease", lease_is_in_ms },       { "nothing", empty_lines_give_no_group },
		{ "wrong_lines", wrong_lines },    { "file", files_are_read },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
