/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/ticket.h"

#include "ina/frame/bytes.h"

#include <errno.h>
#include <string.h>

#define CHECKED (HA_INA_TICKET - 4)
#define EXTENDED 0x80

static const uint8_t magic[4] = { 'H', 'A', 'T', 1 };

static uint32_t compute_crc32(const uint8_t *bytes, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static uint8_t log2_of(uint32_t n)
{
	return (uint8_t)(31 - __builtin_clz(n));
}

void ha_ticket_write(const struct ha_group_facts *g, uint8_t t[HA_INA_TICKET])
{
	memset(t, 0, HA_INA_TICKET);
	memcpy(t, magic, sizeof(magic));
	t[4] = g->id;
	t[5] = g->ranks;
	t[6] = (uint8_t)(log2_of(g->workers) | (g->extended ? EXTENDED : 0));
	t[7] = log2_of(g->len);
	ina_put16(t + 8, g->base);
	ina_put32(t + 12, g->epoch);
	ina_put32(t + 16, g->switch_addr);
	ina_put32(t + 20, (uint32_t)(g->key >> 32));
	ina_put32(t + 24, (uint32_t)g->key);
	memcpy(t + 28, g->switch_name, strnlen(g->switch_name, sizeof(g->switch_name) - 1));
	for (unsigned i = 0; i < g->ranks; i++)
		ina_put32(t + 60 + 4 * i, g->member[i]);
	ina_put32(t + CHECKED, compute_crc32(t, CHECKED));
}

static bool is_all_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

/* A name that can stand in a line, and nothing behind its end. */
static bool name_is_sound(const uint8_t *name)
{
	size_t n = strnlen((const char *)name, 32);

	if (n == 32)
		return false;
	for (size_t i = 0; i < n; i++)
		if (name[i] < ' ' || name[i] == 0x7f)
			return false;
	return is_all_zero(name + n, 32 - n);
}

static bool can_be(const uint8_t *t)
{
	unsigned ranks = t[5], workers = t[6] & ~EXTENDED, slots = t[7];

	return t[4] && ranks >= 2 && ranks <= INA_RANKS_MAX && workers <= 6 && slots <= 15 &&
	       slots > workers && is_all_zero(t + 10, 2) &&
	       ina_get16(t + 8) + (1u << slots) <= 65536 && name_is_sound(t + 28) &&
	       is_all_zero(t + 60 + 4 * ranks, 4 * (INA_RANKS_MAX - ranks));
}

int ha_ticket_read(const uint8_t t[HA_INA_TICKET], struct ha_group_facts *g, const char **why)
{
	if (memcmp(t, magic, 3))
		*why = "this is no ticket: hand round what ha_ina_group_create() gave, all of it";
	else if (t[3] != magic[3])
		*why = "the ticket is of another version: all hosts must have the same release";
	else if (ina_get32(t + CHECKED) != compute_crc32(t, CHECKED))
		*why = "the ticket was damaged on its way: hand round all of its bytes";
	else if (!can_be(t))
		*why = "the ticket names a group that cannot be";
	else
		goto sound;
	return -EINVAL;
sound:
	memset(g, 0, sizeof(*g));
	g->id = t[4];
	g->ranks = t[5];
	g->workers = (uint8_t)(1u << (t[6] & ~EXTENDED));
	g->extended = t[6] & EXTENDED;
	g->len = 1u << t[7];
	g->base = ina_get16(t + 8);
	g->epoch = ina_get32(t + 12);
	g->switch_addr = ina_get32(t + 16);
	g->key = (uint64_t)ina_get32(t + 20) << 32 | ina_get32(t + 24);
	memcpy(g->switch_name, t + 28, sizeof(g->switch_name));
	for (unsigned i = 0; i < g->ranks; i++)
		g->member[i] = ina_get32(t + 60 + 4 * i);
	return 0;
}
