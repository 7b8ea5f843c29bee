/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/graph.h"

#include <stdlib.h>

#include "softcuda/runtime/handles.h"

struct graph *create_graph(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	if (graph == NULL)
		return NULL;
	STAILQ_INIT(&graph->nodes);
	LIST_INIT(&graph->objects);
	if (!add_handle(graph, HANDLE_GRAPH)) {
		free(graph);
		return NULL;
	}
	return graph;
}

/* ---- nodes ---- */

static void free_node(struct graph_node *node)
{
	remove_handle(node, HANDLE_NODE);
	release_operation(node->operation);
	if (node->event != NULL)
		release_event(node->event);
	free_node_set(&node->dependencies);
	free(node);
}

void destroy_graph(struct graph *graph)
{
	struct graph_node *node;
	struct graph_object *kept;

	remove_handle(graph, HANDLE_GRAPH);
	while ((node = STAILQ_FIRST(&graph->nodes)) != NULL) {
		STAILQ_REMOVE_HEAD(&graph->nodes, siblings);
		free_node(node);
	}
	while ((kept = LIST_FIRST(&graph->objects)) != NULL) {
		LIST_REMOVE(kept, siblings);
		release_user_object(kept->object, kept->references);
		free(kept);
	}
	free(graph);
}

static cudaError_t add_node(struct graph *graph, enum cudaGraphNodeType type, int device,
			    struct graph_node **node)
{
	struct graph_node *new = calloc(1, sizeof(*new));
	if (new == NULL || !add_handle(new, HANDLE_NODE)) {
		free(new);
		return cudaErrorMemoryAllocation;
	}
	new->graph = graph;
	new->type = type;
	new->device = device;
	STAILQ_INSERT_TAIL(&graph->nodes, new, siblings);
	graph->node_count++;
	*node = new;
	return cudaSuccess;
}

void remove_node(struct graph_node *node)
{
	STAILQ_REMOVE(&node->graph->nodes, node, graph_node, siblings);
	node->graph->node_count--;
	free_node(node);
}

static enum cudaGraphNodeType find_node_type(enum operation_kind kind)
{
	switch (kind) {
	case OPERATION_KERNEL:
		return cudaGraphNodeTypeKernel;
	case OPERATION_COPY:
		return cudaGraphNodeTypeMemcpy;
	case OPERATION_SET:
		return cudaGraphNodeTypeMemset;
	case OPERATION_HOST:
		return cudaGraphNodeTypeHost;
	default:
		return cudaGraphNodeTypeEmpty;
	}
}

cudaError_t add_operation_node(struct graph *graph, struct operation *operation, int device,
			       struct graph_node **node)
{
	cudaError_t error = add_node(graph, find_node_type(operation->kind), device, node);
	if (error != cudaSuccess)
		return error;
	hold_operation(operation);
	(*node)->operation = operation;
	return cudaSuccess;
}

cudaError_t add_event_node(struct graph *graph, enum cudaGraphNodeType type, struct event *event,
			   int device, struct graph_node **node)
{
	cudaError_t error = add_node(graph, type, device, node);
	if (error != cudaSuccess)
		return error;
	hold_event(event);
	(*node)->event = event;
	return cudaSuccess;
}

cudaError_t add_dependency(struct graph_node *from, struct graph_node *to)
{
	if (from == to || from->graph != to->graph)
		return cudaErrorInvalidValue;
	return add_node_to_set(&to->dependencies, from) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ---- order ---- */

/* Place one node whose dependencies are all placed. */
static bool is_ready(const struct graph_node *node)
{
	if (node->visit != 0)
		return false;
	for (size_t i = 0; i < node->dependencies.count; i++)
		if (node->dependencies.nodes[i]->visit == 0)
			return false;
	return true;
}

/*
 * Captured graphs, and nearly all others, are created in an order that already fits: one round then
 * places all. A round that places nothing has met a cycle.
 */
struct graph_node **sort_nodes(const struct graph *graph)
{
	struct graph_node **order = calloc(graph->node_count + 1, sizeof(*order));
	struct graph_node *node;
	size_t placed = 0;

	if (order == NULL)
		return NULL;
	STAILQ_FOREACH(node, &graph->nodes, siblings)
		node->visit = 0;
	while (placed < graph->node_count) {
		size_t before = placed;
		STAILQ_FOREACH(node, &graph->nodes, siblings) {
			if (!is_ready(node))
				continue;
			node->visit = 1;
			node->index = placed;
			order[placed++] = node;
		}
		if (placed == before) {
			free(order);
			return NULL;
		}
	}
	return order;
}

/*
 * From the last node to the first, so that a mark reaches everything that a marked node waits for.
 */
bool is_joined(const struct graph *graph, const struct node_set *ends)
{
	struct graph_node **order = sort_nodes(graph);
	bool joined = true;

	if (order == NULL)
		return false;
	for (size_t i = 0; i < graph->node_count; i++)
		order[i]->visit = is_node_in_set(ends, order[i]) ? 1 : 0;
	for (size_t i = graph->node_count; i-- > 0;) {
		const struct node_set *dependencies = &order[i]->dependencies;
		for (size_t k = 0; order[i]->visit == 1 && k < dependencies->count; k++)
			dependencies->nodes[k]->visit = 1;
		joined = joined && (order[i]->visit == 1 || !order[i]->captured);
	}
	free(order);
	return joined;
}

/* ---- objects of the program ---- */

static struct graph_object *find_kept(const struct graph *graph, const struct user_object *object)
{
	struct graph_object *kept;
	LIST_FOREACH(kept, &graph->objects, siblings)
		if (kept->object == object)
			return kept;
	return NULL;
}

cudaError_t keep_user_object(struct graph *graph, struct user_object *object, unsigned references)
{
	struct graph_object *kept = find_kept(graph, object);
	if (kept == NULL) {
		kept = calloc(1, sizeof(*kept));
		if (kept == NULL)
			return cudaErrorMemoryAllocation;
		kept->object = object;
		LIST_INSERT_HEAD(&graph->objects, kept, siblings);
	}
	kept->references += references;
	return cudaSuccess;
}

bool drop_user_object(struct graph *graph, struct user_object *object, unsigned references)
{
	struct graph_object *kept = find_kept(graph, object);
	if (kept == NULL || kept->references < references)
		return false;
	kept->references -= references;
	if (kept->references == 0) {
		LIST_REMOVE(kept, siblings);
		free(kept);
	}
	release_user_object(object, references);
	return true;
}
