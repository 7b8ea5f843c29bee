/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One version of NCCL's net interface, conversion only: plugin_versions.c includes this once for
 * each, with HA_V the number. Where a version differs from the one before, the line says from which
 * on.
 */
#define TABLE HA_V_TYPE(ncclNet)
#define NAME(stem) HA_V_NAME(stem, HA_V)

static const TABLE *NAME(table_of)(const struct ha_plugin *plugin)
{
	return plugin->table;
}

static void NAME(bind_table)(struct ha_plugin *plugin)
{
	const TABLE *t = NAME(table_of)(plugin);

	plugin->name = t->name;
	plugin->count = t->devices;
	plugin->dereg = t->deregMr;
	plugin->iflush = t->iflush;
	plugin->test = t->test;
	plugin->close_send = t->closeSend;
	plugin->close_recv = t->closeRecv;
	plugin->close_listen = t->closeListen;
#if HA_V >= 7
	plugin->consumed = t->irecvConsumed;
#else
	plugin->consumed = NULL;
#endif
}

static ncclResult_t NAME(init_plugin)(struct ha_plugin *plugin, uint64_t comm_id,
				      ncclDebugLogger_t logger)
{
#if HA_V >= 11
	HA_V_TYPE(ncclNetCommConfig) config = { .trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF };

	return NAME(table_of)(plugin)->init(&plugin->context, comm_id, &config, logger,
					    ha_plugin_profiler);
#elif HA_V == 10
	return NAME(table_of)(plugin)->init(logger, ha_plugin_profiler);
#else
	return NAME(table_of)(plugin)->init(logger);
#endif
}

static ncclResult_t NAME(get_props)(struct ha_plugin *plugin, int dev,
				    struct ha_plugin_props *props)
{
	HA_V_TYPE(ncclNetProperties) p = { 0 };
	ncclResult_t result = NAME(table_of)(plugin)->getProperties(dev, &p);

	if (result != ncclSuccess)
		return result;
	snprintf(props->name, sizeof(props->name), "%s", p.name ? p.name : "?");
	props->speed = p.speed;
	props->port = p.port;
	props->max_comms = p.maxComms;
	props->max_recvs = p.maxRecvs;
#if HA_V >= 9
	props->force_flush = p.forceFlush;
	props->max_p2p_bytes = p.maxP2pBytes;
#else
	props->force_flush = 0;
	props->max_p2p_bytes = MAX_NET_SIZE;
#endif
	return ncclSuccess;
}

static ncclResult_t NAME(listen_on)(struct ha_plugin *plugin, int dev, void *handle, void **comm)
{
#if HA_V >= 11
	return NAME(table_of)(plugin)->listen(plugin->context, dev, handle, comm);
#else
	return NAME(table_of)(plugin)->listen(dev, handle, comm);
#endif
}

static ncclResult_t NAME(connect_to)(struct ha_plugin *plugin, int dev, void *handle, void **comm)
{
#if HA_V >= 7
	HA_V_TYPE(ncclNetDeviceHandle) *device = NULL; /* no offload asked for */
#endif
#if HA_V >= 11
	return NAME(table_of)(plugin)->connect(plugin->context, dev, handle, comm, &device);
#elif HA_V == 10
	ncclNetCommConfig_v10_t config = { .trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF };

	return NAME(table_of)(plugin)->connect(dev, &config, handle, comm, &device);
#elif HA_V >= 7
	return NAME(table_of)(plugin)->connect(dev, handle, comm, &device);
#else
	return NAME(table_of)(plugin)->connect(dev, handle, comm);
#endif
}

static ncclResult_t NAME(accept_from)(struct ha_plugin *plugin, void *listen_comm, void **comm)
{
#if HA_V >= 7
	HA_V_TYPE(ncclNetDeviceHandle) *device = NULL;

	return NAME(table_of)(plugin)->accept(listen_comm, comm, &device);
#else
	return NAME(table_of)(plugin)->accept(listen_comm, comm);
#endif
}

