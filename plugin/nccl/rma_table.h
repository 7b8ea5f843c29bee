/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_table.h - NCCL's one-sided interface from version 14 on: what rma_v14.c to rma_v17.c are made
 * of; each includes this once, with ABI_VERSION the number
 *
 * A context is the communicator: all contexts of a pair of ranks share one connection and one
 * order, so every signal is a strong one. The flags ask for nothing that we would do otherwise.
 */
#include "plugin/nccl/abi_names.h"
#include "plugin/nccl/gin.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/plugin.h"

#if ABI_VERSION >= 15
#define RMA_FLAGS uint32_t flags,
#else
#define RMA_FLAGS
#endif

static ncclResult_t create_context(void *coll_comm, ABI_TYPE(ncclRmaConfig) * config,
				   void **rma_ctx)
{
	return ha_gin_create_context(
		coll_comm, config ? config->trafficClass : NCCL_NET_TRAFFIC_CLASS_UNDEF, rma_ctx);
}

static ncclResult_t reg_mr_dmabuf(void *coll_comm, void *data, size_t size, int type,
				  uint64_t offset, int fd, uint64_t flags, void **mhandle)
{
	void *same;

	return ha_gin_reg_mr_dmabuf(coll_comm, data, size, type, offset, fd, flags, mhandle, &same);
}

static ncclResult_t reg_mr(void *coll_comm, void *data, size_t size, int type, uint64_t flags,
			   void **mhandle)
{
	return reg_mr_dmabuf(coll_comm, data, size, type, 0, -1, flags, mhandle);
}

static ncclResult_t iput(void *rma_ctx, int context, uint64_t source_offset, void *source,
			 size_t size, uint64_t target_offset, void *target, uint32_t rank,
			 RMA_FLAGS void **request)
{
	struct ha_rma_put put =
		HA_GIN_DATA(rank, size, source, source_offset, target, target_offset);

	return ha_gin_put(rma_ctx, &put, 0, request);
}

static ncclResult_t iput_signal(void *rma_ctx, int context, uint64_t source_offset, void *source,
				size_t size, uint64_t target_offset, void *target, uint32_t rank,
				uint64_t signal_offset, void *signals, uint64_t value, uint32_t op,
				bool is_strong, RMA_FLAGS void **request)
{
	struct ha_rma_put put =
		HA_GIN_DATA(rank, size, source, source_offset, target, target_offset);

	put.signals = signals;
	put.signal_offset = signal_offset;
	put.value = value;
	return ha_gin_put(rma_ctx, &put, op, request);
}

static ncclResult_t iget(void *rma_ctx, int context, uint64_t remote_offset, void *remote,
			 size_t size, uint64_t local_offset, void *local, uint32_t rank,
			 RMA_FLAGS void **request)
{
	struct ha_rma_put get = HA_GIN_DATA(rank, size, local, local_offset, remote, remote_offset);

	return ha_gin_get(rma_ctx, &get, request);
}

#if ABI_VERSION >= 16
/* The read that goes behind GPU memory's data takes the way of one sender's alone. */
static ncclResult_t get_rma_properties(void *coll_comm, ncclRmaProperties_v16_t *props)
{
	*props = (ncclRmaProperties_v16_t) { .flushesAllPutsOnAnySignal = false };
	return ncclSuccess;
}
#endif

__attribute__((visibility("default"))) const ABI_TYPE(ncclRma) ABI_NAME(ncclRmaPlugin_v) = {
	.name = HA_PLUGIN_NAME,
	.init = ha_gin_init,
	.devices = ha_net_devices,
#if ABI_VERSION >= 16
	.getRmaProperties = get_rma_properties,
#endif
	.getProperties = ha_gin_properties_v12,
	.listen = ha_gin_listen,
	.connect = ha_gin_connect_ctx,
	.createContext = create_context,
	.regMrSym = reg_mr,
	.regMrSymDmaBuf = reg_mr_dmabuf,
	.deregMrSym = ha_gin_dereg_mr,
	.destroyContext = ha_gin_destroy_context,
	.closeColl = ha_gin_close,
	.closeListen = ha_gin_close_listen,
	.iput = iput,
	.iputSignal = iput_signal,
	.iget = iget,
	.iflush = ha_gin_flush,
	.test = ha_gin_test,
	.rmaProgress = ha_gin_progress,
	.queryLastError = ha_gin_query_error,
	.finalize = ha_gin_finalize,
};
