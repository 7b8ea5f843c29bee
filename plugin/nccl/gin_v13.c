/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin_v13.c - NCCL's one-sided interface, version 13, under its two names: 2.30.7 and later take it
 * as the RMA table, for the host's own operations and for the proxy thread
 */
#include "plugin/nccl/abi/gin_v13.h"

#include "plugin/nccl/gin.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/plugin.h"

static ncclResult_t create_context(void *coll_comm, ncclGinConfig_v13_t *config, void **gin_ctx,
				   ncclNetDeviceHandle_v11_t **dev_handle)
{
	if (dev_handle)
		*dev_handle = NULL; /* nothing of ours runs on the GPU */
	return ha_gin_create_context(
		coll_comm, config ? config->trafficClass : NCCL_NET_TRAFFIC_CLASS_UNDEF, gin_ctx);
}

static ncclResult_t iput(void *gin_ctx, int context, uint64_t source_offset, void *source,
			 size_t size, uint64_t target_offset, void *target, uint32_t rank,
			 void **request)
{
	struct ha_rma_put put =
		HA_GIN_DATA(rank, size, source, source_offset, target, target_offset);

	return ha_gin_put(gin_ctx, &put, 0, request);
}

static ncclResult_t iput_signal(void *gin_ctx, int context, uint64_t source_offset, void *source,
				size_t size, uint64_t target_offset, void *target, uint32_t rank,
				uint64_t signal_offset, void *signals, uint64_t value, uint32_t op,
				void **request)
{
	struct ha_rma_put put =
		HA_GIN_DATA(rank, size, source, source_offset, target, target_offset);

	put.signals = signals;
	put.signal_offset = signal_offset;
	put.value = value;
	return ha_gin_put(gin_ctx, &put, op, request);
}

static ncclResult_t iget(void *gin_ctx, int context, uint64_t remote_offset, void *remote,
			 size_t size, uint64_t local_offset, void *local, uint32_t rank,
			 void **request)
{
	struct ha_rma_put get = HA_GIN_DATA(rank, size, local, local_offset, remote, remote_offset);

	return ha_gin_get(gin_ctx, &get, request);
}

#define TABLE                                                                                \
	{                                                                                    \
		.name = HA_PLUGIN_NAME, .init = ha_gin_init, .devices = ha_net_devices,      \
		.getProperties = ha_gin_properties_v12, .listen = ha_gin_listen,             \
		.connect = ha_gin_connect_ctx, .createContext = create_context,              \
		.regMrSym = ha_gin_reg_mr, .regMrSymDmaBuf = ha_gin_reg_mr_dmabuf,           \
		.deregMrSym = ha_gin_dereg_mr, .destroyContext = ha_gin_destroy_context,     \
		.closeColl = ha_gin_close, .closeListen = ha_gin_close_listen, .iput = iput, \
		.iputSignal = iput_signal, .iget = iget, .iflush = ha_gin_flush,             \
		.test = ha_gin_test, .ginProgress = ha_gin_progress,                         \
		.queryLastError = ha_gin_query_error, .finalize = ha_gin_finalize,           \
	}

__attribute__((visibility("default"))) const ncclGin_v13_t ncclGinPlugin_v13 = TABLE;
__attribute__((visibility("default"))) const ncclRma_v13_t ncclRmaPlugin_v13 = TABLE;
