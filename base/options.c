/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/options.h"

#include "base/names.h"
#include "base/number.h"
#include "base/options_rows.h"
#include "base/version.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define GO_ON 0
#define DONE (1 + 0) /* the exit status, plus one */
#define WRONG (1 + 2)

struct parser {
	const struct ha_program *program;
	struct ha_rows options;
	void *target;
	char **argv;
	int argc, next; /* the word that is read next */
	unsigned words; /* operands so far */
	bool help, version;
	const char *form; /* of the help; NULL: for the terminal */
};

/* ---- the tables ---- */

static const struct ha_option *find_letter(const struct ha_rows *rows, char letter)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->row[i]->letter == letter)
			return rows->row[i];
	return NULL;
}

/* The option of that name, or the only one that begins so. */
static const struct ha_option *find_name(const struct ha_rows *rows, const char *name)
{
	const struct ha_option *found = NULL;
	size_t length = strlen(name);
	unsigned begin = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct ha_option *row = rows->row[i];

		if (strncmp(row->name, name, length))
			continue;
		if (!row->name[length])
			return row;
		found = row;
		begin++;
	}
	return begin == 1 ? found : NULL;
}

/* ---- refusals ---- */

int ha_program_refuse(const struct ha_program *program, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; `%s --help` explains\n", program->name);
	return WRONG;
}

/* "--name", or "NAME" of an operand, which is no row of the options. */
static const char *prefix_of(const struct ha_option *option)
{
	return option->name[0] >= 'A' && option->name[0] <= 'Z' ? "" : "--";
}

bool ha_option_refuse(const struct ha_option_text *given, const char *what, ...)
{
	va_list args;

	fprintf(stderr, "%s: %s%s takes ", given->program, prefix_of(given->option),
		given->option->name);
	va_start(args, what);
	vfprintf(stderr, what, args);
	va_end(args);
	fprintf(stderr, ", not '%.64s'\n", given->text ? given->text : "");
	return false;
}

static int refuse_name(const struct parser *p, const char *name)
{
	const char *known[HA_ROWS_MAX], *nearest;

	for (size_t i = 0; i < p->options.count; i++)
		known[i] = p->options.row[i]->name;
	nearest = ha_name_nearest(name, known, p->options.count);
	if (!nearest)
		return ha_program_refuse(p->program, "there is no option --%.64s", name);
	return ha_program_refuse(p->program, "there is no option --%.64s; did you mean --%s", name,
				 nearest);
}

/* ---- values ---- */

static void store_value(const struct parser *p, const struct ha_option *option, uint64_t value)
{
	char *to = (char *)p->target + option->offset;

	switch (option->size) {
	case 1:
		*(uint8_t *)to = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)to = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)to = (uint32_t)value;
		break;
	default:
		*(uint64_t *)to = value;
	}
}

static bool take_choice(const struct parser *p, const struct ha_option_text *given)
{
	const char *const *words = given->option->words;
	const char *joint = "";
	char list[256] = "";

	for (unsigned i = 0; words[i]; i++) {
		if (!strcmp(words[i], given->text)) {
			store_value(p, given->option, i);
			return true;
		}
		if (i)
			joint = words[i + 1] ? ", " : " or ";
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", joint, words[i]);
	}
	return ha_option_refuse(given, "%s", list);
}

static bool take_number(const struct parser *p, const struct ha_option_text *given)
{
	const struct ha_option *o = given->option;
	uint64_t value;

	if (!ha_number_parse(given->text, o->low, o->high, &value))
		return ha_option_refuse(given, "a whole number from %" PRIu64 " to %" PRIu64,
					o->low, o->high);
	store_value(p, o, o->scale ? value * o->scale : value);
	return true;
}

static bool take_size(const struct parser *p, const struct ha_option_text *given)
{
	const struct ha_option *o = given->option;
	char low[HA_SIZE_TEXT], high[HA_SIZE_TEXT];
	uint64_t value;

	if (!ha_size_parse(given->text, &value) || value < o->low || value > o->high)
		return ha_option_refuse(given,
					"a number of bytes from %s to %s, as in 8, 64K or 1M",
					ha_size_text(o->low, low), ha_size_text(o->high, high));
	store_value(p, o, value);
	return true;
}

static bool take_time(const struct parser *p, const struct ha_option_text *given)
{
	const struct ha_option *o = given->option;
	char low[HA_TIME_TEXT], high[HA_TIME_TEXT];
	uint64_t value;

	if (!ha_time_parse(given->text, &value) || value < o->low || value > o->high)
		return ha_option_refuse(given, "a time from %s to %s, as in 10s, 500ms or 20us",
					ha_time_text(o->low, low), ha_time_text(o->high, high));
	store_value(p, o, value);
	return true;
}

static bool take_text(const struct parser *p, const struct ha_option_text *given)
{
	const struct ha_option *o = given->option;
	char *to = (char *)p->target + o->offset;

	if (!*given->text)
		return ha_option_refuse(given, "a text that is not empty");
	if (o->kind == HA_OPTION_TEXT) {
		*(const char **)to = given->text;
		return true;
	}
	if (snprintf(to, o->size, "%s", given->text) >= (int)o->size)
		return ha_option_refuse(given, "%zu characters at most", o->size - 1);
	return true;
}

static bool take_one_more(const struct parser *p, const struct ha_option_text *given)
{
	const struct ha_option *o = given->option;
	const char **list = (const char **)((char *)p->target + o->offset);
	unsigned *count = (unsigned *)((char *)p->target + o->count);

	if (*count == o->high) {
		fprintf(stderr, "%s: %s%s: %" PRIu64 " at most\n", given->program, prefix_of(o),
			o->name, o->high);
		return false;
	}
	list[(*count)++] = given->text;
	return true;
}

