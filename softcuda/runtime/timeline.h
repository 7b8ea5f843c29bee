/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeline.h - how far a stream is: tasks are numbered from 1 as they are asked for, and finish in
 * that order
 *
 * A point (timeline, number) is reached once the task of that number has finished. Events, waits
 * between streams and host threads that synchronise all wait for points. A timeline outlives its
 * stream as long as a point names it.
 */
#ifndef SOFTCUDA_TIMELINE_H
#define SOFTCUDA_TIMELINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct timeline_waiter;

struct timeline {
	_Atomic uint64_t asked; /* written under the lock of the stream */
	_Atomic uint64_t done;
	_Atomic unsigned waiting; /* length of the list; lets finish_task skip the lock */
	_Atomic unsigned references;
	pthread_mutex_t lock; /* protects the list */
	LIST_HEAD(, timeline_waiter) waiters;
};

struct point {
	struct timeline *timeline; /* NULL: a point that was always reached */
	uint64_t number;
};

/* With one reference; NULL without memory. */
struct timeline *create_timeline(void);
void hold_timeline(struct timeline *timeline);
void release_timeline(struct timeline *timeline);

/* The task `number` has finished: wake whoever waits for it. */
void finish_task(struct timeline *timeline, uint64_t number);
bool is_reached(struct point point);
/* Sleep until it is reached. The caller's point holds the timeline. */
void wait_for_point(struct point point);

#endif
