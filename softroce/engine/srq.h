/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srq.h - receive work requests: the ring of a receive queue, private to a queue pair or shared by
 * many
 */
#ifndef SOFTROCE_ENGINE_SRQ_H
#define SOFTROCE_ENGINE_SRQ_H

#include "softroce/engine/mr.h"

/* A posted receive. */
struct sr_rwqe {
	uint64_t wr_id;
	uint64_t length; /* sum of the entries */
	uint32_t num_sge;
	struct ibv_sge sge[];
};

struct sr_rq {
	char *ring;
	uint32_t stride, mask;
	uint32_t max_wr, max_sge;
	uint32_t head;    /* next to be posted */
	uint32_t tail;    /* next to be used */
	uint32_t retired; /* places given back by polling */
};

struct sr_srq {
	struct sr_pd *pd;
	TAILQ_ENTRY(sr_srq) link;
	void *user;
	struct sr_rq rq;
	uint32_t limit; /* event when fewer than this many are left; 0 = no event */
	uint32_t refs;
	bool failed; /* gives out and takes no receive any more */
};

int sr_rq_init(struct sr_rq *rq, uint32_t max_wr, uint32_t max_sge);
void sr_rq_fini(struct sr_rq *rq);
/*
 * Copies one work request into the ring: -ENOMEM when full, -EINVAL when it has too many entries.
 */
int sr_rq_push(struct sr_rq *rq, const struct ibv_recv_wr *wr);

static inline bool sr_rq_empty(const struct sr_rq *rq)
{
	return rq->head == rq->tail;
}

static inline struct sr_rwqe *sr_rq_at(const struct sr_rq *rq, uint32_t index)
{
	return (struct sr_rwqe *)(rq->ring + (size_t)(index & rq->mask) * rq->stride);
}

/*
 * Copies the oldest receive out and removes it; may raise the limit event. False when there is
 * none.
 */
bool sr_srq_take(struct sr_srq *srq, struct sr_rwqe *to);

#endif
