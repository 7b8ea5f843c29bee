/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window.c - memory windows; binding is a work request (engine/requester.c), here is what surrounds
 * it
 */
#include "softroce/verbs/objects.h"

#include <stdlib.h>

struct ibv_mw *sr_mw_alloc_verb(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct sr_context *context = sr_context_of(pd->context);
	struct sr_vmw *mw = calloc(1, sizeof(*mw));
	int err = EIO;

	if (!mw)
		return sr_fail(ENOMEM);
	if (sr_context_enter(context)) {
		mw->engine = sr_mw_create(((struct sr_vpd *)pd)->engine, type, &err);
		if (mw->engine)
			mw->mw.rkey = sr_mr_rkey(mw->engine);
		sr_context_leave(context);
	}
	if (!mw->engine) {
		free(mw);
		return sr_fail(err);
	}
	mw->mw.context = pd->context;
	mw->mw.pd = pd;
	mw->mw.type = type;
	return &mw->mw;
}

int sr_mw_dealloc_verb(struct ibv_mw *ibv)
{
	struct sr_vmw *mw = (struct sr_vmw *)ibv;
	struct sr_context *context = sr_context_of(ibv->context);
	int err = 0;

	if (sr_context_enter(context)) {
		err = sr_mw_destroy(mw->engine);
		sr_context_leave(context);
	}
	if (!err)
		free(mw);
	return -err;
}

/* ibv_bind_mw(), for windows of type 1: the library chooses the new key. */
int sr_mw_bind_verb(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	}, *bad;
	int err;

	if (mw->pd != qp->pd)
		return EPERM;
	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;
	err = sr_qp_post_send_verb(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
