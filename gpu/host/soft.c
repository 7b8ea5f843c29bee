/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/soft.h"

#include "base/log.h"
#include "gpu/failover/soft_path.h"
#include "gpu/soft/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pd {
	struct soft_nic *nic;
};

struct cq {
	struct ha_gpu_cq_attr attr;
};

int ha_gpu_soft_start(struct ha_gpu_soft *s, struct soft_fabric *fabric, unsigned first, unsigned n)
{
	int error;

	if (first > fabric->nnics || n > fabric->nnics - first)
		return -EINVAL;
	*s = (struct ha_gpu_soft) { .fabric = fabric, .first = first };
	while (s->n < n) {
		error = pthread_create(&s->thread[s->n], NULL, soft_nic_serve,
				       &fabric->nic[first + s->n]);
		if (error) {
			HA_WARN("soft", "no thread for a software NIC: %s: see to ulimit -u",
				strerror(error));
			ha_gpu_soft_stop(s);
			return -error;
		}
		s->n++;
	}
	return 0;
}

void ha_gpu_soft_stop(struct ha_gpu_soft *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		ha_gpu_store(&s->fabric->nic[s->first + i].stop, 1);
		pthread_join(s->thread[i], NULL);
	}
	s->n = 0;
}

static int ports(void *hw, struct ha_gpu_port_info *list, int max)
{
	struct ha_gpu_soft *s = hw;
	unsigned per = s->ports_per_card ? s->ports_per_card : 1;
	int n = 0;

	for (unsigned i = 0; i < s->n && n < max; i++, n++) {
		struct soft_nic *nic = &s->fabric->nic[s->first + i];

		snprintf(list[n].name, sizeof(list[n].name), "soft%u:%u", (s->first + i) / per,
			 i % per + 1);
		list[n].card = i / per;
		list[n].port = i % per + 1;
		list[n].up = soft_nic_port(nic) == SOFT_PORT_UP &&
			     ha_gpu_load(&nic->power) == SOFT_ON && ha_gpu_load(&nic->link);
	}
	return n;
}

static int open_port(void *hw, int port, void **device)
{
	struct ha_gpu_soft *s = hw;
	struct soft_nic *nic;

	if (port < 0 || (unsigned)port >= s->n)
		return -ENODEV;
	nic = &s->fabric->nic[s->first + (unsigned)port];
	if (ha_gpu_load(&nic->power) == SOFT_DEAD)
		return -EIO;
	*device = nic;
	return 0;
}

static int close_port(void *device)
{
	return 0;
}

