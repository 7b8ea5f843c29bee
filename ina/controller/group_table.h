/* SPDX-License-Identifier: BSD-3-Clause */
/* group_table.h - the answer of List for people, or as JSON */
#ifndef HA_INA_GROUP_TABLE_H
#define HA_INA_GROUP_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct Inc__ListResponse;
struct json_t;

struct ha_group_table {
	FILE *out;
	struct json_t *json; /* NULL: for people */
	unsigned pages, groups;
};

void ha_group_table_begin(struct ha_group_table *table, FILE *out, bool json);
/* user: the table. */
void ha_group_table_page(void *user, const struct Inc__ListResponse *list);
void ha_group_table_end(struct ha_group_table *table);

#endif
