/* SPDX-License-Identifier: BSD-3-Clause */
/* named.h - programs of several named tests: without arguments all run, with names those */
#ifndef HA_TESTS_INA_NAMED_H
#define HA_TESTS_INA_NAMED_H

#include "base/check.h"

struct named_test {
	const char *name;
	void (*run)(void);
};

static inline int named_tests_run(const struct named_test *tests, size_t n, int argc, char **argv)
{
	for (int a = 1; a < argc; a++) {
		size_t i = 0;

		while (i < n && strcmp(tests[i].name, argv[a]))
			i++;
		if (i == n) {
			fprintf(stderr, "no test is called '%s'\n", argv[a]);
			return 2;
		}
		tests[i].run();
	}
	for (size_t i = 0; argc < 2 && i < n; i++)
		tests[i].run();
	return 0;
}

#define NAMED_TESTS_RUN(tests, argc, argv) \
	named_tests_run(tests, sizeof(tests) / sizeof((tests)[0]), argc, argv)

#endif
