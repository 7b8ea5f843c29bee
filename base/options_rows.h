/* SPDX-License-Identifier: BSD-3-Clause */
/* options_rows.h - all options of a program in one list, and its forms for other programs. Private
 * to base/. */
#ifndef HA_BASE_OPTIONS_ROWS_H
#define HA_BASE_OPTIONS_ROWS_H

#include "base/options.h"

#define HA_ROWS_MAX 128

struct ha_rows {
	const struct ha_option *row[HA_ROWS_MAX];
	size_t count;
};

/* Those of the program's tables, --help and --version. */
void ha_rows_list(struct ha_rows *rows, const struct ha_program *program);

/* "[N]": the argument may be left out. */
bool ha_row_may_do_without(const struct ha_option *option);

/* The program's page in the form "man" (roff), or its options for a completion, "words". False:
 * there is no such form. */
bool ha_program_print_form(const struct ha_program *program, const char *form, FILE *out);

#endif
