/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One version of NCCL's one-sided interface, conversion only: gin_table.c includes this once for
 * each, with HA_V the number and HA_V_TABLE its structure.
 */
#define NAME(stem) HA_V_NAME(stem, HA_V)

static const HA_V_TABLE *NAME(table_of)(const struct ha_gin_table *gin)
{
	return gin->table;
}

static void NAME(bind)(struct ha_gin_table *gin)
{
	gin->name = NAME(table_of)(gin)->name;
}

static ncclResult_t NAME(init)(struct ha_gin_table *gin, uint64_t id, ncclDebugLogger_t logger)
{
	return NAME(table_of)(gin)->init(&gin->ctx, id, logger);
}

static ncclResult_t NAME(finalize)(struct ha_gin_table *gin)
{
	return NAME(table_of)(gin)->finalize(gin->ctx);
}

static ncclResult_t NAME(devices)(const struct ha_gin_table *gin, int *n)
{
	return NAME(table_of)(gin)->devices(n);
}

static ncclResult_t NAME(device)(const struct ha_gin_table *gin, int dev,
				 struct ha_gin_device *device)
{
#if HA_V >= 13
	ncclNetProperties_v12_t props = { 0 };
#else
	ncclNetProperties_v11_t props = { 0 };
#endif
	ncclResult_t result = NAME(table_of)(gin)->getProperties(dev, &props);

	*device = (struct ha_gin_device) { .name = props.name,
					   .speed = props.speed,
					   .max_receives = props.maxRecvs,
					   .memory = props.ptrSupport,
					   .type = props.netDeviceType };
	return result;
}

static ncclResult_t NAME(listen)(const struct ha_gin_table *gin, int dev, void *handle,
				 void **listen_comm)
{
	return NAME(table_of)(gin)->listen(gin->ctx, dev, handle, listen_comm);
}

static ncclResult_t NAME(close_listen)(const struct ha_gin_table *gin, void *listen_comm)
{
	return NAME(table_of)(gin)->closeListen(listen_comm);
}

#if HA_V >= 13
static ncclResult_t NAME(create_context)(const struct ha_gin_table *gin, int contexts,
					 struct ha_gin_comm *comm)
{
#if HA_V == 13
	ncclNetDeviceHandle_v11_t *device;
	ncclGinConfig_v13_t config = { .nContexts = contexts,
				       .trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF };

	return NAME(table_of)(gin)->createContext(comm->comm, &config, &comm->context, &device);
#else
	HA_V_CONFIG config = { .nContexts = contexts,
			       .trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF };

	return NAME(table_of)(gin)->createContext(comm->comm, &config, &comm->context);
#endif
}
#endif

static ncclResult_t NAME(connect)(const struct ha_gin_table *gin, void **handles, int ranks,
				  int rank, int contexts, void *listen_comm,
				  struct ha_gin_comm *comm)
{
	ncclResult_t result;
#if HA_V >= 13
	static int not_ours; /* as NCCL passes the net table's context */

	result = NAME(table_of)(gin)->connect(&not_ours, handles, ranks, rank, listen_comm,
					      &comm->comm);
	return result == ncclSuccess ? NAME(create_context)(gin, contexts, comm) : result;
#elif HA_V == 12
	result = NAME(table_of)(gin)->connect(gin->ctx, handles, ranks, rank, contexts, 0,
					      listen_comm, &comm->comm);
#else
	result = NAME(table_of)(gin)->connect(gin->ctx, handles, ranks, rank, listen_comm,
					      &comm->comm);
#endif
	comm->context = comm->comm;
	return result;
}

static ncclResult_t NAME(close)(const struct ha_gin_table *gin, struct ha_gin_comm *comm)
{
#if HA_V >= 13
	ncclResult_t result = NAME(table_of)(gin)->destroyContext(comm->context);

	if (result != ncclSuccess)
		return result;
#endif
	return NAME(table_of)(gin)->closeColl(comm->comm);
}

static ncclResult_t NAME(reg)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			      void *data, size_t size, int type, uint64_t flags,
			      struct ha_gin_memory *memory)
{
#if HA_V >= HA_GIN_RMA
	ncclResult_t result = NAME(table_of)(gin)->regMrSym(comm->comm, data, size, type, flags,
							    &memory->mhandle);

