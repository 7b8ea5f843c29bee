/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/stream.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "softcuda/runtime/device.h"
#include "softcuda/runtime/process.h"

/* One of both: something to execute, or something to wait for. */
struct task {
	STAILQ_ENTRY(task) link;
	uint64_t number;
	struct operation *operation; /* a reference, or NULL */
	struct point point;          /* holds its timeline */
};

static struct task *create_task(struct operation *operation, struct point point)
{
	struct task *task = malloc(sizeof(*task));
	if (task == NULL)
		return NULL;
	*task = (struct task) { .operation = operation, .point = point };
	if (operation != NULL)
		hold_operation(operation);
	hold_timeline(point.timeline);
	return task;
}

static void free_task(struct task *task)
{
	release_operation(task->operation);
	release_timeline(task->point.timeline);
	free(task);
}

static void free_tasks(struct task_list *tasks)
{
	struct task *task;
	while ((task = STAILQ_FIRST(tasks)) != NULL) {
		STAILQ_REMOVE_HEAD(tasks, link);
		free_task(task);
	}
}

static bool add_task(struct task_list *tasks, struct operation *operation, struct point point)
{
	struct task *task = create_task(operation, point);
	if (task == NULL)
		return false;
	STAILQ_INSERT_TAIL(tasks, task, link);
	return true;
}

/* ---- order between the legacy stream and the blocking ones ---- */

struct point find_end(struct stream *stream)
{
	uint64_t asked = atomic_load_explicit(&stream->timeline->asked, memory_order_acquire);
	return (struct point) { .timeline = stream->timeline, .number = asked };
}

static bool wait_for_end(struct task_list *tasks, struct stream *other)
{
	struct point end = find_end(other);
	return is_reached(end) || add_task(tasks, NULL, end);
}

/* Put the waits that the legacy stream's rule asks for before what follows. */
static bool add_implicit_waits(struct stream *stream, struct task_list *tasks)
{
	struct device *device = stream->device;
	bool added = true;

	if (stream->kind == STREAM_NONBLOCKING)
		return true;
	if (stream->kind == STREAM_BLOCKING) {
		struct stream *legacy = atomic_load_explicit(&device->legacy, memory_order_acquire);
		return legacy == NULL || wait_for_end(tasks, legacy);
	}
	struct stream *other;
	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(other, &device->streams, siblings)
		if (other->kind == STREAM_BLOCKING)
			added = added && wait_for_end(tasks, other);
	pthread_mutex_unlock(&device->lock);
	return added;
}

/* ---- the thread of a stream ---- */

static void execute_task(struct task *task)
{
	if (task->operation != NULL)
		task->operation->run(task->operation);
	else
		wait_for_point(task->point);
}

static void free_stream(struct stream *stream)
{
	if (stream->kind != STREAM_LEGACY) {
		pthread_mutex_lock(&stream->device->lock);
		LIST_REMOVE(stream, siblings);
		pthread_mutex_unlock(&stream->device->lock);
	}
	release_timeline(stream->timeline);
	pthread_cond_destroy(&stream->filled);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

static struct task *take_task_locked(struct stream *stream)
{
	struct task *task = STAILQ_FIRST(&stream->tasks);
	STAILQ_REMOVE_HEAD(&stream->tasks, link);
	return task;
}

/* Execute the first task of an idle stream. The lock is free meanwhile. */
static void run_first_locked(struct stream *stream)
{
	struct task *task = take_task_locked(stream);
	stream->state = STREAM_BUSY;
	pthread_mutex_unlock(&stream->lock);
	execute_task(task);
	uint64_t number = task->number;
	free_task(task);
	pthread_mutex_lock(&stream->lock);
	/*
	 * Idle before anybody learns of it: who waited for this task finds the stream ready for a
	 * brief one.
	 */
	stream->state = STREAM_IDLE;
	finish_task(stream->timeline, number);
}

static bool is_at_rest(const struct stream *stream)
{
	return stream->state == STREAM_BUSY || (STAILQ_EMPTY(&stream->tasks) && !stream->closing);
}

static void *serve_stream(void *argument)
{
	struct stream *stream = argument;

	mark_worker_thread(true);
	set_current_device(stream->device->ordinal);
	pthread_mutex_lock(&stream->lock);
	for (;;) {
		while (is_at_rest(stream))
			pthread_cond_wait(&stream->filled, &stream->lock);
		if (STAILQ_EMPTY(&stream->tasks))
			break; /* closed, and nothing is left */
		run_first_locked(stream);
	}
	pthread_mutex_unlock(&stream->lock);
	free_stream(stream);
	return NULL;
}

static bool is_to_help(const struct stream *stream, uint64_t number)
{
	const struct task *first = STAILQ_FIRST(&stream->tasks);
	return stream->state == STREAM_IDLE && first != NULL && first->number <= number;
}

void help_stream(struct stream *stream, uint64_t number)
{
	int device = current_device();

	pthread_mutex_lock(&stream->lock);
	if (is_to_help(stream, number)) {
		mark_worker_thread(true);
		set_current_device(stream->device->ordinal);
		while (is_to_help(stream, number))
			run_first_locked(stream);
		set_current_device(device);
		mark_worker_thread(false);
		/*
		 * What was asked for later is for the stream's own thread, which found the stream
		 * busy when it woke.
		 */
		pthread_cond_signal(&stream->filled);
	}
	pthread_mutex_unlock(&stream->lock);
}

/* The program's signals are for the program's threads. */
static bool start_thread(struct stream *stream)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&thread, &attributes, serve_stream, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (error != 0)
		return false;
	char name[16];
	snprintf(name, sizeof(name), "gpu%d.%llu", stream->device->ordinal,
		 (unsigned long long)stream->id % 100000);
	pthread_setname_np(thread, name);
	return true;
}

