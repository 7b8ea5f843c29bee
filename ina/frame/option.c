/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/option.h"

#include "base/number.h"
#include "ina/frame/address.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void *field_of(void *target, const struct ha_option_text *given)
{
	return (char *)target + given->option->offset;
}

bool ina_take_address(void *target, const struct ha_option_text *given)
{
	uint32_t *address = field_of(target, given);

	return ha_address_parse(given->text, address) && *address;
}

bool ina_take_mac(void *target, const struct ha_option_text *given)
{
	uint8_t *mac = field_of(target, given);
	unsigned b[6];
	char rest;

	/* Without the spaces and signs that sscanf takes. */
	if (given->text[strspn(given->text, "0123456789abcdefABCDEF:")] ||
	    sscanf(given->text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4],
		   &b[5], &rest) != 6)
		return ha_option_refuse(given, "six bytes, as in 02:00:0a:00:00:fe");
	if (b[0] & 1)
		return ha_option_refuse(
			given, "the address of one interface, which that of a group is not");
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	return true;
}

bool ina_take_power_of_two(void *target, const struct ha_option_text *given)
{
	const struct ha_option *o = given->option;
	uint64_t value;

	if (!ha_number_parse(given->text, o->low, o->high, &value) || (value & (value - 1)))
		return ha_option_refuse(given, "a power of two from %" PRIu64 " to %" PRIu64,
					o->low, o->high);
	*(unsigned *)field_of(target, given) = (unsigned)value;
	return true;
}

bool ina_take_fraction(void *target, const struct ha_option_text *given)
{
	double *p = field_of(target, given);
	char *end;

	*p = strtod(given->text, &end);
	return end != given->text && !*end && *p >= 0 && *p < 1;
}
