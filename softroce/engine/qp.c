/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c - queue pairs: create, destroy, query, post */
#include "softroce/engine/qp.h"
#include "softroce/engine/completion.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/qp_state.h"
#include "softroce/engine/service.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct sr_service *const services[] = { &sr_service_rc, &sr_service_uc,
						     &sr_service_ud };

/* By queue pair type; NULL when the service is not offered. */
static const struct sr_service *sr_service_by_type(enum ibv_qp_type type)
{
	for (unsigned i = 0; i < sizeof(services) / sizeof(services[0]); i++)
		if (services[i]->type == type)
			return services[i];
	return NULL;
}

static bool limits_are_sound(const struct ibv_qp_cap *cap)
{
	return cap->max_send_wr <= SR_MAX_WR && cap->max_send_sge <= SR_MAX_SGE &&
	       cap->max_inline_data <= SR_MAX_INLINE;
}

/* Where it receives into: an SRQ of the same NIC, or a queue of its own. */
static bool receive_is_sound(const struct sr_nic *nic, const struct sr_qp_init *init)
{
	if (init->srq)
		return init->srq->pd->nic == nic;
	return init->cap.max_recv_wr <= SR_MAX_WR && init->cap.max_recv_sge <= SR_MAX_SGE;
}

static int check_init(const struct sr_pd *pd, const struct sr_qp_init *init)
{
	if (pd->nic->dead)
		return -EIO;
	if (!sr_service_by_type(init->type))
		return -EOPNOTSUPP;
	if (init->gsi && init->type != IBV_QPT_UD)
		return -EINVAL;
	if (init->gsi && pd->nic->gsi)
		return -EBUSY;
	if (!init->send_cq || !init->recv_cq || init->send_cq->nic != pd->nic ||
	    init->recv_cq->nic != pd->nic)
		return -EINVAL;
	if (!limits_are_sound(&init->cap) || !receive_is_sound(pd->nic, init))
		return -EINVAL;
	return 0;
}

static int init_sq(struct sr_sq *sq, struct ibv_qp_cap *cap, enum ibv_qp_type type)
{
	size_t payload = cap->max_send_sge * sizeof(struct ibv_sge);
	uint32_t size = 1;

	if (payload < cap->max_inline_data)
		payload = cap->max_inline_data;
	else if (payload <= SR_MAX_INLINE)
		/* a slot has the room, and there are programs that count on it */
		cap->max_inline_data = (uint32_t)payload;
	if (type == IBV_QPT_UD)
		payload = ((payload + 7) & ~(size_t)7) + sizeof(struct sr_ud_dest);
	while (size < cap->max_send_wr)
		size *= 2;
	sq->stride = (uint32_t)((sizeof(struct sr_swqe) + payload + 15) & ~(size_t)15);
	sq->mask = size - 1;
	sq->ring = malloc((size_t)size * sq->stride);
	return sq->ring ? 0 : -ENOMEM;
}

static int init_queues(struct sr_qp *qp)
{
	int err = init_sq(&qp->sq, &qp->cap, qp->type);

	if (err)
		return err;
	if (!qp->srq)
		return sr_rq_init(&qp->rq, qp->cap.max_recv_wr, qp->cap.max_recv_sge);
	qp->taken = malloc(sizeof(*qp->taken) + qp->srq->rq.max_sge * sizeof(struct ibv_sge));
	return qp->taken ? 0 : -ENOMEM;
}

static void free_qp(struct sr_qp *qp)
{
	free(qp->taken);
	sr_rq_fini(&qp->rq);
	free(qp->sq.ring);
	free(qp);
}

/*
 * How many packets may be on the way; a long read is cut into requests of half of that, so that two
 * overlap.
 */
static void init_window(struct sr_qp *qp)
{
	qp->max_inflight = qp->nic->config.max_inflight;
	qp->read_packets = qp->max_inflight > 1 ? qp->max_inflight / 2 : 1;
	while ((qp->ack_mask + 1) * 4 * 2 <= qp->max_inflight)
		qp->ack_mask = qp->ack_mask * 2 + 1;
}

static int number_give(struct sr_qp *qp, bool gsi)
{
	if (!gsi)
		return sr_table_add(&qp->nic->qps, qp, &qp->nic->rng, &qp->qpn);
	qp->qpn = SR_QPN_GSI;
	qp->nic->gsi = qp;
	return 0;
}

/* What it is and what it uses; *init loses what a shared receive queue makes needless. */
static void init_fields(struct sr_qp *qp, struct sr_pd *pd, struct sr_qp_init *init)
{
	qp->nic = pd->nic;
	qp->pd = pd;
	qp->pd_recv = init->srq ? init->srq->pd : pd;
	qp->service = sr_service_by_type(init->type);
	qp->type = init->type;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->user = init->user;
	qp->sig_all = init->sq_sig_all;
	if (init->srq)
		init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
	qp->cap = init->cap;
	qp->timer.due = SR_NEVER;
	init_window(qp);
}

/* It is on the NIC's list now, and what it uses cannot be destroyed before it. */
static void hold_references(struct sr_qp *qp)
{
	TAILQ_INSERT_TAIL(&qp->nic->all_qps, qp, all_link);
	qp->pd->refs++;
	qp->send_cq->refs++;
	qp->recv_cq->refs++;
	if (qp->srq)
		qp->srq->refs++;
}

