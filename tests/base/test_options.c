/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line from tables: every kind of value, what is refused and with which line, what
 * --help and --version print. */
#include "base/check.h"
#include "base/options.h"
#include "base/version.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct target {
	bool flag, off, given;
	uint8_t small;
	uint64_t big, ns, bytes, scaled;
	int choice;
	const char *text, *operand, *second;
	char copy[8];
	const char *list[2];
	unsigned listed;
};

static bool take_cue(void *target, const struct ha_option_text *given)
{
	struct target *t = target;

	t->second = given->second;
	return !strcmp(given->text, "1s");
}

static bool is_path(const char *word)
{
	return strchr(word, '/') != NULL;
}

#define HA_TARGET struct target

static const char *const words[] = { "red", "green", "blue", NULL };

static const struct ha_option rows[] = {
	{ "flag", 'f', NULL, "a flag", HA_FLAG(flag) },
	{ "off", 0, NULL, "the opposite", HA_FLAG_OFF(off) },
	{ "small", 's', "N", "of a byte", HA_NUMBER(small, 1, 200) },
	{ "big", 'b', "N", "of eight", HA_NUMBER(big, 0, UINT64_MAX), HA_GIVEN(given) },
	{ "scaled", 0, "MS", "milliseconds", HA_NUMBER(scaled, 0, 10), .scale = 1000000 },
	{ "time", 0, "TIME", "a time", HA_TIME(ns, 1000000, 10000000000) },
	{ "size", 0, "SIZE", "a size", HA_SIZE(bytes, 8, 1 << 20) },
	{ "colour", 0, "WORD", "a choice", HA_CHOICE(choice, words) },
	{ "copy", 0, "TEXT", "seven characters", HA_COPY(copy) },
	{ "list", 'l', "TEXT", "twice at most", HA_LIST(list, listed, 2) },
	{ "maybe", 'm', "[FILE]", "with or without", HA_TEXT(text), HA_GIVEN(given),
	  .may_follow = is_path },
	{ "at", 0, "TIME COMMAND", "two words", HA_CALL(take_cue, "1s") },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "WHAT", 0, NULL, "the operand", HA_TEXT(operand) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "prog",
	.about = "It does this.",
	.options = { rows },
	.operands = operands,
	.needed = 1,
	.notes = "That is all.",
};

static struct target target;
static char said[8192]; /* the last call, on both outputs */

/* Calls it with the words of `line`; what it says goes to `said`. */
static int parse_line(const char *line)
{
	static char copy[512];
	char *argv[32] = { "prog" }, *save;
	int argc = 1, result, out = dup(1), err = dup(2);
	FILE *file = tmpfile();
	size_t n;

	CHECK(file && out >= 0 && err >= 0);
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	target = (struct target) { .off = true };
	fflush(NULL);
	dup2(fileno(file), 1);
	dup2(fileno(file), 2);
	result = ha_options_parse(&program, argc, argv, &target);
	fflush(NULL);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	rewind(file);
	n = fread(said, 1, sizeof(said) - 1, file);
	said[n] = 0;
	fclose(file);
	return result;
}

static void expect_accepted(const char *line)
{
	CHECK_INT(parse_line(line), 0);
	CHECK_TEXT(said, "");
}

static void expect_refused(const char *line, const char *why)
{
	CHECK_INT(parse_line(line), 3);
	CHECK_TEXT(said, why);
}

static void values_of_every_kind(void)
{
	expect_accepted("-f --off --small=200 x");
	CHECK(target.flag && !target.off);
	CHECK_INT(target.small, 200);
	CHECK_TEXT(target.operand, "x");
	expect_accepted("x --big 0xffffffffffffffff --scaled 3 --time 1.5s --size 64K");
	CHECK(target.big == UINT64_MAX && target.given && target.scaled == 3000000);
	CHECK(target.ns == 1500000000 && target.bytes == 65536);
	expect_accepted("--colour blue --copy seven77 -l a -lb x");
	CHECK_INT(target.choice, 2);
	CHECK_TEXT(target.copy, "seven77");
	CHECK_INT(target.listed, 2);
	CHECK_TEXT(target.list[1], "b");
	expect_accepted("--at 1s command x");
	CHECK_TEXT(target.second, "command");
}

static void what_may_be_left_out(void)
{
	expect_accepted("--maybe x");
	CHECK(target.given && !target.text);
	CHECK_TEXT(target.operand, "x");
	expect_accepted("--maybe ./x y");
	CHECK_TEXT(target.text, "./x");
	expect_accepted("x --maybe=y");
	CHECK_TEXT(target.text, "y");
}

