/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_query.c - what the NIC says about itself */
#include "softroce/engine/limits.h"
#include "softroce/engine/nic.h"
#include <endian.h>
#include <stdio.h>
#include <string.h>

#ifndef HAWSER_VERSION
#define HAWSER_VERSION "0"
#endif

/* A locally administered EUI-64 made of the last four bytes of the first address. */
static __be64 node_guid(const struct sr_nic *nic)
{
	uint8_t guid[8] = { 0x02, 0x73, 0x72, 0x00 };
	__be64 value;

	memcpy(guid + 4, nic->config.gid[0].raw + 12, 4);
	memcpy(&value, guid, sizeof(value));
	return value;
}

void sr_nic_query_device(const struct sr_nic *nic, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr) {
		.node_guid = node_guid(nic),
		.sys_image_guid = node_guid(nic),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000u,
		.max_qp = 1 << SR_QPN_INDEX_BITS,
		.max_qp_wr = SR_MAX_WR,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		.max_sge = SR_MAX_SGE,
		.max_sge_rd = SR_MAX_SGE,
		.max_cq = SR_MAX_CQ,
		.max_cqe = SR_MAX_CQE,
		.max_mr = 1 << SR_KEY_INDEX_BITS,
		.max_mw = 1 << SR_KEY_INDEX_BITS,
		.max_ah = SR_MAX_AH,
		.max_pd = SR_MAX_PD,
		.max_qp_rd_atom = SR_MAX_RD_ATOMIC,
		.max_res_rd_atom = SR_MAX_RD_ATOMIC << SR_QPN_INDEX_BITS,
		.max_qp_init_rd_atom = SR_MAX_RD_ATOMIC,
		/* done with the processor's own atomic instructions */
		.atomic_cap = IBV_ATOMIC_GLOB,
		.max_srq = SR_MAX_SRQ,
		.max_srq_wr = SR_MAX_WR,
		.max_srq_sge = SR_MAX_SGE,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", HAWSER_VERSION);
}

void sr_nic_query_port(const struct sr_nic *nic, struct ibv_port_attr *attr)
{
	bool up = nic->link_up && !nic->dead;

	*attr = (struct ibv_port_attr) {
		.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = nic->config.active_mtu,
		.gid_tbl_len = SR_GIDS,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = SR_MAX_MESSAGE,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 1, /* 1X of 25.78 Gb/s (EDR): one lane of 25 Gb/s Ethernet */
		.active_speed = 32,
		.phys_state = up ? 5 : 3, /* LinkUp, Disabled (14.2.5.6) */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
}
