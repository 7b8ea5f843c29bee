/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mac_table.h - behind which port an Ethernet address is, as the packets that came from it say
 *
 * Any thread learns and looks up, without a lock: an entry is one word. A set has four entries; a
 * fifth address takes the place of the one that was silent longest. An address that was silent for
 * INA_MAC_AGE_S is not known any more.
 */
#ifndef INA_SWITCHD_MAC_TABLE_H
#define INA_SWITCHD_MAC_TABLE_H

#include "ina/frame/bytes.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define INA_MAC_SETS 4096
#define INA_MAC_WAYS 4
#define INA_MAC_AGE_S 300
#define INA_MAC_NOWHERE UINT16_MAX

/*
 * Address and port in a word: the six bytes, then the port + 1. 0: none. Relaxed: it says all that
 * there is to know.
 */
typedef _Atomic uint64_t ina_place;

struct ina_mac_table {
	ina_place place[INA_MAC_SETS][INA_MAC_WAYS];
	_Atomic uint32_t last_seen[INA_MAC_SETS][INA_MAC_WAYS]; /* s; of the entry beside it */
};

static inline uint64_t ina_place_of(const uint8_t mac[6], uint16_t port)
{
	return ina_get_mac(mac) | (uint64_t)(port + 1u) << 48;
}

/* INA_MAC_NOWHERE for 0. */
static inline uint16_t ina_place_port(uint64_t place)
{
	return (uint16_t)((place >> 48) - 1);
}

static inline void ina_place_mac(uint64_t place, uint8_t mac[6])
{
	memcpy(mac, &place, 6);
}

/* now: seconds of any clock that does not go back. A group address is not learnt. */
void ina_mac_learn(struct ina_mac_table *t, const uint8_t mac[6], uint16_t port, uint32_t now);
/* The port, or INA_MAC_NOWHERE. */
uint16_t ina_mac_find(const struct ina_mac_table *t, const uint8_t mac[6], uint32_t now);
/* Entries that are known; each goes to `one`, if that is not NULL. */
unsigned ina_mac_count(const struct ina_mac_table *t, uint32_t now,
		       void (*one)(void *arg, const uint8_t mac[6], uint16_t port, uint32_t age),
		       void *arg);

#endif
