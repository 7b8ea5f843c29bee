/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_set.h - nodes that something captured next depends on
 */
#ifndef SOFTCUDA_NODE_SET_H
#define SOFTCUDA_NODE_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "softcuda/runtime/cuda_graph.h"

struct node_set {
	struct graph_node **nodes; /* each once */
	/* as many, all of plain dependencies; shown to programs that ask */
	cudaGraphEdgeData *edges;
	size_t count;
	size_t capacity;
};

/* Returns false without memory; the set is then as it was. */
bool add_node_to_set(struct node_set *set, struct graph_node *node);
bool add_set_to_set(struct node_set *set, const struct node_set *other);
bool is_node_in_set(const struct node_set *set, const struct graph_node *node);
void clear_node_set(struct node_set *set);
void free_node_set(struct node_set *set);

/* Where an event was recorded in a capture. Only of use while that capture goes on. */
struct captured_point {
	unsigned long long capture; /* its id */
	struct node_set nodes;
};

void free_captured_point(struct captured_point *point);

#endif
