/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.c - make received data visible to the GPU
 *
 * A completion says that the NIC has written the data towards the GPU, not that it has left the
 * PCIe path. A small RDMA read of the last byte range through the same NIC cannot overtake those
 * writes, so its completion says it. Each rail that may have carried a stripe reads through its own
 * loop-back queue pair.
 */
#include "plugin/ctx.h"
#include "plugin/device/mr.h"
#include "plugin/transfer/guard.h"
#include "plugin/transfer/suspect.h"

#include <errno.h>
#include <sched.h>

/* The buffer that a read behind the data must touch: the last one that got bytes; -1 = nothing to
 * flush. */
static int last_filled(int n, const int *sizes, struct ha_mr *const *mrs)
{
	for (int i = n - 1; i >= 0; i--)
		if (sizes[i] && mrs[i] && mrs[i]->type != HA_MEM_HOST)
			return i;
	return -1;
}

static int post_read(struct ha_recv *c, struct ha_rail *r, struct ha_request *q, void *data,
		     const struct ha_mr *mr)
{
	uint64_t *landing = (uint64_t *)((char *)c->b.ring + HA_RECV_LANDING) + q->entry;
	struct ibv_sge sge = { .addr = (uintptr_t)landing, .length = 1, .lkey = r->ring_lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = ha_wr_id(HA_WR_FLUSH, q->entry, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)data, .rkey = mr->rkey[r->index] },
	};

	return r->hot->post_send(r->flush.qp, &wr, &bad);
}

static int post_flush(struct ha_recv *c, void *data, const struct ha_mr *mr,
		      struct ha_request **req)
{
	struct ha_request *q;
	int err;

	if (c->flush_busy == UINT32_MAX) {
		ha_bundle_poll(&c->b);
		if (c->flush_busy == UINT32_MAX)
			return -EAGAIN;
	}
	q = &c->flush[__builtin_ctz(~c->flush_busy)];
	q->done = 0;
	q->pending = 0;
	for (unsigned i = 0; i < c->b.nrails; i++) {
		struct ha_rail *r = &c->b.rail[i];

		/* The state first: of a rail that is not up the driver closes and registers
		 * things meanwhile. The end of a fence answers in the place of a rail that cannot:
		 * what it had written has left it then. */
		if (r->state == HA_RAIL_FENCING)
			q->pending |= 1u << i;
		/* A standby on whose device the buffer is not registered can have brought nothing
		 * into it. */
		if (r->state != HA_RAIL_UP || !ha_rail_flush_cq(r) || !mr->rkey[i])
			continue;
		q->pending |= 1u << i;
		err = post_read(c, r, q, data, mr);
		if (err)
			ha_rail_failed(&c->b, r, NULL, err < 0 ? err : -err);
	}
	q->done = !q->pending;
	c->flush_busy |= 1u << q->entry;
	*req = q;
	return 0;
}

/* NCCL takes "not now" for "nothing to flush", so the moment that the driver is inside must be
 * waited out. */
static enum ha_entry wait_to_enter(struct ha_bundle *b)
{
	enum ha_entry entry;

	while ((entry = ha_bundle_enter(b)) == HA_NOT_NOW)
		sched_yield();
	return entry;
}

/* Without a queue pair for it: it is not wanted, or GPU memory was never registered on this
 * connection. */
static int refuse_flush(const struct ha_recv *c)
{
	return c->b.ctx->config.gdr_flush_disable ? 0 : -ENOTCONN;
}

int ha_iflush(struct ha_recv *c, int n, void *const *data, const int *sizes,
	      struct ha_mr *const *mrs, struct ha_request **req)
{
	int err, last = last_filled(n, sizes, mrs);
	enum ha_entry entry;

	*req = NULL;
	if (last < 0)
		return 0;
	if (!atomic_load_explicit(&c->b.flushable, memory_order_relaxed))
		return refuse_flush(c);
	entry = wait_to_enter(&c->b);
	/* When the peer has closed, what it sent may still be flushed. */
	err = entry == HA_ENTERED || c->b.peer_closed ? 0 : c->b.error;
	if (!err)
		err = post_flush(c, data[last], mrs[last], req);
	ha_bundle_leave(&c->b);
	return err;
}
