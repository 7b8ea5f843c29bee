/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool parse_digits(const char *digits, int base, uint64_t low, uint64_t high, uint64_t *value)
{
	unsigned long long number;
	char *end;

	/* strtoull() would take spaces and a sign. */
	if (!isxdigit((unsigned char)*digits))
		return false;
	errno = 0;
	number = strtoull(digits, &end, base);
	if (errno || end == digits || *end || number < low || number > high)
		return false;
	*value = number;
	return true;
}

bool ha_number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	if (!strncasecmp(text, "0x", 2))
		return parse_digits(text + 2, 16, low, high, value);
	return parse_digits(text, 10, low, high, value);
}

bool ha_decimal_parse(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	return text && parse_digits(text, 10, low, high, value);
}

static bool ha_number_take(const char *program, const char *what, const char *text, uint64_t low,
			   uint64_t high, uint64_t *value)
{
	if (ha_number_parse(text, low, high, value))
		return true;
	fprintf(stderr,
		"%s: %s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%.64s'\n",
		program, what, low, high, text);
	return false;
}

bool ha_number_take_unsigned(const char *program, const char *what, const char *text, unsigned low,
			     unsigned high, unsigned *value)
{
	uint64_t number;

	if (!ha_number_take(program, what, text, low, high, &number))
		return false;
	*value = (unsigned)number;
	return true;
}

bool ha_size_parse(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	double value;
	int shift = 0;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno)
		return false;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		end++;
		if (*end == 'B' || *end == 'b')
			end++;
	}
	value = ldexp(value, shift);
	if (*end || !(value <= 0x1p46))
		return false;
	*bytes = (uint64_t)value;
	return true;
}

bool ha_time_parse(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "", 1e9 } };
	char *end;
	double value;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	value = strtod(text, &end);
	if (end == text)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) || !(value * units[i].ns <= 1e18))
			continue;
		*ns = (uint64_t)(value * units[i].ns);
		return true;
	}
	return false;
}

const char *ha_size_text(uint64_t bytes, char text[HA_SIZE_TEXT])
{
	static const char units[] = " KMGT";
	int unit = 0;

	while (bytes && bytes % 1024 == 0 && units[unit + 1]) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, HA_SIZE_TEXT, unit ? "%" PRIu64 "%c" : "%" PRIu64, bytes, units[unit]);
	return text;
}

const char *ha_time_text(uint64_t ns, char text[HA_TIME_TEXT])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	int unit = 0;

	while (ns && ns % 1000 == 0 && unit < 3) {
		ns /= 1000;
		unit++;
	}
	snprintf(text, HA_TIME_TEXT, "%" PRIu64 "%s", ns, ns ? units[unit] : "");
	return text;
}
