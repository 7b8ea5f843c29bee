/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/rail.h"

#include "base/log.h"
#include "base/random.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/hookup.h"
#include "plugin/device/send_queue.h"
#include "rdma/topo/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The receiver's clear-to-send entries go inline when the queue pair takes them; a sizes record of
 * the sender as well. */
#define INLINE_RECV (HA_MAX_RECVS * sizeof(struct ha_cts))
#define INLINE_SEND sizeof(struct ha_sizes)

/* IBTA 9.7.5.2.8: our shared queue may run dry for a moment, that is no fault */
#define RNR_RETRY_FOREVER 7
#define RNR_TIMER_640US 12 /* IBTA table 45 */
#define HOP_LIMIT 255
#define CLOSE_DRAIN_MAX 4096 /* completions looked at when a rail closes */

static const struct ha_verbs_ops *verbs_of(const struct ha_bundle *b)
{
	return b->ctx->verbs;
}

static int log_failure(const struct ha_bundle *b, const struct ha_rail *r, const char *what,
		       int err, const char *advice)
{
	HA_WARN(b->name, "rail %u (%s): cannot %s: %s%s%s", r->index, ha_device_name(r->dev), what,
		strerror(-err), advice ? "; " : "", advice ? advice : "");
	return err;
}

/*
 * Completions that can be waiting at once. A sender's queue pair: its send queue, all of which
 * completes after an error. A receiver's: also an immediate per slot, which is all that the sender
 * may send before we let it go on.
 */
static int cq_entries(const struct ha_bundle *b, const struct ha_device *dev)
{
	int n = (int)(b->is_send ? dev->send_depth : dev->recv_depth) + HA_SLOTS;

	return n < dev->topo->attr.max_cqe ? n : dev->topo->attr.max_cqe;
}

static int make_qp(const struct ha_bundle *b, struct ha_rail *r, struct ibv_qp_init_attr *init)
{
	if (b->terms.unordered)
		return verbs_of(b)->create_unordered_qp(verbs_of(b), r->opening->pd, init, &r->qp);
	return verbs_of(b)->create_qp(verbs_of(b), r->opening->pd, init, &r->qp);
}

static int create_qp(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_device *dev = r->dev;
	uint32_t depth = b->is_send ? dev->send_depth : dev->recv_depth;
	uint32_t inlines[] = { b->is_send ? INLINE_SEND : INLINE_RECV, INLINE_SEND, 0 };
	unsigned first = b->ctx->config.ib_use_inline ? 0 : 2;
	int err = -EINVAL;

	/* A device may refuse the sum of what it allows one by one: less inline room first, then a
	 * shorter queue. */
	for (uint32_t d = depth; d && d >= depth / 4; d /= 2)
		for (unsigned i = first; i < sizeof(inlines) / sizeof(inlines[0]); i++) {
			struct ibv_qp_init_attr init = {
				.qp_context = b,
				.send_cq = r->cq,
				.recv_cq = r->cq,
				.srq = r->srq,
				.cap = { .max_send_wr = d,
					 .max_send_sge = 1,
					 .max_inline_data = inlines[i] },
				.qp_type = IBV_QPT_RC,
			};

			err = make_qp(b, r, &init);
			if (!err) {
				r->sq_depth = d;
				r->max_inline = first ? 0 : init.cap.max_inline_data;
				return 0;
			}
			r->qp = NULL;
			if (err != -EINVAL && err != -ENOMEM && err != -ENOSPC)
				return err;
		}
	return err;
}

static int to_init(struct ha_bundle *b, struct ha_device *dev, struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)b->ctx->config.ib_pkey,
		.port_num = (uint8_t)dev->topo->port,
		.qp_access_flags = (unsigned)access,
	};

	return verbs_of(b)->modify_qp(verbs_of(b), qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS);
}

static void query_ece(struct ha_bundle *b, struct ha_rail *r, struct ha_wire_ece *out)
{
	struct ibv_ece ece = { 0 };

	memset(out, 0, sizeof(*out));
	if (!b->ctx->config.ib_ece_enable || verbs_of(b)->query_ece(verbs_of(b), r->qp, &ece))
		return; /* this device has none, or none are wanted */
	*out = (struct ha_wire_ece) { ece.vendor_id, ece.options, ece.comp_mask };
}

/* Bytes of the ring memory that this rail reads or writes; a receiver's without what stages
 * clear-to-sends, where all go inline. */
static size_t ring_used(const struct ha_bundle *b, const struct ha_rail *r)
{
	return b->is_send || r->max_inline < INLINE_RECV ? b->ring_size : HA_RECV_INLINE_SIZE;
}

void ha_rail_unbind(struct ha_rail *r)
{
	ha_opening_put(r->opening);
	r->opening = NULL;
}

