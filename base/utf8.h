/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.h - one character of a text that somebody else wrote */
#ifndef HA_BASE_UTF8_H
#define HA_BASE_UTF8_H

#include <stdbool.h>

/* Bytes of the UTF-8 sequence at text, 1 to 4; 0: there is none (Unicode 15, table 3-7). Stops at a
 * final 0 by itself. */
int ha_utf8(const char *text);
/* The sequence of n bytes at s does nothing to a terminal: no control, no invisible mark that turns
 * the order of writing. */
bool ha_utf8_printable(const char *s, int n);

#endif