	memory->handle = memory->mhandle;
	return result;
#else
	return NAME(table_of)(gin)->regMrSym(comm->comm, data, size, type, flags, &memory->mhandle,
					     &memory->handle);
#endif
}

static ncclResult_t NAME(dereg)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
				void *mhandle)
{
	return NAME(table_of)(gin)->deregMrSym(comm->comm, mhandle);
}

/* What operations end with. */
#if HA_V >= 15
#define FLAGS 0,
#else
#define FLAGS
#endif

static ncclResult_t NAME(put)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			      const struct ha_gin_put *p, void **request)
{
	const HA_V_TABLE *t = NAME(table_of)(gin);
	uint32_t rank = (uint32_t)p->rank;

#if HA_V >= 13
	if (!p->signal_op)
		return t->iput(comm->context, p->context, p->source_offset, p->source, p->size,
			       p->target_offset, p->target, rank, FLAGS request);
	return t->iputSignal(comm->context, p->context, p->source_offset, p->source, p->size,
			     p->target_offset, p->target, rank, p->signal_offset, p->signals,
			     p->value, p->signal_op,
#if HA_V >= HA_GIN_RMA
			     !p->is_weak,
#endif
			     FLAGS request);
#elif HA_V == 12
	if (!p->signal_op)
		return t->iput(comm->comm, p->source_offset, p->source, p->size, p->target_offset,
			       p->target, rank, p->context, request);
	return t->iputSignal(comm->comm, p->source_offset, p->source, p->size, p->target_offset,
			     p->target, rank, p->signal_offset, p->signals, p->value, p->signal_op,
			     p->context, request);
#else
	if (!p->signal_op)
		return t->iput(comm->comm, p->source_offset, p->source, p->size, p->target_offset,
			       p->target, rank, request);
	return t->iputSignal(comm->comm, p->source_offset, p->source, p->size, p->target_offset,
			     p->target, rank, p->signal_offset, p->signals, p->value, p->signal_op,
			     request);
#endif
}

#if HA_V >= HA_GIN_GETS
static ncclResult_t NAME(get)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			      const struct ha_gin_put *g, void **request)
{
	return NAME(table_of)(gin)->iget(comm->context, g->context, g->target_offset, g->target,
					 g->size, g->source_offset, g->source, (uint32_t)g->rank,
					 FLAGS request);
}

static ncclResult_t NAME(flush)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
				void *mhandle, int rank, void **request)
{
	return NAME(table_of)(gin)->iflush(comm->context, 0, mhandle, (uint32_t)rank, request);
}

static ncclResult_t NAME(last_error)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
				     bool *has_error)
{
	return NAME(table_of)(gin)->queryLastError(comm->context, has_error);
}
#endif

static ncclResult_t NAME(test)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			       void *request, int *done)
{
	return NAME(table_of)(gin)->test(comm->comm, request, done);
}

static ncclResult_t NAME(progress)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm)
{
#if HA_V >= HA_GIN_RMA
	ncclResult_t (*progress)(void *) = NAME(table_of)(gin)->rmaProgress;
#else
	ncclResult_t (*progress)(void *) = NAME(table_of)(gin)->ginProgress;
#endif

	return progress ? progress(comm->context) : ncclSuccess;
}

static const struct ha_gin_calls NAME(calls) = {
	.version = HA_V,
	.bind = NAME(bind),
	.init = NAME(init),
	.finalize = NAME(finalize),
	.devices = NAME(devices),
	.device = NAME(device),
	.listen = NAME(listen),
	.close_listen = NAME(close_listen),
	.connect = NAME(connect),
	.close = NAME(close),
	.reg = NAME(reg),
	.dereg = NAME(dereg),
	.put = NAME(put),
#if HA_V >= HA_GIN_GETS
	.get = NAME(get),
	.flush = NAME(flush),
	.last_error = NAME(last_error),
#endif
	.test = NAME(test),
	.progress = NAME(progress),
};

#undef FLAGS
#undef NAME
#undef HA_V
#undef HA_V_TABLE
#undef HA_V_CONFIG
