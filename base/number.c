/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool ha_number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	bool hex = !strncasecmp(text, "0x", 2);
	const char *digits = hex ? text + 2 : text;
	unsigned long long number;
	char *end;

	/* strtoull() would take spaces and a sign. */
	if (!isxdigit((unsigned char)*digits))
		return false;
	errno = 0;
	number = strtoull(digits, &end, hex ? 16 : 10);
	if (errno || end == digits || *end || number < low || number > high)
		return false;
	*value = number;
	return true;
}

bool ha_number_take(const char *program, const char *what, const char *text, uint64_t low, uint64_t high,
		    uint64_t *value)
{
	if (ha_number_parse(text, low, high, value))
		return true;
	fprintf(stderr, "%s: %s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%.64s'\n", program, what,
		low, high, text);
	return false;
}

bool ha_number_take_unsigned(const char *program, const char *what, const char *text, unsigned low, unsigned high,
			     unsigned *value)
{
	uint64_t number;

	if (!ha_number_take(program, what, text, low, high, &number))
		return false;
	*value = (unsigned)number;
	return true;
}
