/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_v6.h - NCCL network interface, version 6 (NCCL 2.13 and later)
 *
 * The oldest version served. Sizes are int, there is no device offload, nothing is ever finalized:
 * the library is unloaded when NCCL is done with it.
 */
#ifndef HA_NCCL_ABI_NET_V6_H
#define HA_NCCL_ABI_NET_V6_H

#include "plugin/nccl/abi/types.h"

#define NCCL_NET_MAX_REQUESTS_V6 8

typedef struct {
	char *name;
	char *pciPath; /* real path under /sys; NCCL places the device in its topology by it */
	uint64_t guid; /* one per chip: ports of one chip share it */
	int ptrSupport;
	int speed; /* Mbit/s */
	int port;
	float latency; /* microseconds; 0: NCCL's own estimate */
	int maxComms;
	int maxRecvs; /* buffers in one grouped receive */
} ncclNetProperties_v6_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t *props);
	ncclResult_t (*listen)(int dev, void *handle, void **listen_comm);
	/* connect, accept: never block; a NULL comm with success asks to be called again */
	ncclResult_t (*connect)(int dev, void *handle, void **send_comm);
	ncclResult_t (*accept)(void *listen_comm, void **recv_comm);
	ncclResult_t (*regMr)(void *comm, void *data, int size, int type, void **mhandle);
	ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
				    int fd, void **mhandle);
	ncclResult_t (*deregMr)(void *comm, void *mhandle);
	/* isend, irecv: a NULL request with success asks to be called again */
	ncclResult_t (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
			      void **request);
	ncclResult_t (*irecv)(void *recv_comm, int n, void **data, int *sizes, int *tags,
			      void **mhandles, void **request);
	ncclResult_t (*iflush)(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
			       void **request);
	ncclResult_t (*test)(void *request, int *done, int *sizes);
	ncclResult_t (*closeSend)(void *send_comm);
	ncclResult_t (*closeRecv)(void *recv_comm);
	ncclResult_t (*closeListen)(void *listen_comm);
} ncclNet_v6_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t *props);
	ncclResult_t (*listen)(int dev, void *handle, void **listen_comm);
	ncclResult_t (*connect)(void *handles[], int nranks, int rank, void *listen_comm,
				void **coll_comm);
	ncclResult_t (*reduceSupport)(ncclDataType_t type, ncclRedOp_t op, int *supported);
	ncclResult_t (*regMr)(void *coll_comm, void *data, int size, int type, void **mhandle);
	ncclResult_t (*regMrDmaBuf)(void *coll_comm, void *data, size_t size, int type,
				    uint64_t offset, int fd, void **mhandle);
	ncclResult_t (*deregMr)(void *coll_comm, void *mhandle);
	ncclResult_t (*iallreduce)(void *coll_comm, void *send, void *recv, int count,
				   ncclDataType_t type, ncclRedOp_t op, void *send_mhandle,
				   void *recv_mhandle, void **request);
	ncclResult_t (*iflush)(void *coll_comm, void *data, int size, void *mhandle,
			       void **request);
	ncclResult_t (*test)(void *request, int *done, int *size);
	ncclResult_t (*closeColl)(void *coll_comm);
	ncclResult_t (*closeListen)(void *listen_comm);
} ncclCollNet_v6_t;

#endif
