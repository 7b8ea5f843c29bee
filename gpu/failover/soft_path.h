/* SPDX-License-Identifier: BSD-3-Clause */
/* path.h - a software queue pair as the failover agent's hardware */
#ifndef HA_GPU_FAILOVER_SOFT_PATH_H
#define HA_GPU_FAILOVER_SOFT_PATH_H

#include "gpu/failover/agent.h"
#include "gpu/soft/nic.h"

struct soft_path {
	struct soft_qp *qp;
	uint32_t peer_qpn; /* connected */
	/*
	 * dynamically: the target for this peer, a new one in each incarnation; NULL before the
	 * first
	 */
	struct soft_qp *dct;
	uint64_t announced, peer_address; /* our NIC's address as the peer knows it; its NIC's */
};

/* `path` is a struct soft_path. Connected queue pairs; an initiator and a target for this peer. */
extern const struct ha_gpu_path_ops soft_path_ops, soft_dc_path_ops;

/* An address vector that names a software NIC's target. */
void soft_write_av(uint64_t av[6], uint32_t nic, uint32_t number, uint64_t key);

/* What a port's driver says, in the agent's words. */
enum ha_gpu_port soft_path_port(struct soft_nic *nic);

/*
 * The queue pair's addresses into a device path; keys, tables and the peer's mailbox are the
 * caller's.
 */
void soft_path_describe(const struct soft_qp *qp, struct ha_gpu_path *p);

#endif
