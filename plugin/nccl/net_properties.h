/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_properties.h - what a version of NCCL's interface gives of a device; each net_vN.c includes
 * it once, with ABI_VERSION the number
 */
#include "plugin/nccl/abi_names.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/properties.h"

ncclResult_t ABI_NAME(ha_net_properties_v)(int dev, ABI_TYPE(ncclNetProperties) * props)
{
	struct ha_dev_props p;
	ncclResult_t result = ha_net_props(dev, &p);

	if (result != ncclSuccess)
		return result;
	*props = (ABI_TYPE(ncclNetProperties)) { 0 };
	props->name = (char *)p.name;
	props->pciPath = (char *)p.pci_path;
	props->guid = p.guid;
	props->ptrSupport = p.ptr_support;
	props->speed = p.speed_mbps;
	props->port = p.port;
	props->latency = p.latency_us;
	props->maxComms = p.max_comms;
	props->maxRecvs = p.max_recvs;
#if ABI_VERSION >= 7
	props->netDeviceType = NCCL_NET_DEVICE_HOST;
	props->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
#endif
#if ABI_VERSION >= 8
	props->regIsGlobal = p.reg_is_global;
#endif
#if ABI_VERSION >= 9
	props->forceFlush = p.force_flush;
	props->vProps.ndevs =
		ha_net_members(&p, props->vProps.devs, ABI_NAME(NCCL_NET_MAX_DEVS_PER_NIC_V));
	props->maxP2pBytes = p.max_p2p_bytes;
	props->maxCollBytes = p.max_coll_bytes;
#endif
#if ABI_VERSION >= 11
	props->maxMultiRequestSize = 1;
#endif
#if ABI_VERSION >= 12
	props->railId = (int16_t)p.rail_id; /* -1 is NCCL_NET_ID_UNDEF */
	props->planeId = (int16_t)p.plane_id;
#endif
	return ncclSuccess;
}
