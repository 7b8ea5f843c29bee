/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - assertions of the test programs: they say what was expected where, and end the
 * program */
#ifndef HA_TESTS_BASE_CHECK_H
#define HA_TESTS_BASE_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

/* With a line of its own, as printf takes it. */
#define CHECK_THAT(condition, ...)                                                                \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__);                                             \
			fputc('\n', stderr);                                                      \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define CHECK_INT(expression, expected)                                                           \
	do {                                                                                      \
		long long is_ = (long long)(expression), want_ = (long long)(expected);           \
		if (is_ != want_) {                                                               \
			fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, \
				#expression, is_, want_);                                         \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define CHECK_TEXT(expression, expected)                                                          \
	do {                                                                                      \
		const char *is_ = (expression), *want_ = (expected);                              \
		if (strcmp(is_, want_)) {                                                         \
			fprintf(stderr, "%s:%d: %s is '%s', expected '%s'\n", __FILE__, __LINE__, \
				#expression, is_, want_);                                         \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#endif
