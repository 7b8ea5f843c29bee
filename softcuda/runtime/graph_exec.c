/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/graph_exec.h"

#include <stdlib.h>

#include "softcuda/runtime/device.h"
#include "softcuda/runtime/handles.h"

struct step {
	enum cudaGraphNodeType type;
	struct operation *operation;
	struct event *event;
	int device;
	unsigned lane;
	size_t *dependencies; /* indices of steps in other lanes */
	size_t dependency_count;
	bool awaited;       /* by a step of another lane */
	struct point point; /* where the running launch put it */
};

struct lane {
	struct stream *stream; /* NULL for lane 0 */
	size_t last;           /* index of its last step; used while lanes are chosen */
};

struct graph_exec {
	_Atomic unsigned references;
	pthread_mutex_t lock; /* one launch at a time; protects `end` and the steps' points */
	struct step *steps;   /* each after what it depends on */
	size_t step_count;
	struct lane *lanes;
	unsigned lane_count;
	struct user_object **objects; /* a reference each */
	size_t object_count;
	struct point end; /* of the last launch; holds its timeline */
};

/* ---- end ---- */

static void free_step(struct step *step)
{
	release_operation(step->operation);
	if (step->event != NULL)
		release_event(step->event);
	free(step->dependencies);
}

void release_exec(struct graph_exec *exec)
{
	if (atomic_fetch_sub_explicit(&exec->references, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < exec->step_count; i++)
		free_step(&exec->steps[i]);
	for (unsigned i = 0; i < exec->lane_count; i++)
		if (exec->lanes[i].stream != NULL)
			close_stream(exec->lanes[i].stream);
	for (size_t i = 0; i < exec->object_count; i++)
		release_user_object(exec->objects[i], 1);
	release_timeline(exec->end.timeline);
	pthread_mutex_destroy(&exec->lock);
	free(exec->steps);
	free(exec->lanes);
	free(exec->objects);
	free(exec);
}

/* ---- instantiation ---- */

/* The lane whose last step is a dependency of the node, or a new one. */
static unsigned choose_lane(struct graph_exec *exec, const struct graph_node *node)
{
	for (unsigned lane = 0; lane < exec->lane_count; lane++)
		for (size_t i = 0; i < node->dependencies.count; i++)
			if (node->dependencies.nodes[i]->index == exec->lanes[lane].last)
				return lane;
	return exec->lane_count++;
}

static cudaError_t copy_node(struct graph_exec *exec, const struct graph_node *node)
{
	struct step *step = &exec->steps[node->index];
	size_t count = node->dependencies.count;

	step->type = node->type;
	step->device = node->device;
	step->operation = node->operation;
	step->event = node->event;
	if (step->operation != NULL)
		hold_operation(step->operation);
	if (step->event != NULL)
		hold_event(step->event);
	step->lane = choose_lane(exec, node);
	exec->lanes[step->lane].last = node->index;
	step->dependencies = calloc(count + 1, sizeof(*step->dependencies));
	if (step->dependencies == NULL)
		return cudaErrorMemoryAllocation;
	for (size_t i = 0; i < count; i++) {
		size_t index = node->dependencies.nodes[i]->index;
		if (exec->steps[index].lane == step->lane)
			continue;
		step->dependencies[step->dependency_count++] = index;
		exec->steps[index].awaited = true;
	}
	return cudaSuccess;
}

static cudaError_t copy_nodes(struct graph_exec *exec, const struct graph *graph)
{
	struct graph_node **order = sort_nodes(graph);
	cudaError_t error = cudaSuccess;

	if (order == NULL)
		return cudaErrorInvalidValue; /* a cycle */
	for (size_t i = 0; i < graph->node_count && error == cudaSuccess; i++) {
		exec->step_count = i + 1;
		error = copy_node(exec, order[i]);
	}
	free(order);
	return error;
}

/* A lane's stream belongs to the device of its first step: that device's cudaFree waits for it. */
static cudaError_t open_lanes(struct graph_exec *exec)
{
	for (size_t i = 0; i < exec->step_count; i++) {
		struct lane *lane = &exec->lanes[exec->steps[i].lane];
		if (exec->steps[i].lane == 0 || lane->stream != NULL)
			continue;
		struct device *device = find_device(exec->steps[i].device);
		cudaError_t error = create_stream(device, STREAM_NONBLOCKING, 0, &lane->stream);
		if (error != cudaSuccess)
			return error;
	}
	return cudaSuccess;
}

static cudaError_t keep_objects(struct graph_exec *exec, const struct graph *graph)
{
	struct graph_object *kept;
	size_t count = 0;

	LIST_FOREACH(kept, &graph->objects, siblings)
		count++;
	exec->objects = calloc(count + 1, sizeof(*exec->objects));
	if (exec->objects == NULL)
		return cudaErrorMemoryAllocation;
	LIST_FOREACH(kept, &graph->objects, siblings) {
		retain_user_object(kept->object, 1);
		exec->objects[exec->object_count++] = kept->object;
	}
	return cudaSuccess;
}

cudaError_t instantiate_graph(const struct graph *graph, struct graph_exec **exec)
{
	struct graph_exec *new = calloc(1, sizeof(*new));
	if (new == NULL)
		return cudaErrorMemoryAllocation;
	atomic_store_explicit(&new->references, 1, memory_order_relaxed);
	pthread_mutex_init(&new->lock, NULL);
	new->steps = calloc(graph->node_count + 1, sizeof(*new->steps));
	new->lanes = calloc(graph->node_count + 1, sizeof(*new->lanes));
	cudaError_t error = cudaErrorMemoryAllocation;
	if (new->steps != NULL &&new->lanes != NULL)
		error = copy_nodes(new, graph);
	if (error == cudaSuccess)
		error = open_lanes(new);
	if (error == cudaSuccess)
		error = keep_objects(new, graph);
	if (error == cudaSuccess && !add_handle(new, HANDLE_EXEC))
		error = cudaErrorMemoryAllocation;
	if (error != cudaSuccess) {
		release_exec(new);
		return error;
	}
	*exec = new;
	return cudaSuccess;
}

/* ---- launch ---- */

struct end_operation {
	struct operation base;
	struct graph_exec *exec;
};

static void run_end(const struct operation *operation)
{
}

static void clean_end(struct operation *operation)
{
	release_exec(((struct end_operation *)operation)->exec);
}

/* Keeps the instance, and with it the program's objects, until the launch is done. */
static cudaError_t append_end(struct graph_exec *exec, struct stream *stream)
{
	struct end_operation *end = create_operation(sizeof(*end), OPERATION_EMPTY, run_end);
	if (end == NULL)
		return cudaErrorMemoryAllocation;
	atomic_fetch_add_explicit(&exec->references, 1, memory_order_relaxed);
	end->exec = exec;
	end->base.brief = true;
	end->base.clean = clean_end;
	cudaError_t error = append_operation(stream, &end->base);
	release_operation(&end->base);
	return error;
}

static struct stream *find_lane_stream(const struct graph_exec *exec, unsigned lane,
				       struct stream *launched)
{
	return lane == 0 ? launched : exec->lanes[lane].stream;
}

static cudaError_t append_event_wait(struct stream *stream, struct event *event)
{
	struct point point = find_event_point(event);
	cudaError_t error = append_wait(stream, point);
	release_timeline(point.timeline);
	return error;
}

static cudaError_t append_step(struct graph_exec *exec, struct step *step, struct stream *stream)
{
	cudaError_t error = cudaSuccess;

	for (size_t i = 0; i < step->dependency_count && error == cudaSuccess; i++)
		error = append_wait(stream, exec->steps[step->dependencies[i]].point);
	if (error != cudaSuccess)
		return error;
	if (step->type == cudaGraphNodeTypeEventRecord)
		error = record_event(step->event, stream);
	else if (step->type == cudaGraphNodeTypeWaitEvent)
		error = append_event_wait(stream, step->event);
	else
		error = append_operation(stream, step->operation);
	if (error == cudaSuccess && step->awaited)
		error = mark_point(stream, &step->point);
	return error;
}

static cudaError_t append_waits_for_lanes(struct graph_exec *exec, struct stream *stream)
{
	cudaError_t error = cudaSuccess;

	for (unsigned lane = 1; lane < exec->lane_count && error == cudaSuccess; lane++)
		error = append_wait(stream, find_end(exec->lanes[lane].stream));
	return error;
}

static cudaError_t append_steps(struct graph_exec *exec, struct stream *stream)
{
	struct point start;
	cudaError_t error = append_wait(stream, exec->end);
	if (error == cudaSuccess)
		error = mark_point(stream, &start);
	if (error != cudaSuccess)
		return error;
	for (unsigned lane = 1; lane < exec->lane_count && error == cudaSuccess; lane++)
		error = append_wait(exec->lanes[lane].stream, start);
	release_timeline(start.timeline);
	for (size_t i = 0; i < exec->step_count && error == cudaSuccess; i++) {
		struct step *step = &exec->steps[i];
		error = append_step(exec, step, find_lane_stream(exec, step->lane, stream));
	}
	/* Also after a failure: what has been put into other lanes belongs to this launch. */
	cudaError_t joined = append_waits_for_lanes(exec, stream);
	return error != cudaSuccess ? error : joined;
}

static void forget_points(struct graph_exec *exec)
{
	for (size_t i = 0; i < exec->step_count; i++) {
		release_timeline(exec->steps[i].point.timeline);
		exec->steps[i].point = (struct point) { NULL, 0 };
	}
}

cudaError_t launch_graph(struct graph_exec *exec, struct stream *stream)
{
	struct point end;

	pthread_mutex_lock(&exec->lock);
	cudaError_t error = append_steps(exec, stream);
	forget_points(exec);
	if (error == cudaSuccess)
		error = append_end(exec, stream);
	if (mark_point(stream, &end) == cudaSuccess) {
		release_timeline(exec->end.timeline);
		exec->end = end;
	}
	pthread_mutex_unlock(&exec->lock);
	return error;
}
