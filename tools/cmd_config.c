/* SPDX-License-Identifier: BSD-3-Clause */
/* ha config: what the environment sets, and the generated documentation of it. */
#include <stdio.h>

#include "base/config.h"
#include "base/options.h"
#include "tools/ha.h"

struct options {
	bool markdown;
};

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "markdown", 0, NULL, "the same table as docs/configuration.md", HA_FLAG(markdown) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha config",
	.about = "Shows every setting, the value in force, and where it comes from.",
	.options = { rows },
	.notes = "Exit status: 0; 1 a variable holds nonsense; 2 called wrongly.",
};

int ha_cmd_config(int argc, char **argv)
{
	struct options options = { 0 };
	struct ha_config config;
	int result = ha_options_parse(&program, argc, argv, &options);

	if (result)
		return result - 1;
	if (options.markdown) {
		ha_config_print_markdown(stdout);
		return 0;
	}
	ha_config_load_env(&config);
	ha_config_print(&config, stdout);
	for (int i = 0; i < HA_CONFIG_COUNT; i++)
		if (config.source[i] == HA_CONFIG_REJECTED)
			return 1;
	return 0;
}
