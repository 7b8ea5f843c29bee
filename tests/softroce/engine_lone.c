/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_lone.c - see engine_lone.h */
#include "tests/softroce/engine_lone.h"
#include <string.h>

static void modify_qp(struct pair *p, int e, enum ibv_qp_state to, int mask,
		      struct ibv_qp_attr attr)
{
	attr.qp_state = to;
	CHECK_INT(sr_qp_modify(p->end[e].qp, sr_memwire_now(p->mw), &attr, mask | IBV_QP_STATE), 0);
}

static void replace_qp(struct pair *p, int e, enum ibv_qp_type type)
{
	struct end *end = &p->end[e];
	struct sr_qp_init init = {
		.type = type,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.srq = end->srq,
		.cap = { p->opt.max_wr, p->opt.max_wr, 4, 4, 256 },
		.user = end,
	};
	int err;

	CHECK_INT(sr_qp_destroy(end->qp), 0);
	end->qp = sr_qp_create(end->pd, &init, &err);
	CHECK_INT(err, 0);
}

void lone_open(struct pair *p, const struct options *opt, enum ibv_qp_type type)
{
	bool ud = type == IBV_QPT_UD;

	pair_open(p, opt);
	for (int e = 0; e < 2; e++)
		replace_qp(p, e, type);
	for (int e = 0; e < 2; e++) {
		struct ibv_qp_attr attr;

		pair_attr(p, e, IBV_QPS_RTR, &attr);
		attr.port_num = 1;
		attr.qkey = LONE_QKEY;
		attr.qp_access_flags = (unsigned)opt->qp_access;
		attr.sq_psn = opt->psn[e];
		modify_qp(p, e, IBV_QPS_INIT,
			  IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
			  attr);
		modify_qp(p, e, IBV_QPS_RTR,
			  ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
			  attr);
		modify_qp(p, e, IBV_QPS_RTS, IBV_QP_SQ_PSN, attr);
	}
}

struct sr_ah lone_ah(const struct pair *p, int from)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .dgid = p->end[!from].gid } };
	struct sr_ah ah = { 0 };

	CHECK_INT(sr_ah_resolve(p->end[from].nic, &attr, &ah.path), 0);
	return ah;
}
