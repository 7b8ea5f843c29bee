/* SPDX-License-Identifier: BSD-3-Clause */
/* ha config: what the environment sets, and the generated documentation of it. */
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "tools/ha.h"

int ha_cmd_config(int argc, char **argv)
{
	struct ha_config config;

	if (argc == 2 && !strcmp(argv[1], "--markdown")) {
		ha_config_print_markdown(stdout);
		return 0;
	}
	if (argc > 1) {
		int help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		fprintf(help ? stdout : stderr,
			"usage: ha config             what is in force, and where it comes from\n"
			"       ha config --markdown  the same table as docs/configuration.md\n"
			"Exit status 1: a variable holds nonsense.\n");
		return help ? 0 : 2;
	}
	ha_config_load_env(&config);
	ha_config_print(&config, stdout);
	for (int i = 0; i < HA_CONFIG_COUNT; i++)
		if (config.source[i] == HA_CONFIG_REJECTED)
			return 1;
	return 0;
}
