/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.h - values that options of the programs around a switch take besides those of
 * base/options.h
 */
#ifndef INA_OPTION_H
#define INA_OPTION_H

#include "base/options.h"

/* IPv4, host order, not 0.0.0.0: a uint32_t. */
bool ina_take_address(void *target, const struct ha_option_text *given);
/* Of one interface: six bytes. */
bool ina_take_mac(void *target, const struct ha_option_text *given);
/* From low to high: an unsigned. */
bool ina_take_power_of_two(void *target, const struct ha_option_text *given);
/* Below 1: a double. */
bool ina_take_fraction(void *target, const struct ha_option_text *given);

/* The last fields of a row, as in base/options.h. */
#define INA_ADDRESS(member) \
	HA_CALL(ina_take_address, "an IPv4 address, as in 10.0.0.254"), HA_INTO_(member)
#define INA_MAC(member) HA_CALL(ina_take_mac, NULL), HA_INTO_(member)
#define INA_FRACTION(member) \
	HA_CALL(ina_take_fraction, "a fraction below 1, as in 0.01"), HA_INTO_(member)
#define INA_POWER_OF_TWO(member, from, to) \
	HA_CALL(ina_take_power_of_two, NULL), HA_RANGE_(member, from, to)

#endif
