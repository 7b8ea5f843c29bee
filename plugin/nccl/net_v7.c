/* SPDX-License-Identifier: BSD-3-Clause */
/* net_v7.c - NCCL network interface, version 7: int sizes, device objects */
#include "plugin/nccl/abi/net_v7.h"

#define ABI_VERSION 7
#include "plugin/nccl/net.h"
#include "plugin/nccl/net_properties.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/result.h"

static ncclResult_t init(ncclDebugLogger_t logger)
{
	return ha_result(ha_plugin_init(logger));
}

static ncclResult_t listen_v7(int dev, void *handle, void **listen_comm)
{
	return ha_net_listen(ha_plugin_core(), NULL, dev, handle, listen_comm);
}

static ncclResult_t connect_v7(int dev, void *handle, void **send_comm,
			       ncclNetDeviceHandle_v7_t **dev_comm)
{
	return ha_net_connect(ha_plugin_core(), NULL, dev, handle, send_comm);
}

static ncclResult_t reg_mr(void *comm, void *data, int size, int type, void **mhandle)
{
	if (size >= 0)
		return ha_net_reg_mr(comm, data, (size_t)size, type, mhandle);
	*mhandle = NULL;
	return ncclInvalidArgument;
}

static ncclResult_t isend(void *send_comm, void *data, int size, int tag, void *mhandle,
			  void **request)
{
	if (size >= 0)
		return ha_net_isend(send_comm, data, (size_t)size, tag, mhandle, request);
	*request = NULL;
	return ncclInvalidArgument;
}

static ncclResult_t irecv(void *recv_comm, int n, void **data, int *sizes, int *tags,
			  void **mhandles, void **request)
{
	size_t wide[HA_MAX_RECVS];

	if (ha_net_widen(n, sizes, wide))
		return ha_net_irecv(recv_comm, n, data, wide, tags, mhandles, false, request);
	*request = NULL;
	return ncclInvalidArgument;
}

__attribute__((visibility("default"))) const ncclNet_v7_t ncclNetPlugin_v7 = {
	.name = HA_PLUGIN_NAME,
	.init = init,
	.devices = ha_net_devices,
	.getProperties = ha_net_properties_v7,
	.listen = listen_v7,
	.connect = connect_v7,
	.accept = ha_net_accept_host,
	.regMr = reg_mr,
	.regMrDmaBuf = ha_net_reg_mr_dmabuf,
	.deregMr = ha_net_dereg_mr,
	.isend = isend,
	.irecv = irecv,
	.iflush = ha_net_iflush,
	.test = ha_net_test,
	.closeSend = ha_net_close_send,
	.closeRecv = ha_net_close_recv,
	.closeListen = ha_net_close_listen,
	/* both: nothing of ours runs on the GPU, and NCCL asks before it calls */
	.getDeviceMr = NULL,
	.irecvConsumed = NULL,
};
