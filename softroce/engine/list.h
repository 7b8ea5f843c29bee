/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - intrusive doubly linked list with a head that is a link itself */
#ifndef SOFTROCE_ENGINE_LIST_H
#define SOFTROCE_ENGINE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct sr_link {
	struct sr_link *next, *prev;
};

#define sr_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void sr_list_init(struct sr_link *head)
{
	head->next = head->prev = head;
}

static inline bool sr_list_empty(const struct sr_link *head)
{
	return head->next == head;
}

static inline void sr_list_add_tail(struct sr_link *head, struct sr_link *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

/* Leaves the link pointing at itself, so that removing it twice is harmless. */
static inline void sr_list_remove(struct sr_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	sr_list_init(link);
}

#endif