void ha_rail_bind(struct ha_rail *r, struct ha_device *dev)
{
	ha_rail_unbind(r);
	r->dev = dev;
	r->opening = ha_device_take(dev);
}

bool ha_rail_has_moved(const struct ha_rail *r)
{
	struct ha_address now = ha_device_address(r->dev);

	return memcmp(&now.gid, &r->setup.self.gid, sizeof(now.gid)) != 0 ||
	       now.lid != r->setup.self.lid || now.gid_index != r->setup.self.gid_index;
}

/* Never relaxed: the last word of a clear-to-send entry must be the last to appear. */
static int register_rings(struct ha_bundle *b, struct ha_rail *r, struct ibv_pd *pd)
{
	int err = verbs_of(b)->reg_mr(verbs_of(b), pd, b->ring, ring_used(b, r), (uintptr_t)b->ring,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
				      &r->setup.ring_mr);

	if (err) {
		r->setup.ring_mr = NULL;
		return log_failure(b, r, "register the rings", err,
				   "raise the limit of locked memory (ulimit -l)");
	}
	r->ring_lkey = r->setup.ring_mr->lkey;
	return 0;
}

int ha_rail_open(struct ha_bundle *b, struct ha_rail *r, struct ha_device *dev)
{
	struct ha_opening *o;
	int err = ha_device_failed(dev);

	if (err)
		return err;
	if (!r->opening)
		ha_rail_bind(r, dev);
	o = r->opening;
	err = ha_opening_open(o);
	if (err)
		return err;
	r->setup.self = ha_device_address(dev);
	r->sq_posted = r->sq_retired = r->count_mark = 0;
	r->hot = &o->nic->hot;
	r->max_msg = ha_device_max_msg(dev);
	r->setup.psn = (uint32_t)ha_random_u64() & 0xffffff;
	err = verbs_of(b)->create_cq(verbs_of(b), o->nic->verbs, cq_entries(b, dev), b, NULL, 0,
				     &r->cq);
	if (err) {
		r->cq = NULL;
		return log_failure(b, r, "create a completion queue", err,
				   "the device may have run out of them (maxComms)");
	}
	r->srq = ha_opening_srq(o);
	err = r->srq ? create_qp(b, r) : -EIO;
	if (err)
		return log_failure(b, r, "create a queue pair", err,
				   b->terms.unordered
					   ? "NCCL_IB_OOO_RQ=0 does without its special kind"
					   : "the device may have run out of them (maxComms)");
	/* Before anything can fail: whatever has a queue pair settles what it has of the queue. */
	if (!b->is_send)
		ha_opening_reserve(o);
	r->rq_base = r->rq_consumed = HA_REFILL - ha_device_portion(dev);
	err = register_rings(b, r, o->pd);
	if (err)
		return err;
	err = to_init(b, dev, r->qp, IBV_ACCESS_REMOTE_WRITE);
	if (err)
		return log_failure(b, r, "bring the queue pair to INIT", err,
				   "is NCCL_IB_PKEY right?");
	query_ece(b, r, &r->setup.ece);
	return 0;
}

void ha_rail_describe(const struct ha_rail *r, struct ha_wire_qp *qp)
{
	*qp = (struct ha_wire_qp) {
		.qpn = r->qp->qp_num,
		.psn = r->setup.psn,
		.lid = r->setup.self.lid,
		.mtu = r->setup.self.mtu,
		.link_layer = r->dev->topo->is_ethernet ? IBV_LINK_LAYER_ETHERNET
							: IBV_LINK_LAYER_INFINIBAND,
		.ring_rkey = r->setup.ring_mr->rkey,
	};
	memcpy(qp->gid, &r->setup.self.gid, sizeof(qp->gid));
}

void ha_rail_describe_whole(const struct ha_rail *r, struct ha_wire_rail *rail)
{
	memset(rail, 0, sizeof(*rail));
	ha_rail_describe(r, &rail->qp);
	rail->guid = r->dev->topo->guid;
	rail->ece = r->setup.ece;
	snprintf(rail->name, sizeof(rail->name), "%.*s", (int)sizeof(rail->name) - 1,
		 ha_device_name(r->dev));
}

/* ---- addresses ---- */

/* The routable part of a GID on InfiniBand with FLIDs: bytes 4 and 5 (NVIDIA's router scheme; 0 =
 * none). */
static uint16_t gid_flid(const uint8_t *gid)
{
	return (uint16_t)(gid[4] << 8 | gid[5]);
}

static bool same_subnet(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a + 6, b + 6, 2);
}

