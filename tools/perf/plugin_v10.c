/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL net interface v10: conversion only. */
#include <stdio.h>

#include "plugin/nccl/abi/net_v10.h"
#include "tools/perf/plugin.h"

static const ncclNet_v10_t *table_of(const struct ha_plugin *plugin)
{
	return plugin->table;
}

static void bind_table(struct ha_plugin *plugin)
{
	const ncclNet_v10_t *t = table_of(plugin);

	plugin->name = t->name;
	plugin->count = t->devices;
	plugin->dereg = t->deregMr;
	plugin->iflush = t->iflush;
	plugin->test = t->test;
	plugin->close_send = t->closeSend;
	plugin->close_recv = t->closeRecv;
	plugin->close_listen = t->closeListen;
	plugin->consumed = t->irecvConsumed;
}

static ncclResult_t init(struct ha_plugin *plugin, uint64_t comm_id, ncclDebugLogger_t logger)
{
	return table_of(plugin)->init(logger, ha_plugin_profiler);
}

static ncclResult_t props(struct ha_plugin *plugin, int dev, struct ha_plugin_props *props)
{
	ncclNetProperties_v10_t p = { 0 };
	ncclResult_t result = table_of(plugin)->getProperties(dev, &p);

	if (result != ncclSuccess)
		return result;
	snprintf(props->name, sizeof(props->name), "%s", p.name ? p.name : "?");
	props->force_flush = p.forceFlush;
	props->speed = p.speed;
	props->port = p.port;
	props->max_comms = p.maxComms;
	props->max_recvs = p.maxRecvs;
	props->max_p2p_bytes = p.maxP2pBytes;
	return ncclSuccess;
}

static ncclResult_t listen_on(struct ha_plugin *plugin, int dev, void *handle, void **comm)
{
	return table_of(plugin)->listen(dev, handle, comm);
}

static ncclResult_t connect_to(struct ha_plugin *plugin, int dev, void *handle, void **comm)
{
	ncclNetDeviceHandle_v10_t *device = NULL; /* no offload asked for */
	ncclNetCommConfig_v10_t config = { .trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF };

	return table_of(plugin)->connect(dev, &config, handle, comm, &device);
}

static ncclResult_t accept_from(struct ha_plugin *plugin, void *listen_comm, void **comm)
{
	ncclNetDeviceHandle_v10_t *device = NULL;

	return table_of(plugin)->accept(listen_comm, comm, &device);
}

static ncclResult_t reg(struct ha_plugin *plugin, void *comm, void *data, size_t size, void **mhandle)
{
	return table_of(plugin)->regMr(comm, data, size, NCCL_PTR_HOST, mhandle);
}

static ncclResult_t isend(struct ha_plugin *plugin, void *comm, void *data, size_t size, int tag, void *mhandle,
			  void **request)
{
	return table_of(plugin)->isend(comm, data, size, tag, mhandle, &plugin->phandle, request);
}

static ncclResult_t irecv(struct ha_plugin *plugin, void *comm, int n, void **data, size_t *sizes, int *tags,
			  void **mhandles, void **request)
{
	void *phandles[HA_PLUGIN_MAX_GROUP];

	for (int i = 0; i < n; i++)
		phandles[i] = &plugin->phandle;
	return table_of(plugin)->irecv(comm, n, data, sizes, tags, mhandles, phandles, request);
}

static ncclResult_t fuse(struct ha_plugin *plugin, int *dev, int n, const int *devs)
{
	ncclNetVDeviceProps_v10_t props = { .ndevs = n };

	if (!table_of(plugin)->makeVDevice)
		return ncclInvalidUsage;
	for (int i = 0; i < n && i < NCCL_NET_MAX_DEVS_PER_NIC_V10; i++)
		props.devs[i] = devs[i];
	return table_of(plugin)->makeVDevice(dev, &props);
}

const struct ha_plugin_abi ha_plugin_abi_v10 = {
	.version = 10,
	.symbol = "ncclNetPlugin_v10",
	.bind = bind_table,
	.init = init,
	.props = props,
	.listen = listen_on,
	.connect = connect_to,
	.accept = accept_from,
	.reg = reg,
	.isend = isend,
	.irecv = irecv,
	.fuse = fuse,
};
