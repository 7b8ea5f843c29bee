/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sleeper.h - how a polling thread goes to sleep, and how others wake it
 *
 * The thread says that it sleeps, looks once more at everything that others write, and only then
 * waits; others write first and look at `asleep` then. Each of the two has a full fence in between,
 * so one of them sees the other.
 */
#ifndef INA_BACKEND_SLEEPER_H
#define INA_BACKEND_SLEEPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ha_sleeper {
	_Atomic int asleep;
	int fd; /* eventfd */
};

/* 0 or a negative errno. */
int ha_sleeper_open(struct ha_sleeper *s);
void ha_sleeper_close(struct ha_sleeper *s);

/*
 * From now on others wake us. Then look at everything once more, and either ha_sleeper_wait() or
 * ha_sleeper_stay().
 */
static inline void ha_sleeper_announce(struct ha_sleeper *s)
{
	atomic_store_explicit(&s->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void ha_sleeper_stay(struct ha_sleeper *s)
{
	atomic_store_explicit(&s->asleep, 0, memory_order_relaxed);
}

/*
 * Until somebody wakes us, fd (-1: none) is readable, or timeout_ns have passed (UINT64_MAX: for
 * ever).
 */
void ha_sleeper_wait(struct ha_sleeper *s, int fd, uint64_t timeout_ns);

void ha_sleeper_ring(struct ha_sleeper *s);

/* After writing what the thread is to see. */
static inline void ha_sleeper_wake(struct ha_sleeper *s)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&s->asleep, memory_order_relaxed))
		ha_sleeper_ring(s);
}

#endif
