/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5_queue.c - completion queues and queue pairs of a ConnectX NIC, their transitions, and the
 * way to a peer
 */
#include "base/log.h"
#include "gpu/host/mlx5_objects.h"
#include "gpu/host/prm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DRAIN_TRIES 500
#define UAR_NC_DEDICATED (1u << 31) /* libmlx5's, from rdma-core 45 on; headers may be older */
#define UDP_PORT_BASE 0xc000

/* ---- queues ---- */

int ha_mlx5_refused(struct ha_mlx5_device *d, const char *what, const uint8_t *out)
{
	int r = errno && errno != EIO ? -errno : -EREMOTEIO;

	if (ha_mlx5_gone(d))
		return -EIO;
	HA_WARN(d->name, "refuses to %s: status 0x%02x, syndrome 0x%08x, %s", what,
		ha_gpu_prm_status(out), ha_gpu_prm_syndrome(out), strerror(-r));
	return r;
}

int ha_mlx5_cq_create(void *device, const struct ha_gpu_cq_attr *attr, void **out)
{
	struct ha_mlx5_device *d = device;
	struct ha_gpu_prm_cq c = { .uar = d->uar->page_id,
				   .eqn = d->eqn,
				   .umem = ((struct ha_mlx5_buf *)attr->buf)->umem->umem_id,
				   .dbr_umem = ((struct ha_mlx5_buf *)attr->dbr_buf)->umem->umem_id,
				   .offset = attr->offset,
				   .dbr_offset = attr->dbr_offset,
				   .log = attr->log };
	uint8_t in[HA_GPU_PRM_IN], answer[HA_GPU_PRM_OUT] = { 0 };
	size_t n = ha_gpu_prm_create_cq(in, &c);
	struct ha_mlx5_cq *cq;

	/*
	 * the firmware's producer index and owner bit go on where the queue pair's last incarnation
	 * ended
	 */
	if (attr->log) {
		HA_WARN(d->name, "a path with a ring of completions would not come back after a "
				 "failure: set HA_GPU_CQ_COLLAPSED=1");
		return -EOPNOTSUPP;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	memset(attr->cqe, 0xff, (size_t)HA_GPU_CQE_BYTES << attr->log);
	cq->obj = d->m->dv.obj_create(d->context, in, n, answer, sizeof(answer));
	if (!cq->obj) {
		free(cq);
		return ha_mlx5_refused(d, "make a completion queue", answer);
	}
	cq->d = d;
	cq->attr = *attr;
	cq->cqn = ha_gpu_prm_number(answer);
	*out = cq;
	return 0;
}

int ha_mlx5_cq_destroy(void *cq)
{
	struct ha_mlx5_cq *c = cq;
	int r = c->d->m->dv.obj_destroy(c->obj);

	free(c);
	return r > 0 ? -r : r;
}

static void free_doorbell(struct ha_mlx5_qp *q)
{
	struct ha_gpu_mlx5 *m = q->pd->d->m;

	if (q->mapped && m->memory.unmap_doorbell)
		m->memory.unmap_doorbell(m->memory.self, q->uar->reg_addr);
	m->dv.free_uar(q->uar);
}

/*
 * Lanes of a warp that ring different queue pairs may store in one instruction, and of several
 * stores to one address only one is sure to be carried out: each queue pair has a register of its
 * own. NC is one of the context, for all who ask; it will do where the host rings.
 */
static struct mlx5dv_devx_uar *alloc_register(struct ha_mlx5_device *d, bool proxied)
{
	const struct ha_gpu_mlx5_dv *dv = &d->m->dv;
	struct mlx5dv_devx_uar *uar;

	errno = 0;
	if (proxied)
		return dv->alloc_uar(d->context, MLX5DV_UAR_ALLOC_TYPE_NC);
	uar = dv->alloc_uar(d->context, UAR_NC_DEDICATED);
	if (!uar)
		uar = dv->alloc_uar(d->context, MLX5DV_UAR_ALLOC_TYPE_BF);
	if (!uar)
		HA_WARN(d->name, "gives no doorbell register of its own to a queue pair: install "
				 "rdma-core 45 or newer; HA_GPU_PROXY=1 lets the host ring");
	return uar;
}

/* A doorbell register, as device threads reach it where they ring, and as the host does. */
static int make_doorbell(struct ha_mlx5_qp *q, bool proxied, struct ha_gpu_hw_qp *out)
{
	struct ha_gpu_mlx5 *m = q->pd->d->m;
	void *page;
	int r;

	q->uar = alloc_register(q->pd->d, proxied);
	if (!q->uar)
		return errno ? -errno : -ENOMEM;
	page = q->uar->reg_addr;
	q->mapped = m->memory.map_doorbell && !proxied;
	r = q->mapped ? m->memory.map_doorbell(m->memory.self, q->uar->reg_addr, &page) : 0;
	out->bf = page;
	out->host_bf = q->uar->reg_addr;
	if (r)
		m->dv.free_uar(q->uar);
	return r;
}

static int make_object(struct ha_mlx5_qp *q, const struct ha_gpu_qp_attr *attr)
{
	struct ha_mlx5_device *d = q->pd->d;
	struct ha_gpu_prm_qp p = { .uar = q->uar->page_id,
				   .pd = q->pd->pdn,
				   .cqn = q->cq->cqn,
				   .umem = ((struct ha_mlx5_buf *)attr->buf)->umem->umem_id,
				   .dbr_umem = ((struct ha_mlx5_buf *)attr->dbr_buf)->umem->umem_id,
				   .offset = attr->offset,
				   .dbr_offset = attr->dbr_offset,
				   .log = (unsigned)__builtin_ctz(attr->nwqes),
				   .dci = attr->dci };
	uint8_t in[HA_GPU_PRM_IN], answer[HA_GPU_PRM_OUT] = { 0 };
	size_t n = ha_gpu_prm_create_qp(in, &p);

	q->obj = d->m->dv.obj_create(d->context, in, n, answer, sizeof(answer));
	if (!q->obj)
		return ha_mlx5_refused(d, "make a queue pair", answer);
	q->qpn = ha_gpu_prm_number(answer);
	return 0;
}

int ha_mlx5_qp_create(void *pd, const struct ha_gpu_qp_attr *attr, struct ha_gpu_hw_qp *out)
{
	struct ha_mlx5_qp *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	q->pd = pd;
	q->cq = attr->cq;
	q->dbrec = attr->dbrec;
	q->dci = attr->dci;
	r = getrandom(&q->psn, sizeof(q->psn), 0) == sizeof(q->psn)
		    ? make_doorbell(q, attr->proxied, out)
		    : -EIO;
	if (!r) {
		r = make_object(q, attr);
		if (r)
			free_doorbell(q);
	}
	if (r) {
		free(q);
		return r;
	}
	q->psn &= 0xffffff;
	out->own = q;
	out->qpn = q->qpn;
	return 0;
}

int ha_mlx5_qp_destroy(struct ha_gpu_hw_qp *qp)
{
	struct ha_mlx5_qp *q = qp->own;
	const struct ha_gpu_mlx5_dv *dv = &q->pd->d->m->dv;
	int r = dv->obj_destroy(q->obj);

	free_doorbell(q);
	free(q);
	return r > 0 ? -r : r;
}

void ha_mlx5_qp_handle(const struct ha_gpu_hw_qp *qp, struct ha_gpu_rc_handle *h)
{
	const struct ha_mlx5_qp *q = qp->own;

	h->qpn = q->qpn;
	h->psn = q->psn;
}

/* ---- transitions ---- */

int ha_mlx5_resolve(struct ha_mlx5_qp *q, struct ibv_ah_attr *attr, struct mlx5_wqe_av *av)
{
	struct ha_mlx5_device *d = q->pd->d;
	struct mlx5dv_ah dv = { 0 };
	struct mlx5dv_obj obj = { 0 };
	struct ibv_ah *ah;
	int r;

	attr->port_num = d->port;
	ah = d->m->dv.create_ah(q->pd->pd, attr);
	if (!ah) {
		HA_WARN(d->name, "knows no way to the peer's address: look at the GID index and at "
				 "the routes between the NICs");
		return errno ? -errno : -EHOSTUNREACH;
	}
	obj.ah.in = ah;
	obj.ah.out = &dv;
	r = -d->m->dv.init_obj(&obj, MLX5DV_OBJ_AH);
	if (!r)
		*av = *dv.av;
	d->m->dv.destroy_ah(ah);
	return r;
}

void ha_mlx5_global(const struct ha_mlx5_device *d, struct ibv_ah_attr *attr, const void *gid)
{
	attr->is_global = 1;
	memcpy(attr->grh.dgid.raw, gid, 16);
	attr->grh.sgid_index = (uint8_t)d->gid_index;
	attr->grh.hop_limit = 64;
}

static int next_hop(struct ha_mlx5_qp *q, struct ha_gpu_prm_peer *p)
{
	struct ibv_ah_attr attr = { 0 };
	struct mlx5_wqe_av av;
	int r;

	ha_mlx5_global(q->pd->d, &attr, p->gid);
	r = ha_mlx5_resolve(q, &attr, &av);
	if (!r)
		memcpy(p->mac, av.rmac, 6);
	return r;
}

static int peer_of(struct ha_mlx5_qp *q, const struct ha_gpu_rc_link *link,
		   struct ha_gpu_prm_peer *p)
{
	struct ha_mlx5_device *d = q->pd->d;
	const struct ha_gpu_rc_handle *h = &link->peer;

	memset(p, 0, sizeof(*p));
	if (d->ethernet && link->service_level > 7) {
		HA_WARN(d->name,
			"is a RoCE port, with priorities 0 to 7, and HA_GPU_SL is %u: set it to "
			"one of them",
			link->service_level);
		return -EINVAL;
	}
	p->qpn = h->qpn;
	p->psn = h->psn;
	p->port = d->port;
	p->mtu = h->mtu < link->local.mtu ? h->mtu : link->local.mtu;
	p->ethernet = d->ethernet;
	memcpy(p->gid, &h->spn, 8);
	memcpy(p->gid + 8, &h->iid, 8);
	p->gid_index = (unsigned)d->gid_index;
	p->lid = h->lid;
	p->service_level = link->service_level;
	p->traffic_class = link->traffic_class;
	p->udp_port = UDP_PORT_BASE | ((q->qpn ^ h->qpn) & 0x3fff);
	if (q->dci) { /* its entries say where they go */
		p->qpn = p->psn = 0;
		memset(p->gid, 0, sizeof(p->gid));
		p->lid = 0;
		return 0;
	}
	return p->ethernet ? next_hop(q, p) : 0;
}

/* A new incarnation begins with empty queues. */
static void clear_queues(struct ha_mlx5_qp *q)
{
	for (size_t i = 0; i < (size_t)1 << q->cq->attr.log; i++)
		ha_gpu_store((uint64_t *)(q->cq->attr.cqe + i * HA_GPU_CQE_BYTES + HA_GPU_CQE_QPN),
			     UINT64_MAX);
	ha_gpu_store32(&q->dbrec[HA_GPU_DBR_RECEIVE], 0);
	ha_gpu_store32(&q->dbrec[HA_GPU_DBR_SEND], 0);
}

int ha_mlx5_qp_modify(struct ha_gpu_hw_qp *qp, enum ha_gpu_qp_state to,
		      const struct ha_gpu_rc_link *link)
{
	static const char *const doing[] = { "reset", "initialise", "ready to receive",
					     "ready to send", "stop" };
	uint8_t in[HA_GPU_PRM_IN], out[HA_GPU_PRM_OUT] = { 0 };
	struct ha_mlx5_qp *q = qp->own;
	struct ha_gpu_prm_peer peer;
	size_t n;
	int r;

	switch (to) {
	case HA_GPU_QP_RST:
		n = ha_gpu_prm_to_reset(in, q->qpn);
		break;
	case HA_GPU_QP_INIT:
		n = q->dci ? ha_gpu_prm_dci_rst2init(in, q->qpn, q->pd->d->port)
			   : ha_gpu_prm_rst2init(in, q->qpn, q->pd->d->port);
		break;
	case HA_GPU_QP_RTR:
		r = peer_of(q, link, &peer);
		if (r)
			return r;
		n = ha_gpu_prm_init2rtr(in, q->qpn, &peer);
		break;
	case HA_GPU_QP_RTS:
		n = ha_gpu_prm_rtr2rts(in, q->qpn, link->local.psn, link->timeout, link->retry_cnt);
		break;
	default:
		n = ha_gpu_prm_to_error(in, q->qpn);
		break;
	}
	errno = 0;
	if (q->pd->d->m->dv.obj_modify(q->obj, in, n, out, sizeof(out)))
		return ha_mlx5_refused(q->pd->d, doing[to], out);
	if (to == HA_GPU_QP_RST)
		clear_queues(q);
	return 0;
}

/* The last entry that was rung has its completion (flushed or not); or, after a while, RESET ends
 * it: the firmware answers that command when nothing of the queue pair is under way any more. The
 * completion queue stays as it is, to be read. */
int ha_mlx5_qp_drained(struct ha_gpu_hw_qp *qp)
{
	uint8_t in[HA_GPU_PRM_IN], out[HA_GPU_PRM_OUT] = { 0 };
	struct ha_mlx5_qp *q = qp->own;
	uint16_t rung = (uint16_t)ha_gpu_be32(
		__atomic_load_n(&q->dbrec[HA_GPU_DBR_SEND], __ATOMIC_ACQUIRE));
	uint64_t last = ha_gpu_load((const uint64_t *)(q->cq->attr.cqe + HA_GPU_CQE_QPN));

	if (!rung && ha_gpu_cqe_opcode(last) == HA_GPU_CQE_INVALID)
		return 0; /* nothing was posted in this incarnation */
	if (!q->cq->attr.log && ha_gpu_cqe_opcode(last) != HA_GPU_CQE_INVALID &&
	    (uint16_t)(rung - ha_gpu_cqe_counter(last) - 1) <= q->dci) {
		/*
		 * an initiator's last entry takes two blocks, and is counted by its first or, a
		 * NOP, by its second
		 */
		q->tries = 0;
		return 0;
	}
	if (q->tries++ < DRAIN_TRIES)
		return -EAGAIN;
	q->tries = 0;
	errno = 0;
	if (q->pd->d->m->dv.obj_modify(q->obj, in, ha_gpu_prm_to_reset(in, q->qpn), out,
				       sizeof(out)))
		return ha_mlx5_refused(q->pd->d, "reset", out);
	return 0;
}
