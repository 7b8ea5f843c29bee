/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - IPv4 addresses and prefixes as text; numbers are in host byte order */
#ifndef HA_INA_ADDRESS_H
#define HA_INA_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* IPv4 addresses are in host byte order: 10.0.0.1 is 0x0a000001, as NetCCL's messages have it. */
struct ha_prefix {
	uint32_t addr;
	uint8_t len;
};

#define HA_ADDRESS_TEXT 16 /* with the final 0 */
#define HA_PREFIX_TEXT 20

/* "10.0.0.1", nothing else. */
bool ha_address_parse(const char *text, uint32_t *addr);
/* "10.0.0.0/24" without bits behind its length, or an address. */
bool ha_prefix_parse(const char *text, struct ha_prefix *prefix);
/* Both return buf. */
const char *ha_address_text(uint32_t addr, char *buf);
const char *ha_prefix_text(const struct ha_prefix *prefix, char *buf);

#endif
