/* SPDX-License-Identifier: BSD-3-Clause */
/* --help, manual pages and completions, from the rows that the parser reads. */
#include "base/options_rows.h"

#include <ctype.h>
#include <string.h>

#include "base/version.h"

#define WIDTH 100
#define INDENT 28 /* of the help texts */

/* ---- for the terminal ---- */

/* The text broken at spaces, each line after the first indented. */
static void print_wrapped(FILE *out, const char *text, int indent)
{
	int room = WIDTH - indent;

	while ((int)strlen(text) > room || strchr(text, '\n')) {
		const char *line_end = strchr(text, '\n');
		int length = line_end && line_end - text <= room ? (int)(line_end - text) : room;

		while (length && text[length] != ' ' && text[length] != '\n')
			length--;
		if (!length)
			length = (int)strcspn(text, " \n");
		fprintf(out, "%.*s\n%*s", length, text, indent, "");
		text += length;
		text += *text != 0;
	}
	fprintf(out, "%s\n", text);
}

/* " [OPTIONS] SWITCH [ROUNDS]" */
static void print_operands(const struct ha_program *program, FILE *out)
{
	const struct ha_option *row = program->operands;
	unsigned open = 0;

	fprintf(out, program->options[0] ? " [OPTIONS]" : "");
	for (unsigned i = 0; row && row->name; i++, row++) {
		bool optional = i >= program->needed;

		open += optional;
		fprintf(out, " %s%s%s", optional ? "[" : "", row->name,
			row->kind == HA_OPTION_LIST ? "..." : "");
	}
	while (open--)
		fputc(']', out);
	fputc('\n', out);
}

static void print_usage(const struct ha_program *program, FILE *out)
{
	const char *line = program->synopsis;

	if (!line) {
		fprintf(out, "usage: %s", program->name);
		print_operands(program, out);
		return;
	}
	for (const char *lead = "usage:"; line; lead = "      ") {
		int length = (int)strcspn(line, "\n");

		fprintf(out, "%s %s%s%.*s\n", lead, program->name, length ? " " : "", length, line);
		line = line[length] ? line + length + 1 : NULL;
	}
}

static void print_help_row(const struct ha_option *o, bool operand, FILE *out)
{
	const char *argument = o->argument ? o->argument : "", *join = "";
	char left[96];
	int length;

	if (ha_row_may_do_without(o)) {
		join = "[=";
		argument++;
	} else if (o->argument) {
		join = " ";
	}
	if (operand)
		length = snprintf(left, sizeof(left), "  %s", o->name);
	else if (o->letter)
		length = snprintf(left, sizeof(left), "  -%c, --%s%s%s", o->letter, o->name, join,
				  argument);
	else
		length = snprintf(left, sizeof(left), "      --%s%s%s", o->name, join, argument);
	if (length >= INDENT - 1)
		fprintf(out, "%s\n%*s", left, INDENT, "");
	else
		fprintf(out, "%-*s", INDENT, left);
	print_wrapped(out, o->help ? o->help : "", INDENT);
}

void ha_program_help(const struct ha_program *program, FILE *out)
{
	struct ha_rows rows;

	ha_rows_list(&rows, program);
	print_usage(program, out);
	if (program->about) {
		fputc('\n', out);
		print_wrapped(out, program->about, 0);
	}
	fputc('\n', out);
	for (const struct ha_option *o = program->operands; o && o->name; o++)
		if (o->help)
			print_help_row(o, true, out);
	for (size_t i = 0; i < rows.count; i++)
		print_help_row(rows.row[i], false, out);
	if (program->notes) {
		fputc('\n', out);
		print_wrapped(out, program->notes, 0);
	}
	if (program->print_notes)
		program->print_notes(out);
}

/* ---- for completions: a line per option ---- */

/* "--name<TAB>argument<TAB>help"; of a choice the argument is its words, "a|b|c", of a flag it is
 * empty. */
static void print_words(const struct ha_program *program, FILE *out)
{
	struct ha_rows rows;

	ha_rows_list(&rows, program);
	for (size_t i = 0; i < rows.count; i++) {
		const struct ha_option *o = rows.row[i];

		fprintf(out, "--%s\t", o->name);
		if (o->kind == HA_OPTION_CHOICE)
			for (unsigned k = 0; o->words[k]; k++)
				fprintf(out, "%s%s", k ? "|" : "", o->words[k]);
		else
			fputs(o->argument ? o->argument : "", out);
		fprintf(out, "\t%.*s\n", (int)strcspn(o->help ? o->help : "", "\n"),
			o->help ? o->help : "");
	}
}

