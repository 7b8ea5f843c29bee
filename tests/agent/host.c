/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/agent/host.h"

#include "base/check.h"

#include <inttypes.h>

void host_lay(struct tree *t, const char *folder, const char *name)
{
	char path[512], line[512], before[512] = "", text[8192] = "";
	FILE *file;

	tree_make(t);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		char *is = strstr(line, " = ");

		if (*line == '#' || !is)
			continue;
		*is = 0;
		if (strcmp(line, before))
			text[0] = 0;
		CHECK(strlen(text) + strlen(is + 3) < sizeof(text));
		strcat(text, is + 3);
		tree_file(t, line, text);
		strcpy(before, line);
	}
	fclose(file);
}

void host_number(const struct tree *t, const char *path, uint64_t value)
{
	char full[256], text[32];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", t->root, path);
	/* always as long, so the file need not be cut */
	snprintf(text, sizeof(text), "%-20" PRIu64 "\n", value);
	file = fopen(full, "r+e");
	if (file) {
		fputs(text, file);
		CHECK(!fclose(file));
	} else {
		tree_file(t, path, text);
	}
}
