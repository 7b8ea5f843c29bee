/* SPDX-License-Identifier: BSD-3-Clause */
/* srq.c - shared receive queues */
#include "softroce/verbs/objects.h"

#include <stdlib.h>

int sr_srq_post_verb(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sr_vsrq *srq = (struct sr_vsrq *)ibv;
	int err;

	if (!sr_context_enter(srq->context)) {
		*bad = wr;
		return EIO;
	}
	err = sr_srq_post(srq->engine, wr, bad);
	sr_context_leave(srq->context);
	return -err;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct sr_vsrq *srq = calloc(1, sizeof(*srq));
	int err = EIO;

	if (!srq)
		return sr_fail(ENOMEM);
	srq->context = sr_context_of(pd->context);
	srq->srq.context = pd->context;
	srq->srq.srq_context = attr->srq_context;
	srq->srq.pd = pd;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	if (sr_context_enter(srq->context)) {
		srq->engine = sr_srq_create(((struct sr_vpd *)pd)->engine, attr, srq, &err);
		if (srq->engine)
			sr_srq_query(srq->engine, &attr->attr); /* what was granted */
		sr_context_leave(srq->context);
	}
	if (!srq->engine) {
		free(srq);
		return sr_fail(err);
	}
	return &srq->srq;
}

struct ibv_srq *sr_srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	struct ibv_srq_init_attr basic = { .srq_context = attr->srq_context, .attr = attr->attr };
	struct ibv_srq *srq;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return sr_fail(EINVAL);
	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC))
		return sr_fail(EOPNOTSUPP);
	srq = ibv_create_srq(attr->pd, &basic);
	attr->attr = basic.attr;
	return srq;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct sr_vsrq *srq = (struct sr_vsrq *)ibv;
	int err;

	if (!sr_context_enter(srq->context))
		return EIO;
	err = sr_srq_modify(srq->engine, attr, mask);
	sr_context_leave(srq->context);
	return -err;
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct sr_vsrq *srq = (struct sr_vsrq *)ibv;

	if (!sr_context_enter(srq->context))
		return EIO;
	sr_srq_query(srq->engine, attr);
	sr_context_leave(srq->context);
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct sr_vsrq *srq = (struct sr_vsrq *)ibv;
	uint32_t events;
	int err = 0;

	if (sr_context_enter(srq->context)) {
		err = sr_srq_destroy(srq->engine);
		sr_context_leave(srq->context);
	}
	if (err)
		return -err;
	events = sr_notices_purge(&srq->context->async, srq, &srq->events);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != events)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(srq);
	return 0;
}
