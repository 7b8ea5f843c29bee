/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prm.h - the commands that go to a ConnectX's firmware through DEVX, as bytes
 *
 * Layouts: NVIDIA's Adapters Programmer's Reference Manual as published in Linux'
 * include/linux/mlx5/mlx5_ifc.h and rdma-core's providers/mlx5/mlx5_ifc.h; a field is (bit offset
 * from the start of the command, width), big-endian. Pure functions: no NIC is needed.
 */
#ifndef HA_GPU_HOST_PRM_H
#define HA_GPU_HOST_PRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HA_GPU_PRM_IN 272 /* bytes of the longest command */
#define HA_GPU_PRM_OUT 16

struct ha_gpu_prm_cq {
	uint32_t uar, eqn;
	uint32_t umem, dbr_umem;
	uint64_t offset, dbr_offset; /* bytes within the umems */
	unsigned log;                /* entries as a power of two; 0: collapsed */
};

struct ha_gpu_prm_qp {
	uint32_t uar, pd, cqn;
	uint32_t umem, dbr_umem;
	uint64_t offset, dbr_offset;
	unsigned log; /* send queue, entries as a power of two; there is no receive queue */
	uint32_t user_index;
	bool dci; /* an initiator of dynamic connections instead of a reliable connection */
};

struct ha_gpu_prm_dct {
	uint32_t pd, cqn, srqn;
	uint64_t key;
	unsigned port, mtu, gid_index, traffic_class, service_level;
	bool ethernet;
};

struct ha_gpu_prm_peer {
	uint32_t qpn, psn;  /* the peer's number; number of its first packet */
	unsigned port, mtu; /* ours; enum ibv_mtu */
	bool ethernet;
	uint8_t gid[16], mac[6]; /* RoCE: of the next hop */
	unsigned gid_index;      /* ours */
	unsigned lid, service_level, traffic_class;
	unsigned udp_port; /* source port, RoCE v2 */
};

/* Each clears and fills in[HA_GPU_PRM_IN] and returns the command's length. */
size_t ha_gpu_prm_create_cq(uint8_t *in, const struct ha_gpu_prm_cq *cq);
size_t ha_gpu_prm_create_qp(uint8_t *in, const struct ha_gpu_prm_qp *qp);
size_t ha_gpu_prm_rst2init(uint8_t *in, uint32_t qpn, unsigned port);
/* nothing lands through it: no access */
size_t ha_gpu_prm_dci_rst2init(uint8_t *in, uint32_t qpn, unsigned port);
size_t ha_gpu_prm_create_dct(uint8_t *in, const struct ha_gpu_prm_dct *dct);
size_t ha_gpu_prm_init2rtr(uint8_t *in, uint32_t qpn, const struct ha_gpu_prm_peer *peer);
size_t ha_gpu_prm_rtr2rts(uint8_t *in, uint32_t qpn, uint32_t psn, unsigned timeout,
			  unsigned retry_cnt);
size_t ha_gpu_prm_to_error(uint8_t *in, uint32_t qpn);
size_t ha_gpu_prm_to_reset(uint8_t *in, uint32_t qpn);
/* From an answer: number of what was made, and what the firmware says when it refuses. */
uint32_t ha_gpu_prm_number(const uint8_t *out);
uint8_t ha_gpu_prm_status(const uint8_t *out);
uint32_t ha_gpu_prm_syndrome(const uint8_t *out);

#endif
