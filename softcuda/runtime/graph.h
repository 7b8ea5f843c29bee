/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.h - graphs: operations and what each depends on
 *
 * A graph is a description that the program may still change; what is launched is an instance of it
 * (graph_exec.h).
 * Calls for one graph are not made by two threads at once, as CUDA demands; captures have a lock of
 * their own.
 */
#ifndef SOFTCUDA_GRAPH_H
#define SOFTCUDA_GRAPH_H

#include <sys/queue.h>

#include "softcuda/runtime/event.h"
#include "softcuda/runtime/node_set.h"
#include "softcuda/runtime/operation.h"
#include "softcuda/runtime/user_object.h"

struct graph_node {
	STAILQ_ENTRY(graph_node) siblings;
	struct graph *graph;
	enum cudaGraphNodeType type;
	struct operation *operation; /* a reference; NULL for records and waits */
	struct event *event;         /* a reference; of records and waits */
	int device;
	/* made by a capture, which checks at its end that its first stream waits for it */
	bool captured;
	struct node_set dependencies;
	size_t index;   /* its place in the graph's order; of use inside one function only */
	unsigned visit; /* likewise */
};

struct graph_object {
	LIST_ENTRY(graph_object) siblings;
	struct user_object *object;
	unsigned references;
};

struct graph {
	STAILQ_HEAD(, graph_node) nodes; /* in the order of creation */
	size_t node_count;
	LIST_HEAD(, graph_object) objects;
};

/* NULL without memory. */
struct graph *create_graph(void);
void destroy_graph(struct graph *graph);

/* Add a node that does `operation` on `device`. Takes references. */
cudaError_t add_operation_node(struct graph *graph, struct operation *operation, int device,
			       struct graph_node **node);
/* Add a node that records `event`, or waits for it. Takes a reference. */
cudaError_t add_event_node(struct graph *graph, enum cudaGraphNodeType type, struct event *event,
			   int device, struct graph_node **node);
/* Not added by anybody else yet: take it out again. */
void remove_node(struct graph_node *node);

/* `to` waits for `from`. Both are of one graph. */
cudaError_t add_dependency(struct graph_node *from, struct graph_node *to);
/*
 * An array of node_count nodes in which each comes after what it depends on, to be freed. NULL: a
 * cycle, or no memory.
 */
struct graph_node **sort_nodes(const struct graph *graph);
/* Whether every captured node is one of `ends` or something that they wait for. */
bool is_joined(const struct graph *graph, const struct node_set *ends);

/* Keep `references` of an object, which the caller has taken, as long as the graph exists. */
cudaError_t keep_user_object(struct graph *graph, struct user_object *object, unsigned references);
/* Give some of them up; false: the graph has not so many. */
bool drop_user_object(struct graph *graph, struct user_object *object, unsigned references);

#endif
