/* SPDX-License-Identifier: BSD-3-Clause */
/* gin_v11.c - NCCL's one-sided interface, version 11 */
#include "plugin/nccl/abi/gin_v11.h"

#include "plugin/nccl/gin.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/plugin.h"

static ncclResult_t iput(void *coll_comm, uint64_t source_offset, void *source, size_t size,
			 uint64_t target_offset, void *target, uint32_t rank, void **request)
{
	struct ha_rma_put put =
		HA_GIN_DATA(rank, size, source, source_offset, target, target_offset);

	return ha_gin_put(coll_comm, &put, 0, request);
}

static ncclResult_t iput_signal(void *coll_comm, uint64_t source_offset, void *source, size_t size,
				uint64_t target_offset, void *target, uint32_t rank,
				uint64_t signal_offset, void *signals, uint64_t value, uint32_t op,
				void **request)
{
	struct ha_rma_put put =
		HA_GIN_DATA(rank, size, source, source_offset, target, target_offset);

	put.signals = signals;
	put.signal_offset = signal_offset;
	put.value = value;
	return ha_gin_put(coll_comm, &put, op, request);
}

__attribute__((visibility("default"))) const ncclGin_v11_t ncclGinPlugin_v11 = {
	.name = HA_PLUGIN_NAME,
	.init = ha_gin_init,
	.devices = ha_net_devices,
	.getProperties = ha_gin_properties_v11,
	.listen = ha_gin_listen,
	.connect = ha_gin_connect_ctx,
	.createContext = NULL, /* these and the last error: NCCL's proxy has contexts of its own */
	.regMrSym = ha_gin_reg_mr,
	.regMrSymDmaBuf = ha_gin_reg_mr_dmabuf,
	.deregMrSym = ha_gin_dereg_mr,
	.destroyContext = NULL,
	.closeColl = ha_gin_close,
	.closeListen = ha_gin_close_listen,
	.iput = iput,
	.iputSignal = iput_signal,
	.test = ha_gin_test,
	.ginProgress = ha_gin_progress,
	.queryLastError = NULL,
	.finalize = ha_gin_finalize,
};
