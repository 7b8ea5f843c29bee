/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/held.h"

#include <stdlib.h>

/* packets: 256 MiB of the largest; a longer line than that is a broken one */
#define HELD_MAX 65536

struct sr_held *sr_held_add(struct sr_held_list *list, const struct sr_path *path, bool rx,
			    bool reordered, uint64_t due, uint32_t len)
{
	struct sr_held *before = NULL, *after;
	struct sr_held *held = list->n < HELD_MAX ? malloc(sizeof(*held) + len) : NULL;

	if (!held)
		return NULL;
	if (!reordered) {
		if (due < list->last_due[rx])
			due = list->last_due[rx];
		list->last_due[rx] = due;
	}
	SLIST_FOREACH(after, &list->packets, link) {
		if (after->due > due)
			break;
		before = after;
	}
	held->due = due;
	held->rx = rx;
	held->path = *path;
	held->len = len;
	if (before)
		SLIST_INSERT_AFTER(before, held, link);
	else
		SLIST_INSERT_HEAD(&list->packets, held, link);
	list->n++;
	return held;
}

struct sr_held *sr_held_take(struct sr_held_list *list, uint64_t now)
{
	struct sr_held *held = SLIST_FIRST(&list->packets);

	if (!held || held->due > now)
		return NULL;
	SLIST_REMOVE_HEAD(&list->packets, link);
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