static int traffic_class(const struct ha_bundle *b, bool ethernet)
{
	/* What a receiver sends is clear-to-sends and a few control messages. */
	if (ethernet && !b->is_send && b->ctx->config.ib_fifo_tc >= 0)
		return b->ctx->config.ib_fifo_tc;
	if (b->ctx->config.ib_tc >= 0)
		return b->ctx->config.ib_tc;
	return b->terms.traffic_class >= 0 && b->terms.traffic_class <= 255 ? b->terms.traffic_class
									    : 0;
}

/* RoCE always, and InfiniBand between subnets, need the global route; within a subnet the LID is
 * the address. */
static void fill_path(const struct ha_bundle *b, const struct ha_rail *r,
		      const struct ha_wire_qp *peer, struct ibv_ah_attr *ah)
{
	const struct ha_topo_device *topo = r->dev->topo;

	*ah = (struct ibv_ah_attr) {
		.sl = (uint8_t)(b->ctx->config.ib_sl > 0 ? b->ctx->config.ib_sl : 0),
		.port_num = (uint8_t)topo->port,
	};
	if (!topo->is_ethernet && same_subnet(r->setup.self.gid.raw, peer->gid)) {
		ah->dlid = peer->lid;
		return;
	}
	ah->is_global = 1;
	memcpy(&ah->grh.dgid, peer->gid, sizeof(ah->grh.dgid));
	ah->grh.sgid_index = (uint8_t)r->setup.self.gid_index;
	ah->grh.hop_limit = HOP_LIMIT;
	ah->grh.traffic_class = (uint8_t)traffic_class(b, topo->is_ethernet);
	if (!topo->is_ethernet)
		ah->dlid = gid_flid(peer->gid) ? gid_flid(peer->gid) : peer->lid;
}

static struct ibv_qp_attr rtr_attr(const struct ha_bundle *b, const struct ha_rail *r,
				   const struct ha_wire_qp *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(peer->mtu < r->setup.self.mtu ? peer->mtu
									 : r->setup.self.mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER_640US,
	};

	fill_path(b, r, peer, &attr.ah_attr);
	return attr;
}

static struct ibv_qp_attr rts_attr(const struct ha_bundle *b, uint32_t psn)
{
	return (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)ha_config_timeout(&b->ctx->config),
		.retry_cnt = (uint8_t)b->ctx->config.qp_retry_cnt,
		.rnr_retry = RNR_RETRY_FOREVER,
		.sq_psn = psn,
		.max_rd_atomic = 1,
	};
}

int ha_rail_connect(struct ha_bundle *b, struct ha_rail *r, const struct ha_wire_rail *peer,
		    void (*done)(void *arg), void *arg)
{
	struct ha_hookup *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	r->setup.peer = *peer;
	r->ring_rkey = peer->qp.ring_rkey;
	h->dev = r->dev;
	h->opening = r->opening;
	h->qp = r->qp;
	h->cq = r->cq;
	h->rtr = rtr_attr(b, r, &peer->qp);
	h->rts = rts_attr(b, r->setup.psn);
	h->ece = r->setup.ece;
	h->peer_ece = peer->ece;
	h->listener = !b->is_send;
	h->done = done;
	h->arg = arg;
	r->hookup = h;
	ha_hookup_start(b->ctx, h);
	return 0;
}

int ha_rail_connected(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_hookup *h = r->hookup;
	int err;

	if (!ha_hookup_over(h))
		return -EAGAIN;
	err = h->err;
	if (err)
		log_failure(b, r, h->failed, err, h->advice);
	r->setup.ece = h->ece;
	r->hookup = NULL;
	ha_hookup_free(h);
	if (err)
		return err;
	r->connected = true;
	return 0;
}

void ha_rail_unhook(struct ha_bundle *b, struct ha_rail *r)
{
	if (!r->hookup)
		return;
	if (!ha_hookup_abandon(r->hookup)) {
		r->qp = NULL;
		r->cq = NULL;
		if (!b->is_send)
			ha_opening_unreserve(r->opening);
	}
	r->hookup = NULL;
}

int ha_rail_mtu_bytes(const struct ha_rail *r)
{
	int mtu =
		r->setup.peer.qp.mtu < r->setup.self.mtu ? r->setup.peer.qp.mtu : r->setup.self.mtu;

	return 128 << mtu; /* IBV_MTU_256 is 1 */
}

/* ---- flush ---- */

/* A flush reads from this very port. */
static int connect_to_self(struct ha_bundle *b, struct ha_rail *r, struct ibv_qp *qp)
{
	struct ibv_qp_attr rtr, rts;
	struct ha_wire_qp self;
	int err;

	ha_rail_describe(r, &self);
	self.qpn = qp->qp_num;
	rtr = rtr_attr(b, r, &self);
	rts = rts_attr(b, self.psn);
	err = to_init(b, r->dev, qp, IBV_ACCESS_REMOTE_READ);
	if (!err)
		err = verbs_of(b)->modify_qp(verbs_of(b), qp, &rtr, HA_RTR_MASK);
	if (!err)
		err = verbs_of(b)->modify_qp(verbs_of(b), qp, &rts, HA_RTS_MASK);
	return err;
}

