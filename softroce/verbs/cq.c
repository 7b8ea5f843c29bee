/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.c - completion queues: creation, and the poll that lets the application drive the NIC */
#include "softroce/idle.h"
#include "softroce/settings.h"
#include "softroce/verbs/objects.h"

#include <limits.h>
#include <stdlib.h>

/* After so many passes in a row by one thread that found nothing, every further one offers the core
 * to whoever waits for it. Few: a packet's arrival often wakes its receiver on the very core that
 * its sender polls on. */
#define IDLE_PASSES 4
#define PAUSE_NS 100000u

/*
 * This thread's passes in a row that found nothing. A pass is over when a queue is polled again: a
 * thread that polls many queues, each once, has not waited for anything yet. One that finds work on
 * one queue is not idle because another stays empty, and one that looks in now and then waits for
 * nothing.
 */
static __thread struct {
	unsigned passes;
	uint64_t pass, before; /* the numbers of this one and the last; 0: none has begun */
	uint64_t last;         /* when something was polled */
} idle;

static _Atomic uint64_t last_pass; /* of any thread */

/* ---- the hot path ---- */

/* The worker takes the pause for attention, until it has lasted PAUSE_NS. */
static void pause_attending(struct sr_vcq *cq, uint64_t now)
{
	atomic_store_explicit(&cq->context->adapter->polled_at, now + PAUSE_NS,
			      memory_order_relaxed);
	sr_idle_pause();
}

/* This thread polls the queue for the second time in this pass, so the next one begins. Another
 * thread that polls it too may have overwritten the number: then a pass counts as longer. A queue
 * that was in neither this pass nor the last is looked at in passing: the thread goes through many,
 * and waits for none. */
static bool begins_pass(struct sr_vcq *cq)
{
	uint64_t seen = atomic_load_explicit(&cq->idle_pass, memory_order_relaxed);
	bool again = idle.pass && seen == idle.pass;

	if (!again && seen != idle.before)
		idle.passes = 0;
	if (again || !idle.pass) {
		idle.before = idle.pass;
		idle.pass = atomic_fetch_add_explicit(&last_pass, 1, memory_order_relaxed) + 1;
	}
	atomic_store_explicit(&cq->idle_pass, idle.pass, memory_order_relaxed);
	return again;
}

/* Another poll found nothing. Pauses when there were enough passes; the time afterwards. */
static uint64_t count_idle_poll(struct sr_vcq *cq)
{
	uint64_t now = sr_now();

	if (now - idle.last > PAUSE_NS)
		idle.passes = 0;
	if (begins_pass(cq) && ++idle.passes >= cq->idle_most) {
		pause_attending(cq, now);
		now = sr_now();
	}
	idle.last = now;
	return now;
}

/* The queue is empty: be the NIC for a moment, unless another thread is that already. */
static bool poll_progress(struct sr_vcq *cq, uint64_t now)
{
	struct sr_adapter *adapter = cq->context->adapter;

	atomic_store_explicit(&adapter->polled_at, now, memory_order_relaxed);
	if (!sr_adapter_try_enter(adapter, cq->context->incarnation))
		return false;
	if (sr_adapter_turn_polled(adapter, now)) {
		idle.passes = 0;
		/* That took a while, and the worker must not take it for absence. */
		atomic_store_explicit(&adapter->polled_at, sr_now(), memory_order_relaxed);
	}
	return true;
}

int sr_cq_poll_verb(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct sr_vcq *cq = (struct sr_vcq *)ibv;
	int found;

	if (sr_cq_empty(cq->engine)) {
		if (!poll_progress(cq, count_idle_poll(cq)))
			return 0;
	} else if (!sr_context_enter(cq->context)) {
		return 0;
	}
	found = sr_cq_poll(cq->engine, n, wc);
	sr_context_leave(cq->context);
	if (found > 0)
		idle.passes = 0;
	return found;
}

int sr_cq_notify_verb(struct ibv_cq *ibv, int solicited_only)
{
	struct sr_vcq *cq = (struct sr_vcq *)ibv;

	if (!sr_context_enter(cq->context))
		return EIO;
	sr_cq_arm(cq->engine, solicited_only);
	if (sr_nic_acks_wait(cq->context->adapter->nic))
		sr_nic_progress(cq->context->adapter->nic, sr_now(), 0);
	sr_context_leave(cq->context);
	/*
	 * Whoever arms is about to sleep: the worker must not take the polls before for a sign of
	 * attention.
	 */
	atomic_store_explicit(&cq->context->adapter->polled_at, 0, memory_order_relaxed);
	return 0;
}

/* ---- extended polling ---- */

static int ex_next(struct ibv_cq_ex *ex)
{
	struct sr_vcq *cq = (struct sr_vcq *)ex;
	int n = sr_cq_poll_verb(&cq->cq, 1, &cq->wc);

	if (n <= 0)
		return n < 0 ? -n : ENOENT;
	ex->wr_id = cq->wc.wr_id;
	ex->status = cq->wc.status;
	return 0;
}

