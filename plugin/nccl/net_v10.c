/* SPDX-License-Identifier: BSD-3-Clause */
/* net_v10.c - NCCL network interface, version 10: traffic class per connection, profiler handles */
#include "plugin/nccl/abi/net_v10.h"

#include "plugin/nccl/net.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/properties.h"
#include "plugin/nccl/resident.h"
#include "plugin/nccl/result.h"

ncclResult_t ha_net_properties_v10(int dev, ncclNetProperties_v10_t *props)
{
	struct ha_dev_props p;
	ncclResult_t result = ha_net_props(dev, &p);

	if (result != ncclSuccess)
		return result;
	*props = (ncclNetProperties_v10_t) { 0 };
	props->name = (char *)p.name;
	props->pciPath = (char *)p.pci_path;
	props->guid = p.guid;
	props->ptrSupport = p.ptr_support;
	props->regIsGlobal = p.reg_is_global;
	props->forceFlush = p.force_flush;
	props->speed = p.speed_mbps;
	props->port = p.port;
	props->latency = p.latency_us;
	props->maxComms = p.max_comms;
	props->maxRecvs = p.max_recvs;
	props->netDeviceType = NCCL_NET_DEVICE_HOST;
	props->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
	props->vProps.ndevs = ha_net_members(&p, props->vProps.devs, NCCL_NET_MAX_DEVS_PER_NIC_V10);
	props->maxP2pBytes = p.max_p2p_bytes;
	props->maxCollBytes = p.max_coll_bytes;
	return ncclSuccess;
}

static ncclResult_t init(ncclDebugLogger_t logger, ncclProfilerCallback_t profiler)
{
	int err = ha_plugin_init(logger);

	if (!err)
		ha_resident_stay_by_default_name();
	return ha_result(err);
}

static ncclResult_t listen_v10(int dev, void *handle, void **listen_comm)
{
	return ha_net_listen(ha_plugin_core(), NULL, dev, handle, listen_comm);
}

static ncclResult_t connect_v10(int dev, ncclNetCommConfig_v10_t *config, void *handle,
				void **send_comm, ncclNetDeviceHandle_v10_t **dev_comm)
{
	struct ha_comm_opts opts = { .traffic_class = config ? config->trafficClass
							     : NCCL_NET_TRAFFIC_CLASS_UNDEF };

	return ha_net_connect(ha_plugin_core(), &opts, dev, handle, send_comm);
}

static ncclResult_t isend(void *send_comm, void *data, size_t size, int tag, void *mhandle,
			  void *phandle, void **request)
{
	return ha_net_isend(send_comm, data, size, tag, mhandle, request);
}

static ncclResult_t irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
			  void **mhandles, void **phandles, void **request)
{
	return ha_net_irecv(recv_comm, n, data, sizes, tags, mhandles, ha_net_is_optional(request),
			    request);
}

static ncclResult_t make_vdevice(int *dev, ncclNetVDeviceProps_v10_t *props)
{
	return ha_net_make_vdevice(HA_VDEVICE_NET, dev, props->ndevs, NCCL_NET_MAX_DEVS_PER_NIC_V10,
				   props->devs);
}

__attribute__((visibility("default"))) const ncclNet_v10_t ncclNetPlugin_v10 = {
	.name = HA_PLUGIN_NAME,
	.init = init,
	.devices = ha_net_devices,
	.getProperties = ha_net_properties_v10,
	.listen = listen_v10,
	.connect = connect_v10,
	.accept = ha_net_accept_host,
	.regMr = ha_net_reg_mr,
	.regMrDmaBuf = ha_net_reg_mr_dmabuf,
	.deregMr = ha_net_dereg_mr,
	.isend = isend,
	.irecv = irecv,
	.iflush = ha_net_iflush,
	.test = ha_net_test,
	.closeSend = ha_net_close_send,
	.closeRecv = ha_net_close_recv,
	.closeListen = ha_net_close_listen,
	.getDeviceMr =
		NULL, /* both: nothing of ours runs on the GPU, and NCCL asks before it calls */
	.irecvConsumed = NULL,
	.makeVDevice = make_vdevice,
};
