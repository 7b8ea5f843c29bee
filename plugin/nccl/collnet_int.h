/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet_int.h - NCCL collnet interface with int sizes and counts: what collnet_v6.c and
 * collnet_v7.c are made of; they include this once, with ABI_VERSION the number
 */
#include "plugin/nccl/abi_names.h"
#include "plugin/nccl/collnet.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/properties.h"
#include "plugin/nccl/result.h"

static ncclResult_t get_properties(int dev, ABI_TYPE(ncclNetProperties) * props)
{
	ncclResult_t result = ABI_NAME(ha_net_properties_v)(dev, props);

	if (result != ncclSuccess)
		return result;
	props->ptrSupport = NCCL_PTR_HOST; /* the backend reads host memory */
	return ncclSuccess;
}

static ncclResult_t init(ncclDebugLogger_t logger)
{
	return ha_result(ha_plugin_init(logger));
}

static ncclResult_t reg_mr(void *coll_comm, void *data, int size, int type, void **mhandle)
{
	if (size >= 0)
		return ha_nccl_collnet_reg_mr(coll_comm, data, (size_t)size, type, mhandle);
	*mhandle = NULL;
	return ncclInvalidArgument;
}

static ncclResult_t iallreduce(void *coll_comm, void *send, void *recv, int count,
			       ncclDataType_t type, ncclRedOp_t op, void *send_mhandle,
			       void *recv_mhandle, void **request)
{
	if (count >= 0)
		return ha_nccl_collnet_iallreduce(coll_comm, send, recv, (size_t)count, type, op,
						  send_mhandle, recv_mhandle, request);
	*request = NULL;
	return ncclInvalidArgument;
}

__attribute__((visibility("default"))) const ABI_TYPE(ncclCollNet) ABI_NAME(ncclCollNetPlugin_v) = {
	.name = HA_PLUGIN_NAME,
	.init = init,
	.devices = ha_nccl_collnet_devices,
	.getProperties = get_properties,
	.listen = ha_nccl_collnet_listen,
	.connect = ha_nccl_collnet_connect,
	.reduceSupport = ha_nccl_collnet_reduce_support,
	.regMr = reg_mr,
	.regMrDmaBuf = ha_nccl_collnet_reg_mr_dmabuf,
	.deregMr = ha_nccl_collnet_dereg_mr,
	.iallreduce = iallreduce,
	.iflush = ha_nccl_collnet_iflush,
	.test = ha_nccl_collnet_test,
	.closeColl = ha_nccl_collnet_close,
	.closeListen = ha_nccl_collnet_close_listen,
};