static int ex_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return attr->comp_mask ? EINVAL : ex_next(ex);
}

static void ex_end(struct ibv_cq_ex *ex)
{
}

static enum ibv_wc_opcode ex_opcode(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.opcode;
}

static uint32_t ex_vendor_err(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.vendor_err;
}

static uint32_t ex_byte_len(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.byte_len;
}

static __be32 ex_imm_data(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.imm_data;
}

static uint32_t ex_qp_num(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.qp_num;
}

static uint32_t ex_src_qp(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.src_qp;
}

static unsigned int ex_wc_flags(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.wc_flags;
}

static uint32_t ex_slid(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.slid;
}

static uint8_t ex_sl(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.sl;
}

static uint8_t ex_path_bits(struct ibv_cq_ex *ex)
{
	return ((struct sr_vcq *)ex)->wc.dlid_path_bits;
}

static void ex_fill(struct ibv_cq_ex *ex)
{
	ex->start_poll = ex_start;
	ex->next_poll = ex_next;
	ex->end_poll = ex_end;
	ex->read_opcode = ex_opcode;
	ex->read_vendor_err = ex_vendor_err;
	ex->read_byte_len = ex_byte_len;
	ex->read_imm_data = ex_imm_data;
	ex->read_qp_num = ex_qp_num;
	ex->read_src_qp = ex_src_qp;
	ex->read_wc_flags = ex_wc_flags;
	ex->read_slid = ex_slid;
	ex->read_sl = ex_sl;
	ex->read_dlid_path_bits = ex_path_bits;
}

/* ---- creation ---- */

static void channel_count(struct sr_vcq *cq, int by)
{
	struct ibv_comp_channel *channel = cq->cq.channel;

	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += by;
	pthread_mutex_unlock(&channel->context->mutex);
}

static struct sr_vcq *cq_create(struct ibv_context *ibv, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int vector)
{
	struct sr_vcq *cq;
	int err = EIO;

	if (cqe <= 0 || vector < 0 || vector >= ibv->num_comp_vectors)
		return sr_fail(EINVAL);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return sr_fail(ENOMEM);
	cq->context = sr_context_of(ibv);
	cq->channel = (struct sr_channel *)channel;
	cq->idle_most = sr_settings()->busy_poll ? UINT_MAX : IDLE_PASSES;
	cq->cq.context = ibv;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	if (sr_context_enter(cq->context)) {
		cq->engine = sr_cq_create(cq->context->adapter->nic, cqe, cq, &err);
		if (cq->engine)
			cq->cq.cqe = sr_cq_capacity(cq->engine);
		sr_context_leave(cq->context);
	}
	if (!cq->engine) {
		free(cq);
		return sr_fail(err);
	}
	channel_count(cq, 1);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct sr_vcq *cq = cq_create(context, cqe, cq_context, channel, comp_vector);

	return cq ? &cq->cq : NULL;
}

struct ibv_cq_ex *sr_cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct sr_vcq *cq;

	/* Being used by one thread only promises us less trouble, and is allowed. */
	if ((attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS) ||
	    (attr->comp_mask & ~IBV_CQ_INIT_ATTR_MASK_FLAGS) ||
	    ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	     (attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED)))
		return sr_fail(EOPNOTSUPP);
	cq = cq_create(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	ex_fill(&cq->ex);
	return &cq->ex;
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct sr_vcq *cq = (struct sr_vcq *)ibv;
	int err;

	if (!sr_context_enter(cq->context))
		return EIO;
	err = sr_cq_resize(cq->engine, cqe);
	ibv->cqe = sr_cq_capacity(cq->engine);
	sr_context_leave(cq->context);
	return -err;
}

/* Wait until the application has acknowledged every event it took. */
static void acks_wait(struct sr_vcq *cq, uint32_t comp, uint32_t async)
{
	pthread_mutex_lock(&cq->cq.mutex);
	while (cq->cq.comp_events_completed != comp || cq->cq.async_events_completed != async)
		pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
	pthread_mutex_unlock(&cq->cq.mutex);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct sr_vcq *cq = (struct sr_vcq *)ibv;
	uint32_t comp = 0, async;
	int err = 0;

	if (sr_context_enter(cq->context)) {
		err = sr_cq_destroy(cq->engine);
		sr_context_leave(cq->context);
	}
	if (err)
		return -err;
	/* The engine has forgotten it: no new event can come. */
	if (cq->channel)
		comp = sr_notices_purge(&cq->channel->queue, cq, &cq->comp_events);
	async = sr_notices_purge(&cq->context->async, cq, &cq->async_events);
	acks_wait(cq, comp, async);
	channel_count(cq, -1);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(cq);
	return 0;
}
