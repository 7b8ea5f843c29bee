/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of every program, from tables
 *
 * A program describes its options and operands as rows; the parser stores the values, and refuses
 * what does not fit with one line that names the option, what it takes and what was given. --help,
 * --version, the nearest name to an unknown one, manual pages (--help=man) and completions
 * (--help=words) are made from the same rows.
 */
#ifndef HA_BASE_OPTIONS_H
#define HA_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ha_option_kind {
	HA_OPTION_FLAG, /* no argument: the bool becomes `low` != 0 */
	/* a whole number from low to high, times `scale`, into an integer of any size */
	HA_OPTION_NUMBER,
	HA_OPTION_SIZE,   /* bytes from low to high, as in 8, 64K or 1M */
	HA_OPTION_TIME,   /* nanoseconds from low to high, as in 10s or 500ms */
	HA_OPTION_CHOICE, /* one of `words`: its index, into an integer */
	HA_OPTION_TEXT,   /* not empty: const char * */
	HA_OPTION_COPY,   /* not empty: into an array of char */
	/* may be repeated, `high` times at most: into an array of const char *, counted in an
	 * unsigned at `count` */
	HA_OPTION_LIST,
	HA_OPTION_CALL, /* take() */
};

struct ha_option;

/* What take() gets. */
struct ha_option_text {
	const char *program;
	const struct ha_option *option;
	const char *text;   /* NULL: an argument that may be left out was */
	const char *second; /* where `argument` is two words */
};

/* A row; a table ends with one that has no name. */
struct ha_option {
	const char *name; /* without its dashes; an operand's is what the usage calls it */
	char letter;      /* 0: none */
	/* "N"; NULL: none; "[N]": may be left out, --name=N or nothing; "TIME COMMAND": two */
	const char *argument;
	const char *help;
	enum ha_option_kind kind;
	size_t offset, size; /* of the value in the target */
	size_t given;        /* 1 + the offset of a bool that becomes true; 0: none */
	size_t count;        /* HA_OPTION_LIST */
	uint64_t low, high, scale;
	const char *const *words; /* HA_OPTION_CHOICE; NULL at the end */
	/*
	 * HA_OPTION_CALL: what it takes, for the line when take() is false; NULL: take() has
	 * printed one
	 */
	const char *accepts;
	bool (*take)(void *target, const struct ha_option_text *given);
	/* "[N]": the next word may be N although no = joins it */
	bool (*may_follow)(const char *word);
};

/* The last fields of a row: where in the target its value goes. A file defines HA_TARGET, the
 * target's type, before its table. */
#define HA_INTO_(member) \
	.offset = offsetof(HA_TARGET, member), .size = sizeof(((HA_TARGET *)0)->member)
#define HA_RANGE_(member, from, to) .low = (from), .high = (to), HA_INTO_(member)

#define HA_FLAG(member) .kind = HA_OPTION_FLAG, .low = 1, HA_INTO_(member)
#define HA_FLAG_OFF(member) .kind = HA_OPTION_FLAG, .low = 0, HA_INTO_(member)
#define HA_NUMBER(member, from, to) .kind = HA_OPTION_NUMBER, HA_RANGE_(member, from, to)
#define HA_SIZE(member, from, to) .kind = HA_OPTION_SIZE, HA_RANGE_(member, from, to)
#define HA_TIME(member, from, to) .kind = HA_OPTION_TIME, HA_RANGE_(member, from, to)
#define HA_CHOICE(member, list) .kind = HA_OPTION_CHOICE, .words = (list), HA_INTO_(member)
#define HA_TEXT(member) .kind = HA_OPTION_TEXT, HA_INTO_(member)
#define HA_COPY(member) .kind = HA_OPTION_COPY, HA_INTO_(member)
#define HA_LIST(member, counter, most)                                                 \
	.kind = HA_OPTION_LIST, .high = (most), .count = offsetof(HA_TARGET, counter), \
	HA_INTO_(member)
#define HA_CALL(function, what) .kind = HA_OPTION_CALL, .take = (function), .accepts = (what)
#define HA_GIVEN(member) .given = 1 + offsetof(HA_TARGET, member)

#define HA_OPTION_TABLES 3

struct ha_program {
	const char *name; /* as the user calls it, "ha sim" */
	/* what follows the name, a line for each way to call it; NULL: made of the tables */
	const char *synopsis;
	const char *about; /* what it does */
	const struct ha_option *options[HA_OPTION_TABLES];
	const struct ha_option *operands; /* in their order; a list comes last */
	unsigned needed;                  /* so many operands must be there */
	const char *notes;                /* after the options; the exit status among them */
	void (*print_notes)(FILE *out);   /* after those: what is known only at run time */
};

/*
 * Takes argv[1..] into `target`, in which the defaults are. --help and --version are known to every
 * program. 0: go on; else the exit status + 1, and what there is to say is printed: 1 after --help
 * and --version, 3 after a call that is wrong.
 */
int ha_options_parse(const struct ha_program *program, int argc, char **argv, void *target);

/* For take(): prints "program: --name takes WHAT, not 'text'", and is false. */
bool ha_option_refuse(const struct ha_option_text *given, const char *what, ...)
	__attribute__((format(printf, 2, 3)));

/* For what only makes sense together: prints "program: ...; `program --help` explains" and returns
 * 3. */
int ha_program_refuse(const struct ha_program *program, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void ha_program_help(const struct ha_program *program, FILE *out);

#endif
