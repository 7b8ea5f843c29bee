/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_v17.h - NCCL's one-sided interface, version 17 (NCCL 2.32)
 *
 * Over v16: the configuration names the ranks that will be written to.
 */
#ifndef HA_NCCL_ABI_RMA_V17_H
#define HA_NCCL_ABI_RMA_V17_H

#include "plugin/nccl/abi/rma_v16.h"

typedef struct {
	int nContexts;
	int trafficClass; /* or NCCL_NET_TRAFFIC_CLASS_UNDEF */
	int *peerArray;
	int peerArrayCount;
} ncclRmaConfig_v17_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(void **ctx, uint64_t comm_id, ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getRmaProperties)(void *coll_comm, ncclRmaProperties_v16_t *props);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listen_comm);
	ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank, void *listen_comm,
				void **coll_comm);
	ncclResult_t (*createContext)(void *coll_comm, ncclRmaConfig_v17_t *config, void **rma_ctx);
	ncclResult_t (*regMrSym)(void *coll_comm, void *data, size_t size, int type, uint64_t flags,
				 void **mhandle);
	ncclResult_t (*regMrSymDmaBuf)(void *coll_comm, void *data, size_t size, int type,
				       uint64_t offset, int fd, uint64_t flags, void **mhandle);
	ncclResult_t (*deregMrSym)(void *coll_comm, void *mhandle);
	ncclResult_t (*destroyContext)(void *rma_ctx);
	ncclResult_t (*closeColl)(void *coll_comm);
	ncclResult_t (*closeListen)(void *listen_comm);
	ncclResult_t (*iput)(void *rma_ctx, int context, uint64_t source_offset, void *source,
			     size_t size, uint64_t target_offset, void *target, uint32_t rank,
			     uint32_t flags, void **request);
	ncclResult_t (*iputSignal)(void *rma_ctx, int context, uint64_t source_offset, void *source,
				   size_t size, uint64_t target_offset, void *target, uint32_t rank,
				   uint64_t signal_offset, void *signals, uint64_t value,
				   uint32_t op, bool is_strong, uint32_t flags, void **request);
	ncclResult_t (*iget)(void *rma_ctx, int context, uint64_t remote_offset, void *remote,
			     size_t size, uint64_t local_offset, void *local, uint32_t rank,
			     uint32_t flags, void **request);
	ncclResult_t (*iflush)(void *rma_ctx, int context, void *mhandle, uint32_t rank,
			       void **request);
	ncclResult_t (*test)(void *coll_comm, void *request, int *done);
	ncclResult_t (*rmaProgress)(void *rma_ctx);
	ncclResult_t (*queryLastError)(void *rma_ctx, bool *has_error);
	ncclResult_t (*finalize)(void *ctx);
} ncclRma_v17_t;

#endif
