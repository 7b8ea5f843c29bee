/* SPDX-License-Identifier: BSD-3-Clause */
/* number.h - numbers, sizes and times as people write them: read, or refused */
#ifndef HA_BASE_NUMBER_H
#define HA_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits, or 0x and hexadecimal ones, and nothing else. False: `text` is no number from
 * `low` to `high`. */
bool ha_number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* For files of ours, whose numbers are decimal only. text: NULL is no number. */
bool ha_decimal_parse(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/*
 * The same, and when it is false one line on stderr:
 * "ha sim: --seeds takes a whole number from 1 to 10, not 'x'". `what` is the option with its
 * dashes, or the argument's name.
 */
bool ha_number_take_unsigned(const char *program, const char *what, const char *text, unsigned low,
			     unsigned high, unsigned *value);

/* "64M" to bytes, up to 64T; K, M, G and T are powers of 1024. */
bool ha_size_parse(const char *text, uint64_t *bytes);

/* "10s", "1.5ms" or, in seconds, "2" to nanoseconds. */
bool ha_time_parse(const char *text, uint64_t *ns);

/* The other way, exact: "64M", "500ms". Return `text`. */
#define HA_SIZE_TEXT 24
#define HA_TIME_TEXT 24
const char *ha_size_text(uint64_t bytes, char text[HA_SIZE_TEXT]);
const char *ha_time_text(uint64_t ns, char text[HA_TIME_TEXT]);

#endif
