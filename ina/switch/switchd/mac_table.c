/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/mac_table.h"

#include <stdbool.h>

#define PLACE_MAC ((1ull << 48) - 1)

static unsigned set_of(uint64_t mac)
{
	return (unsigned)(mac * 0x9e3779b97f4a7c15ull >> 52) % INA_MAC_SETS;
}

static bool is_fresh(uint32_t last_seen, uint32_t now)
{
	return now - last_seen < INA_MAC_AGE_S;
}

static void refresh_entry(struct ina_mac_table *t, unsigned set, unsigned way, uint32_t now)
{
	if (atomic_load_explicit(&t->last_seen[set][way], memory_order_relaxed) != now)
		atomic_store_explicit(&t->last_seen[set][way], now, memory_order_relaxed);
}

void ina_mac_learn(struct ina_mac_table *t, const uint8_t mac[6], uint16_t port, uint32_t now)
{
	uint64_t place = ina_place_of(mac, port), at;
	unsigned set = set_of(place & PLACE_MAC), oldest = 0;
	uint32_t silent = 0;

	if (mac[0] & 1)
		return;
	for (unsigned way = 0; way < INA_MAC_WAYS; way++) {
		uint32_t age =
			now - atomic_load_explicit(&t->last_seen[set][way], memory_order_relaxed);

		at = atomic_load_explicit(&t->place[set][way], memory_order_relaxed);
		if (!((at ^ place) & PLACE_MAC) && at) {
			if (at != place)
				atomic_store_explicit(&t->place[set][way], place,
						      memory_order_relaxed);
			refresh_entry(t, set, way, now);
			return;
		}
		if (!at)
			age = UINT32_MAX;
		if (age > silent) {
			silent = age;
			oldest = way;
		}
	}
	atomic_store_explicit(&t->place[set][oldest], place, memory_order_relaxed);
	refresh_entry(t, set, oldest, now);
}

uint16_t ina_mac_find(const struct ina_mac_table *t, const uint8_t mac[6], uint32_t now)
{
	uint64_t wanted = ina_place_of(mac, 0) & PLACE_MAC;
	unsigned set = set_of(wanted);

	for (unsigned way = 0; way < INA_MAC_WAYS; way++) {
		uint64_t at = atomic_load_explicit(&t->place[set][way], memory_order_relaxed);

		if (at && (at & PLACE_MAC) == wanted &&
		    is_fresh(atomic_load_explicit(&t->last_seen[set][way], memory_order_relaxed),
			     now))
			return ina_place_port(at);
	}
	return INA_MAC_NOWHERE;
}

unsigned ina_mac_count(const struct ina_mac_table *t, uint32_t now,
		       void (*one)(void *arg, const uint8_t mac[6], uint16_t port, uint32_t age),
		       void *arg)
{
	unsigned n = 0;

	for (unsigned i = 0; i < INA_MAC_SETS * INA_MAC_WAYS; i++) {
		uint64_t at = atomic_load_explicit(&t->place[i / INA_MAC_WAYS][i % INA_MAC_WAYS],
						   memory_order_relaxed);
		uint32_t last_seen = atomic_load_explicit(
			&t->last_seen[i / INA_MAC_WAYS][i % INA_MAC_WAYS], memory_order_relaxed);
		uint8_t mac[6];

		if (!at || !is_fresh(last_seen, now))
			continue;
		ina_place_mac(at, mac);
		if (one)
			one(arg, mac, ina_place_port(at), now - last_seen);
		n++;
	}
	return n;
}
