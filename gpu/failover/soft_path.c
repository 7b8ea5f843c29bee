/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/failover/soft_path.h"

#include <errno.h>

static int fence(void *path)
{
	struct soft_path *p = path;
	int r = soft_qp_modify(p->qp, SOFT_ERR, 0, 0);

	if (r)
		return r;
	return soft_qp_drained(p->qp) ? 0 : -EAGAIN;
}

static int connect_qp(struct soft_path *p, uint32_t peer_nic, uint32_t peer_qpn)
{
	int r = soft_qp_modify(p->qp, SOFT_RESET, 0, 0);

	if (!r)
		r = soft_qp_modify(p->qp, SOFT_INIT, 0, 0);
	if (!r)
		r = soft_qp_modify(p->qp, SOFT_RTR, peer_nic, peer_qpn);
	return r ? r : soft_qp_modify(p->qp, SOFT_RTS, 0, 0);
}

static int reconnect_rc(void *path, uint64_t incarnation)
{
	struct soft_path *p = path;
	const struct soft_nic *peer = soft_nic_at(p->qp->nic->fabric, p->peer_address);

	return peer ? connect_qp(p, peer->number, p->peer_qpn) : -EHOSTUNREACH;
}

static int address(void *path, uint64_t word[HA_GPU_DETAILS])
{
	struct soft_path *p = path;
	uint64_t now = __atomic_load_n(&p->qp->nic->address, __ATOMIC_RELAXED);

	if (now == p->announced)
		return 0;
	p->announced = word[0] = now;
	return 1;
}

static int moved(void *path, const uint64_t word[HA_GPU_DETAILS])
{
	((struct soft_path *)path)->peer_address = word[0];
	return 0;
}

enum ha_gpu_port soft_path_port(struct soft_nic *nic)
{
	static const enum ha_gpu_port as[] = { [SOFT_PORT_UP] = HA_GPU_PORT_UP,
					       [SOFT_PORT_DOWN] = HA_GPU_PORT_DOWN,
					       [SOFT_PORT_GONE] = HA_GPU_PORT_GONE };

	return as[soft_nic_port(nic)];
}

static enum ha_gpu_port port(void *path)
{
	return soft_path_port(((struct soft_path *)path)->qp->nic);
}

/* ---- dynamically connected ---- */

/* Both, whatever the first says: the target's fence is as much of it. */
static int fence_dc(void *path)
{
	struct soft_path *p = path;

	if (p->dct)
		soft_qp_modify(p->dct, SOFT_ERR, 0, 0);
	return fence(path);
}

/* A new incarnation has a new target with a new key: what was sent to the old one finds neither. */
static int reconnect_dc(void *path, uint64_t incarnation)
{
	struct soft_path *p = path;
	int r;

	r = connect_qp(p, 0, 0); /* entries name the peer */
	if (r)
		return r;
	if (p->dct)
		soft_qp_destroy(p->dct);
	p->dct = soft_dct_create(p->qp->nic,
				 (incarnation + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ p->qp->qpn);
	return p->dct ? 0 : -ENOMEM;
}

static void describe_target(void *path, uint64_t word[HA_GPU_DETAILS])
{
	const struct soft_path *p = path;

	word[0] = p->dct->qpn;
	word[1] = p->dct->dc.key;
	word[2] = p->qp->nic->number;
}

static int set_peer_target(void *path, const uint64_t word[HA_GPU_DETAILS],
			   struct ha_gpu_path *device)
{
	soft_write_av(device->av, (uint32_t)word[2], (uint32_t)word[0], word[1]);
	return 0;
}

void soft_write_av(uint64_t av[6], uint32_t nic, uint32_t number, uint64_t key)
{
	av[0] = ha_gpu_be64(key);
	av[1] = ha_gpu_be32(number | HA_GPU_AV_EXTENDED);
	av[2] = av[3] = av[4] = 0;
	av[5] = nic;
}

const struct ha_gpu_path_ops soft_dc_path_ops = { .fence = fence_dc,
						  .connect = reconnect_dc,
						  .port = port,
						  .address = address,
						  .moved = moved,
						  .describe = describe_target,
						  .set_peer = set_peer_target };
const struct ha_gpu_path_ops soft_path_ops = {
	.fence = fence, .connect = reconnect_rc, .port = port, .address = address, .moved = moved
};

void soft_path_describe(const struct soft_qp *qp, struct ha_gpu_path *p)
{
	p->wqe = qp->wqe;
	p->dbrec = qp->dbrec;
	p->bf = p->host_bf = qp->bf;
	p->cqe = qp->send.cqe;
	p->cq_dbrec = qp->send.dbrec;
	p->cq_log = qp->send.log;
	p->qpn = qp->qpn;
	p->wide = qp->kind == SOFT_DCI;
}
