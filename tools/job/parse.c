/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/parse.h"

bool ha_size_parse(const char *text, size_t *bytes)
{
	char *end;
	double value;
	int shift = 0;

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
