/* SPDX-License-Identifier: BSD-3-Clause */
/* communicators LIBNCCL PLUGIN TEST: one test of the incarnations of communicators under NCCL
 * itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/under_nccl/communicators/cases.h"
#include "tests/under_nccl/communicators/ranks.h"

static void many_times(void)
{
	test_many_times(200);
}

static void twenty_times(void)
{
	test_many_times(20);
}

/* The limit of a loss of all paths: 0.1 + 0.2 + 0.4 s. */
static void no_path(void)
{
	setenv("HA_NCCL_MAX_RETRIES", "3", 1);
	test_no_path();
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "many_times", many_times },
	{ "twenty_times", twenty_times },
	{ "plugin_comes_back", test_plugin_comes_back },
	{ "libnccl_comes_back", test_libnccl_comes_back },
	{ "split", test_split },
	{ "shrink", test_shrink },
	{ "shrink_without_the_dead", test_shrink_without_the_dead },
	{ "shrink_without_the_idle", test_shrink_without_the_idle },
	{ "several_at_once", test_several_at_once },
	{ "finalize", test_finalize },
	{ "abort", test_abort },
	{ "killed_rank", test_killed_rank },
	{ "no_path", no_path },
};

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: communicators LIBNCCL PLUGIN TEST\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(tests[i].name, argv[3]))
			continue;
		if (access(argv[1], R_OK)) {
			printf("skipped: %s is not there; `scripts/install-deps nccl-all` fetches "
			       "it\n",
			       argv[1]);
			return 77;
		}
		ranks_prepare(argv[1], argv[2]);
		tests[i].run();
		return 0;
	}
	fprintf(stderr, "no test is called %s\n", argv[3]);
	return 2;
}
