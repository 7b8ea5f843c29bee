/* SPDX-License-Identifier: BSD-3-Clause */
/* events.c - completion channels and asynchronous events */
#include "softroce/verbs/objects.h"

#include <stdlib.h>

/* ---- what the engine reports; under the adapter's lock ---- */

static void completion_happened(void *user, struct sr_cq *engine)
{
	struct sr_vcq *cq = sr_cq_user(engine);

	if (cq->channel)
		sr_notices_push(&cq->channel->queue, 0, cq, &cq->comp_events);
}

static void async_happened(void *user, enum ibv_event_type type, void *object)
{
	struct sr_adapter *adapter = user;
	struct sr_context *context;

	switch (type) {
	case IBV_EVENT_CQ_ERR: {
		struct sr_vcq *cq = object;

		sr_notices_push(&cq->context->async, type, cq, &cq->async_events);
		break;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct sr_vsrq *srq = object;

		sr_notices_push(&srq->context->async, type, srq, &srq->events);
		break;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct sr_vqp *qp = object;

		sr_notices_push(&qp->context->async, type, qp, &qp->events);
		break;
	}
	default: /* of the port or the device: for everybody who has it open */
		LIST_FOREACH(context, &adapter->contexts, link)
			sr_notices_push(&context->async, type, NULL, NULL);
	}
}

const struct sr_event_ops sr_verbs_events = {
	.completion = completion_happened,
	.async = async_happened,
};

/* ---- completion channels ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct sr_channel *channel = calloc(1, sizeof(*channel));
	int err;

	if (!channel)
		return sr_fail(ENOMEM);
	err = sr_notices_init(&channel->queue);
	if (err) {
		free(channel);
		return sr_fail(err);
	}
	channel->channel.context = context;
	channel->channel.fd = channel->queue.fd;
	return &channel->channel;
}

/* refcnt: completion queues on the channel, under context->mutex. */
int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct sr_channel *channel = (struct sr_channel *)ibv;
	struct ibv_context *context = ibv->context;
	bool busy;

	pthread_mutex_lock(&context->mutex);
	busy = ibv->refcnt;
	pthread_mutex_unlock(&context->mutex);
	if (busy)
		return EBUSY;
	sr_notices_destroy(&channel->queue);
	free(channel);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct sr_channel *channel = (struct sr_channel *)ibv;
	struct sr_notice notice;
	int err = sr_notices_take(&channel->queue, &notice);

	if (err) {
		errno = -err;
		return -1;
	}
	*cq = notice.object;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* ---- asynchronous events ---- */

int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
	struct sr_context *context = sr_context_of(ibv);
	struct sr_notice notice;
	int err = sr_notices_take(&context->async, &notice);

	if (err) {
		errno = -err;
		return -1;
	}
	event->event_type = notice.type;
	if (notice.object)
		/* each element of the union is a pointer to the object's start */
		event->element.qp = notice.object;
	else
		event->element.port_num = 1;
	return 0;
}

static void ack_event(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct ibv_cq *cq = event->element.cq;

		ack_event(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct ibv_srq *srq = event->element.srq;

		ack_event(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct ibv_qp *qp = event->element.qp;

		ack_event(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	}
	default:
		break;
	}
}
