/* SPDX-License-Identifier: BSD-3-Clause */
/* timer.c - heap of lazily moved deadlines; see timer.h */
#include "softroce/engine/timer.h"
#include <errno.h>
#include <stdlib.h>

void sr_timers_fini(struct sr_timers *timers)
{
	free(timers->heap);
	*timers = (struct sr_timers) { 0 };
}

int sr_timers_reserve(struct sr_timers *timers)
{
	if (timers->reserved == timers->size) {
		uint32_t size = timers->size ? timers->size * 2 : 64;
		struct sr_timer **heap = realloc(timers->heap, size * sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		timers->heap = heap;
		timers->size = size;
	}
	timers->reserved++;
	return 0;
}

static void place_timer(struct sr_timers *timers, uint32_t i, struct sr_timer *timer)
{
	timers->heap[i] = timer;
	timer->pos = i + 1;
}

static void sift_up(struct sr_timers *timers, uint32_t i)
{
	struct sr_timer *timer = timers->heap[i];

	while (i && timers->heap[(i - 1) / 2]->queued > timer->queued) {
		place_timer(timers, i, timers->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place_timer(timers, i, timer);
}

static void sift_down(struct sr_timers *timers, uint32_t i)
{
	struct sr_timer *timer = timers->heap[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= timers->n)
			break;
		if (child + 1 < timers->n &&
		    timers->heap[child + 1]->queued < timers->heap[child]->queued)
			child++;
		if (timers->heap[child]->queued >= timer->queued)
			break;
		place_timer(timers, i, timers->heap[child]);
		i = child;
	}
	place_timer(timers, i, timer);
}

static void heap_remove(struct sr_timers *timers, struct sr_timer *timer)
{
	uint32_t i = timer->pos - 1;
	struct sr_timer *last = timers->heap[--timers->n];

	timer->pos = 0;
	if (last == timer)
		return;
	place_timer(timers, i, last);
	sift_up(timers, i);
	sift_down(timers, last->pos - 1);
}

void sr_timers_release(struct sr_timers *timers, struct sr_timer *timer)
{
	if (timer->pos)
		heap_remove(timers, timer);
	timer->due = SR_NEVER;
	timers->reserved--;
}

void sr_timer_enqueue(struct sr_timers *timers, struct sr_timer *timer)
{
	timer->queued = timer->due;
	if (!timer->pos) {
		place_timer(timers, timers->n, timer);
		timers->n++;
	}
	sift_up(timers, timer->pos - 1);
}

struct sr_timer *sr_timers_expired(struct sr_timers *timers, uint64_t now)
{
	while (timers->n && timers->heap[0]->queued <= now) {
		struct sr_timer *timer = timers->heap[0];

		if (timer->due <= now) {
			heap_remove(timers, timer);
			timer->due = SR_NEVER;
			return timer;
		}
		if (timer->due == SR_NEVER) {
			heap_remove(timers, timer);
		} else {
			timer->queued = timer->due;
			sift_down(timers, 0);
		}
	}
	return NULL;
}