/* ---- manual pages ---- */

/* Text in which roff finds no request and no escape; a line of the table's text stays one. */
static void print_roff(const char *text, FILE *out)
{
	bool line_begins = true;

	for (; *text; text++) {
		if (line_begins && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		line_begins = *text == '\n';
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else if (line_begins)
			fputs("\n.br\n", out);
		else
			fputc(*text, out);
	}
	fputc('\n', out);
}

static void print_section(const char *name, const char *text, FILE *out)
{
	if (!text)
		return;
	fprintf(out, ".SH %s\n", name);
	print_roff(text, out);
}

/* "ha perf" is the page ha-perf(1). */
static void print_title(const struct ha_program *program, FILE *out)
{
	const char *about = program->about ? program->about : "part of hawser";
	char page[64];

	snprintf(page, sizeof(page), "%s", program->name);
	for (char *c = page; *c; c++)
		*c = *c == ' ' ? '-' : *c;
	fprintf(out, ".TH \"");
	for (const char *c = page; *c; c++)
		fputc(toupper((unsigned char)*c), out);
	fprintf(out, "\" 1 \"\" \"hawser %s\" \"hawser\"\n.SH NAME\n%s \\- ", ha_version, page);
	fprintf(out, "%.*s\n", (int)strcspn(about, ".:\n"), about);
}

static void print_synopsis(const struct ha_program *program, FILE *out)
{
	const char *line = program->synopsis;
	unsigned i = 0;

	fprintf(out, ".SH SYNOPSIS\n");
	while (line) {
		fprintf(out, ".B %s\n", program->name);
		fprintf(out, "%.*s\n.br\n", (int)strcspn(line, "\n"), line);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	if (program->synopsis)
		return;
	fprintf(out, ".B %s\n[OPTIONS]", program->name);
	for (const struct ha_option *o = program->operands; o && o->name; o++, i++)
		fprintf(out, i < program->needed ? " %s%s" : " [%s%s]", o->name,
			o->kind == HA_OPTION_LIST ? "..." : "");
	fputc('\n', out);
}

/* " N" or "[=N]" behind an option's name. */
static void print_argument(const struct ha_option *o, FILE *out)
{
	if (!o->argument)
		return;
	if (ha_row_may_do_without(o))
		fprintf(out, "[=\\fI%.*s\\fR]", (int)strlen(o->argument) - 2, o->argument + 1);
	else
		fprintf(out, " \\fI%s\\fR", o->argument);
}

/* "--in-place": its hyphens are signs that can be copied. */
static void print_name(const char *name, FILE *out)
{
	fputs("\\fB\\-\\-", out);
	for (; *name; name++)
		fprintf(out, *name == '-' ? "\\-" : "%c", *name);
	fputs("\\fR", out);
}

static void print_option(const struct ha_option *o, bool operand, FILE *out)
{
	fprintf(out, ".TP\n");
	if (operand)
		fprintf(out, "\\fI%s\\fR", o->name);
	if (!operand && o->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
	if (!operand)
		print_name(o->name, out);
	print_argument(o, out);
	fputc('\n', out);
	print_roff(o->help ? o->help : "", out);
}

static void print_man(const struct ha_program *program, FILE *out)
{
	struct ha_rows rows;

	print_title(program, out);
	print_synopsis(program, out);
	print_section("DESCRIPTION", program->about, out);
	fprintf(out, ".SH OPTIONS\n");
	for (const struct ha_option *o = program->operands; o && o->name; o++)
		if (o->help)
			print_option(o, true, out);
	ha_rows_list(&rows, program);
	for (size_t i = 0; i < rows.count; i++)
		print_option(rows.row[i], false, out);
	print_section("NOTES", program->notes, out);
	fprintf(out, ".SH SEE ALSO\n.BR ha (1)\n");
}

bool ha_program_print_form(const struct ha_program *program, const char *form, FILE *out)
{
	if (!strcmp(form, "man"))
		print_man(program, out);
	else if (!strcmp(form, "words"))
		print_words(program, out);
	else
		return false;
	return true;
}
