/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.h - who comes first: a pairing heap of what has a time
 *
 * Adding is a comparison; taking one out, the first or any other, costs as many as the logarithm of
 * their number, over time. No memory but the nodes, which lie in what is ordered. What has the same
 * time comes in an order that depends on nothing but the calls so far.
 */
#ifndef HA_CHANNEL_ORDER_H
#define HA_CHANNEL_ORDER_H

#include <stdint.h>

struct ha_order_node {
	uint64_t at;
	struct ha_order_node *child, *next; /* the first of those behind it, and one beside it */
	struct ha_order_node **link;        /* what points here */
};

/* *first: the one with the earliest time, NULL: none. */
void ha_order_add(struct ha_order_node **first, struct ha_order_node *node, uint64_t at);
void ha_order_remove(struct ha_order_node **first, struct ha_order_node *node);

#endif
