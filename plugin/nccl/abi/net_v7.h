/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_v7.h - NCCL network interface, version 7 (NCCL 2.19 and later)
 *
 * Over v6: a transport may live on the GPU. connect and accept take a slot for its object (left
 * alone by a transport of the host), getDeviceMr and irecvConsumed are its calls; NCCL tests both
 * for NULL.
 */
#ifndef HA_NCCL_ABI_NET_V7_H
#define HA_NCCL_ABI_NET_V7_H

#include "plugin/nccl/abi/types.h"

typedef struct {
	char *name;
	char *pciPath;
	uint64_t guid;
	int ptrSupport;
	int speed; /* Mbit/s */
	int port;
	float latency; /* microseconds */
	int maxComms;
	int maxRecvs;
	ncclNetDeviceType netDeviceType;
	int netDeviceVersion;
} ncclNetProperties_v7_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t *props);
	ncclResult_t (*listen)(int dev, void *handle, void **listen_comm);
	ncclResult_t (*connect)(int dev, void *handle, void **send_comm,
				ncclNetDeviceHandle_v7_t **dev_comm);
	ncclResult_t (*accept)(void *listen_comm, void **recv_comm,
			       ncclNetDeviceHandle_v7_t **dev_comm);
	ncclResult_t (*regMr)(void *comm, void *data, int size, int type, void **mhandle);
	ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
				    int fd, void **mhandle);
	ncclResult_t (*deregMr)(void *comm, void *mhandle);
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
	ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **dev_mhandle);
	ncclResult_t (*irecvConsumed)(void *recv_comm, int n, void *request);
} ncclNet_v7_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t *props);
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
} ncclCollNet_v7_t;

#endif