static void forms_of_words(void)
{
	expect_accepted("-fs7 x");
	CHECK(target.flag);
	CHECK_INT(target.small, 7);
	expect_accepted("--sm 7 x"); /* the only one that begins so */
	CHECK_INT(target.small, 7);
	expect_accepted("-- --flag");
	CHECK(!target.flag);
	CHECK_TEXT(target.operand, "--flag");
	expect_accepted("-");
	CHECK_TEXT(target.operand, "-");
}

static void wrong_words_are_refused(void)
{
	expect_refused("--small 0 x",
		       "prog: --small takes a whole number from 1 to 200, not '0'\n");
	expect_refused("-s 201 x", "prog: --small takes a whole number from 1 to 200, not '201'\n");
	expect_refused("--big= x",
		       "prog: --big takes a whole number from 0 to 18446744073709551615, not ''\n");
	expect_refused(
		"--time 1us x",
		"prog: --time takes a time from 1ms to 10s, as in 10s, 500ms or 20us, not '1us'\n");
	expect_refused("--size 2M x",
		       "prog: --size takes a number of bytes from 8 to 1M, as in 8, 64K or "
		       "1M, not '2M'\n");
	expect_refused("--colour pink x", "prog: --colour takes red, green or blue, not 'pink'\n");
	expect_refused("--copy eight888 x",
		       "prog: --copy takes 7 characters at most, not 'eight888'\n");
	expect_refused("-l a -l b -l c x", "prog: --list: 2 at most\n");
	expect_refused("--at 2s command x", "prog: --at takes 1s, not '2s'\n");
	expect_refused("--smalll 1 x",
		       "prog: there is no option --smalll; did you mean --small; `prog "
		       "--help` explains\n");
	expect_refused("--s 1 x", "prog: there is no option --s; `prog --help` explains\n");
	expect_refused("-z x", "prog: there is no option -z; `prog --help` explains\n");
	expect_refused("x --small", "prog: --small needs N; `prog --help` explains\n");
	expect_refused("--at 1s", "prog: --at needs TIME COMMAND; `prog --help` explains\n");
	expect_refused("--flag=1 x", "prog: --flag takes no argument; `prog --help` explains\n");
	expect_refused("x y", "prog: 'y' is one word too many; `prog --help` explains\n");
	expect_refused("-f", "prog: WHAT is missing; `prog --help` explains\n");
}

static void help_and_version(void)
{
	CHECK_INT(parse_line("--help --nonsense"), 1);
	CHECK(!strncmp(said, "usage: prog [OPTIONS] WHAT\n\nIt does this.\n\n  WHAT ", 50));
	CHECK(strstr(said, "\n  -s, --small N             of a byte\n"));
	CHECK(strstr(said, "\n  -m, --maybe[=FILE]        with or without\n"));
	CHECK(strstr(said, "\n      --at TIME COMMAND     two words\n"));
	CHECK(strstr(said, "\nThat is all.\n"));
	CHECK(strstr(said, "\n  -h, --help[=FORM]         print this; "));
	CHECK_INT(parse_line("-V"), 1);
	CHECK(!strncmp(said, "prog: hawser ", 13) && strstr(said, ha_version));
}

/* The same rows as a manual page and for completions: whatever is an option is in them. */
static void forms_of_help(void)
{
	CHECK_INT(parse_line("--help=words"), 1);
	CHECK(!strncmp(said, "--flag\t\ta flag\n--off\t\tthe opposite\n", 35));
	CHECK(strstr(said, "\n--colour\tred|green|blue\ta choice\n"));
	CHECK(strstr(said, "\n--maybe\t[FILE]\twith or without\n"));
	CHECK(strstr(said, "\n--help\t[FORM]\t"));
	CHECK_INT(parse_line("--help=man"), 1);
	CHECK(!strncmp(said, ".TH \"PROG\" 1 ", 13));
	CHECK(strstr(said, "\n.SH NAME\nprog \\- It does this\n"));
	CHECK(strstr(said, "\n.TP\n\\fB\\-s\\fR, \\fB\\-\\-small\\fR \\fIN\\fR\nof a byte\n"));
	CHECK(strstr(said, "\n.TP\n\\fB\\-\\-at\\fR \\fITIME COMMAND\\fR\ntwo words\n"));
	CHECK(strstr(said, "\n.TP\n\\fB\\-m\\fR, \\fB\\-\\-maybe\\fR[=\\fIFILE\\fR]\n"));
	CHECK(strstr(said, "\n.TP\n\\fB\\-f\\fR, \\fB\\-\\-flag\\fR\na flag\n"));
	CHECK(strstr(said, "\n.SH NOTES\nThat is all.\n"));
	expect_refused("--help=html",
		       "prog: --help takes man or words, not 'html'; `prog --help` explains\n");
}

int main(void)
{
	values_of_every_kind();
	what_may_be_left_out();
	forms_of_words();
	wrong_words_are_refused();
	help_and_version();
	forms_of_help();
	return 0;
}
