/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs: nodes, instances, launches, and objects of the program that they keep. */
#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/copy.h"
#include "softcuda/runtime/cuda_api_more.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/graph_exec.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/host_function.h"
#include "softcuda/runtime/kernel.h"
#include "softcuda/runtime/process.h"

/* ---- graphs ---- */

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
	ENTER_RUNTIME();
	if (graph == NULL || flags != 0)
		return record_error(cudaErrorInvalidValue);
	*graph = create_graph();
	return record_error(*graph == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	ENTER_RUNTIME();
	if (!is_handle(graph, HANDLE_GRAPH))
		return record_error(cudaErrorInvalidResourceHandle);
	destroy_graph(graph);
	return cudaSuccess;
}

/* ---- nodes ---- */

static bool are_nodes_of(const struct graph *graph, const cudaGraphNode_t *nodes, size_t count)
{
	if (count != 0 && nodes == NULL)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_handle(nodes[i], HANDLE_NODE) || nodes[i]->graph != graph)
			return false;
	return true;
}

static cudaError_t check_place(cudaGraphNode_t *node, cudaGraph_t graph,
			       const cudaGraphNode_t *from, size_t count)
{
	if (!is_handle(graph, HANDLE_GRAPH))
		return cudaErrorInvalidResourceHandle;
	return node == NULL || !are_nodes_of(graph, from, count) ? cudaErrorInvalidValue
								 : cudaSuccess;
}

static cudaError_t place_node(struct graph_node *node, const cudaGraphNode_t *from, size_t count,
			      cudaGraphNode_t *handle)
{
	cudaError_t error = cudaSuccess;

	for (size_t i = 0; i < count && error == cudaSuccess; i++)
		error = add_dependency(from[i], node);
	if (error == cudaSuccess)
		*handle = node;
	else
		remove_node(node);
	return error;
}

/* Takes over the reference of `operation`, also on failure. */
static cudaError_t place_operation(cudaGraphNode_t *handle, cudaGraph_t graph,
				   const cudaGraphNode_t *from, size_t count,
				   struct operation *operation)
{
	struct graph_node *node;
	if (operation == NULL)
		return cudaErrorMemoryAllocation;
	cudaError_t error = check_place(handle, graph, from, count);
	if (error == cudaSuccess)
		error = add_operation_node(graph, operation, current_device(), &node);
	release_operation(operation);
	return error == cudaSuccess ? place_node(node, from, count, handle) : error;
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
				  const cudaGraphNode_t *from, size_t count)
{
	ENTER_RUNTIME();
	return record_error(place_operation(node, graph, from, count, create_empty_operation()));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
				 const cudaGraphNode_t *from, size_t count,
				 const struct cudaHostNodeParams *parameters)
{
	ENTER_RUNTIME();
	if (parameters == NULL || parameters->fn == NULL)
		return record_error(cudaErrorInvalidValue);
	struct operation *operation = create_host_call(parameters->fn, parameters->userData);
	return record_error(place_operation(node, graph, from, count, operation));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *from, size_t count,
				   const struct cudaKernelNodeParams *parameters)
{
	ENTER_RUNTIME();
	struct operation *operation;
	if (parameters == NULL)
		return record_error(cudaErrorInvalidValue);
	struct kernel_entry *entry = find_kernel(parameters->func);
	if (entry == NULL)
		return record_error(cudaErrorInvalidDeviceFunction);
	struct launch_shape shape = {
		.grid = parameters->gridDim,
		.block = parameters->blockDim,
		.shared_memory = parameters->sharedMemBytes,
		.device = current_device(),
	};
	cudaError_t error = create_launch(entry, &shape, parameters->kernelParams,
					  parameters->extra, &operation);
	if (error == cudaSuccess)
		error = place_operation(node, graph, from, count, operation);
	return record_error(error);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
				     const cudaGraphNode_t *from, size_t count, void *to,
				     const void *source, size_t size, enum cudaMemcpyKind kind)
{
	ENTER_RUNTIME();
	struct shape shape = { .width = size, .height = 1 };
	if (to == NULL || source == NULL || size == 0)
		return record_error(cudaErrorInvalidValue);
	if ((unsigned)kind > cudaMemcpyDefault)
		return record_error(cudaErrorInvalidMemcpyDirection);
	return record_error(
		place_operation(node, graph, from, count, create_copy(to, source, shape)));
}

