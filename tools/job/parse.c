/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/parse.h"

/* Of the parser that refused last; one command line is read at a time. */
static char accepts[96];

const char *ha_parse_accepts(void)
{
	return accepts;
}

bool ha_parse_check(bool good, const char *text)
{
	snprintf(accepts, sizeof(accepts), "%s", text);
	return good;
}

void ha_parse_reset(void)
{
	*accepts = 0;
}

bool ha_size_parse(const char *text, size_t *bytes)
{
	char *end;
	double value;
	int shift = 0;

	snprintf(accepts, sizeof(accepts), "a number of bytes up to 64T, as in 8, 64K or 1M");
	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno || !(value >= 0))
		return false;
	switch (toupper((unsigned char)*end)) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	case 'T':
		shift = 40;
		break;
	}
	end += shift != 0;
	if (shift && (*end == 'B' || *end == 'b'))
		end++;
	value = ldexp(value, shift);
	if (*end || value > 0x1p46)
		return false;
	*bytes = (size_t)value;
	return true;
}

bool ha_time_parse(const char *text, int64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "", 1e9 } };
	char *end;
	double value = strtod(text, &end);

	snprintf(accepts, sizeof(accepts), "a time up to 86400s, as in 10s, 500ms or 20us");
	if (end == text || !(value >= 0))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].unit) && value * units[i].ns <= 86400e9) {
			*ns = (int64_t)(value * units[i].ns);
			return true;
		}
	return false;
}

bool ha_long_parse(const char *text, long low, long high, long *value)
{
	char *end;

	snprintf(accepts, sizeof(accepts), "a whole number from %ld to %ld", low, high);
	errno = 0;
	*value = strtol(text, &end, 10);
	return end != text && !*end && !errno && *value >= low && *value <= high;
}

bool ha_int_parse(const char *text, int low, int high, int *value)
{
	long n;

	if (!ha_long_parse(text, low, high, &n))
		return false;
	*value = (int)n;
	return true;
}
