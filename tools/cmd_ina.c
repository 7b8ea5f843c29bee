/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ha ina: the client of ha-controller is a program of its own beside this one, so that nobody else
 * needs gRPC.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/ha.h"

int ha_cmd_ina(int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("ha-ina"));
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "ha-ina");
	execv(path, argv);
	fprintf(stderr, "ha ina: %s: %s; it is built by `make ina`, which installs what it needs\n",
		path, strerror(errno));
	return 1;
}
