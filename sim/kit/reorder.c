/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/kit/reorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MAX 16 /* with more, some leave at once */

/* One work request, from its post to its completion. */
struct sim_held {
	STAILQ_ENTRY(sim_held) entry; /* in sim_reorder.posted */
	struct ibv_send_wr wr;        /* with the caller's wr_id */
	struct ibv_sge sge;
	bool left, over; /* the queue pair has it; has completed it */
	struct ibv_wc wc;
	char data[]; /* of one that is posted inline: the caller's may change at once */
};

void sim_reorder_init(struct sim_reorder *r, uint64_t seed,
		      int (*leave)(void *qp, struct ibv_send_wr *wr), void *qp)
{
	*r = (struct sim_reorder) { .dice.state = seed, .leave = leave, .qp = qp };
	STAILQ_INIT(&r->posted);
}

void sim_reorder_forget(struct sim_reorder *r)
{
	struct sim_held *h;

	while ((h = STAILQ_FIRST(&r->posted)) != NULL) {
		STAILQ_REMOVE_HEAD(&r->posted, entry);
		free(h);
	}
	r->held = 0;
}

static int hold_back(struct sim_reorder *r, const struct ibv_send_wr *wr)
{
	bool copied = wr->send_flags & IBV_SEND_INLINE && wr->num_sge;
	size_t size = copied ? wr->sg_list[0].length : 0;
	struct sim_held *h = calloc(1, sizeof(*h) + size);

	if (!h)
		return ENOMEM;
	h->wr = *wr;
	h->wr.next = NULL;
	h->wr.sg_list = &h->sge;
	if (wr->num_sge)
		h->sge = wr->sg_list[0];
	if (copied) {
		memcpy(h->data, (const void *)(uintptr_t)h->sge.addr, size);
		h->sge.addr = (uintptr_t)h->data;
	}
	STAILQ_INSERT_TAIL(&r->posted, h, entry);
	r->held++;
	return 0;
}

/* What the queue pair does not take is over as if it had failed. */
static void let_leave(struct sim_reorder *r, struct sim_held *h)
{
	struct ibv_send_wr wr = h->wr;

	wr.wr_id = (uintptr_t)h;
	wr.send_flags |= IBV_SEND_SIGNALED;
	h->left = true;
	r->held--;
	if (!r->leave(r->qp, &wr))
		return;
	h->over = true;
	h->wc = (struct ibv_wc) { .status = IBV_WC_WR_FLUSH_ERR };
}

static void let_any_leave(struct sim_reorder *r)
{
	uint64_t skip = sr_rng_below(&r->dice, r->held);
	struct sim_held *h;

	r->left++;
	r->overtook += skip > 0;
	STAILQ_FOREACH(h, &r->posted, entry)
		if (!h->left && skip-- == 0)
			break;
	if (h)
		let_leave(r, h);
}

void sim_reorder_turn(struct sim_reorder *r)
{
	while (r->held && sr_rng_below(&r->dice, 3))
		let_any_leave(r);
}

int sim_reorder_post(struct sim_reorder *r, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		int err = hold_back(r, wr);

		if (err) {
			*bad = wr;
			return err;
		}
		while (r->held > HELD_MAX || (r->held && sr_rng_below(&r->dice, 2)))
			let_any_leave(r);
	}
	return 0;
}

void sim_reorder_done(const struct ibv_wc *wc)
{
	struct sim_held *h = (struct sim_held *)(uintptr_t)wc->wr_id;

	h->over = true;
	h->wc = *wc;
}

bool sim_reorder_take(struct sim_reorder *r, struct ibv_wc *wc)
{
	struct sim_held *h;

	while ((h = STAILQ_FIRST(&r->posted)) != NULL && h->over) {
		bool wanted =
			h->wr.send_flags & IBV_SEND_SIGNALED || h->wc.status != IBV_WC_SUCCESS;

		*wc = h->wc;
		wc->wr_id = h->wr.wr_id;
		STAILQ_REMOVE_HEAD(&r->posted, entry);
		free(h);
		if (wanted)
			return true;
	}
	return false;
}
