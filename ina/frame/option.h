/* SPDX-License-Identifier: BSD-3-Clause */
/* option.h - values of options of the programs around a switch: taken, or one line to stderr that says what they should be (and false) */
#ifndef INA_OPTION_H
#define INA_OPTION_H

#include <stdbool.h>
#include <stdint.h>

struct ina_option {
	const char *program, *name, *text; /* as in "program: --name=text: what is wrong" */
};

bool ina_option_wrong(const struct ina_option *option, const char *what);
bool ina_option_number(const struct ina_option *option, unsigned from, unsigned to, unsigned *value);
bool ina_option_power_of_two(const struct ina_option *option, unsigned from, unsigned to, unsigned *value);
/* IPv4, host order; not 0.0.0.0. */
bool ina_option_address(const struct ina_option *option, uint32_t *address);
/* Of one interface. */
bool ina_option_mac(const struct ina_option *option, uint8_t mac[6]);
/* One more in list[most]. */
bool ina_option_add(const struct ina_option *option, const char **list, unsigned *n, unsigned most);

#endif