int ha_rail_prepare_flush(struct ha_bundle *b, struct ha_rail *r)
{
	struct ibv_qp_init_attr init = {
		.qp_context = b,
		.cap = { .max_send_wr = HA_FLUSHES,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int err;

	if (ha_rail_flush_cq(r))
		return 0;
	err = verbs_of(b)->create_cq(verbs_of(b), r->opening->nic->verbs, HA_FLUSHES, b, NULL, 0,
				     &cq);
	if (err)
		return log_failure(b, r, "create the completion queue for flushes", err, NULL);
	init.send_cq = init.recv_cq = cq;
	err = verbs_of(b)->create_qp(verbs_of(b), r->opening->pd, &init, &qp);
	if (err) {
		log_failure(b, r, "create the queue pair for flushes", err, NULL);
		goto destroy_cq;
	}
	err = connect_to_self(b, r, qp);
	if (err) {
		log_failure(b, r, "connect the queue pair for flushes to itself", err, NULL);
		goto destroy_qp;
	}
	/* Pairs with ha_rail_flush_cq: another thread may be polling or flushing this
	 * connection. */
	r->flush.qp = qp;
	__atomic_store_n(&r->flush.cq, cq, __ATOMIC_RELEASE);
	return 0;

destroy_qp:
	verbs_of(b)->destroy_qp(verbs_of(b), qp);
destroy_cq:
	verbs_of(b)->destroy_cq(verbs_of(b), cq);
	return err;
}

/* ---- the end ---- */

/*
 * A queue pair on a shared receive queue takes the receives it has consumed with it. In ERR it
 * consumes no more, so what its completion queue holds then is all; it goes back to the other
 * connections.
 */
static void settle_receives(struct ha_bundle *b, struct ha_rail *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc[16];
	int n, total = 0;

	verbs_of(b)->modify_qp(verbs_of(b), r->qp, &attr, IBV_QP_STATE);
	while (total < CLOSE_DRAIN_MAX && (n = r->hot->poll_cq(r->cq, 16, wc)) > 0) {
		for (int i = 0; i < n; i++)
			r->rq_consumed += ha_wr_is_receive(wc[i].wr_id);
		total += n;
	}
	ha_opening_repay(r->opening, r->srq, r->rq_consumed - r->rq_base);
	r->rq_consumed = r->rq_base;
	if (!b->is_send)
		ha_opening_unreserve(r->opening);
}

static void destroy_pair(struct ha_bundle *b, const struct ha_rail *r, struct ibv_qp *qp,
			 struct ibv_cq *cq)
{
	(void)r;
	if (qp)
		verbs_of(b)->destroy_qp(verbs_of(b), qp);
	if (cq)
		verbs_of(b)->destroy_cq(verbs_of(b), cq);
}

/* A queue pair in RESET takes and sends nothing; what it is made of may go at leisure. */
static void retire_pair(struct ha_bundle *b, const struct ha_rail *r, struct ibv_qp *qp,
			struct ibv_cq *cq)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if ((qp && verbs_of(b)->modify_qp(verbs_of(b), qp, &attr, IBV_QP_STATE)) ||
	    !ha_reaper_take(b->ctx, r->opening, qp, cq))
		destroy_pair(b, r, qp, cq);
}

static void close_by(struct ha_bundle *b, struct ha_rail *r,
		     void (*end)(struct ha_bundle *b, const struct ha_rail *r, struct ibv_qp *qp,
				 struct ibv_cq *cq))
{
	ha_rail_unhook(b, r);
	if (r->flush.qp || r->flush.cq)
		end(b, r, r->flush.qp, r->flush.cq);
	r->flush.qp = NULL;
	r->flush.cq = NULL;
	if (r->qp)
		settle_receives(b, r);
	if (r->qp || r->cq)
		end(b, r, r->qp, r->cq);
	if (r->setup.ring_mr)
		verbs_of(b)->dereg_mr(verbs_of(b), r->setup.ring_mr);
	r->qp = NULL;
	r->cq = NULL;
	r->setup.ring_mr = NULL;
	r->connected = false;
}

void ha_rail_close(struct ha_bundle *b, struct ha_rail *r)
{
	close_by(b, r, destroy_pair);
}

void ha_rail_discard(struct ha_bundle *b, struct ha_rail *r)
{
	close_by(b, r, retire_pair);
}
