/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/unordered.h"

#include "base/rng.h"
#include "sim/plugin/verbs_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELD_NS 3000   /* of the wire, until the next look at what is held */
#define AT_ONCE_MAX 16 /* held of one queue pair; with more, some leave at once */

/* One work request, from its post to its completion. */
struct sim_held {
	STAILQ_ENTRY(sim_held) entry; /* in sim_unordered.posted */
	struct sim_qp *qp;
	struct ibv_send_wr wr; /* with the caller's wr_id */
	struct ibv_sge sge;
	bool left, over; /* the engine has it; has completed it */
	struct ibv_wc wc;
	char data[]; /* of one that is posted inline: the caller's may change at once */
};

struct sim_unordered {
	STAILQ_HEAD(, sim_held) posted; /* the oldest first */
	unsigned held;                  /* of them, those that have not left */
	struct sr_rng dice;
};

static uint64_t now_of(const struct sim_verbs *v)
{
	return sr_memwire_now(v->wire);
}

int sim_unordered_begin(struct sim_qp *qp)
{
	struct sim_unordered *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	STAILQ_INIT(&u->posted);
	u->dice.state = qp->o.dev->host->seed ^ (uint64_t)qp->ibv.qp_num << 20;
	qp->unordered = u;
	return 0;
}

void sim_unordered_forget(struct sim_qp *qp)
{
	struct sim_unordered *u = qp->unordered;
	struct sim_held *h;

	while (u && (h = STAILQ_FIRST(&u->posted)) != NULL) {
		STAILQ_REMOVE_HEAD(&u->posted, entry);
		qp->o.dev->host->held -= !h->left;
		free(h);
	}
	if (u)
		u->held = 0;
}

void sim_unordered_end(struct sim_qp *qp)
{
	sim_unordered_forget(qp);
	free(qp->unordered);
	qp->unordered = NULL;
}

static bool is_inline(const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_INLINE && wr->num_sge;
}

static int hold(struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	size_t copied = is_inline(wr) ? wr->sg_list[0].length : 0;
	struct sim_held *h = calloc(1, sizeof(*h) + copied);

	if (!h)
		return ENOMEM;
	h->qp = qp;
	h->wr = *wr;
	h->wr.next = NULL;
	h->wr.sg_list = &h->sge;
	if (wr->num_sge)
		h->sge = wr->sg_list[0];
	if (copied) {
		memcpy(h->data, (const void *)(uintptr_t)h->sge.addr, copied);
		h->sge.addr = (uintptr_t)h->data;
	}
	STAILQ_INSERT_TAIL(&qp->unordered->posted, h, entry);
	qp->unordered->held++;
	qp->o.dev->host->held++;
	return 0;
}

/* One that the engine does not take is over as if the queue pair had failed. */
static void leave(struct sim_held *h)
{
	struct ibv_send_wr wr = h->wr, *bad;

	wr.wr_id = (uintptr_t)h;
	wr.send_flags |= IBV_SEND_SIGNALED;
	h->left = true;
	h->qp->unordered->held--;
	h->qp->o.dev->host->held--;
	if (!sr_qp_post_send(h->qp->o.engine, now_of(h->qp->o.dev->host), &wr, &bad))
		return;
	h->over = true;
	h->wc = (struct ibv_wc) { .status = IBV_WC_WR_FLUSH_ERR, .qp_num = h->qp->ibv.qp_num };
}

static void let_one_leave(struct sim_qp *qp)
{
	uint64_t skip = sr_rng_below(&qp->unordered->dice, qp->unordered->held);
	struct sim_held *h;

	STAILQ_FOREACH(h, &qp->unordered->posted, entry)
		if (!h->left && skip-- == 0)
			break;
	if (h)
		leave(h);
}

/* Some of what each queue pair holds; what is left is looked at again. */
static void let_some_leave(void *arg)
{
	struct sim_verbs *v = arg;
	struct sim_object *o;

	v->release_asked = false;
	LIST_FOREACH(o, &v->objects, entry) {
		struct sim_qp *qp = (struct sim_qp *)((char *)o - offsetof(struct sim_qp, o));

		if (o->kind != SIM_QP || !o->engine || !qp->unordered || o->dev->dead)
			continue;
		while (qp->unordered->held && sr_rng_below(&qp->unordered->dice, 3))
			let_one_leave(qp);
	}
	sim_unordered_ask(v);
}

void sim_unordered_ask(struct sim_verbs *v)
{
	if (v->release_asked || !v->held || v->gone)
		return;
	v->release_asked = !sr_memwire_at(v->wire, now_of(v) + HELD_NS, let_some_leave, v);
}

int sim_unordered_post(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sim_unordered *u = qp->unordered;

	for (; wr; wr = wr->next) {
		int err = hold(qp, wr);

		if (err) {
			*bad = wr;
			return err;
		}
		while (u->held > AT_ONCE_MAX || (u->held && sr_rng_below(&u->dice, 2)))
			let_one_leave(qp);
	}
	sim_unordered_ask(qp->o.dev->host);
	return 0;
}

/* The oldest of a queue pair, if it is over and anybody wants to know. */
static bool take_oldest(struct sim_qp *qp, struct ibv_wc *wc)
{
	struct sim_held *h;

	while ((h = STAILQ_FIRST(&qp->unordered->posted)) != NULL && h->over) {
		bool wanted =
			h->wr.send_flags & IBV_SEND_SIGNALED || h->wc.status != IBV_WC_SUCCESS;

		*wc = h->wc;
		wc->wr_id = h->wr.wr_id;
		STAILQ_REMOVE_HEAD(&qp->unordered->posted, entry);
		free(h);
		if (wanted)
			return true;
	}
	return false;
}

static bool take_over(struct sim_cq *cq, struct ibv_wc *wc)
{
	struct sim_object *o;

	LIST_FOREACH(o, &cq->o.dev->host->objects, entry) {
		struct sim_qp *qp = (struct sim_qp *)((char *)o - offsetof(struct sim_qp, o));

		if (o->kind == SIM_QP && qp->unordered && qp->ibv.send_cq == &cq->ibv &&
		    take_oldest(qp, wc))
			return true;
	}
	return false;
}

bool sim_unordered_poll(struct sim_cq *cq, struct ibv_wc *wc)
{
	while (!cq->unordered || !take_over(cq, wc)) {
		struct sim_held *h;

		if (sr_cq_poll(cq->o.engine, 1, wc) <= 0)
			return false;
		if (!cq->unordered || !wc->wr_id)
			return true; /* a receive: the plugin's have no number */
		h = (struct sim_held *)(uintptr_t)wc->wr_id;
		h->over = true;
		h->wc = *wc;
	}
	return true;
}
