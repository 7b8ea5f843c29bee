/* SPDX-License-Identifier: BSD-3-Clause */
/* net_v10.c - NCCL network interface, version 10: traffic class per connection, profiler handles */
#include "plugin/nccl/abi/net_v10.h"

#define ABI_VERSION 10
#include "plugin/nccl/net.h"
#include "plugin/nccl/net_properties.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/profile.h"
#include "plugin/nccl/resident.h"
#include "plugin/nccl/result.h"

static ncclResult_t init(ncclDebugLogger_t logger, ncclProfilerCallback_t profiler)
{
	int err = ha_plugin_init(logger);

	ha_profile_report_to(profiler);
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

__attribute__((visibility("default"))) ncclNet_v10_t ncclNetPlugin_v10 = {
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
	/* both: nothing of ours runs on the GPU, and NCCL asks before it calls */
	.getDeviceMr = NULL,
	.irecvConsumed = NULL,
	.makeVDevice = make_vdevice,
};

/* A profiler is reported to by other calls; before NCCL has looked at the table. */
__attribute__((constructor)) static void choose_calls(void)
{
	if (!ha_profile_wanted())
		return;
	ncclNetPlugin_v10.isend = ha_profile_isend;
	ncclNetPlugin_v10.irecv = ha_profile_irecv;
	ncclNetPlugin_v10.test = ha_profile_test;
	ncclNetPlugin_v10.closeSend = ha_profile_close_send;
	ncclNetPlugin_v10.closeRecv = ha_profile_close_recv;
}
