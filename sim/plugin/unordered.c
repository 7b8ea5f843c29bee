/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/unordered.h"

#include "sim/kit/reorder.h"
#include "sim/plugin/verbs_object.h"

#include <errno.h>
#include <stdlib.h>

#define HELD_NS 3000 /* of the wire, between two looks at what is held */

static uint64_t now_of(const struct sim_verbs *v)
{
	return sr_memwire_now(v->wire);
}

static int post_held(void *arg, struct ibv_send_wr *wr)
{
	struct sim_qp *qp = arg;
	struct ibv_send_wr *bad;

	return sr_qp_post_send(qp->o.engine, now_of(qp->o.dev->host), wr, &bad);
}

int sim_unordered_begin(struct sim_qp *qp)
{
	qp->reorder = calloc(1, sizeof(*qp->reorder));
	if (!qp->reorder)
		return -ENOMEM;
	sim_reorder_init(qp->reorder, qp->o.dev->host->seed ^ (uint64_t)qp->ibv.qp_num << 20,
			 post_held, qp);
	return 0;
}

void sim_unordered_forget(struct sim_qp *qp)
{
	if (qp->reorder)
		sim_reorder_forget(qp->reorder);
}

void sim_unordered_end(struct sim_qp *qp)
{
	sim_unordered_forget(qp);
	free(qp->reorder);
	qp->reorder = NULL;
}

/* The queue pair, if this is one and unordered; else NULL. */
static struct sim_qp *as_unordered(struct sim_object *o)
{
	struct sim_qp *qp = (struct sim_qp *)((char *)o - offsetof(struct sim_qp, o));

	return o->kind == SIM_QP && qp->reorder ? qp : NULL;
}

static void ask_for_turn(struct sim_verbs *v);

static void take_turn(void *arg)
{
	struct sim_verbs *v = arg;
	struct sim_object *o;
	bool more = false;

	v->turn_asked = false;
	LIST_FOREACH(o, &v->objects, entry) {
		struct sim_qp *qp = as_unordered(o);

		if (!qp || !o->engine || o->dev->dead)
			continue;
		sim_reorder_turn(qp->reorder);
		more |= qp->reorder->held != 0;
	}
	if (more)
		ask_for_turn(v);
}

static void ask_for_turn(struct sim_verbs *v)
{
	if (!v->turn_asked && !v->gone)
		v->turn_asked = !sr_memwire_at(v->wire, now_of(v) + HELD_NS, take_turn, v);
}

int sim_unordered_post(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = sim_reorder_post(qp->reorder, wr, bad);

	if (qp->reorder->held)
		ask_for_turn(qp->o.dev->host);
	return err;
}

static bool take_one(struct sim_cq *cq, struct ibv_wc *wc)
{
	struct sim_object *o;

	LIST_FOREACH(o, &cq->o.dev->host->objects, entry) {
		struct sim_qp *qp = as_unordered(o);

		if (qp && qp->ibv.send_cq == &cq->ibv && sim_reorder_take(qp->reorder, wc))
			return true;
	}
	return false;
}

bool sim_unordered_poll(struct sim_cq *cq, struct ibv_wc *wc)
{
	while (!cq->unordered || !take_one(cq, wc)) {
		if (sr_cq_poll(cq->o.engine, 1, wc) <= 0)
			return false;
		if (!cq->unordered || !wc->wr_id)
			return true; /* a receive: the plugin's have no number */
		sim_reorder_done(wc);
	}
	return true;
}
