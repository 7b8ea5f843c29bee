/* SPDX-License-Identifier: BSD-3-Clause */
/* number.h - whole numbers on a command line: read, or refused with one line that names the range */
#ifndef HA_BASE_NUMBER_H
#define HA_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits, or 0x and hexadecimal ones, and nothing else. False: `text` is no number from `low` to `high`. */
bool ha_number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/*
 * The same, and when it is false one line on stderr:
 * "ha sim: --seeds takes a whole number from 1 to 10, not 'x'". `what` is the option with its dashes, or the argument's name.
 */
bool ha_number_take(const char *program, const char *what, const char *text, uint64_t low, uint64_t high,
		    uint64_t *value);
bool ha_number_take_unsigned(const char *program, const char *what, const char *text, unsigned low, unsigned high,
			     unsigned *value);

#endif
