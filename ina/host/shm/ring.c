/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define WORDS_MAX 8u /* the largest entry's */

void ina_shm_ring_init(struct ina_shm_ring *ring, struct ina_shm_ends *ends, void *entries,
		       uint32_t size, uint32_t bytes)
{
	assert(bytes % 8 == 0 && bytes / 8 <= WORDS_MAX && !(size & (size - 1)));
	*ring = (struct ina_shm_ring) {
		.ends = ends, .entry = entries, .size = size, .words = bytes / 8
	};
}

static _Atomic uint64_t *slot_of(struct ina_shm_ring *ring)
{
	return ring->entry + (size_t)(ring->mine & (ring->size - 1)) * ring->words;
}

/* How far `ahead` is before `behind`; -EPROTO when that cannot be. */
static int64_t measure_distance(struct ina_shm_ring *ring, uint32_t ahead, uint32_t behind)
{
	uint32_t n = ahead - behind;

	if (n > ring->size)
		ring->torn = true;
	return ring->torn ? -EPROTO : (int64_t)n;
}

int ina_shm_ring_push(struct ina_shm_ring *ring, const void *entry)
{
	uint64_t word[WORDS_MAX];
	_Atomic uint64_t *slot = slot_of(ring);

	if (ring->torn)
		return -EPROTO;
	if (ring->mine - ring->other == ring->size) {
		int64_t used;

		ring->other = atomic_load_explicit(&ring->ends->head.value, memory_order_acquire);
		used = measure_distance(ring, ring->mine, ring->other);
		if (used < 0 || used == ring->size)
			return used < 0 ? -EPROTO : -EAGAIN;
	}
	memcpy(word, entry, ring->words * 8);
	for (uint32_t i = 0; i < ring->words; i++)
		atomic_store_explicit(&slot[i], word[i], memory_order_relaxed);
	atomic_store_explicit(&ring->ends->tail.value, ++ring->mine, memory_order_release);
	return 0;
}

bool ina_shm_ring_bell(struct ina_shm_ring *ring)
{
	/* the push before the look; ina_shm_ring_sleep() does the reverse */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&ring->ends->sleeps.value, memory_order_relaxed) &&
	       atomic_exchange_explicit(&ring->ends->sleeps.value, 0, memory_order_relaxed);
}

/* Entries that are there; -EPROTO. */
static int64_t count_filled(struct ina_shm_ring *ring)
{
	if (ring->torn)
		return -EPROTO;
	ring->other = atomic_load_explicit(&ring->ends->tail.value, memory_order_acquire);
	return measure_distance(ring, ring->other, ring->mine);
}

int ina_shm_ring_pop(struct ina_shm_ring *ring, void *entry)
{
	uint64_t word[WORDS_MAX];
	_Atomic uint64_t *slot = slot_of(ring);

	if (ring->torn || ring->mine == ring->other) {
		int64_t n = count_filled(ring);

		if (n <= 0)
			return (int)n;
	}
	for (uint32_t i = 0; i < ring->words; i++)
		word[i] = atomic_load_explicit(&slot[i], memory_order_relaxed);
	memcpy(entry, word, ring->words * 8);
	atomic_store_explicit(&ring->ends->head.value, ++ring->mine, memory_order_release);
	return 1;
}

bool ina_shm_ring_sleep(struct ina_shm_ring *ring)
{
	atomic_store_explicit(&ring->ends->sleeps.value, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (ring->mine == ring->other && count_filled(ring) == 0)
		return true;
	ina_shm_ring_awake(ring);
	return false;
}

void ina_shm_ring_awake(struct ina_shm_ring *ring)
{
	atomic_store_explicit(&ring->ends->sleeps.value, 0, memory_order_relaxed);
}
