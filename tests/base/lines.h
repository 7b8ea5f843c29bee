/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.h - catches what the code under test logs */
#ifndef HA_TESTS_BASE_LINES_H
#define HA_TESTS_BASE_LINES_H

#include <stdbool.h>

/* From now on lines are kept, not printed; everything at or below information is on. Forgets
 * earlier ones. Before there is a thread that logs. */
void lines_catch(void);
/* Warnings that were caught. */
int lines_warnings(void);
/* In how many places is `part` in what was caught? */
int lines_count(const char *part);
/* Is `part` in any line that was caught? */
bool lines_contain(const char *part);

#endif
