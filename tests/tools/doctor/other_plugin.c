/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody else's network plugin and somebody's NCCL in one file: a name in a table, a version; it
 * can crash when opened. */
#include <stdlib.h>

struct table {
	const char *name;
	void *functions[32];
};

__attribute__((visibility("default"))) struct table ncclNetPlugin_v10 = { .name = "OTHER" };

__attribute__((visibility("default"))) int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
	const char *text = getenv("TEST_NCCL_VERSION");

	*version = text ? atoi(text) : 22703;
	return 0;
}

__attribute__((constructor)) static void crash_if_asked(void)
{
	if (getenv("TEST_PLUGIN_CRASHES"))
		abort();
}