static bool take_call(const struct parser *p, const struct ha_option_text *given)
{
	if (given->option->take(p->target, given))
		return true;
	if (given->option->accepts)
		ha_option_refuse(given, "%s", given->option->accepts);
	return false;
}

static bool take_value(const struct parser *p, const struct ha_option_text *given)
{
	switch (given->option->kind) {
	case HA_OPTION_FLAG:
		store_value(p, given->option, given->option->low);
		return true;
	case HA_OPTION_NUMBER:
		return take_number(p, given);
	case HA_OPTION_SIZE:
		return take_size(p, given);
	case HA_OPTION_TIME:
		return take_time(p, given);
	case HA_OPTION_CHOICE:
		return take_choice(p, given);
	case HA_OPTION_TEXT:
	case HA_OPTION_COPY:
		return take_text(p, given);
	case HA_OPTION_LIST:
		return take_one_more(p, given);
	case HA_OPTION_CALL:
		return take_call(p, given);
	}
	return false;
}

static int take_argument(struct parser *p, const struct ha_option *option, const char *text,
			 const char *second)
{
	const struct ha_option_text given = { p->program->name, option, text, second };

	if (option->given)
		*((bool *)p->target + option->given - 1) = true;
	/* An argument that was left out changes nothing but what `given` says, and take() may look.
	 */
	if (!text && ha_row_may_do_without(option) && option->kind != HA_OPTION_CALL)
		return GO_ON;
	return take_value(p, &given) ? GO_ON : WRONG;
}

/* ---- the words ---- */

/* --help and --version are of the parser itself. */
static bool take_own(struct parser *p, const struct ha_option *option, const char *joined)
{
	bool help = !strcmp(option->name, "help"), version = !strcmp(option->name, "version");

	p->help |= help;
	p->version |= version;
	if (help)
		p->form = joined;
	return help || version;
}

/* The next word, when it is this option's argument; NULL when it is not. */
static const char *take_next_word(struct parser *p, const struct ha_option *option)
{
	const char *next = p->next < p->argc ? p->argv[p->next] : NULL;

	if (!next)
		return NULL;
	if (ha_row_may_do_without(option) && (!option->may_follow || !option->may_follow(next)))
		return NULL;
	p->next++;
	return next;
}

/* An option whose own argument, behind a = or its letter, is `joined`, or NULL. */
static int take_option(struct parser *p, const struct ha_option *option, const char *joined)
{
	bool two = option->argument && strchr(option->argument, ' ');

	if (take_own(p, option, joined))
		return DONE;
	if (!option->argument && joined)
		return ha_program_refuse(p->program, "--%s takes no argument", option->name);
	if (option->argument && !joined)
		joined = take_next_word(p, option);
	if (option->argument && !joined && !ha_row_may_do_without(option))
		return ha_program_refuse(p->program, "--%s needs %s", option->name,
					 option->argument);
	if (two && p->next == p->argc)
		return ha_program_refuse(p->program, "--%s needs %s", option->name,
					 option->argument);
	return take_argument(p, option, joined, two ? p->argv[p->next++] : NULL);
}

/* "--name" or "--name=text". */
static int take_long(struct parser *p, const char *word)
{
	const char *equals = strchr(word, '=');
	const struct ha_option *option;
	char name[HA_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : HA_NAME_MAX, word);
	option = find_name(&p->options, name);
	if (!option)
		return refuse_name(p, name);
	return take_option(p, option, equals ? equals + 1 : NULL);
}

/* "-v", "-j4", "-vj4". */
static int take_letters(struct parser *p, const char *letters)
{
	int result = GO_ON;

	while (*letters && result == GO_ON) {
		const struct ha_option *option = find_letter(&p->options, *letters);

		if (!option)
			return ha_program_refuse(p->program, "there is no option -%c", *letters);
		letters++;
		if (!option->argument) {
			result = take_option(p, option, NULL);
			continue;
		}
		return take_option(p, option, *letters ? letters : NULL);
	}
	return result;
}

static int take_operand(struct parser *p, const char *word)
{
	const struct ha_option *row = p->program->operands;

	for (unsigned i = 0; row && row->name && i < p->words && row->kind != HA_OPTION_LIST; i++)
		row++;
	if (!row || !row->name)
		return ha_program_refuse(p->program, "'%.64s' is one word too many", word);
	p->words++;
	return take_argument(p, row, word, NULL);
}

static int take_word(struct parser *p, bool *only_operands)
{
	const char *word = p->argv[p->next++];

	if (*only_operands || word[0] != '-' || !word[1])
		return take_operand(p, word);
	if (word[1] != '-')
		return take_letters(p, word + 1);
	if (word[2])
		return take_long(p, word + 2);
	*only_operands = true;
	return GO_ON;
}

int ha_options_parse(const struct ha_program *program, int argc, char **argv, void *target)
{
	struct parser p = {
		.program = program, .target = target, .argv = argv, .argc = argc, .next = 1
	};
	bool only_operands = false;
	int result = GO_ON;

	ha_rows_list(&p.options, program);
	while (result == GO_ON && p.next < argc)
		result = take_word(&p, &only_operands);
	if (p.help && p.form && !ha_program_print_form(program, p.form, stdout))
		return ha_program_refuse(program, "--help takes man or words, not '%.64s'", p.form);
	if (p.help && !p.form)
		ha_program_help(program, stdout);
	else if (p.version)
		printf("%s: hawser %s\n", program->name, ha_version);
	else if (result == GO_ON && p.words < program->needed)
		return ha_program_refuse(program, "%s is missing", program->operands[p.words].name);
	return result;
}
