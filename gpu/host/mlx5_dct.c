/* SPDX-License-Identifier: BSD-3-Clause */
/* mlx5_dct.c - dynamic connections of a ConnectX NIC: targets, and how entries name them */
#include "gpu/host/mlx5_objects.h"
#include "gpu/host/prm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct target {
	struct ha_mlx5_device *d;
	struct mlx5dv_devx_obj *obj;
};

static int need_srq(struct ha_mlx5_pd *p)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	const struct ha_verbs_ops *v = p->d->m->verbs;
	struct mlx5dv_srq dv = { .comp_mask = MLX5DV_SRQ_MASK_SRQN };
	struct mlx5dv_obj obj = { 0 };
	int r = 0;

	pthread_mutex_lock(&p->lock);
	if (!p->srq) {
		r = v->create_srq(v, p->pd, &attr, &p->srq);
		obj.srq.in = p->srq;
		obj.srq.out = &dv;
		if (!r) {
			r = -p->d->m->dv.init_obj(&obj, MLX5DV_OBJ_SRQ);
			if (r)
				v->destroy_srq(v, p->srq);
		}
		if (r)
			p->srq = NULL;
		p->srqn = dv.srqn;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

int ha_mlx5_dct_create(void *pd, void *cq, const struct ha_gpu_rc_link *link, uint64_t key,
		       struct ha_gpu_hw_dct *out)
{
	struct ha_mlx5_pd *p = pd;
	struct ha_mlx5_device *d = p->d;
	struct ha_gpu_prm_dct a = { .pd = p->pdn,
				    .cqn = ((struct ha_mlx5_cq *)cq)->cqn,
				    .key = key,
				    .port = d->port,
				    .mtu = link->local.mtu,
				    .gid_index = (unsigned)d->gid_index,
				    .traffic_class = link->traffic_class,
				    .service_level = link->service_level,
				    .ethernet = d->ethernet };
	uint8_t in[HA_GPU_PRM_IN], answer[HA_GPU_PRM_OUT] = { 0 };
	struct target *t;
	size_t n;
	int r = need_srq(p);

	if (r)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	a.srqn = p->srqn;
	n = ha_gpu_prm_create_dct(in, &a);
	t->d = d;
	t->obj = d->m->dv.obj_create(d->context, in, n, answer, sizeof(answer));
	if (!t->obj) {
		free(t);
		return ha_mlx5_refused(d, "make a target of dynamic connections", answer);
	}
	out->own = t;
	out->number = ha_gpu_prm_number(answer);
	return 0;
}

/* The kernel drains a target before it destroys it. */
int ha_mlx5_dct_destroy(struct ha_gpu_hw_dct *dct)
{
	static const uint8_t unsaid[HA_GPU_PRM_OUT];
	struct target *t = dct->own;
	int r = t->d->m->dv.obj_destroy(t->obj);

	if (r) {
		errno = r > 0 ? r : -r;
		r = ha_mlx5_refused(t->d, "end a target of dynamic connections", unsaid);
	}
	if (r && r != -EIO)
		return r; /* it is still there */
	free(t);
	return r;
}

int ha_mlx5_dct_av(const struct ha_gpu_hw_qp *dci, const struct ha_gpu_rc_link *link,
		   uint64_t out[6])
{
	struct ha_mlx5_qp *q = dci->own;
	struct ibv_ah_attr attr = { .dlid = link->peer.lid, .sl = (uint8_t)link->service_level };
	struct mlx5_wqe_av av;
	uint64_t gid[2] = { link->peer.spn, link->peer.iid };
	int r;

	if (q->pd->d->ethernet)
		ha_mlx5_global(q->pd->d, &attr, gid);
	attr.grh.traffic_class = (uint8_t)link->traffic_class;
	r = ha_mlx5_resolve(q, &attr, &av);
	if (r)
		return r;
	av.key.dc_key = ha_gpu_be64(link->peer.dc_key);
	av.dqp_dct = ha_gpu_be32(link->peer.qpn | HA_GPU_AV_EXTENDED);
	_Static_assert(sizeof(av) == 48, "what an entry carries");
	memcpy(out, &av, sizeof(av));
	return 0;
}
