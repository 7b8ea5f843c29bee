/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_context.h - NCCL network interface with a context per communicator, from version 11 on: what
 * net_v11.c and net_v12.c are made of; they include this once, with ABI_VERSION the number
 */
#include "plugin/nccl/abi_names.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/net_properties.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/profile.h"
#include "plugin/nccl/result.h"

static ncclResult_t init(void **ctx, uint64_t comm_id, ABI_TYPE(ncclNetCommConfig) * config,
			 ncclDebugLogger_t logger, ncclProfilerCallback_t profiler)
{
	int traffic_class = config ? config->trafficClass : NCCL_NET_TRAFFIC_CLASS_UNDEF;
	struct ha_plugin_comm *comm;
	int err = ha_plugin_comm_init(logger, comm_id, traffic_class, &comm);

	ha_profile_report_to(profiler);
	*ctx = comm;
	return ha_result(err);
}

static ncclResult_t listen_on(void *ctx, int dev, void *handle, void **listen_comm)
{
	struct ha_plugin_comm *comm = ctx;

	return ha_net_listen(comm->core, &comm->opts, dev, handle, listen_comm);
}

static ncclResult_t connect_to(void *ctx, int dev, void *handle, void **send_comm,
			       ABI_TYPE(ncclNetDeviceHandle) * *dev_comm)
{
	struct ha_plugin_comm *comm = ctx;

	return ha_net_connect(comm->core, &comm->opts, dev, handle, send_comm);
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

static ncclResult_t finalize(void *ctx)
{
	return ha_result(ha_plugin_comm_finalize(ctx));
}

static ncclResult_t set_net_attr(void *ctx, ABI_TYPE(ncclNetAttr) * attr)
{
	struct ha_plugin_comm *comm = ctx;

	if (!comm || !attr)
		return ncclInvalidArgument;
	atomic_store_explicit(&comm->hint.send_peers, attr->sendCommAttr.maxConcurrentPeers,
			      memory_order_relaxed);
	atomic_store_explicit(&comm->hint.send_flows, attr->sendCommAttr.maxFlowsPerPeer,
			      memory_order_relaxed);
	atomic_store_explicit(&comm->hint.recv_peers, attr->recvCommAttr.maxConcurrentPeers,
			      memory_order_relaxed);
	atomic_store_explicit(&comm->hint.recv_flows, attr->recvCommAttr.maxFlowsPerPeer,
			      memory_order_relaxed);
	atomic_store_explicit(&comm->hint.op, attr->op, memory_order_relaxed);
	atomic_store_explicit(&comm->hint.algo, attr->algo, memory_order_relaxed);
	atomic_store_explicit(&comm->hint.proto, attr->proto, memory_order_relaxed);
	return ncclSuccess;
}

static ncclResult_t make_vdevice(int *dev, ABI_TYPE(ncclNetVDeviceProps) * props)
{
	return ha_net_make_vdevice(HA_VDEVICE_NET, dev, props->ndevs,
				   ABI_NAME(NCCL_NET_MAX_DEVS_PER_NIC_V), props->devs);
}

__attribute__((visibility("default"))) ABI_TYPE(ncclNet) ABI_NAME(ncclNetPlugin_v) = {
	.name = HA_PLUGIN_NAME,
	.init = init,
	.devices = ha_net_devices,
	.getProperties = ABI_NAME(ha_net_properties_v),
	.listen = listen_on,
	.connect = connect_to,
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
	.finalize = finalize,
	.setNetAttr = set_net_attr,
};

/* A profiler is reported to by other calls; before NCCL has looked at the table. */
__attribute__((constructor)) static void choose_calls(void)
{
	if (!ha_profile_wanted())
		return;
	ABI_NAME(ncclNetPlugin_v).isend = ha_profile_isend;
	ABI_NAME(ncclNetPlugin_v).irecv = ha_profile_irecv;
	ABI_NAME(ncclNetPlugin_v).test = ha_profile_test;
	ABI_NAME(ncclNetPlugin_v).closeSend = ha_profile_close_send;
	ABI_NAME(ncclNetPlugin_v).closeRecv = ha_profile_close_recv;
}
