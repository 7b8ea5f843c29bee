/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_hot.c - posts and polls of the simulated verbs, what a scenario may do to them, and a
 * device's death */
#include "sim/plugin/unordered.h"
#include "sim/plugin/verbs_object.h"

#include <errno.h>

static uint64_t now_of(const struct sim_verbs *v)
{
	return sr_memwire_now(v->wire);
}

void sim_device_forget_completions(struct sim_device *dev)
{
	struct ibv_wc wc;
	struct sim_object *o;

	LIST_FOREACH(o, &dev->host->objects, entry)
		if (o->kind == SIM_CQ && o->dev == dev && o->engine)
			while (sim_unordered_poll(
				(struct sim_cq *)((char *)o - offsetof(struct sim_cq, o)), &wc))
				;
}

void sim_device_kill(struct sim_device *dev)
{
	if (dev->dead)
		return;
	if (now_of(dev->host) < dev->knobs.hold_until)
		sim_device_forget_completions(dev);
	dev->knobs.hold_until = 0;
	sr_memwire_kill(dev->port);
	dev->dead = true;
}

static int post_list(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (qp->reorder && sr_qp_state(qp->o.engine) >= IBV_QPS_RTS)
		return sim_unordered_post(qp, wr, bad);
	return -sr_qp_post_send(qp->o.engine, now_of(qp->o.dev->host), wr, bad);
}

/* The device dies when part of the list has reached it: what came first may still be carried out,
 * the rest never was. */
static int post_and_die(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sim_device *dev = qp->o.dev;
	struct ibv_send_wr *last = wr, *rest;

	while (--dev->knobs.die_at_post && last->next)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	post_list(qp, wr, bad);
	last->next = rest;
	sr_nic_progress(dev->nic, now_of(dev->host),
			1 + (unsigned)sr_memwire_steps(dev->host->wire) % 4);
	sim_device_kill(dev);
	*bad = rest ? rest : wr;
	return EIO;
}

static unsigned list_length(const struct ibv_send_wr *wr)
{
	unsigned n = 0;

	for (; wr; wr = wr->next)
		n++;
	return n;
}

static int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sim_qp *qp = (struct sim_qp *)ibv;
	struct sim_device *dev = qp->o.dev;
	unsigned n;

	if (!qp->o.engine || dev->dead) {
		*bad = wr;
		return EIO;
	}
	if (dev->knobs.die_at_post) {
		n = list_length(wr);
		if (n >= dev->knobs.die_at_post)
			return post_and_die(qp, wr, bad);
		dev->knobs.die_at_post -= n;
	}
	return post_list(qp, wr, bad);
}

static int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sim_qp *qp = (struct sim_qp *)ibv;

	if (!qp->o.engine) {
		*bad = wr;
		return EIO;
	}
	return -sr_qp_post_recv(qp->o.engine, wr, bad);
}

static int post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sim_srq *srq = (struct sim_srq *)ibv;

	if (!srq->o.engine) {
		*bad = wr;
		return EIO;
	}
	return -sr_srq_post(srq->o.engine, wr, bad);
}

/* Is it the n-th receive completion, which a defect waits for? */
static bool count_down(uint32_t *countdown)
{
	return *countdown && --*countdown == 0;
}

/* One completion through the faults; returns how many come out of it: 0, 1 or 2. */
static int one_completion(struct sim_device *dev, struct ibv_wc *wc, bool room)
{
	bool receive = wc->status == IBV_WC_SUCCESS && wc->opcode & IBV_WC_RECV;

	if (dev->knobs.lose) {
		dev->knobs.lose--;
		return 0;
	}
	if (!receive)
		return 1;
	if (count_down(&dev->knobs.drop_imm))
		return 0;
	if (count_down(&dev->knobs.shorten_imm))
		wc->byte_len -= wc->byte_len != 0;
	if (room && count_down(&dev->knobs.double_imm)) {
		wc[1] = wc[0];
		return 2;
	}
	return 1;
}

static int poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct sim_cq *cq = (struct sim_cq *)ibv;
	struct sim_device *dev = cq->o.dev;
	int out = 0;

	if (!cq->o.engine || now_of(dev->host) < dev->knobs.hold_until)
		return 0;
	while (out < n && sim_unordered_poll(cq, &wc[out]))
		out += one_completion(dev, &wc[out], out + 1 < n);
	return out;
}

static int req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct sim_cq *cq = (struct sim_cq *)ibv;

	if (cq->o.engine)
		sr_cq_arm(cq->o.engine, solicited_only);
	return 0;
}

const struct ha_verbs_hot sim_verbs_hot = { post_send, post_recv, post_srq_recv, poll_cq,
					    req_notify_cq };
