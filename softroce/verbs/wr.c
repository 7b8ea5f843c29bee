/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wr.c - ibv_wr_start() ... ibv_wr_complete(): work requests built by calls
 *
 * The calls between start and complete fill an array; complete links it and posts it in one go, so
 * that a batch is taken as a whole or refused as a whole up to the first bad one, as with
 * ibv_post_send().
 */
#include "softroce/verbs/objects.h"

#include <stdlib.h>
#include <string.h>

#define OPS_KNOWN                                                                               \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_UC                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

struct built {
	struct ibv_send_wr wr;
	struct ibv_sge sge[SR_MAX_SGE];
	uint8_t data[SR_MAX_INLINE];
};

struct sr_wr_builder {
	pthread_mutex_t lock; /* held from start to complete or abort: one batch at a time */
	struct built *list;
	unsigned n, room;
	int err; /* the first thing that went wrong since start */
};

static struct sr_wr_builder *builder_of(struct ibv_qp_ex *ex)
{
	return ((struct sr_vqp *)ex)->builder;
}

/* The entry the setters fill: the last one begun. */
static struct built *current_entry(struct sr_wr_builder *builder)
{
	return builder->err || !builder->n ? NULL : &builder->list[builder->n - 1];
}

static struct ibv_send_wr *begin_entry(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	static struct ibv_send_wr sink; /* written after an error, never read */
	struct sr_wr_builder *builder = builder_of(ex);
	struct built *built;

	if (!builder->err && builder->n == builder->room) {
		unsigned room = builder->room ? builder->room * 2 : 8;
		struct built *list = realloc(builder->list, room * sizeof(*list));

		if (list) {
			builder->list = list;
			builder->room = room;
		} else {
			builder->err = ENOMEM;
		}
	}
	if (builder->err)
		return &sink;
	built = &builder->list[builder->n++];
	memset(&built->wr, 0, sizeof(built->wr));
	built->wr.wr_id = ex->wr_id;
	built->wr.send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE;
	built->wr.opcode = opcode;
	return &built->wr;
}

static void rdma_begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
		       uint64_t addr)
{
	struct ibv_send_wr *wr = begin_entry(ex, opcode);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma_begin(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct ibv_send_wr *wr = begin_entry(ex, IBV_WR_RDMA_WRITE_WITH_IMM);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	wr->imm_data = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma_begin(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin_entry(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin_entry(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin_entry(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin_entry(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin_entry(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct built *built = current_entry(builder_of(ex));

	if (!built)
		return;
	built->wr.wr.ud.ah = ah;
	built->wr.wr.ud.remote_qpn = qpn;
	built->wr.wr.ud.remote_qkey = qkey;
}

static void wr_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
		       uint64_t swap)
{
	struct ibv_send_wr *wr = begin_entry(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

static void wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	struct ibv_send_wr *wr = begin_entry(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = add;
}

static void set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct sr_wr_builder *builder = builder_of(ex);
	struct built *built = current_entry(builder);

	if (!built)
		return;
	if (n > SR_MAX_SGE) {
		builder->err = EINVAL;
		return;
	}
	memcpy(built->sge, list, n * sizeof(*list));
	built->wr.num_sge = n;
}

static void set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	set_sge_list(ex, 1, &sge);
}

static void set_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct sr_wr_builder *builder = builder_of(ex);
	struct built *built = current_entry(builder);
	size_t len = 0;

	if (!built)
		return;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length > SR_MAX_INLINE - len) {
			/* what hardware drivers answer to too much inline data */
			builder->err = ENOMEM;
			return;
		}
		memcpy(built->data + len, list[i].addr, list[i].length);
		len += list[i].length;
	}
	/* the address is set when the array no longer moves */
	built->sge[0] = (struct ibv_sge) { .length = len };
	built->wr.num_sge = 1;
	built->wr.send_flags |= IBV_SEND_INLINE;
}

static void set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { addr, length };

	set_inline_list(ex, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct sr_wr_builder *builder = builder_of(ex);

	pthread_mutex_lock(&builder->lock);
	builder->n = 0;
	builder->err = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct sr_wr_builder *builder = builder_of(ex);
	struct ibv_send_wr *bad;
	int err = builder->err;

	for (unsigned i = 0; i < builder->n; i++) {
		struct built *built = &builder->list[i];

		built->wr.sg_list = built->sge;
		built->wr.next = i + 1 < builder->n ? &built[1].wr : NULL;
		if (built->wr.send_flags & IBV_SEND_INLINE)
			built->sge[0].addr = (uintptr_t)built->data;
	}
	if (!err && builder->n)
		err = sr_qp_post_send_verb(&ex->qp_base, &builder->list[0].wr, &bad);
	pthread_mutex_unlock(&builder->lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&builder_of(ex)->lock);
}

int sr_wr_builder_create(struct sr_vqp *qp, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->ex;
	uint64_t known = OPS_KNOWN;

	if (qp->qp.qp_type == IBV_QPT_UD)
		known = OPS_UD;
	else if (qp->qp.qp_type == IBV_QPT_UC)
		known = OPS_UC;
	if (ops & ~known)
		return EOPNOTSUPP;
	qp->builder = calloc(1, sizeof(*qp->builder));
	if (!qp->builder)
		return ENOMEM;
	pthread_mutex_init(&qp->builder->lock, NULL);
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_atomic_cmp_swp = wr_cmp_swp;
	ex->wr_atomic_fetch_add = wr_fetch_add;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_set_ud_addr = set_ud_addr;
	ex->wr_set_sge = set_sge;
	ex->wr_set_sge_list = set_sge_list;
	ex->wr_set_inline_data = set_inline;
	ex->wr_set_inline_data_list = set_inline_list;
	return 0;
}

void sr_wr_builder_destroy(struct sr_vqp *qp)
{
	if (!qp->builder)
		return;
	pthread_mutex_destroy(&qp->builder->lock);
	free(qp->builder->list);
	free(qp->builder);
}
