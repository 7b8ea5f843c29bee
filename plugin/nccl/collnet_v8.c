/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v8.c - NCCL collnet interface, version 8: sizes of registrations are size_t */
#include "plugin/nccl/abi/net_v8.h"

#include "plugin/nccl/collnet.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/properties.h"
#include "plugin/nccl/result.h"

static ncclResult_t get_properties(int dev, ncclNetProperties_v8_t *props)
{
	ncclResult_t result = ha_net_properties_v8(dev, props);

	if (result != ncclSuccess)
		return result;
	props->ptrSupport = NCCL_PTR_HOST; /* the backend reads host memory */
	return ncclSuccess;
}

static ncclResult_t init(ncclDebugLogger_t logger)
{
	return ha_result(ha_plugin_init(logger));
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

__attribute__((visibility("default"))) const ncclCollNet_v8_t ncclCollNetPlugin_v8 = {
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
	.iallreduce = iallreduce,
	/* both: the switch saves no bytes there, and NCCL asks before it calls */
	.iallgather = NULL,
	.ireducescatter = NULL,
	.iflush = ha_nccl_collnet_iflush,
	.test = ha_nccl_collnet_test,
	.closeColl = ha_nccl_collnet_close,
	.closeListen = ha_nccl_collnet_close_listen,
};
