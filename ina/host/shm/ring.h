/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - one end of a ring in shared memory: one producer, one consumer, and neither trusts the
 * other
 *
 * Indices run freely modulo 2^32; an entry is at its index modulo the size. Each end keeps its own
 * index in private memory and only publishes it. The other's is read once per look; when it is
 * nowhere between the two, the ring is torn: -EPROTO, for ever.
 *
 * Pairing: the producer's release store of tail with the consumer's acquire load of it (the entry
 * is whole); the consumer's release store of head with the producer's acquire load (the entry is
 * free). For sleeping: each side writes (entry, or `sleeps`), then a sequentially consistent fence,
 * then reads what the other writes; so one of the two sees the other's.
 */
#ifndef INA_SHM_RING_H
#define INA_SHM_RING_H

#include "ina/host/shm/layout.h"

struct ina_shm_ring {
	struct ina_shm_ends *ends; /* shared */
	_Atomic uint64_t *entry;   /* shared: size * words of them */
	uint32_t size, words;      /* entries, a power of two; 8-byte words of one */
	uint32_t mine, other;      /* my index; the other's when it was last looked at */
	bool torn;
};

/* bytes: of one entry, a multiple of 8. The memory must be as its maker left it (all zero). */
void ina_shm_ring_init(struct ina_shm_ring *ring, struct ina_shm_ends *ends, void *entries,
		       uint32_t size, uint32_t bytes);

/* Producer. 0; -EAGAIN when it is full; -EPROTO. */
int ina_shm_ring_push(struct ina_shm_ring *ring, const void *entry);
/* Producer, after a push: true when the consumer sleeps and is to be woken, once. */
bool ina_shm_ring_bell(struct ina_shm_ring *ring);

/* Consumer. 1 and a copy of the entry; 0 when it is empty; -EPROTO. */
int ina_shm_ring_pop(struct ina_shm_ring *ring, void *entry);
/*
 * Consumer: true when it may sleep, and will be woken. False: there is something (or it is torn).
 */
bool ina_shm_ring_sleep(struct ina_shm_ring *ring);
/* Consumer, when it is awake again. */
void ina_shm_ring_awake(struct ina_shm_ring *ring);

#endif
