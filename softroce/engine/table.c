/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - numbers for objects; see table.h */
#include "softroce/engine/table.h"
#include <errno.h>
#include <stdlib.h>

#define NONE UINT32_MAX
#define FIRST_SIZE 64u

void sr_table_init(struct sr_table *table, unsigned index_bits, unsigned id_bits)
{
	*table = (struct sr_table) {
		.free_first = NONE,
		.free_last = NONE,
		.index_bits = (uint8_t)index_bits,
		.id_bits = (uint8_t)id_bits,
	};
}

void sr_table_fini(struct sr_table *table)
{
	free(table->slot);
	table->slot = NULL;
	table->n = 0;
}

static void push_free(struct sr_table *table, uint32_t i)
{
	table->slot[i].next = NONE;
	if (table->free_first == NONE)
		table->free_first = i;
	else
		table->slot[table->free_last].next = i;
	table->free_last = i;
}

static int grow_table(struct sr_table *table)
{
	uint32_t n = table->n ? table->n * 2 : FIRST_SIZE;
	struct sr_slot *slot;

	if (n > 1u << table->index_bits)
		return -ENOMEM;
	slot = realloc(table->slot, n * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	table->slot = slot;
	for (uint32_t i = table->n; i < n; i++) {
		slot[i] = (struct sr_slot) { 0 };
		push_free(table, i);
	}
	table->n = n;
	return 0;
}

int sr_table_add(struct sr_table *table, void *object, struct sr_rng *rng, uint32_t *id)
{
	uint32_t randoms = 1u << (table->id_bits - table->index_bits);
	uint32_t i, r;

	if (table->free_first == NONE && grow_table(table))
		return -ENOMEM;
	i = table->free_first;
	table->free_first = table->slot[i].next;
	do {
		r = 1 + (uint32_t)sr_rng_below(rng, randoms - 2);
	} while (table->slot[i].id == (r << table->index_bits | i));
	table->slot[i].object = object;
	table->slot[i].id = *id = r << table->index_bits | i;
	table->used++;
	return 0;
}

void sr_table_remove(struct sr_table *table, uint32_t id)
{
	uint32_t i = id & ((1u << table->index_bits) - 1);

	table->slot[i].object = NULL;
	table->used--;
	push_free(table, i);
}
