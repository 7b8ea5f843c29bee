/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets of unauthenticated peers: what is taken is a group that can be, and is written as the
 * same bytes. */
#include "ina/frame/bytes.h"
#include "ina/host/backend/ticket.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t compute_crc(const uint8_t *bytes, size_t n)
{
	uint32_t v = UINT32_MAX;

	for (size_t i = 0; i < 8 * n; i++)
		v = v >> 1 ^ ((v ^ bytes[i / 8] >> i % 8) & 1 ? 0xedb88320 : 0);
	return ~v;
}

static bool facts_are_sound(const struct ha_group_facts *g)
{
	if (!g->id || g->ranks < 2 || g->ranks > INA_RANKS_MAX)
		return false;
	if (!g->workers || g->workers > INA_WORKERS_MAX || g->len < 2u * g->workers)
		return false;
	return g->base + g->len <= 65536 &&
	       strnlen(g->switch_name, sizeof(g->switch_name)) < sizeof(g->switch_name);
}

/* As it came, or whole but for what it says. */
static void ticket_fill(uint8_t *ticket, bool as_it_came, const uint8_t *data, size_t size)
{
	if (as_it_came) {
		memset(ticket, 0, HA_INA_TICKET);
		memcpy(ticket, data, size < HA_INA_TICKET ? size : HA_INA_TICKET);
		return;
	}
	memcpy(ticket + 4, data, size < HA_INA_TICKET - 8 ? size : HA_INA_TICKET - 8);
	ina_put32(ticket + HA_INA_TICKET - 4, compute_crc(ticket, HA_INA_TICKET - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t ticket[HA_INA_TICKET] = { 'H', 'A', 'T', 1 }, again[HA_INA_TICKET];
	struct ha_group_facts g;
	const char *why = NULL;

	if (size)
		ticket_fill(ticket, data[0] & 1, data + 1, size - 1);
	if (ha_ticket_read(ticket, &g, &why)) {
		if (!why || strchr(why, '\n'))
			abort();
		return 0;
	}
	if (!facts_are_sound(&g))
		abort();
	ha_ticket_write(&g, again);
	if (memcmp(ticket, again, sizeof(ticket)))
		abort();
	return 0;
}
