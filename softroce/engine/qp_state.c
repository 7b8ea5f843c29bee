/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_state.c - transitions of a queue pair; see qp_state.h */
#include "softroce/engine/qp_state.h"
#include "softroce/engine/completion.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/qp.h"
#include "softroce/engine/service.h"
#include <errno.h>
#include <string.h>

/*
 * IBTA vol. 1, table 91 (11.2.5.3): which attributes a transition must and may carry, by service.
 * The state itself is always allowed.
 */
struct transition {
	bool valid;
	int required, optional;
};

#define PATHS (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define PEER (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RETRIES (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define RUNNING (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | PATHS)

typedef struct transition table[IBV_QPS_UNKNOWN][IBV_QPS_UNKNOWN];

#define BACK [IBV_QPS_RESET] = { true }, [IBV_QPS_ERR] = { true }

static const table rc_table = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_INIT] = { true, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	},
	[IBV_QPS_INIT] = {
		BACK,
		[IBV_QPS_INIT] = { true, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
		[IBV_QPS_RTR] = { true, PEER | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
				  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	},
	[IBV_QPS_RTR] = {
		BACK,
		[IBV_QPS_RTS] = { true, RETRIES | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
				  RUNNING },
	},
	[IBV_QPS_RTS] = {
		BACK,
		[IBV_QPS_RTS] = { true, 0, RUNNING },
		[IBV_QPS_SQD] = { true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	},
	[IBV_QPS_SQD] = {
		BACK,
		[IBV_QPS_RTS] = { true, 0, RUNNING },
		[IBV_QPS_SQD] = { true, 0,
				  IBV_QP_PORT | IBV_QP_AV | RETRIES | IBV_QP_MAX_QP_RD_ATOMIC |
					  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
					  IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | PATHS },
	},
	[IBV_QPS_SQE] = {
		/*
		 * A reliable connection never gets here: a failed send is an error of the whole
		 * queue pair.
		 */
		BACK,
	},
	[IBV_QPS_ERR] = {
		BACK,
	},
};

#define ACCESS IBV_QP_ACCESS_FLAGS

static const table uc_table = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_INIT] = { true, IBV_QP_PKEY_INDEX | IBV_QP_PORT | ACCESS },
	},
	[IBV_QPS_INIT] = {
		BACK,
		[IBV_QPS_INIT] = { true, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | ACCESS },
		[IBV_QPS_RTR] = { true, PEER, IBV_QP_ALT_PATH | ACCESS | IBV_QP_PKEY_INDEX },
	},
	[IBV_QPS_RTR] = {
		BACK,
		[IBV_QPS_RTS] = { true, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | ACCESS | PATHS },
	},
	[IBV_QPS_RTS] = {
		BACK,
		[IBV_QPS_RTS] = { true, 0, IBV_QP_CUR_STATE | ACCESS | PATHS },
		[IBV_QPS_SQD] = { true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	},
	[IBV_QPS_SQD] = {
		BACK,
		[IBV_QPS_RTS] = { true, 0, IBV_QP_CUR_STATE | ACCESS | PATHS },
		[IBV_QPS_SQD] = { true, 0, IBV_QP_AV | ACCESS | IBV_QP_PKEY_INDEX | PATHS },
	},
	[IBV_QPS_SQE] = { BACK, [IBV_QPS_RTS] = { true, 0, IBV_QP_CUR_STATE | ACCESS } },
	[IBV_QPS_ERR] = { BACK },
};

