/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet_context.h - NCCL collnet interface with a context per communicator and finalize, from
 * version 11 on: what collnet_v11.c and collnet_v12.c are made of; they include this once, with
 * ABI_VERSION the number
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

static ncclResult_t init(void **ctx, uint64_t comm_id, ncclDebugLogger_t logger)
{
	struct ha_collnet_context *context;
	int err = ha_collnet_context_new(logger, comm_id, &context);

	*ctx = context;
	return ha_result(err);
}

static ncclResult_t listen_on(void *ctx, int dev, void *handle, void **listen_comm)
{
	return ha_nccl_collnet_listen(dev, handle, listen_comm);
}

static ncclResult_t finalize(void *ctx)
{
	ha_collnet_context_end(ctx);
	return ncclSuccess;
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
	.listen = listen_on,
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
	.finalize = finalize,
};