static bool is_fill(const struct cudaMemsetParams *fill)
{
	bool element = fill->elementSize == 1 || fill->elementSize == 2 || fill->elementSize == 4;
	if (!element || fill->dst == NULL || fill->height == 0 || fill->width > SIZE_MAX / 4)
		return false;
	return fill->height == 1 || fill->width * fill->elementSize <= fill->pitch;
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *from, size_t count,
				   const struct cudaMemsetParams *fill)
{
	ENTER_RUNTIME();
	if (fill == NULL || !is_fill(fill))
		return record_error(cudaErrorInvalidValue);
	struct shape shape = { .width = fill->width * fill->elementSize,
			       .height = fill->height,
			       .to_pitch = fill->pitch };
	struct operation *operation = create_fill(fill->dst, fill->value, fill->elementSize, shape);
	return record_error(place_operation(node, graph, from, count, operation));
}

static cudaError_t place_event(cudaGraphNode_t *handle, cudaGraph_t graph,
			       const cudaGraphNode_t *from, size_t count,
			       enum cudaGraphNodeType type, cudaEvent_t event)
{
	struct graph_node *node;
	cudaError_t error = check_place(handle, graph, from, count);
	if (error == cudaSuccess && !is_handle(event, HANDLE_EVENT))
		error = cudaErrorInvalidResourceHandle;
	if (error == cudaSuccess)
		error = add_event_node(graph, type, event, current_device(), &node);
	return error == cudaSuccess ? place_node(node, from, count, handle) : error;
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
					const cudaGraphNode_t *from, size_t count,
					cudaEvent_t event)
{
	ENTER_RUNTIME();
	return record_error(
		place_event(node, graph, from, count, cudaGraphNodeTypeEventRecord, event));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
				      const cudaGraphNode_t *from, size_t count, cudaEvent_t event)
{
	ENTER_RUNTIME();
	return record_error(
		place_event(node, graph, from, count, cudaGraphNodeTypeWaitEvent, event));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
				     const cudaGraphNode_t *to, size_t count)
{
	ENTER_RUNTIME();
	if (!is_handle(graph, HANDLE_GRAPH))
		return record_error(cudaErrorInvalidResourceHandle);
	if (!are_nodes_of(graph, from, count) || !are_nodes_of(graph, to, count))
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = cudaSuccess;
	for (size_t i = 0; i < count && error == cudaSuccess; i++)
		error = add_dependency(from[i], to[i]);
	return record_error(error);
}

/* An edge's data can only make it weaker than a plain one, which is always right. */
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
					const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
					size_t count)
{
	return cudaGraphAddDependencies(graph, from, to, count);
}

/* ---- questions: as many as fit, the rest NULL; without an array only the number ---- */

static void list_node(struct graph_node *node, cudaGraphNode_t *nodes, size_t space, size_t *found)
{
	if (nodes != NULL && *found < space)
		nodes[*found] = node;
	(*found)++;
}

static void end_list(cudaGraphNode_t *nodes, size_t *count, size_t found)
{
	for (size_t i = found; nodes != NULL && i < *count; i++)
		nodes[i] = NULL;
	if (nodes == NULL || found < *count)
		*count = found;
}

static cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count,
			      bool roots_only)
{
	struct graph_node *node;
	size_t found = 0;
	if (!is_handle(graph, HANDLE_GRAPH))
		return cudaErrorInvalidResourceHandle;
	if (count == NULL)
		return cudaErrorInvalidValue;
	STAILQ_FOREACH(node, &graph->nodes, siblings)
		if (!roots_only || node->dependencies.count == 0)
			list_node(node, nodes, *count, &found);
	end_list(nodes, count, found);
	return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	ENTER_RUNTIME();
	return record_error(list_nodes(graph, nodes, count, false));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	ENTER_RUNTIME();
	return record_error(list_nodes(graph, nodes, count, true));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	ENTER_RUNTIME();
	if (!is_handle(node, HANDLE_NODE) || type == NULL)
		return record_error(cudaErrorInvalidValue);
	*type = node->type;
	return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
					 size_t *count)
{
	ENTER_RUNTIME();
	size_t found = 0;
	if (!is_handle(node, HANDLE_NODE) || count == NULL)
		return record_error(cudaErrorInvalidValue);
	for (size_t i = 0; i < node->dependencies.count; i++)
		list_node(node->dependencies.nodes[i], nodes, *count, &found);
	end_list(nodes, count, found);
	return cudaSuccess;
}

/* ---- instances ---- */

/* Flags say when to upload to a device and how a device launches: neither exists here. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	ENTER_RUNTIME();
	if (!is_handle(graph, HANDLE_GRAPH))
		return record_error(cudaErrorInvalidResourceHandle);
	if (exec == NULL)
		return record_error(cudaErrorInvalidValue);
	return record_error(instantiate_graph(graph, exec));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

/* What uploads would do has been done when a graph was instantiated. */
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	ENTER_RUNTIME();
	return record_error(is_handle(exec, HANDLE_EXEC) ? cudaSuccess
							 : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (!is_handle(exec, HANDLE_EXEC))
		return record_error(cudaErrorInvalidResourceHandle);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = refuse_in_capture(stream); /* it would be a graph inside a graph */
	if (error == cudaSuccess)
		error = launch_graph(exec, stream);
	return record_error(error);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	ENTER_RUNTIME();
	if (!remove_handle(exec, HANDLE_EXEC))
		return record_error(cudaErrorInvalidResourceHandle);
	release_exec(exec);
	return cudaSuccess;
}

/* ---- objects of the program ---- */

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy,
				 unsigned references, unsigned flags)
{
	ENTER_RUNTIME();
	if (object == NULL || destroy == NULL || references == 0 ||
	    flags != cudaUserObjectNoDestructorSync)
		return record_error(cudaErrorInvalidValue);
	*object = create_user_object(pointer, destroy, references);
	return record_error(*object == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned references)
{
	ENTER_RUNTIME();
	if (!is_handle(object, HANDLE_USER_OBJECT) || references == 0)
		return record_error(cudaErrorInvalidValue);
	retain_user_object(object, references);
	return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned references)
{
	ENTER_RUNTIME();
	if (!is_handle(object, HANDLE_USER_OBJECT) || references == 0)
		return record_error(cudaErrorInvalidValue);
	release_user_object(object, references);
	return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
				      unsigned references, unsigned flags)
{
	ENTER_RUNTIME();
	if (!is_handle(graph, HANDLE_GRAPH) || !is_handle(object, HANDLE_USER_OBJECT))
		return record_error(cudaErrorInvalidValue);
	if (references == 0 || (flags & ~(unsigned)cudaGraphUserObjectMove) != 0)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = keep_user_object(graph, object, references);
	if (error == cudaSuccess && (flags & cudaGraphUserObjectMove) == 0)
		retain_user_object(object, references);
	return record_error(error);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
				       unsigned references)
{
	ENTER_RUNTIME();
	if (!is_handle(graph, HANDLE_GRAPH) || !is_handle(object, HANDLE_USER_OBJECT) ||
	    references == 0)
		return record_error(cudaErrorInvalidValue);
	return record_error(drop_user_object(graph, object, references) ? cudaSuccess
									: cudaErrorInvalidValue);
}
