/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/nccl_conf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void load_file(const char *path)
{
	char line[4096];
	FILE *file = fopen(path, "re");

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		char *equals = strchr(line, '=');

		line[strcspn(line, "\r\n")] = 0;
		if (!equals || line[0] == '#')
			continue;
		*equals = 0;
		setenv(line, equals + 1, 0);
	}
	fclose(file);
}

void doctor_nccl_conf_load(void)
{
	const char *own = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
	char path[PATH_MAX];

	if (own && *own) {
		load_file(own);
	} else if (home) {
		snprintf(path, sizeof(path), "%s/.nccl.conf", home);
		load_file(path);
	}
	load_file("/etc/nccl.conf");
}
