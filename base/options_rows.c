/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/options_rows.h"

static void add_rows(struct ha_rows *rows, const struct ha_option *table)
{
	for (; table && table->name && rows->count < HA_ROWS_MAX; table++)
		rows->row[rows->count++] = table;
}

void ha_rows_list(struct ha_rows *rows, const struct ha_program *program)
{
	static const struct ha_option always[] = {
		{ "help", 'h', "[FORM]",
		  "print this; FORM: man for a manual page, words for completions" },
		{ "version", 'V', NULL, "print the version" },
		{ 0 },
	};

	rows->count = 0;
	for (size_t i = 0; i < HA_OPTION_TABLES; i++)
		add_rows(rows, program->options[i]);
	add_rows(rows, always);
}

bool ha_row_may_do_without(const struct ha_option *option)
{
	return option->argument && option->argument[0] == '[';
}
