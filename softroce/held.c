/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/held.h"

#include <stdlib.h>

/* packets: 256 MiB of the largest; a longer line than that is a broken one */
#define HELD_MAX 65536

struct sr_held *sr_held_add(struct sr_held_list *list, const struct sr_path *path, bool rx,
			    bool reordered, uint64_t due, uint32_t len)
{
	struct sr_held **link = &list->first;
	struct sr_held *held = list->n < HELD_MAX ? malloc(sizeof(*held) + len) : NULL;

	if (!held)
		return NULL;
	if (!reordered) {
		if (due < list->last_due[rx])
			due = list->last_due[rx];
		list->last_due[rx] = due;
	}
	while (*link && (*link)->due <= due)
		link = &(*link)->next;
	held->next = *link;
	held->due = due;
	held->rx = rx;
	held->path = *path;
	held->len = len;
	*link = held;
	list->n++;
	return held;
}

struct sr_held *sr_held_take(struct sr_held_list *list, uint64_t now)
{
	struct sr_held *held = list->first;

	if (!held || held->due > now)
		return NULL;
	list->first = held->next;
	list->n--;
	return held;
}

void sr_held_clear(struct sr_held_list *list)
{
	struct sr_held *held;

	while ((held = sr_held_take(list, UINT64_MAX)))
		free(held);
	list->last_due[0] = list->last_due[1] = 0;
}
