/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_exec.h - an instance of a graph, ready to be launched
 *
 * Nodes are divided into lanes: a node follows the last node of a lane that it depends on, or
 * begins a lane. Lane 0 runs in the stream of the launch, each other lane in a stream of its own,
 * so that nodes that do not depend on each other run at the same time: kernels of two communicators
 * or devices may wait for each other's peers. A dependency between lanes is a wait. Launches of one
 * instance follow each other.
 */
#ifndef SOFTCUDA_GRAPH_EXEC_H
#define SOFTCUDA_GRAPH_EXEC_H

#include "softcuda/runtime/graph.h"

cudaError_t instantiate_graph(const struct graph *graph, struct graph_exec **exec);
cudaError_t launch_graph(struct graph_exec *exec, struct stream *stream);
/* The program's reference; launches that still run hold others. */
void release_exec(struct graph_exec *exec);

#endif
