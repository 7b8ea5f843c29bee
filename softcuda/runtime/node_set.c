/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/node_set.h"

#include <stdlib.h>
#include <string.h>

bool is_node_in_set(const struct node_set *set, const struct graph_node *node)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->nodes[i] == node)
			return true;
	return false;
}

static bool grow_set(struct node_set *set)
{
	size_t wanted = set->capacity == 0 ? 4 : set->capacity * 2;
	struct graph_node **nodes = realloc(set->nodes, wanted * sizeof(*nodes));
	if (nodes == NULL)
		return false;
	set->nodes = nodes;
	cudaGraphEdgeData *edges = realloc(set->edges, wanted * sizeof(*edges));
	if (edges == NULL)
		return false;
	set->edges = edges;
	memset(edges, 0, wanted * sizeof(*edges));
	set->capacity = wanted;
	return true;
}

bool add_node_to_set(struct node_set *set, struct graph_node *node)
{
	if (is_node_in_set(set, node))
		return true;
	if (set->count == set->capacity && !grow_set(set))
		return false;
	set->nodes[set->count++] = node;
	return true;
}

bool add_set_to_set(struct node_set *set, const struct node_set *other)
{
	for (size_t i = 0; i < other->count; i++)
		if (!add_node_to_set(set, other->nodes[i]))
			return false;
	return true;
}

void clear_node_set(struct node_set *set)
{
	set->count = 0;
}

void free_node_set(struct node_set *set)
{
	free(set->nodes);
	free(set->edges);
	*set = (struct node_set) { 0 };
}

void free_captured_point(struct captured_point *point)
{
	if (point == NULL)
		return;
	free_node_set(&point->nodes);
	free(point);
}
