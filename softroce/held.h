/* SPDX-License-Identifier: BSD-3-Clause */
/* held.h - packets that a fault delays, in the order in which they become due */
#ifndef SOFTROCE_HELD_H
#define SOFTROCE_HELD_H

#include "softroce/engine/engine.h"

#include <sys/queue.h>

struct sr_held {
	SLIST_ENTRY(sr_held) link;
	uint64_t due; /* ns */
	bool rx;      /* for the engine; otherwise for the network */
	struct sr_path path;
	uint32_t len;
	uint8_t data[]; /* rx: BTH to pad; tx: the whole UDP payload */
};

struct sr_held_list {
	SLIST_HEAD(, sr_held) packets; /* the first that is due in front */
	unsigned n;
	uint64_t last_due[2]; /* of packets that keep their order: tx, rx */
};

/* A packet of `len` bytes due at `due`; unless `reordered`, not before the packets of its direction
 * held already. Copies `path`; the caller fills data. NULL when memory or the list is full: the
 * packet is lost. */
struct sr_held *sr_held_add(struct sr_held_list *list, const struct sr_path *path, bool rx,
			    bool reordered, uint64_t due, uint32_t len);
/* The first packet if it is due; the caller frees it. NULL: none. */
struct sr_held *sr_held_take(struct sr_held_list *list, uint64_t now);
void sr_held_clear(struct sr_held_list *list);

#endif
