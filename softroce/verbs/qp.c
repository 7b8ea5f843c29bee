/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c - queue pairs */
#include "softroce/verbs/objects.h"

#include <stdlib.h>
#include <string.h>

int sr_qp_post_recv_verb(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sr_vqp *qp = (struct sr_vqp *)ibv;
	int err;

	if (!sr_context_enter(qp->context)) {
		*bad = wr;
		return EIO;
	}
	err = sr_qp_post_recv(qp->engine, wr, bad);
	sr_context_leave(qp->context);
	return -err;
}

/* ---- set-up ---- */

static void qp_fill(struct sr_vqp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr_ex *attr)
{
	qp->qp.context = pd->context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.srq = attr->srq;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.state = IBV_QPS_RESET;
	qp->qp.qp_num = sr_qp_num(qp->engine);
}

static int engine_create(struct sr_vqp *qp, struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr,
			 bool gsi)
{
	struct sr_qp_init init = {
		.type = attr->qp_type,
		.send_cq = attr->send_cq ? ((struct sr_vcq *)attr->send_cq)->engine : NULL,
		.recv_cq = attr->recv_cq ? ((struct sr_vcq *)attr->recv_cq)->engine : NULL,
		.srq = attr->srq ? ((struct sr_vsrq *)attr->srq)->engine : NULL,
		.cap = attr->cap,
		.sq_sig_all = attr->sq_sig_all,
		.gsi = gsi,
		.user = qp,
	};
	int err = -EIO;

	if (!init.send_cq || !init.recv_cq)
		return -EINVAL;
	if (!sr_context_enter(qp->context))
		return -EIO;
	qp->engine = sr_qp_create(((struct sr_vpd *)pd)->engine, &init, &err);
	if (qp->engine) {
		attr->cap = init.cap;
		qp_fill(qp, pd, attr);
	}
	sr_context_leave(qp->context);
	if (qp->engine)
		return 0;
	return err < 0 ? err : -err;
}

static struct sr_vqp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr, bool gsi)
{
	struct sr_vqp *qp = calloc(1, sizeof(*qp));
	int err;

	if (!qp)
		return sr_fail(ENOMEM);
	qp->context = sr_context_of(pd->context);
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	err = engine_create(qp, pd, attr, gsi);
	if (err) {
		free(qp);
		return sr_fail(err);
	}
	return qp;
}

static struct ibv_qp *plain_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, bool gsi)
{
	struct ibv_qp_init_attr_ex ex = { 0 };
	struct sr_vqp *qp;

	memcpy(&ex, attr, sizeof(*attr)); /* the extended struct begins with the same fields */
	qp = qp_create(pd, &ex, gsi);
	if (!qp)
		return NULL;
	attr->cap = ex.cap;
	return &qp->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return plain_create(pd, attr, false);
}

struct ibv_qp *sr_qp_create_gsi(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return plain_create(pd, attr, true);
}

struct ibv_qp *sr_qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct sr_vqp *qp;
	int err;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return sr_fail(EINVAL);
	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags))
		return sr_fail(EOPNOTSUPP);
	qp = qp_create(attr->pd, attr, false);
	if (!qp)
		return NULL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		err = sr_wr_builder_create(qp, attr->send_ops_flags);
		if (err) {
			ibv_destroy_qp(&qp->qp);
			return sr_fail(err);
		}
	}
	return &qp->qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct sr_vqp *qp = (struct sr_vqp *)ibv;

	return qp->builder ? &qp->ex : NULL;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct sr_vqp *qp = (struct sr_vqp *)ibv;
	uint64_t now = sr_now();
	int err;

	if (!sr_context_enter(qp->context))
		return EIO;
	err = sr_qp_modify(qp->engine, now, attr, mask);
	ibv->state = sr_qp_state(qp->engine);
	if (!err)
		sr_nic_progress(qp->context->adapter->nic, now, 0);
	sr_context_leave(qp->context);
	return -err;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct sr_vqp *qp = (struct sr_vqp *)ibv;

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	if (!sr_context_enter(qp->context))
		return EIO;
	sr_qp_query(qp->engine, attr, init);
	ibv->state = attr->qp_state;
	sr_context_leave(qp->context);
	init->qp_context = ibv->qp_context;
	init->send_cq = ibv->send_cq;
	init->recv_cq = ibv->recv_cq;
	init->srq = ibv->srq;
	init->qp_type = ibv->qp_type;
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	/*
	 * retransmitted packets write the same bytes again: no promise about order within a message
	 */
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct sr_vqp *qp = (struct sr_vqp *)ibv;
	uint32_t events;
	int err = 0;

	if (sr_context_enter(qp->context)) {
		err = sr_qp_destroy(qp->engine);
		sr_context_leave(qp->context);
	}
	if (err)
		return -err;
	events = sr_notices_purge(&qp->context->async, qp, &qp->events);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != events)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	sr_wr_builder_destroy(qp);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(qp);
	return 0;
}