static int pd_alloc(void *device, void **out)
{
	struct pd *pd = malloc(sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->nic = device;
	*out = pd;
	return 0;
}

static int pd_free(void *pd)
{
	free(pd);
	return 0;
}

static size_t round_up(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static void *reuse_memory(struct ha_gpu_soft *s, size_t bytes)
{
	void *p = NULL;

	soft_lock(&s->lock);
	for (unsigned i = 0; i < s->nfree && !p; i++)
		if (s->free[i].bytes == bytes) {
			p = s->free[i].memory;
			s->free[i] = s->free[--s->nfree];
		}
	soft_unlock(&s->lock);
	if (p)
		memset(p, 0, bytes);
	return p;
}

static int mem_alloc(void *hw, size_t bytes, void **memory)
{
	struct ha_gpu_soft *s = hw;

	*memory = reuse_memory(s, round_up(bytes));
	if (!*memory)
		*memory = soft_alloc(s->fabric, round_up(bytes));
	return *memory ? 0 : -ENOMEM;
}

static void mem_free(void *hw, void *memory, size_t bytes)
{
	struct ha_gpu_soft *s = hw;

	soft_lock(&s->lock);
	if (s->nfree < HA_GPU_SOFT_FREE_MAX) {
		s->free[s->nfree].memory = memory;
		s->free[s->nfree++].bytes = round_up(bytes);
	}
	soft_unlock(&s->lock);
}

static int buf_map(void *device, void *memory, size_t bytes, void **buf)
{
	*buf = memory;
	return 0;
}

static int buf_unmap(void *buf)
{
	return 0;
}

static int mr_reg(void *pd, void *address, size_t bytes, bool remote, struct ha_gpu_mr *mr)
{
	struct soft_nic *nic = ((struct pd *)pd)->nic;
	uint32_t key;

	if (ha_gpu_load(&nic->power) == SOFT_DEAD)
		return -EIO;
	key = soft_mr_register(nic, address, bytes, remote);
	if (!key)
		return -ENOMEM;
	mr->own = nic;
	mr->lkey = mr->rkey = ha_gpu_be32(key);
	return 0;
}

static int mr_dereg(struct ha_gpu_mr *mr)
{
	return soft_mr_deregister(mr->own, ha_gpu_be32(mr->lkey));
}

/* A software queue pair brings its completion queue: this one only remembers where it lies. */
static int cq_create(void *device, const struct ha_gpu_cq_attr *attr, void **out)
{
	struct cq *cq = malloc(sizeof(*cq));

	if (!cq)
		return -ENOMEM;
	cq->attr = *attr;
	*out = cq;
	return 0;
}

static int cq_destroy(void *cq)
{
	free(cq);
	return 0;
}

static int qp_create(void *pd, const struct ha_gpu_qp_attr *attr, struct ha_gpu_hw_qp *out)
{
	const struct cq *cq = attr->cq;
	struct soft_qp_attr a = { .nwqes = attr->nwqes,
				  .cq_log = cq->attr.log,
				  .wqe = attr->wqe,
				  .dbrec = attr->dbrec,
				  .cqe = cq->attr.cqe,
				  .cq_dbrec = cq->attr.dbrec,
				  .dci = attr->dci };
	struct soft_nic *nic = ((struct pd *)pd)->nic;
	struct soft_qp *qp;

	if (ha_gpu_load(&nic->power) == SOFT_DEAD)
		return -EIO;
	qp = soft_qp_create(nic, &a);
	if (!qp)
		return -ENOMEM;
	out->own = qp;
	out->qpn = qp->qpn;
	out->bf = out->host_bf = qp->bf;
	return 0;
}

static int qp_destroy(struct ha_gpu_hw_qp *qp)
{
	soft_qp_destroy(qp->own);
	qp->own = NULL;
	return 0;
}

static void qp_handle(const struct ha_gpu_hw_qp *qp, struct ha_gpu_rc_handle *h)
{
	uint64_t number = ((struct soft_qp *)qp->own)->nic->number;

	h->qpn = qp->qpn;
	h->psn = (uint32_t)((number << 12 | h->qpn) * 0x9e3779 & 0xffffff);
}

static int address(void *device, struct ha_gpu_rc_handle *h)
{
	h->iid = ha_gpu_load(&((struct soft_nic *)device)->address);
	return 0;
}

static int qp_modify(struct ha_gpu_hw_qp *qp, enum ha_gpu_qp_state to,
		     const struct ha_gpu_rc_link *link)
{
	static const enum soft_state as[] = { SOFT_RESET, SOFT_INIT, SOFT_RTR, SOFT_RTS, SOFT_ERR };
	const struct soft_nic *peer;

	if (to != HA_GPU_QP_RTR || ((struct soft_qp *)qp->own)->kind == SOFT_DCI)
		return soft_qp_modify(qp->own, as[to], 0, 0);
	peer = soft_nic_at(((struct soft_qp *)qp->own)->nic->fabric, link->peer.iid);
	if (!peer)
		return -EHOSTUNREACH;
	soft_qp_number(qp->own, link->local.psn, link->peer.psn);
	return soft_qp_modify(qp->own, SOFT_RTR, peer->number, link->peer.qpn);
}

static int qp_drained(struct ha_gpu_hw_qp *qp)
{
	return soft_qp_drained(qp->own) ? 0 : -EAGAIN;
}

static enum ha_gpu_port port(void *device)
{
	return soft_path_port(device);
}

static int dct_create(void *pd, void *cq, const struct ha_gpu_rc_link *link, uint64_t key,
		      struct ha_gpu_hw_dct *dct)
{
	struct soft_nic *nic = ((struct pd *)pd)->nic;
	struct soft_qp *qp =
		ha_gpu_load(&nic->power) == SOFT_DEAD ? NULL : soft_dct_create(nic, key);

	if (!qp)
		return ha_gpu_load(&nic->power) == SOFT_DEAD ? -EIO : -ENOMEM;
	dct->own = qp;
	dct->number = qp->qpn;
	return 0;
}

static int dct_destroy(struct ha_gpu_hw_dct *dct)
{
	int r = soft_qp_modify(dct->own, SOFT_ERR, 0, 0);

	soft_qp_destroy(dct->own);
	return r;
}

static int dct_av(const struct ha_gpu_hw_qp *dci, const struct ha_gpu_rc_link *link, uint64_t av[6])
{
	const struct soft_nic *peer =
		soft_nic_at(((struct soft_qp *)dci->own)->nic->fabric, link->peer.iid);

	if (!peer)
		return -EHOSTUNREACH;
	soft_write_av(av, peer->number, link->peer.qpn, link->peer.dc_key);
	return 0;
}

const struct ha_gpu_hw_ops ha_gpu_soft_ops = {
	.name = "soft",
	.ports = ports,
	.open = open_port,
	.close = close_port,
	.pd_alloc = pd_alloc,
	.pd_free = pd_free,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.buf_map = buf_map,
	.buf_unmap = buf_unmap,
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.cq_create = cq_create,
	.cq_destroy = cq_destroy,
	.qp_create = qp_create,
	.qp_destroy = qp_destroy,
	.qp_handle = qp_handle,
	.address = address,
	.qp_modify = qp_modify,
	.qp_drained = qp_drained,
	.port = port,
	.dct_create = dct_create,
	.dct_destroy = dct_destroy,
	.dct_av = dct_av,
};
