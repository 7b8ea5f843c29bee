/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_PARSE_H
#define HAWSER_JOB_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * parse - an option's text as a value; false, and the value untouched or undefined, when the text is none
 */

/* "64M" to bytes; K, M, G, T are powers of 1024. */
bool ha_size_parse(const char *text, size_t *bytes);

/* "10s", "1.5ms" or, in seconds, "2" to nanoseconds. */
bool ha_time_parse(const char *text, int64_t *ns);

/* A decimal number from low to high. */
bool ha_long_parse(const char *text, long low, long high, long *value);
bool ha_int_parse(const char *text, int low, int high, int *value);

/* `good` again; what the parser of this option takes is `accepts`. */
bool ha_parse_check(bool good, const char *accepts);
/* What the parser that was called last takes, "a whole number from 1 to 9"; empty when none was since the reset. */
const char *ha_parse_accepts(void);
void ha_parse_reset(void);

#endif
