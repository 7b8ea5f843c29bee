/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/option.h"

#include "ina/frame/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ina_option_wrong(const struct ina_option *o, const char *what)
{
	fprintf(stderr, "%s: --%s=%s: %s\n", o->program, o->name, o->text, what);
	return false;
}

bool ina_option_number(const struct ina_option *o, unsigned from, unsigned to, unsigned *value)
{
	char *end, what[64];
	unsigned long v;

	errno = 0;
	v = strtoul(o->text, &end, 10);
	if (*o->text >= '0' && *o->text <= '9' && !*end && !errno && v >= from && v <= to) {
		*value = (unsigned)v;
		return true;
	}
	snprintf(what, sizeof(what), "a number from %u to %u", from, to);
	return ina_option_wrong(o, what);
}

bool ina_option_power_of_two(const struct ina_option *o, unsigned from, unsigned to, unsigned *value)
{
	if (!ina_option_number(o, from, to, value))
		return false;
	return *value & (*value - 1) ? ina_option_wrong(o, "not a power of two") : true;
}

bool ina_option_address(const struct ina_option *o, uint32_t *address)
{
	return ha_address_parse(o->text, address) && *address ? true : ina_option_wrong(o, "an IPv4 address, as in 10.0.0.254");
}

bool ina_option_mac(const struct ina_option *o, uint8_t mac[6])
{
	unsigned b[6];
	char rest;

	/* Without the spaces and signs that sscanf takes. */
	if (o->text[strspn(o->text, "0123456789abcdefABCDEF:")] || sscanf(o->text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &rest) != 6)
		return ina_option_wrong(o, "six bytes, as in 02:00:0a:00:00:fe");
	if (b[0] & 1)
		return ina_option_wrong(o, "the address of a group cannot be a switch's own");
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	return true;
}

bool ina_option_add(const struct ina_option *o, const char **list, unsigned *n, unsigned most)
{
	char what[64];

	if (*n < most) {
		list[(*n)++] = o->text;
		return true;
	}
	snprintf(what, sizeof(what), "%u at most", most);
	return ina_option_wrong(o, what);
}
