/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - memory of somebody else's that may not be there: the backend loses that client, and
 * goes on
 *
 * A file can be sealed against holes, but what is in it can still get lost: a page that cannot be
 * read back from swap, or memory that is broken. Then the kernel sends SIGBUS to whoever touches
 * it. For memory that has a guard the signal's handler puts empty private memory in its place, for
 * all of the mapping, and says that it is lost: the thread goes on with zeros, finds that said, and
 * ends the client. SIGBUS elsewhere is as deadly as ever.
 */
#ifndef INA_SHM_GUARD_H
#define INA_SHM_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define INA_SHM_GUARDS 8192u /* of a process, at once */

struct ina_shm_guard {
	_Atomic uintptr_t begin; /* 0: free. The handler reads it with acquire, then bytes */
	_Atomic uint64_t bytes;
	_Atomic bool taken; /* by whoever fills it in */
	_Atomic bool lost;  /* stays; readable also after the guard was put down */
};

/* From now on; NULL: there are too many, or the system has no handler for us. */
struct ina_shm_guard *ina_shm_guard_put(void *map, uint64_t bytes);
/* Before the memory is unmapped. */
void ina_shm_guard_remove(struct ina_shm_guard *guard);

/* Whoever has read from the memory and finds this false has read what was there. */
static inline bool ina_shm_guard_lost(const _Atomic bool *lost)
{
	/* the bytes, then the look; the handler says it, then puts zeros there */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(lost, memory_order_relaxed);
}

#endif
