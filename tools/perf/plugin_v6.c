/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL net interface v6: conversion only. */
#include <stdio.h>

#include "plugin/nccl/abi/net_v6.h"
#include "tools/perf/plugin.h"

static const ncclNet_v6_t *table_of(const struct ha_plugin *plugin)
{
	return plugin->table;
}

static void bind_table(struct ha_plugin *plugin)
{
	const ncclNet_v6_t *t = table_of(plugin);

	plugin->name = t->name;
	plugin->count = t->devices;
	plugin->dereg = t->deregMr;
	plugin->iflush = t->iflush;
	plugin->test = t->test;
	plugin->close_send = t->closeSend;
	plugin->close_recv = t->closeRecv;
	plugin->close_listen = t->closeListen;
	plugin->consumed = NULL;
}

static ncclResult_t init(struct ha_plugin *plugin, uint64_t comm_id, ncclDebugLogger_t logger)
{
	return table_of(plugin)->init(logger);
}

static ncclResult_t props(struct ha_plugin *plugin, int dev, struct ha_plugin_props *props)
{
	ncclNetProperties_v6_t p = { 0 };
	ncclResult_t result = table_of(plugin)->getProperties(dev, &p);

	if (result != ncclSuccess)
		return result;
	snprintf(props->name, sizeof(props->name), "%s", p.name ? p.name : "?");
	props->force_flush = 0;
	props->speed = p.speed;
	props->port = p.port;
	props->max_comms = p.maxComms;
	props->max_recvs = p.maxRecvs;
	props->max_p2p_bytes = MAX_NET_SIZE;
	return ncclSuccess;
}

static ncclResult_t listen_on(struct ha_plugin *plugin, int dev, void *handle, void **comm)
{
	return table_of(plugin)->listen(dev, handle, comm);
}

static ncclResult_t connect_to(struct ha_plugin *plugin, int dev, void *handle, void **comm)
{
	return table_of(plugin)->connect(dev, handle, comm);
}

static ncclResult_t accept_from(struct ha_plugin *plugin, void *listen_comm, void **comm)
{
	return table_of(plugin)->accept(listen_comm, comm);
}

static ncclResult_t reg(struct ha_plugin *plugin, void *comm, void *data, size_t size, void **mhandle)
{
	if (size > INT_MAX)
		return ncclInternalError;
	return table_of(plugin)->regMr(comm, data, (int)size, NCCL_PTR_HOST, mhandle);
}

static ncclResult_t isend(struct ha_plugin *plugin, void *comm, void *data, size_t size, int tag, void *mhandle,
			  void **request)
{
	if (size > MAX_NET_SIZE)
		return ncclInternalError;
	return table_of(plugin)->isend(comm, data, (int)size, tag, mhandle, request);
}

static ncclResult_t irecv(struct ha_plugin *plugin, void *comm, int n, void **data, size_t *sizes, int *tags,
			  void **mhandles, void **request)
{
	int int_sizes[HA_PLUGIN_MAX_GROUP];

	*request = NULL; /* no optional completion before v9 */
	for (int i = 0; i < n; i++) {
		if (sizes[i] > MAX_NET_SIZE)
			return ncclInternalError;
		int_sizes[i] = (int)sizes[i];
	}
	return table_of(plugin)->irecv(comm, n, data, int_sizes, tags, mhandles, request);
}

const struct ha_plugin_abi ha_plugin_abi_v6 = {
	.version = 6,
	.symbol = "ncclNetPlugin_v6",
	.bind = bind_table,
	.init = init,
	.props = props,
	.listen = listen_on,
	.connect = connect_to,
	.accept = accept_from,
	.reg = reg,
	.isend = isend,
	.irecv = irecv,
};
