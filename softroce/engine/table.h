/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - numbers for objects: queue-pair numbers and memory keys
 *
 * A number is a slot index in its low bits and random bits above. Looking up is one load and one
 * comparison; a number from an object's earlier incarnation, or a guessed one, misses. Freed slots
 * are reused oldest first, each time under other random bits.
 */
#ifndef SOFTROCE_ENGINE_TABLE_H
#define SOFTROCE_ENGINE_TABLE_H

#include "base/rng.h"
#include <stddef.h>

struct sr_slot {
	void *object;  /* NULL = free */
	uint32_t id;   /* number of this incarnation, or of the last one */
	uint32_t next; /* next free slot */
};

struct sr_table {
	struct sr_slot *slot;
	uint32_t n, used;
	uint32_t free_first, free_last; /* UINT32_MAX = none */
	uint8_t index_bits, id_bits;
};

/*
 * id_bits - index_bits random bits, which are never all zero or all one (QPN 0, 1 and 0xffffff are
 * reserved).
 */
void sr_table_init(struct sr_table *table, unsigned index_bits, unsigned id_bits);
void sr_table_fini(struct sr_table *table);
/* Gives object a number. -ENOMEM when the table is full. */
int sr_table_add(struct sr_table *table, void *object, struct sr_rng *rng, uint32_t *id);
void sr_table_remove(struct sr_table *table, uint32_t id);

static inline void *sr_table_find(const struct sr_table *table, uint32_t id)
{
	uint32_t i = id & ((1u << table->index_bits) - 1);

	return i < table->n && table->slot[i].id == id ? table->slot[i].object : NULL;
}

/* What lies in the number's slot, whatever the random bits. */
static inline void *sr_table_find_index(const struct sr_table *table, uint32_t id)
{
	uint32_t i = id & ((1u << table->index_bits) - 1);

	return i < table->n ? table->slot[i].object : NULL;
}

/* Gives the object in the number's slot this number. */
static inline void sr_table_rename(struct sr_table *table, uint32_t id)
{
	table->slot[id & ((1u << table->index_bits) - 1)].id = id;
}

#endif