static const table ud_table = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_INIT] = { true, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	},
	[IBV_QPS_INIT] = {
		BACK,
		[IBV_QPS_INIT] = { true, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
		[IBV_QPS_RTR] = { true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	},
	[IBV_QPS_RTR] = {
		BACK,
		[IBV_QPS_RTS] = { true, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	},
	[IBV_QPS_RTS] = {
		BACK,
		[IBV_QPS_RTS] = { true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPS_SQD] = { true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	},
	[IBV_QPS_SQD] = {
		BACK,
		[IBV_QPS_RTS] = { true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[IBV_QPS_SQD] = { true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	},
	[IBV_QPS_SQE] = { BACK, [IBV_QPS_RTS] = { true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	[IBV_QPS_ERR] = { BACK },
};

/* Whether a queue pair of this type may go from one state to the other with this attribute mask
 * (IBTA vol. 1, 11.2.5.3). */
static bool sr_qp_transition_ok(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask)
{
	const struct transition *t;
	const table *of = type == IBV_QPT_UC ? &uc_table : &ud_table;

	if (type == IBV_QPT_RC)
		of = &rc_table;
	if ((unsigned)from >= IBV_QPS_UNKNOWN || (unsigned)to >= IBV_QPS_UNKNOWN)
		return false;
	t = &(*of)[from][to];
	if (!t->valid || (mask & t->required) != t->required)
		return false;
	return !(mask & ~(t->required | t->optional | IBV_QP_STATE));
}

void sr_qp_enter_error(struct sr_qp *qp)
{
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
		return;
	qp->state = IBV_QPS_ERR;
	sr_timer_stop(&qp->timer);
	qp->resp.incoming = SR_IN_NONE;
	sr_flush_sends(qp);
	sr_flush_receives(qp);
	if (qp->srq)
		sr_nic_async(qp->nic, IBV_EVENT_QP_LAST_WQE_REACHED, qp->user);
}

/*
 * IBTA vol. 1, 11.6.3.1: an overrun is an error of the completion queue, and every queue pair that
 * reports to it is of no use any more. This is done when the call that caused it is through, so
 * that no work queue changes under its walker.
 */
void sr_nic_stop_overrun(struct sr_nic *nic)
{
	struct sr_cq *cq;
	struct sr_qp *qp;

	while (nic->cq_overrun) {
		nic->cq_overrun = false;
		TAILQ_FOREACH(cq, &nic->cqs, link) {
			if (!cq->overrun || cq->overrun_reported)
				continue;
			cq->overrun_reported = true;
			sr_nic_async(nic, IBV_EVENT_CQ_ERR, cq->user);
		}
		TAILQ_FOREACH(qp, &nic->all_qps, all_link) {
			if (!qp->send_cq->overrun && !qp->recv_cq->overrun)
				continue;
			if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR)
				continue;
			sr_nic_async(nic, IBV_EVENT_QP_FATAL, qp->user);
			sr_qp_enter_error(qp);
		}
	}
}

void sr_qp_reset(struct sr_qp *qp)
{
	bool lost = qp->srq && qp->resp.rwqe;

	qp->state = IBV_QPS_RESET;
	sr_timer_stop(&qp->timer);
	sr_cq_forget(qp->send_cq, qp->qpn);
	if (qp->recv_cq != qp->send_cq)
		sr_cq_forget(qp->recv_cq, qp->qpn);
	if (lost)
		qp->srq->rq.retired++; /* taken and never to be reported */
	qp->sq.head = qp->sq.cur = qp->sq.tail = qp->sq.retired = qp->sq.unreported = 0;
	qp->rq.head = qp->rq.tail = qp->rq.retired = 0;
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->service->reset(qp);
}

/* An address a RoCE packet can be sent to, from a GID that we have. */
static int check_address(const struct sr_nic *nic, const struct ibv_ah_attr *ah)
{
	static const union ibv_gid none;

	if (!ah->is_global || ah->port_num != 1 || ah->grh.sgid_index >= SR_GIDS)
		return -EINVAL;
	if (!memcmp(&ah->grh.dgid, &none, sizeof(none)) ||
	    !memcmp(&nic->config.gid[ah->grh.sgid_index], &none, sizeof(none)))
		return -EINVAL;
	return 0;
}

static int check_values(const struct sr_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const struct {
		int bit;
		bool bad;
	} checks[] = {
		{ IBV_QP_CUR_STATE, a->cur_qp_state != qp->state },
		{ IBV_QP_PKEY_INDEX, a->pkey_index != 0 },
		{ IBV_QP_PORT, a->port_num != 1 },
		{ IBV_QP_ACCESS_FLAGS, (a->qp_access_flags & ~(unsigned)known) != 0 },
		{ IBV_QP_PATH_MTU,
		  a->path_mtu < IBV_MTU_256 || a->path_mtu > qp->nic->config.active_mtu },
		{ IBV_QP_DEST_QPN, a->dest_qp_num > 0xffffff },
		{ IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic > SR_MAX_RD_ATOMIC },
		{ IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic > SR_MAX_RD_ATOMIC },
		{ IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer > 31 },
		{ IBV_QP_TIMEOUT, a->timeout > 31 },
		{ IBV_QP_RETRY_CNT, a->retry_cnt > 7 },
		{ IBV_QP_RNR_RETRY, a->rnr_retry > 7 },
		{ IBV_QP_PATH_MIG_STATE, a->path_mig_state != IBV_MIG_MIGRATED },
		{ IBV_QP_ALT_PATH, true }, /* no automatic path migration here */
		{ IBV_QP_AV, (mask & IBV_QP_AV) && check_address(qp->nic, &a->ah_attr) },
	};

	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if ((mask & checks[i].bit) && checks[i].bad)
			return -EINVAL;
	return 0;
}

/*
 * UDP source port, which spreads connections over paths: from the flow label when the program chose
 * one, otherwise from the two queue pair numbers; folded into 0xc000-0xffff (IBTA annex A17.9.2
 * asks for that range).
 */
static uint16_t source_port(uint32_t label, uint32_t qpn, uint32_t dest_qpn)
{
	label &= 0xfffff;
	if (!label) {
		uint64_t v = (uint64_t)qpn * dest_qpn;

		v ^= v >> 20;
		v ^= v >> 40;
		label = (uint32_t)v & 0xfffff;
	}
	return (uint16_t)(((label & 0x3fff) ^ (label >> 14)) | 0xc000);
}

static void fill_path(const struct sr_nic *nic, const struct ibv_global_route *grh,
		      struct sr_path *path)
{
	memcpy(path->src, &nic->config.gid[grh->sgid_index], 16);
	memcpy(path->dst, &grh->dgid, 16);
	path->tclass = grh->traffic_class;
	path->ttl = grh->hop_limit ? grh->hop_limit : 64;
}

static void apply_path(struct sr_qp *qp)
{
	const struct ibv_global_route *grh = &qp->attr.ah_attr.grh;

	fill_path(qp->nic, grh, &qp->path);
	qp->path.sport = source_port(grh->flow_label, qp->qpn, qp->attr.dest_qp_num);
}

int sr_ah_resolve(const struct sr_nic *nic, const struct ibv_ah_attr *attr, struct sr_path *path)
{
	if (nic->dead)
		return -EIO;
	if (check_address(nic, attr))
		return -EINVAL;
	fill_path(nic, &attr->grh, path);
	path->sport = source_port(attr->grh.flow_label, 1, 1);
	return 0;
}

static void apply_attr(struct sr_qp *qp, const struct ibv_qp_attr *from, int mask)
{
	struct ibv_qp_attr *a = &qp->attr;

#define TAKE(bit, field)                        \
	do {                                    \
		if (mask & (bit))               \
			a->field = from->field; \
	} while (0)
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
#undef TAKE
	if (mask & IBV_QP_RQ_PSN)
		qp->resp.epsn = a->rq_psn = from->rq_psn & SR_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN) {
		struct sr_requester *req = &qp->req;

		a->sq_psn = from->sq_psn & SR_PSN_MASK;
		req->post_psn = req->next_psn = req->una_psn = req->max_psn = a->sq_psn;
	}
	if (mask & IBV_QP_PATH_MTU) {
		qp->mtu_shift = (uint8_t)(7 + a->path_mtu);
		qp->mtu = 1u << qp->mtu_shift;
	}
	if (mask & (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)) {
		qp->req.retry_left = a->retry_cnt;
		qp->req.rnr_left = a->rnr_retry;
	}
	if (mask & (IBV_QP_AV | IBV_QP_DEST_QPN))
		apply_path(qp);
}

static void enter_state(struct sr_qp *qp, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RESET:
		sr_qp_reset(qp);
		return;
	case IBV_QPS_ERR:
		sr_qp_enter_error(qp);
		/*
		 * The program wants this incarnation to end: nothing more goes out of it, not even
		 * answers.
		 */
		qp->service->silence(qp);
		return;
	case IBV_QPS_SQD:
		if (qp->state == IBV_QPS_SQD)
			break;
		qp->req.drained_reported = false;
		qp->service->drain(qp);
		break;
	default:
		break;
	}
	qp->state = to;
	/* Resumed, or to be looked at for "drained" although nothing is on its way. */
	if (to == IBV_QPS_RTS || to == IBV_QPS_SQD)
		sr_qp_activate(qp);
}

int sr_qp_modify(struct sr_qp *qp, uint64_t now, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;

	if (qp->nic->dead)
		return -EIO;
	qp->nic->now = now;
	if (!sr_qp_transition_ok(qp->type, qp->state, to, mask) || check_values(qp, attr, mask))
		return -EINVAL;
	sr_nic_end_wait(qp->nic);
	apply_attr(qp, attr, mask);
	enter_state(qp, to);
	sr_nic_settle(qp->nic);
	return 0;
}
