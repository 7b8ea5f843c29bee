/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/order.h"

#include <stddef.h>

/* Two without anything beside them; the one that is first, behind which the other is. */
static struct ha_order_node *meld_two(struct ha_order_node *a, struct ha_order_node *b)
{
	if (b->at < a->at) {
		struct ha_order_node *earlier = b;

		b = a;
		a = earlier;
	}
	b->next = a->child;
	if (b->next)
		b->next->link = &b->next;
	b->link = &a->child;
	a->child = b;
	return a;
}

/* The one before it, if there is one, and it. */
static struct ha_order_node *join_order(struct ha_order_node *first, struct ha_order_node *node)
{
	return first ? meld_two(first, node) : node;
}

/* Those beside each other, by twos, onto a stack: the last two are on top. */
static struct ha_order_node *meld_by_twos(struct ha_order_node *node)
{
	struct ha_order_node *stack = NULL;

	while (node) {
		struct ha_order_node *one = node, *other = node->next;

		node = other ? other->next : NULL;
		one->next = NULL;
		if (other) {
			other->next = NULL;
			one = meld_two(one, other);
		}
		one->next = stack;
		stack = one;
	}
	return stack;
}

static struct ha_order_node *meld_all(struct ha_order_node *node)
{
	struct ha_order_node *stack = meld_by_twos(node), *first = NULL;

	while (stack) {
		struct ha_order_node *top = stack;

		stack = top->next;
		top->next = NULL;
		first = join_order(first, top);
	}
	return first;
}

static void set_first(struct ha_order_node **first, struct ha_order_node *node)
{
	*first = node;
	if (node) {
		node->link = first;
		node->next = NULL;
	}
}

void ha_order_add(struct ha_order_node **first, struct ha_order_node *node, uint64_t at)
{
	*node = (struct ha_order_node) { .at = at };
	set_first(first, join_order(*first, node));
}

void ha_order_remove(struct ha_order_node **first, struct ha_order_node *node)
{
	struct ha_order_node *behind = meld_all(node->child);

	*node->link = node->next;
	if (node->next)
		node->next->link = node->link;
	if (behind)
		set_first(first, join_order(*first, behind));
}
