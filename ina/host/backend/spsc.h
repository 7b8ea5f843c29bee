/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spsc.h - notes from one thread to one other, without a lock: a ring with one producer and one
 * consumer
 */
#ifndef INA_BACKEND_SPSC_H
#define INA_BACKEND_SPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HA_SPSC_NOTES 4096u /* a power of two */

struct ha_note {
	uint32_t kind;
	int32_t err;
	void *what;
};

/* Each end has cache lines of its own, with what it last saw of the other's. */
struct ha_spsc {
	_Alignas(128) _Atomic uint32_t tail;
	uint32_t head_seen; /* producer's */
	_Alignas(128) _Atomic uint32_t head;
	uint32_t tail_seen; /* consumer's */
	_Alignas(128) struct ha_note note[HA_SPSC_NOTES];
};

/* False: it is full. */
static inline bool ha_spsc_push(struct ha_spsc *s, const struct ha_note *note)
{
	uint32_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);

	if (tail - s->head_seen == HA_SPSC_NOTES) {
		/* pairs with pop's release */
		s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
		if (tail - s->head_seen == HA_SPSC_NOTES)
			return false;
	}
	s->note[tail & (HA_SPSC_NOTES - 1)] = *note;
	atomic_store_explicit(&s->tail, tail + 1, memory_order_release);
	return true;
}

static inline bool ha_spsc_pop(struct ha_spsc *s, struct ha_note *note)
{
	uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);

	if (head == s->tail_seen) {
		/* pairs with push's release */
		s->tail_seen = atomic_load_explicit(&s->tail, memory_order_acquire);
		if (head == s->tail_seen)
			return false;
	}
	*note = s->note[head & (HA_SPSC_NOTES - 1)];
	atomic_store_explicit(&s->head, head + 1, memory_order_release);
	return true;
}

/* The consumer's. */
static inline bool ha_spsc_empty(struct ha_spsc *s)
{
	return atomic_load_explicit(&s->head, memory_order_relaxed) ==
	       atomic_load_explicit(&s->tail, memory_order_acquire);
}

#endif
