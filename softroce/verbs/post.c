/* SPDX-License-Identifier: BSD-3-Clause */
/* post.c - posting sends: the hot path */
#include "softroce/verbs/objects.h"

#include <errno.h>

/*
 * A send leaves with the call that posts it. But a program that keeps many small ones under way,
 * one call each, would pay a system call for each, when the kernel takes a run of equal packets for
 * hardly more than one. So a small send is left for the next turn when that is near: the program
 * has just polled, and others of the queue pair are on their way. The last of those asks for an
 * acknowledgement (requester.c: nothing was behind it), whose arrival brings a turn, of the program
 * or of the worker; when it is lost, the timer does. Also the DEFERRED_MAX-th that is posted sends
 * all.
 */
#define DEFERRED_MAX 16
#define DEFERRED_BYTES 1024
#define DEFERRED_BEHIND 4 /* packets that must be on their way */
#define POLLED_NS 20000   /* "just" */
#define PRESENT_NS 50000

static bool can_defer(const struct sr_vqp *qp, const struct ibv_send_wr *wr, uint64_t now)
{
	const struct sr_adapter *adapter = qp->context->adapter;
	uint64_t bytes = 0;

	if (adapter->deferred >= DEFERRED_MAX - 1 || sr_qp_inflight(qp->engine) < DEFERRED_BEHIND ||
	    atomic_load_explicit(&adapter->polled_at, memory_order_relaxed) + POLLED_NS < now)
		return false;
	for (; wr; wr = wr->next)
		for (int i = 0; i < wr->num_sge; i++)
			bytes += wr->sg_list[i].length;
	return bytes <= DEFERRED_BYTES;
}

/*
 * Who posts between polls has not gone away: a burst of posts takes longer than the worker waits
 * for the next poll.
 */
static void keep_present(struct sr_adapter *adapter, uint64_t now)
{
	if (atomic_load_explicit(&adapter->polled_at, memory_order_relaxed) + PRESENT_NS > now)
		atomic_store_explicit(&adapter->polled_at, sr_now(), memory_order_relaxed);
}

int sr_qp_post_send_verb(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sr_vqp *qp = (struct sr_vqp *)ibv;
	uint64_t now = sr_now();
	int err;

	if (!sr_context_enter(qp->context)) {
		*bad = wr;
		return EIO;
	}
	err = sr_qp_post_send(qp->engine, now, wr, bad);
	if (!err && can_defer(qp, wr, now)) {
		qp->context->adapter->deferred++;
	} else {
		qp->context->adapter->deferred = 0;
		sr_nic_send_posted(qp->context->adapter->nic, now);
	}
	keep_present(qp->context->adapter, now);
	sr_context_leave(qp->context);
	return -err;
}
