/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin_v13.h - NCCL's one-sided interface, version 13 (NCCL 2.30)
 *
 * Over v12: contexts are objects with a configuration, which operations take instead of the
 * communicator; gets, and a flush behind them. The same structure under the name of ncclRma serves
 * the host's own operations and, from 2.30.7 on, NCCL's proxy thread.
 */
#ifndef HA_NCCL_ABI_GIN_V13_H
#define HA_NCCL_ABI_GIN_V13_H

#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/types.h"

#include <stdbool.h>

#define NCCL_GIN_SIGNAL_OP_INC 0x1
#define NCCL_GIN_SIGNAL_OP_ADD 0x2

typedef struct {
	int nSignals;
	int nCounters;
	int nContexts;
	int queueDepth;
	int trafficClass; /* or NCCL_NET_TRAFFIC_CLASS_UNDEF */
} ncclGinConfig_v13_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(void **ctx, uint64_t comm_id, ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listen_comm);
	ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank, void *listen_comm,
				void **coll_comm);
	ncclResult_t (*createContext)(void *coll_comm, ncclGinConfig_v13_t *config, void **gin_ctx,
				      ncclNetDeviceHandle_v11_t **dev_handle);
	ncclResult_t (*regMrSym)(void *coll_comm, void *data, size_t size, int type, uint64_t flags,
				 void **mhandle, void **gin_handle);
	ncclResult_t (*regMrSymDmaBuf)(void *coll_comm, void *data, size_t size, int type,
				       uint64_t offset, int fd, uint64_t flags, void **mhandle,
				       void **gin_handle);
	ncclResult_t (*deregMrSym)(void *coll_comm, void *mhandle);
	ncclResult_t (*destroyContext)(void *gin_ctx);
	ncclResult_t (*closeColl)(void *coll_comm);
	ncclResult_t (*closeListen)(void *listen_comm);
	ncclResult_t (*iput)(void *gin_ctx, int context, uint64_t source_offset, void *source,
			     size_t size, uint64_t target_offset, void *target, uint32_t rank,
			     void **request);
	ncclResult_t (*iputSignal)(void *gin_ctx, int context, uint64_t source_offset, void *source,
				   size_t size, uint64_t target_offset, void *target, uint32_t rank,
				   uint64_t signal_offset, void *signals, uint64_t value,
				   uint32_t op, void **request);
	ncclResult_t (*iget)(void *gin_ctx, int context, uint64_t remote_offset, void *remote,
			     size_t size, uint64_t local_offset, void *local, uint32_t rank,
			     void **request);
	ncclResult_t (*iflush)(void *gin_ctx, int context, void *mhandle, uint32_t rank,
			       void **request);
	ncclResult_t (*test)(void *coll_comm, void *request, int *done);
	ncclResult_t (*ginProgress)(void *gin_ctx);
	ncclResult_t (*queryLastError)(void *gin_ctx, bool *has_error);
	ncclResult_t (*finalize)(void *ctx);
} ncclGin_v13_t;

typedef ncclGin_v13_t ncclRma_v13_t;

#endif