/* ---- creation, end ---- */

cudaError_t create_stream(struct device *device, enum stream_kind kind, int priority,
			  struct stream **stream)
{
	/* 1 and 2 are the legacy stream and the per-thread one */
	static _Atomic uint64_t next_id = 3;
	struct stream *new = calloc(1, sizeof(*new));
	struct timeline *timeline = create_timeline();
	if (new == NULL || timeline == NULL) {
		free(new);
		release_timeline(timeline);
		return cudaErrorMemoryAllocation;
	}
	new->timeline = timeline;
	new->device = device;
	new->kind = kind;
	new->priority = priority;
	new->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	STAILQ_INIT(&new->tasks);
	pthread_mutex_init(&new->lock, NULL);
	pthread_cond_init(&new->filled, NULL);
	if (kind != STREAM_LEGACY) {
		pthread_mutex_lock(&device->lock);
		LIST_INSERT_HEAD(&device->streams, new, siblings);
		pthread_mutex_unlock(&device->lock);
	}
	*stream = new;
	return cudaSuccess;
}

void close_stream(struct stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	bool has_thread = stream->has_thread;
	stream->closing = true;
	if (has_thread)
		pthread_cond_signal(&stream->filled);
	pthread_mutex_unlock(&stream->lock);
	if (!has_thread)
		free_stream(stream);
}

/* ---- tasks ---- */

static uint64_t number_task_locked(struct stream *stream, struct task *task)
{
	task->number = atomic_load_explicit(&stream->timeline->asked, memory_order_relaxed) + 1;
	atomic_store_explicit(&stream->timeline->asked, task->number, memory_order_release);
	return task->number;
}

static bool is_brief(const struct task *task)
{
	if (task->operation != NULL)
		return task->operation->brief;
	return is_reached(task->point);
}

/* Execute what an idle stream can do at once, from the front of the tasks. */
static void run_brief_locked(struct stream *stream, struct task_list *tasks)
{
	struct task *task;
	if (stream->state != STREAM_IDLE || !STAILQ_EMPTY(&stream->tasks))
		return;
	while ((task = STAILQ_FIRST(tasks)) != NULL && is_brief(task)) {
		STAILQ_REMOVE_HEAD(tasks, link);
		number_task_locked(stream, task);
		execute_task(task);
		finish_task(stream->timeline, task->number);
		free_task(task);
	}
}

/* wake: whether the stream's thread sleeps and must be woken, once the lock is free. */
static cudaError_t append_tasks_locked(struct stream *stream, struct task_list *tasks, bool *wake)
{
	struct task *task;
	run_brief_locked(stream, tasks);
	if (STAILQ_EMPTY(tasks))
		return cudaSuccess;
	if (!stream->has_thread && !start_thread(stream))
		return cudaErrorOperatingSystem;
	stream->has_thread = true;
	STAILQ_FOREACH(task, tasks, link)
		number_task_locked(stream, task);
	*wake = STAILQ_EMPTY(&stream->tasks) && stream->state == STREAM_IDLE;
	STAILQ_CONCAT(&stream->tasks, tasks);
	return cudaSuccess;
}

/* number: that of the last task, may be NULL. */
static cudaError_t append_task(struct stream *stream, struct operation *operation,
			       struct point point, uint64_t *number)
{
	struct task_list tasks = STAILQ_HEAD_INITIALIZER(tasks);
	cudaError_t error = cudaErrorMemoryAllocation;

	if (add_implicit_waits(stream, &tasks) && add_task(&tasks, operation, point)) {
		bool wake = false;
		pthread_mutex_lock(&stream->lock);
		error = append_tasks_locked(stream, &tasks, &wake);
		if (number != NULL)
			*number = atomic_load_explicit(&stream->timeline->asked,
						       memory_order_relaxed);
		pthread_mutex_unlock(&stream->lock);
		if (wake)
			pthread_cond_signal(&stream->filled);
	}
	free_tasks(&tasks);
	return error;
}

cudaError_t append_operation(struct stream *stream, struct operation *operation)
{
	return append_task(stream, operation, (struct point) { NULL, 0 }, NULL);
}

cudaError_t append_wait(struct stream *stream, struct point point)
{
	if (is_reached(point) || point.timeline == stream->timeline)
		return cudaSuccess;
	return append_task(stream, NULL, point, NULL);
}

cudaError_t mark_point(struct stream *stream, struct point *point)
{
	cudaError_t error = cudaSuccess;
	struct task_list waits = STAILQ_HEAD_INITIALIZER(waits);

	*point = find_end(stream);
	if (!add_implicit_waits(stream, &waits))
		error = cudaErrorMemoryAllocation;
	else if (!STAILQ_EMPTY(&waits))
		error = append_task(stream, NULL, (struct point) { NULL, 0 }, &point->number);
	free_tasks(&waits);
	if (error == cudaSuccess)
		hold_timeline(point->timeline);
	return error;
}