struct sr_qp *sr_qp_create(struct sr_pd *pd, struct sr_qp_init *init, int *err)
{
	struct sr_timers *timers = &pd->nic->timers;
	struct sr_qp *qp;

	*err = check_init(pd, init);
	if (*err)
		return NULL;
	*err = -ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	init_fields(qp, pd, init);
	*err = init_queues(qp);
	if (*err)
		goto free_qp;
	init->cap = qp->cap;
	*err = sr_timers_reserve(timers);
	if (*err)
		goto free_qp;
	*err = number_give(qp, init->gsi);
	if (*err)
		goto release_timer;
	hold_references(qp);
	qp->service->reset(qp);
	return qp;
release_timer:
	sr_timers_release(timers, &qp->timer);
free_qp:
	free_qp(qp);
	return NULL;
}

int sr_qp_destroy(struct sr_qp *qp)
{
	sr_nic_end_wait(qp->nic);
	sr_qp_reset(qp);
	sr_timers_release(&qp->nic->timers, &qp->timer);
	if (qp == qp->nic->gsi)
		qp->nic->gsi = NULL;
	else
		sr_table_remove(&qp->nic->qps, qp->qpn);
	if (qp->active)
		TAILQ_REMOVE(&qp->nic->active, qp, active_link);
	sr_qp_owe_nothing(qp);
	TAILQ_REMOVE(&qp->nic->all_qps, qp, all_link);
	if (qp->srq)
		qp->srq->refs--;
	qp->recv_cq->refs--;
	qp->send_cq->refs--;
	qp->pd->refs--;
	free_qp(qp);
	return 0;
}

uint32_t sr_qp_num(const struct sr_qp *qp)
{
	return qp->qpn;
}

uint32_t sr_qp_inflight(const struct sr_qp *qp)
{
	return sr_psn_add(qp->req.next_psn, -qp->req.una_psn);
}

enum ibv_qp_state sr_qp_state(const struct sr_qp *qp)
{
	return qp->state;
}

void sr_qp_query(const struct sr_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->cap = qp->cap;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->sq_draining = qp->state == IBV_QPS_SQD && !qp->req.drained_reported;
	attr->rq_psn = qp->resp.epsn;
	attr->sq_psn = qp->req.next_psn;
	*init = (struct ibv_qp_init_attr) {
		.qp_context = qp->user,
		.cap = qp->cap,
		.qp_type = qp->type,
		.sq_sig_all = qp->sig_all,
	};
}

/* Copies the buffers, or with IBV_SEND_INLINE the bytes themselves, into the ring. */
static int copy_payload(const struct sr_qp *qp, const struct ibv_send_wr *wr, struct sr_swqe *wqe)
{
	uint64_t length = 0;
	char *to = (char *)wqe->sge;

	if (wr->num_sge < 0)
		return -EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (length > qp->cap.max_inline_data)
			return -EINVAL;
		for (int i = 0; i < wr->num_sge; i++) {
			if (wr->sg_list[i].length)
				memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr,
				       wr->sg_list[i].length);
			to += wr->sg_list[i].length;
		}
	} else {
		if ((uint32_t)wr->num_sge > qp->cap.max_send_sge || length > SR_MAX_MESSAGE)
			return -EINVAL;
		for (int i = 0; i < wr->num_sge; i++)
			wqe->sge[i] = wr->sg_list[i];
	}
	wqe->num_sge = (uint8_t)wr->num_sge;
	wqe->length = (uint32_t)length;
	return 0;
}

static int post_one(struct sr_qp *qp, const struct ibv_send_wr *wr)
{
	struct sr_sq *sq = &qp->sq;
	struct sr_swqe *wqe = sr_sq_at(sq, sq->head);
	int err;

	if (sq->head - sq->retired >= qp->cap.max_send_wr)
		return -ENOMEM;
	err = copy_payload(qp, wr, wqe);
	if (err)
		return err;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)wr->send_flags;
	wqe->status = IBV_WC_SUCCESS;
	if (qp->sig_all)
		wqe->flags |= IBV_SEND_SIGNALED;
	err = qp->service->post(qp, wr, wqe);
	if (!err)
		sq->head++;
	return err;
}

int sr_qp_post_send(struct sr_qp *qp, uint64_t now, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad)
{
	int err = 0;

	if (qp->nic->dead)
		err = -EIO;
	else if (qp->state < IBV_QPS_RTS)
		err = -EINVAL;
	qp->nic->now = now;
	while (wr && !err) {
		err = post_one(qp, wr);
		if (!err)
			wr = wr->next;
	}
	if (err)
		*bad = wr;
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
		sr_flush_sends(qp);
	else if (qp->sq.cur != qp->sq.head)
		sr_qp_activate(qp);
	sr_nic_settle(qp->nic);
	return err;
}

int sr_qp_post_recv(struct sr_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	if (qp->nic->dead)
		err = -EIO;
	else if (qp->state == IBV_QPS_RESET || qp->srq)
		err = -EINVAL;
	while (wr && !err) {
		err = sr_rq_push(&qp->rq, wr);
		if (!err)
			wr = wr->next;
	}
	if (err)
		*bad = wr;
	if (qp->state == IBV_QPS_ERR && !qp->nic->dead)
		sr_flush_receives(qp);
	sr_nic_settle(qp->nic);
	return err;
}
