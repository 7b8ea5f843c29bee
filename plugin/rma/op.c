/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.c - operations on their way out
 *
 * To each peer they go in order: what the core cannot take now waits, and so does everything
 * behind it. A get is a question to the other end, which puts the data here: it needs nothing of
 * the NIC that a put does not, and survives one in the same way.
 */
#include "plugin/rma/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool more_ops(struct ha_rma *rma)
{
	struct ha_rma_slab *slab = malloc(sizeof(*slab));

	if (!slab)
		return false;
	SLIST_INSERT_HEAD(&rma->slabs, slab, link);
	for (unsigned i = 0; i < sizeof(slab->op) / sizeof(slab->op[0]); i++)
		STAILQ_INSERT_TAIL(&rma->unused, &slab->op[i], link);
	return true;
}

struct ha_rma_op *ha_rma_op_new(struct ha_rma *rma)
{
	struct ha_rma_op *op;

	if (STAILQ_EMPTY(&rma->unused) && !more_ops(rma))
		return NULL;
	op = STAILQ_FIRST(&rma->unused);
	STAILQ_REMOVE_HEAD(&rma->unused, link);
	memset(op, 0, sizeof(*op));
	return op;
}

void ha_rma_op_free(struct ha_rma *rma, struct ha_rma_op *op)
{
	STAILQ_INSERT_HEAD(&rma->unused, op, link);
}

static void set_busy(struct ha_rma *rma, struct ha_rma_peer *p, bool busy)
{
	if (busy == p->busy)
		return;
	p->busy = busy;
	if (busy)
		TAILQ_INSERT_TAIL(&rma->busy, p, link);
	else
		TAILQ_REMOVE(&rma->busy, p, link);
}

/* ---- one peer ---- */

static int connect_peer(struct ha_rma *rma, struct ha_rma_peer *p, int rank)
{
	int err;

	if (p->send)
		return 0;
	p->connecting = true;
	err = ha_connect(rma->ctx, rma->listen->dev, &rma->listen->opts, rma->handle[rank],
			 &p->send);
	if (err || p->send)
		p->connecting = false;
	return err;
}

/* It has left the core. */
static void posted_done(struct ha_rma *rma, struct ha_rma_op *op)
{
	if (op->orphan) {
		ha_rma_op_free(rma, op);
		return;
	}
	op->state = op->is_get && !op->answered ? HA_RMA_AWAITED : HA_RMA_DONE;
}

static int post_op(struct ha_rma *rma, struct ha_rma_peer *p, struct ha_rma_op *op)
{
	struct ha_put put = { .window = op->target,
			      .offset = op->target_offset,
			      .record = op->record.kind ? &op->record : NULL };
	int err;

	if (op->size && !op->is_get) {
		err = ha_rma_window_on(op->source, (struct ha_bundle *)p->send, &p->mr, &p->nmr);
		if (err)
			return err;
		put.mr = p->mr[op->source->number];
		put.data = (char *)op->source->addr + op->source_offset;
		put.size = op->size;
	}
	err = ha_put(p->send, &put, &op->request);
	if (!err && op->request)
		op->state = HA_RMA_POSTED;
	return err;
}

static int post_waiting(struct ha_rma *rma, struct ha_rma_peer *p)
{
	struct ha_rma_op *op;
	int err = 0;

	while (!err && (op = STAILQ_FIRST(&p->waiting)) != NULL) {
		err = post_op(rma, p, op);
		if (op->state == HA_RMA_WAITING)
			break;
		STAILQ_REMOVE_HEAD(&p->waiting, link);
		STAILQ_INSERT_TAIL(&p->posted, op, link);
	}
	return err;
}

static int take_done(struct ha_rma *rma, struct ha_rma_peer *p)
{
	struct ha_rma_op *op;

	while ((op = STAILQ_FIRST(&p->posted)) != NULL) {
		int done, err = ha_test(op->request, &done, NULL);

		if (err)
			return err;
		if (!done)
			return 0;
		STAILQ_REMOVE_HEAD(&p->posted, link);
		posted_done(rma, op);
	}
	return 0;
}