static ncclResult_t NAME(register_memory)(struct ha_plugin *plugin, void *comm, void *data,
					  size_t size, void **mhandle)
{
#if HA_V >= 8
	return NAME(table_of)(plugin)->regMr(comm, data, size, NCCL_PTR_HOST, mhandle);
#else
	if (size > INT_MAX)
		return ncclInternalError;
	return NAME(table_of)(plugin)->regMr(comm, data, (int)size, NCCL_PTR_HOST, mhandle);
#endif
}

static ncclResult_t NAME(post_send)(struct ha_plugin *plugin, void *comm, void *data, size_t size,
				    int tag, void *mhandle, void **request)
{
#if HA_V >= 10
	return NAME(table_of)(plugin)->isend(comm, data, size, tag, mhandle, &plugin->phandle,
					     request);
#elif HA_V == 9
	return NAME(table_of)(plugin)->isend(comm, data, size, tag, mhandle, request);
#else
	if (size > MAX_NET_SIZE)
		return ncclInternalError;
	return NAME(table_of)(plugin)->isend(comm, data, (int)size, tag, mhandle, request);
#endif
}

static ncclResult_t NAME(post_receive)(struct ha_plugin *plugin, void *comm, int n, void **data,
				       size_t *sizes, int *tags, void **mhandles, void **request)
{
#if HA_V >= 10
	void *phandles[HA_PLUGIN_MAX_GROUP];

	for (int i = 0; i < n; i++)
		phandles[i] = &plugin->phandle;
	return NAME(table_of)(plugin)->irecv(comm, n, data, sizes, tags, mhandles, phandles,
					     request);
#elif HA_V == 9
	return NAME(table_of)(plugin)->irecv(comm, n, data, sizes, tags, mhandles, request);
#else
	int int_sizes[HA_PLUGIN_MAX_GROUP];

	*request = NULL; /* no optional completion before v9 */
	for (int i = 0; i < n; i++) {
		if (sizes[i] > MAX_NET_SIZE)
			return ncclInternalError;
		int_sizes[i] = (int)sizes[i];
	}
	return NAME(table_of)(plugin)->irecv(comm, n, data, int_sizes, tags, mhandles, request);
#endif
}

#if HA_V >= 11
static void NAME(announce_traffic)(struct ha_plugin *plugin, int peers, int flows)
{
	HA_V_TYPE(ncclNetCommAttr) comm = { peers, peers, flows, flows };
	HA_V_TYPE(ncclNetAttr)
	attr = { comm, comm, NCCL_NET_ATTR_UNDEF, NCCL_NET_ATTR_UNDEF, NCCL_NET_ATTR_UNDEF };

	/* a hint: NCCL ignores the outcome too */
	if (NAME(table_of)(plugin)->setNetAttr)
		(void)NAME(table_of)(plugin)->setNetAttr(plugin->context, &attr);
}

static ncclResult_t NAME(finalize_plugin)(struct ha_plugin *plugin)
{
	return NAME(table_of)(plugin)->finalize(plugin->context);
}
#endif

#if HA_V >= 9
static ncclResult_t NAME(fuse_devices)(struct ha_plugin *plugin, int *dev, int n, const int *devs)
{
	HA_V_TYPE(ncclNetVDeviceProps) props = { .ndevs = n };

	if (!NAME(table_of)(plugin)->makeVDevice)
		return ncclInvalidUsage;
	for (int i = 0; i < n && i < HA_V_NAME(NCCL_NET_MAX_DEVS_PER_NIC_V, HA_V); i++)
		props.devs[i] = devs[i];
	return NAME(table_of)(plugin)->makeVDevice(dev, &props);
}
#endif

static const struct ha_plugin_abi NAME(abi) = {
	.version = HA_V,
	.symbol = HA_V_SYMBOL,
	.bind = NAME(bind_table),
	.init = NAME(init_plugin),
	.props = NAME(get_props),
	.listen = NAME(listen_on),
	.connect = NAME(connect_to),
	.accept = NAME(accept_from),
	.reg = NAME(register_memory),
	.isend = NAME(post_send),
	.irecv = NAME(post_receive),
#if HA_V >= 9
	.fuse = NAME(fuse_devices),
#endif
#if HA_V >= 11
	.announce = NAME(announce_traffic),
	.finalize = NAME(finalize_plugin),
#endif
};

#undef TABLE
#undef NAME
#undef HA_V
