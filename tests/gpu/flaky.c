/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/gpu/flaky.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

struct wrap {
	struct flaky *f;
	void *inner;
	bool open; /* a queue pair that things may land through */
};

static const char *const kinds[] = { "device",       "protection domain",
				     "memory",       "mapped buffer",
				     "registration", "completion queue",
				     "queue pair",   "target" };

const char *flaky_leak(const struct flaky *f)
{
	for (int i = 0; i < FLAKY_KINDS; i++)
		if (f->live[i])
			return kinds[i];
	return NULL;
}

static bool this_call_fails(struct flaky *f)
{
	if (!ha_gpu_load(&f->armed) || ha_gpu_add(&f->calls, 1) + 1 != f->fail_at)
		return false;
	f->failed++;
	return true;
}

static void *create_wrap(struct flaky *f, enum flaky_kind kind, void *inner)
{
	struct wrap *w = malloc(sizeof(*w));

	CHECK(w);
	w->f = f;
	w->inner = inner;
	w->open = false;
	__atomic_fetch_add(&f->live[kind], 1, __ATOMIC_RELAXED);
	return w;
}

static void free_wrap(void *wrap, enum flaky_kind kind)
{
	struct wrap *w = wrap;

	CHECK(__atomic_fetch_sub(&w->f->live[kind], 1, __ATOMIC_RELAXED) > 0);
	free(w);
}

static int ports(void *hw, struct ha_gpu_port_info *list, int max)
{
	struct flaky *f = hw;

	return this_call_fails(f) ? -EIO : f->under->ports(f->hw, list, max);
}

static int open_port(void *hw, int port, void **device)
{
	struct flaky *f = hw;
	int r = this_call_fails(f) ? -EIO : f->under->open(f->hw, port, device);

	if (!r)
		*device = create_wrap(f, FLAKY_DEVICE, *device);
	return r;
}

static int close_port(void *device)
{
	struct wrap *w = device;
	int r = w->f->under->close(w->inner);

	free_wrap(w, FLAKY_DEVICE);
	return r;
}

static int pd_alloc(void *device, void **pd)
{
	struct wrap *w = device;
	int r = this_call_fails(w->f) ? -ENOMEM : w->f->under->pd_alloc(w->inner, pd);

	if (!r)
		*pd = create_wrap(w->f, FLAKY_PD, *pd);
	return r;
}

static int pd_free(void *pd)
{
	struct wrap *w = pd;
	int r = w->f->under->pd_free(w->inner);

	free_wrap(w, FLAKY_PD);
	return r;
}

static int mem_alloc(void *hw, size_t bytes, void **memory)
{
	struct flaky *f = hw;
	int r = this_call_fails(f) ? -ENOMEM : f->under->mem_alloc(f->hw, bytes, memory);

	if (!r)
		__atomic_fetch_add(&f->live[FLAKY_MEMORY], (int64_t)bytes, __ATOMIC_RELAXED);
	return r;
}

static void mem_free(void *hw, void *memory, size_t bytes)
{
	struct flaky *f = hw;

	CHECK(__atomic_fetch_sub(&f->live[FLAKY_MEMORY], (int64_t)bytes, __ATOMIC_RELAXED) >=
	      (int64_t)bytes);
	memset(memory, 0xdb, bytes); /* who still reads it reads nonsense */
	f->under->mem_free(f->hw, memory, bytes);
}

static int buf_map(void *device, void *memory, size_t bytes, void **buf)
{
	struct wrap *w = device;
	int r = this_call_fails(w->f) ? -ENOMEM
				      : w->f->under->buf_map(w->inner, memory, bytes, buf);

	if (!r)
		*buf = create_wrap(w->f, FLAKY_BUF, *buf);
	return r;
}

static int buf_unmap(void *buf)
{
	struct wrap *w = buf;
	int r = w->f->under->buf_unmap(w->inner);

	free_wrap(w, FLAKY_BUF);
	return r;
}

static int mr_reg(void *pd, void *address, size_t bytes, bool remote, struct ha_gpu_mr *mr)
{
	struct wrap *w = pd;
	int r = this_call_fails(w->f) ? -ENOMEM
				      : w->f->under->mr_reg(w->inner, address, bytes, remote, mr);

	if (!r)
		mr->own = create_wrap(w->f, FLAKY_MR, mr->own);
	return r;
}

static int mr_dereg(struct ha_gpu_mr *mr)
{
	struct wrap *w = mr->own;
	struct ha_gpu_mr inner = { w->inner, mr->lkey, mr->rkey };
	int r = w->f->under->mr_dereg(&inner);

	CHECK(!r);
	free_wrap(w, FLAKY_MR);
	return r;
}

