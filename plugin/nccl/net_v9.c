/* SPDX-License-Identifier: BSD-3-Clause */
/* net_v9.c - NCCL network interface, version 9: size_t sizes, optional completion */
#include "plugin/nccl/abi/net_v9.h"

#define ABI_VERSION 9
#include "plugin/nccl/net.h"
#include "plugin/nccl/net_properties.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/result.h"

static ncclResult_t init(ncclDebugLogger_t logger)
{
	return ha_result(ha_plugin_init(logger));
}

static ncclResult_t listen_v9(int dev, void *handle, void **listen_comm)
{
	return ha_net_listen(ha_plugin_core(), NULL, dev, handle, listen_comm);
}

static ncclResult_t connect_v9(int dev, void *handle, void **send_comm,
			       ncclNetDeviceHandle_v9_t **dev_comm)
{
	return ha_net_connect(ha_plugin_core(), NULL, dev, handle, send_comm);
}

static ncclResult_t irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
			  void **mhandles, void **request)
{
	return ha_net_irecv(recv_comm, n, data, sizes, tags, mhandles, ha_net_is_optional(request),
			    request);
}

static ncclResult_t make_vdevice(int *dev, ncclNetVDeviceProps_v9_t *props)
{
	return ha_net_make_vdevice(HA_VDEVICE_NET, dev, props->ndevs, NCCL_NET_MAX_DEVS_PER_NIC_V9,
				   props->devs);
}

__attribute__((visibility("default"))) const ncclNet_v9_t ncclNetPlugin_v9 = {
	.name = HA_PLUGIN_NAME,
	.init = init,
	.devices = ha_net_devices,
	.getProperties = ha_net_properties_v9,
	.listen = listen_v9,
	.connect = connect_v9,
	.accept = ha_net_accept_host,
	.regMr = ha_net_reg_mr,
	.regMrDmaBuf = ha_net_reg_mr_dmabuf,
	.deregMr = ha_net_dereg_mr,
	.isend = ha_net_isend,
	.irecv = irecv,
	.iflush = ha_net_iflush,
	.test = ha_net_test,
	.closeSend = ha_net_close_send,
	.closeRecv = ha_net_close_recv,
	.closeListen = ha_net_close_listen,
	/* both: nothing of ours runs on the GPU, and NCCL asks before it calls */
	.getDeviceMr = NULL,
	.irecvConsumed = NULL,
	.makeVDevice = make_vdevice,
};