int ha_rma_peer_step(struct ha_rma *rma, struct ha_rma_peer *p)
{
	int rank = (int)(p - rma->peer), err = connect_peer(rma, p, rank);

	if (!err && p->send)
		err = take_done(rma, p);
	if (!err && p->send)
		err = post_waiting(rma, p);
	if (err == -ERANGE)
		return ha_rma_fail(rma, err, "an operation goes beyond the other rank's window");
	if (err)
		return ha_rma_fail(rma, err, "a connection to another rank is lost");
	set_busy(rma, p, !STAILQ_EMPTY(&p->waiting) || !STAILQ_EMPTY(&p->posted));
	return 0;
}

void ha_rma_op_start(struct ha_rma *rma, struct ha_rma_op *op)
{
	struct ha_rma_peer *p = &rma->peer[op->rank];

	op->state = HA_RMA_WAITING;
	STAILQ_INSERT_TAIL(&p->waiting, op, link);
	set_busy(rma, p, true);
	if (STAILQ_FIRST(&p->waiting) == op && p->send)
		(void)post_waiting(rma, p); /* an error is found again by the next step */
}

void ha_rma_refuse_answers(struct ha_rma *rma, const struct ha_rma_window *w)
{
	struct ha_rma_op *op;

	for (int i = 0; i < rma->nranks; i++)
		STAILQ_FOREACH(op, &rma->peer[i].waiting, link) {
			if (!op->orphan || op->source != w)
				continue;
			op->source = NULL;
			op->size = op->target_offset = op->target = 0;
			op->record.value = ERANGE;
		}
}

/* ---- what the caller sees ---- */

static int check_signal(const struct ha_rma_put *put)
{
	if (put->signal == HA_RMA_NO_SIGNAL)
		return 0;
	if (put->signal != HA_RMA_INC && put->signal != HA_RMA_ADD)
		return -EINVAL;
	if (!put->signals || put->signal_offset % sizeof(uint64_t))
		return -EINVAL;
	return 0;
}

static int check_put(const struct ha_rma *rma, const struct ha_rma_put *put)
{
	if (rma->error)
		return rma->error;
	if (put->rank < 0 || put->rank >= rma->nranks || (put->size && !put->target) ||
	    (put->size && !put->source) ||
	    !ha_rma_within(put->source, put->source_offset, put->size))
		return -EINVAL;
	return check_signal(put);
}

int ha_rma_put(struct ha_rma *rma, const struct ha_rma_put *put, struct ha_rma_op **out)
{
	struct ha_rma_op *op;
	int err;

	*out = NULL;
	pthread_mutex_lock(&rma->lock);
	err = check_put(rma, put);
	op = err ? NULL : ha_rma_op_new(rma);
	if (op) {
		op->rank = put->rank;
		op->size = put->size;
		op->source = put->source;
		op->source_offset = put->source_offset;
		op->target = put->size ? put->target->number : 0;
		op->target_offset = put->target_offset;
		if (put->signal != HA_RMA_NO_SIGNAL)
			op->record = (struct ha_rma_record) { .kind = HA_RMA_SIGNAL,
							      .window = put->signals->number,
							      .offset = put->signal_offset,
							      .value = put->signal == HA_RMA_INC
									       ? 1
									       : put->value };
		ha_rma_op_start(rma, op);
	} else if (!err) {
		err = -ENOMEM;
	}
	pthread_mutex_unlock(&rma->lock);
	*out = op;
	return err;
}

int ha_rma_get(struct ha_rma *rma, const struct ha_rma_put *get, struct ha_rma_op **out)
{
	struct ha_rma_op *op;
	int err;

	*out = NULL;
	if (get->signal != HA_RMA_NO_SIGNAL)
		return -EINVAL;
	pthread_mutex_lock(&rma->lock);
	err = check_put(rma, get);
	op = err ? NULL : ha_rma_op_new(rma);
	if (op) {
		op->is_get = true;
		op->rank = get->rank;
		op->size = get->size;
		op->id = ++rma->next_id;
		op->record = (struct ha_rma_record) {
			.kind = HA_RMA_GET,
			.window = get->size ? get->target->number : 0,
			.offset = get->target_offset,
			.size = get->size,
			.back = get->size ? get->source->number : 0,
			.back_offset = get->source_offset,
			.rank = (uint32_t)rma->rank,
			.id = op->id,
		};
		LIST_INSERT_HEAD(&rma->gets, op, gets);
		ha_rma_op_start(rma, op);
	} else if (!err) {
		err = -ENOMEM;
	}
	pthread_mutex_unlock(&rma->lock);
	*out = op;
	return err;
}
