/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet_wide.h - NCCL collnet interface with size_t counts and virtual devices: what
 * collnet_v9.c and collnet_v10.c are made of; they include this once, with ABI_VERSION the number
 */
#include "plugin/nccl/abi_names.h"
#include "plugin/nccl/collnet.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/properties.h"
#include "plugin/nccl/result.h"

static ncclResult_t get_properties(int dev, ABI_TYPE(ncclNetProperties) * props)
{
	ncclResult_t result = ABI_NAME(ha_net_properties_v)(dev, props);

	if (result != ncclSuccess)
		return result;
	props->ptrSupport = NCCL_PTR_HOST; /* the backend reads host memory */
	props->maxCollBytes = HA_COLLNET_BYTES;
	return ncclSuccess;
}

static ncclResult_t init(ncclDebugLogger_t logger)
{
	return ha_result(ha_plugin_init(logger));
}

static ncclResult_t make_vdevice(int *dev, ABI_TYPE(ncclNetVDeviceProps) * props)
{
	return ha_net_make_vdevice(HA_VDEVICE_COLLNET, dev, props->ndevs,
				   ABI_NAME(NCCL_NET_MAX_DEVS_PER_NIC_V), props->devs);
}

__attribute__((visibility("default"))) const ABI_TYPE(ncclCollNet) ABI_NAME(ncclCollNetPlugin_v) = {
	.name = HA_PLUGIN_NAME,
	.init = init,
	.devices = ha_nccl_collnet_devices,
	.getProperties = get_properties,
	.listen = ha_nccl_collnet_listen,
	.connect = ha_nccl_collnet_connect,
	.reduceSupport = ha_nccl_collnet_reduce_support,
	.regMr = ha_nccl_collnet_reg_mr,
	.regMrDmaBuf = ha_nccl_collnet_reg_mr_dmabuf,
	.deregMr = ha_nccl_collnet_dereg_mr,
	.iallreduce = ha_nccl_collnet_iallreduce,
	/* both: the switch saves no bytes there, and NCCL asks before it calls */
	.iallgather = NULL,
	.ireducescatter = NULL,
	.iflush = ha_nccl_collnet_iflush,
	.test = ha_nccl_collnet_test,
	.closeColl = ha_nccl_collnet_close,
	.closeListen = ha_nccl_collnet_close_listen,
	.makeVDevice = make_vdevice,
};
