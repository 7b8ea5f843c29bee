/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v7.c - NCCL collnet interface, version 7: as version 6 */
#include "plugin/nccl/abi/net_v7.h"

#include "plugin/nccl/collnet.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/properties.h"
#include "plugin/nccl/result.h"

static ncclResult_t get_properties(int dev, ncclNetProperties_v7_t *props)
{
	ncclResult_t result = ha_net_properties_v7(dev, props);

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

__attribute__((visibility("default"))) const ncclCollNet_v7_t ncclCollNetPlugin_v7 = {
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
