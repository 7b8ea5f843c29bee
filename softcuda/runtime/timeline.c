/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/timeline.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* On the stack of the thread that waits. Once `woken` is 1 the waker does not look at it again. */
struct timeline_waiter {
	LIST_ENTRY(timeline_waiter) siblings; /* protected by the timeline's lock */
	uint64_t number;
	_Atomic uint32_t woken;
};

struct timeline *create_timeline(void)
{
	struct timeline *timeline = calloc(1, sizeof(*timeline));
	if (timeline == NULL)
		return NULL;
	pthread_mutex_init(&timeline->lock, NULL);
	atomic_store_explicit(&timeline->references, 1, memory_order_relaxed);
	return timeline;
}

void hold_timeline(struct timeline *timeline)
{
	if (timeline != NULL)
		atomic_fetch_add_explicit(&timeline->references, 1, memory_order_relaxed);
}

void release_timeline(struct timeline *timeline)
{
	if (timeline == NULL)
		return;
	if (atomic_fetch_sub_explicit(&timeline->references, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&timeline->lock);
	free(timeline);
}

static void wake_reached(struct timeline *timeline, uint64_t done)
{
	struct timeline_waiter *next;

	pthread_mutex_lock(&timeline->lock);
	for (struct timeline_waiter *waiter = LIST_FIRST(&timeline->waiters); waiter != NULL;
	     waiter = next) {
		next = LIST_NEXT(waiter, siblings);
		if (waiter->number > done)
			continue;
		LIST_REMOVE(waiter, siblings);
		atomic_fetch_sub_explicit(&timeline->waiting, 1, memory_order_relaxed);
		/*
		 * The address may be gone right after this store; waking nobody there does no harm.
		 */
		atomic_store_explicit(&waiter->woken, 1, memory_order_release);
		syscall(SYS_futex, &waiter->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	pthread_mutex_unlock(&timeline->lock);
}

void finish_task(struct timeline *timeline, uint64_t number)
{
	/*
	 * Sequentially consistent, as is the waiter's pair: either it sees `done`, or this thread
	 * sees that it waits.
	 */
	atomic_store_explicit(&timeline->done, number, memory_order_seq_cst);
	if (atomic_load_explicit(&timeline->waiting, memory_order_seq_cst) != 0)
		wake_reached(timeline, number);
}

bool is_reached(struct point point)
{
	if (point.timeline == NULL)
		return true;
	return atomic_load_explicit(&point.timeline->done, memory_order_seq_cst) >= point.number;
}

void wait_for_point(struct point point)
{
	if (is_reached(point))
		return;
	struct timeline *timeline = point.timeline;
	struct timeline_waiter waiter = { .number = point.number };

	pthread_mutex_lock(&timeline->lock);
	atomic_fetch_add_explicit(&timeline->waiting, 1, memory_order_seq_cst);
	if (is_reached(point)) {
		atomic_fetch_sub_explicit(&timeline->waiting, 1, memory_order_relaxed);
		pthread_mutex_unlock(&timeline->lock);
		return;
	}
	LIST_INSERT_HEAD(&timeline->waiters, &waiter, siblings);
	pthread_mutex_unlock(&timeline->lock);
	while (atomic_load_explicit(&waiter.woken, memory_order_acquire) == 0)
		syscall(SYS_futex, &waiter.woken, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
