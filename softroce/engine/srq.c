/* SPDX-License-Identifier: BSD-3-Clause */
/* srq.c - receive queues' rings and shared receive queues; see srq.h */
#include "softroce/engine/srq.h"
#include "softroce/engine/limits.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sr_rq_init(struct sr_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
	uint32_t size = 1;

	*rq = (struct sr_rq) { .max_wr = max_wr, .max_sge = max_sge };
	if (!max_wr)
		return 0;
	while (size < max_wr)
		size *= 2;
	rq->stride = (uint32_t)(sizeof(struct sr_rwqe) + max_sge * sizeof(struct ibv_sge));
	rq->mask = size - 1;
	rq->ring = malloc((size_t)size * rq->stride);
	return rq->ring ? 0 : -ENOMEM;
}

void sr_rq_fini(struct sr_rq *rq)
{
	free(rq->ring);
	rq->ring = NULL;
}

int sr_rq_push(struct sr_rq *rq, const struct ibv_recv_wr *wr)
{
	struct sr_rwqe *wqe;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return -EINVAL;
	if (rq->head - rq->retired >= rq->max_wr)
		return -ENOMEM;
	wqe = sr_rq_at(rq, rq->head);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->length = 0;
	for (uint32_t i = 0; i < wqe->num_sge; i++) {
		wqe->sge[i] = wr->sg_list[i];
		wqe->length += wr->sg_list[i].length;
	}
	rq->head++;
	return 0;
}

struct sr_srq *sr_srq_create(struct sr_pd *pd, const struct ibv_srq_init_attr *attr, void *user,
			     int *err)
{
	struct sr_srq *srq;

	*err = -EIO;
	if (pd->nic->dead)
		return NULL;
	*err = -EINVAL;
	if (!attr->attr.max_wr || attr->attr.max_wr > SR_MAX_WR || attr->attr.max_sge > SR_MAX_SGE)
		return NULL;
	*err = -ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	*err = sr_rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge);
	if (*err) {
		free(srq);
		return NULL;
	}
	srq->pd = pd;
	srq->user = user;
	pd->refs++;
	TAILQ_INSERT_TAIL(&pd->nic->srqs, srq, link);
	pd->nic->n_srq++;
	return srq;
}

int sr_srq_destroy(struct sr_srq *srq)
{
	if (srq->refs)
		return -EBUSY;
	TAILQ_REMOVE(&srq->pd->nic->srqs, srq, link);
	srq->pd->nic->n_srq--;
	srq->pd->refs--;
	sr_rq_fini(&srq->rq);
	free(srq);
	return 0;
}

static int resize_queue(struct sr_srq *srq, uint32_t max_wr)
{
	struct sr_rq from = srq->rq, to;
	int err;

	if (!max_wr || max_wr > SR_MAX_WR || from.head - from.retired > max_wr)
		return -EINVAL;
	err = sr_rq_init(&to, max_wr, from.max_sge);
	if (err)
		return err;
	for (uint32_t i = from.tail; i != from.head; i++)
		memcpy(sr_rq_at(&to, i), sr_rq_at(&from, i), from.stride);
	to.head = from.head;
	to.tail = from.tail;
	to.retired = from.retired;
	srq->rq = to;
	sr_rq_fini(&from);
	return 0;
}

int sr_srq_modify(struct sr_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	if (srq->pd->nic->dead || srq->failed)
		return -EIO;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return -EINVAL;
	if ((mask & IBV_SRQ_LIMIT) &&
	    attr->srq_limit > (mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.max_wr))
		return -EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		int err = resize_queue(srq, attr->max_wr);

		if (err)
			return err;
	}
	if (mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	return 0;
}

void sr_srq_query(const struct sr_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = (struct ibv_srq_attr) {
		.max_wr = srq->rq.max_wr,
		.max_sge = srq->rq.max_sge,
		.srq_limit = srq->limit,
	};
}

int sr_srq_post(struct sr_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = srq->pd->nic->dead || srq->failed ? -EIO : 0;

	for (; wr && !err; wr = wr->next) {
		err = sr_rq_push(&srq->rq, wr);
		if (err)
			break;
	}
	if (err)
		*bad = wr;
	return err;
}

bool sr_srq_take(struct sr_srq *srq, struct sr_rwqe *to)
{
	struct sr_rq *rq = &srq->rq;
	const struct sr_rwqe *from;

	if (sr_rq_empty(rq) || srq->failed)
		return false;
	from = sr_rq_at(rq, rq->tail++);
	memcpy(to, from, sizeof(*from) + from->num_sge * sizeof(from->sge[0]));
	if (rq->head - rq->tail < srq->limit) {
		srq->limit = 0;
		sr_nic_async(srq->pd->nic, IBV_EVENT_SRQ_LIMIT_REACHED, srq->user);
	}
	return true;
}
