/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin_v11.h - NCCL's interface for device-initiated traffic, version 11 (NCCL 2.28.7 and later)
 *
 * A communicator of all ranks, memory that is registered at each of them, puts and signals. Its
 * host part is what NCCL's proxy thread calls for kernels. Until 2.29 the host's own one-sided
 * operations take the same structure, from NCCL's own transport alone.
 */
#ifndef HA_NCCL_ABI_GIN_V11_H
#define HA_NCCL_ABI_GIN_V11_H

#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/types.h"

#include <stdbool.h>

#define NCCL_NET_SIGNAL_OP_INC 0x1
#define NCCL_NET_SIGNAL_OP_ADD 0x2

typedef struct {
	const char *name;
	ncclResult_t (*init)(void **ctx, uint64_t comm_id, ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listen_comm);
	ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank, void *listen_comm,
				void **coll_comm);
	ncclResult_t (*createContext)(void *coll_comm, int nsignals, int ncounters, void **gin_ctx,
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
	ncclResult_t (*iput)(void *coll_comm, uint64_t source_offset, void *source, size_t size,
			     uint64_t target_offset, void *target, uint32_t rank, void **request);
	ncclResult_t (*iputSignal)(void *coll_comm, uint64_t source_offset, void *source,
				   size_t size, uint64_t target_offset, void *target, uint32_t rank,
				   uint64_t signal_offset, void *signals, uint64_t value,
				   uint32_t op, void **request);
	ncclResult_t (*test)(void *coll_comm, void *request, int *done);
	ncclResult_t (*ginProgress)(void *coll_comm);
	ncclResult_t (*queryLastError)(void *gin_ctx, bool *has_error);
	ncclResult_t (*finalize)(void *ctx);
} ncclGin_v11_t;

#endif
