/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.c - completion queues; see cq.h */
#include "softroce/engine/cq.h"
#include "softroce/engine/limits.h"
#include <errno.h>
#include <stdlib.h>

static struct sr_cqe *new_ring(int cqe, uint32_t *mask)
{
	uint32_t size = 1;

	while (size < (uint32_t)cqe)
		size *= 2;
	*mask = size - 1;
	return calloc(size, sizeof(struct sr_cqe));
}

struct sr_cq *sr_cq_create(struct sr_nic *nic, int cqe, void *user, int *err)
{
	struct sr_cq *cq;

	*err = -EIO;
	if (nic->dead)
		return NULL;
	*err = -EINVAL;
	if (cqe < 1 || cqe > SR_MAX_CQE)
		return NULL;
	*err = -ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->ring = new_ring(cqe, &cq->mask);
	if (!cq->ring) {
		free(cq);
		return NULL;
	}
	cq->nic = nic;
	cq->user = user;
	cq->capacity = (uint32_t)cqe;
	TAILQ_INSERT_TAIL(&nic->cqs, cq, link);
	nic->n_cq++;
	*err = 0;
	return cq;
}

int sr_cq_destroy(struct sr_cq *cq)
{
	if (cq->refs)
		return -EBUSY;
	TAILQ_REMOVE(&cq->nic->cqs, cq, link);
	cq->nic->n_cq--;
	free(cq->ring);
	free(cq);
	return 0;
}

int sr_cq_resize(struct sr_cq *cq, int cqe)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	struct sr_cqe *ring;
	uint32_t mask;

	if (cq->nic->dead)
		return -EIO;
	if (cqe < 1 || cqe > SR_MAX_CQE || (uint32_t)cqe < head - tail)
		return -EINVAL;
	ring = new_ring(cqe, &mask);
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = tail; i != head; i++)
		ring[i & mask] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = mask;
	cq->capacity = (uint32_t)cqe;
	return 0;
}

int sr_cq_capacity(const struct sr_cq *cq)
{
	return (int)cq->capacity;
}

void *sr_cq_user(const struct sr_cq *cq)
{
	return cq->user;
}

int sr_cq_poll(struct sr_cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t avail = atomic_load_explicit(&cq->head, memory_order_relaxed) - tail;
	int wanted = n < 0 ? 0 : n;
	int got = (uint32_t)wanted < avail ? wanted : (int)avail;

	for (int i = 0; i < got; i++) {
		const struct sr_cqe *cqe = &cq->ring[(tail + (uint32_t)i) & cq->mask];

		wc[i] = cqe->wc;
		*cqe->retired += cqe->places;
	}
	atomic_store_explicit(&cq->tail, tail + (uint32_t)got, memory_order_relaxed);
	return got;
}

bool sr_cq_empty(const struct sr_cq *cq)
{
	/* The acquire pairs with the release in sr_cq_publish(): who sees the new head sees the
	 * message's bytes. The tail moves only in sr_cq_poll(), so a stale value can only make the
	 * queue look fuller than it is. */
	return atomic_load_explicit(&cq->head, memory_order_acquire) ==
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

void sr_cq_arm(struct sr_cq *cq, bool solicited_only)
{
	if (!solicited_only)
		cq->armed = SR_CQ_ANY;
	else if (cq->armed == SR_CQ_QUIET)
		cq->armed = SR_CQ_SOLICITED;
}

struct sr_cqe *sr_cq_reserve(struct sr_cq *cq)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	if (cq->overrun)
		return NULL;
	if (head - atomic_load_explicit(&cq->tail, memory_order_relaxed) >= cq->capacity) {
		cq->overrun = true;
		cq->nic->cq_overrun = true;
		return NULL;
	}
	return &cq->ring[head & cq->mask];
}

void sr_cq_publish(struct sr_cq *cq, bool event)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	if (cq->armed == SR_CQ_ANY || (cq->armed == SR_CQ_SOLICITED && event)) {
		cq->armed = SR_CQ_QUIET;
		cq->nic->events.completion(cq->nic->config.user, cq);
	}
}

void sr_cq_forget(struct sr_cq *cq, uint32_t qpn)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t to = head;

	/*
	 * Backwards, so that the survivors keep their order and the head, which others wait for,
	 * stays.
	 */
	for (uint32_t i = head; i != tail;) {
		struct sr_cqe *cqe = &cq->ring[--i & cq->mask];

		if (cqe->wc.qp_num != qpn)
			cq->ring[--to & cq->mask] = *cqe;
		else if (cqe->shared)
			*cqe->retired += cqe->places;
	}
	atomic_store_explicit(&cq->tail, to, memory_order_relaxed);
}
