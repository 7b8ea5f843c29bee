/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h - streams: a queue of tasks in order, and a thread that executes them
 *
 * The thread begins with the first task that is not brief, and sleeps while there is nothing to do.
 * Brief tasks of an idle stream are executed by the thread that asks for them: nobody needs to be
 * woken for them.
 *
 * Order between streams: a wait for a point of another stream is a task like others. The legacy
 * stream of a device waits, task by task, for what the device's blocking streams were asked before,
 * and they for it.
 */
#ifndef SOFTCUDA_STREAM_H
#define SOFTCUDA_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "softcuda/runtime/cuda_types.h"
#include "softcuda/runtime/operation.h"
#include "softcuda/runtime/timeline.h"

struct device;
struct capture_member;

/* In the order in which they are executed. */
STAILQ_HEAD(task_list, task);

/* How a stream and the legacy stream of its device order each other. */
enum stream_kind { STREAM_BLOCKING, STREAM_NONBLOCKING, STREAM_LEGACY };

/*
 * STREAM_IDLE --> STREAM_BUSY    its thread, or one that waits for it, executes a task
 *             <--
 * Once `closing` is set, the thread frees the stream when the queue is empty.
 */
enum stream_state { STREAM_IDLE, STREAM_BUSY };

struct stream {
	struct timeline *timeline;
	struct device *device;
	enum stream_kind kind;
	unsigned flags;
	int priority;
	uint64_t id;
	LIST_ENTRY(stream) siblings; /* protected by the device's lock */

	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t filled;
	struct task_list tasks;
	enum stream_state state;
	bool has_thread;
	bool closing;

	struct capture_member *capture; /* see capture.h; protected by the lock of captures */
};

cudaError_t create_stream(struct device *device, enum stream_kind kind, int priority,
			  struct stream **stream);
/* Returns at once; what was asked for is still done. The stream is no longer the device's. */
void close_stream(struct stream *stream);

/* Execute `operation` after everything that was asked for before. Takes a reference. */
cudaError_t append_operation(struct stream *stream, struct operation *operation);
/* Everything asked for later waits for `point`. Takes a reference to its timeline. */
cudaError_t append_wait(struct stream *stream, struct point point);
/*
 * The point that is reached when all that was asked for so far is done. The caller gets a reference
 * to its timeline.
 */
cudaError_t mark_point(struct stream *stream, struct point *point);
/* The same without any order to other streams: for who only wants to wait for this one. */
struct point find_end(struct stream *stream);
/*
 * Execute tasks up to `number` on the calling thread as long as nobody else does. For a thread that
 * will wait for them anyway: the stream's own thread, which has been woken for them, need not have
 * come to run.
 */
void help_stream(struct stream *stream, uint64_t number);

#endif