static int cq_create(void *device, const struct ha_gpu_cq_attr *attr, void **cq)
{
	struct wrap *w = device;
	int r = this_call_fails(w->f) ? -ENOMEM : w->f->under->cq_create(w->inner, attr, cq);

	if (!r)
		*cq = create_wrap(w->f, FLAKY_CQ, *cq);
	return r;
}

static int cq_destroy(void *cq)
{
	struct wrap *w = cq;
	int r = w->f->under->cq_destroy(w->inner);

	free_wrap(w, FLAKY_CQ);
	return r;
}

static int qp_create(void *pd, const struct ha_gpu_qp_attr *attr, struct ha_gpu_hw_qp *qp)
{
	struct wrap *w = pd;
	struct ha_gpu_qp_attr inner = *attr;
	int r;

	inner.cq = ((struct wrap *)attr->cq)->inner;
	r = this_call_fails(w->f) ? -ENOMEM : w->f->under->qp_create(w->inner, &inner, qp);
	if (!r)
		qp->own = create_wrap(w->f, FLAKY_QP, qp->own);
	return r;
}

static struct ha_gpu_hw_qp inner_qp(const struct ha_gpu_hw_qp *qp)
{
	struct ha_gpu_hw_qp u = *qp;

	u.own = ((struct wrap *)qp->own)->inner;
	return u;
}

static int qp_destroy(struct ha_gpu_hw_qp *qp)
{
	struct ha_gpu_hw_qp u = inner_qp(qp);
	int r;

	CHECK(!((struct wrap *)qp->own)->open); /* it has been fenced */
	r = ((struct wrap *)qp->own)->f->under->qp_destroy(&u);

	free_wrap(qp->own, FLAKY_QP);
	return r;
}

static void qp_handle(const struct ha_gpu_hw_qp *qp, struct ha_gpu_rc_handle *handle)
{
	struct ha_gpu_hw_qp u = inner_qp(qp);

	((struct wrap *)qp->own)->f->under->qp_handle(&u, handle);
}

static int address(void *device, struct ha_gpu_rc_handle *handle)
{
	struct wrap *w = device;

	return this_call_fails(w->f) ? -EIO : w->f->under->address(w->inner, handle);
}

static int qp_modify(struct ha_gpu_hw_qp *qp, enum ha_gpu_qp_state to,
		     const struct ha_gpu_rc_link *link)
{
	struct flaky *f = ((struct wrap *)qp->own)->f;
	struct ha_gpu_hw_qp u = inner_qp(qp);

	if (to == HA_GPU_QP_ERR)
		ha_gpu_add(&f->stops, 1);
	((struct wrap *)qp->own)->open = to == HA_GPU_QP_RTR || to == HA_GPU_QP_RTS;
	return to != HA_GPU_QP_ERR && this_call_fails(f) ? -EIO : f->under->qp_modify(&u, to, link);
}

static int qp_drained(struct ha_gpu_hw_qp *qp)
{
	struct ha_gpu_hw_qp u = inner_qp(qp);

	ha_gpu_add(&((struct wrap *)qp->own)->f->looks, 1);
	return ((struct wrap *)qp->own)->f->under->qp_drained(&u);
}

static enum ha_gpu_port port(void *device)
{
	struct wrap *w = device;

	return w->f->under->port(w->inner);
}

static int dct_create(void *pd, void *cq, const struct ha_gpu_rc_link *link, uint64_t key,
		      struct ha_gpu_hw_dct *dct)
{
	struct wrap *w = pd;
	int r = this_call_fails(w->f)
			? -ENOMEM
			: w->f->under->dct_create(w->inner, ((struct wrap *)cq)->inner, link, key,
						  dct);

	if (!r)
		dct->own = create_wrap(w->f, FLAKY_DCT, dct->own);
	return r;
}

static int dct_destroy(struct ha_gpu_hw_dct *dct)
{
	struct wrap *w = dct->own;
	struct ha_gpu_hw_dct u = { w->inner, dct->number };
	int r = w->f->under->dct_destroy(&u);

	free_wrap(w, FLAKY_DCT);
	return r;
}

static int dct_av(const struct ha_gpu_hw_qp *dci, const struct ha_gpu_rc_link *link, uint64_t av[6])
{
	struct flaky *f = ((struct wrap *)dci->own)->f;
	struct ha_gpu_hw_qp u = inner_qp(dci);

	return this_call_fails(f) ? -EIO : f->under->dct_av(&u, link, av);
}

const struct ha_gpu_hw_ops flaky_ops = {
	.name = "flaky",
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
