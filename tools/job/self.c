/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/job/self.h"

const char *ha_self_folder(char *text, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (!slash) {
		snprintf(text, size, ".");
		return text;
	}
	snprintf(text, size, "%.*s", (int)(slash - self), self);
	return text;
}

const char *ha_self_library(char *text, size_t size, const char *name)
{
	static const char *const folders[] = { "/../lib", "/../lib64", "" };
	char folder[PATH_MAX], beside[PATH_MAX + 16], whole[PATH_MAX];

	ha_self_folder(folder, sizeof(folder));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(beside, sizeof(beside), "%s%s", folder, folders[i]);
		/* Users read the path: without "..". */
		snprintf(text, size, "%s/%s", realpath(beside, whole) ? whole : beside, name);
		if (!access(text, F_OK))
			break;
	}
	return text;
}
