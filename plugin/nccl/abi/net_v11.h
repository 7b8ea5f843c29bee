/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_v11.h - NCCL network interface, version 11 (NCCL 2.28 and later)
 *
 * Over v10: init is called for every communicator and gives it a context, which finalize ends; the
 * traffic class moves from connect to init; setNetAttr announces what traffic to expect.
 */
#ifndef HA_NCCL_ABI_NET_V11_H
#define HA_NCCL_ABI_NET_V11_H

#include "plugin/nccl/abi/types.h"

#define NCCL_NET_MAX_DEVS_PER_NIC_V11 4
#define NCCL_NET_TRAFFIC_CLASS_UNDEF -1
#define NCCL_NET_ATTR_UNDEF -1

typedef struct {
	int ndevs;
	int devs[NCCL_NET_MAX_DEVS_PER_NIC_V11];
} ncclNetVDeviceProps_v11_t;

typedef struct {
	int trafficClass; /* or NCCL_NET_TRAFFIC_CLASS_UNDEF */
} ncclNetCommConfig_v11_t;

typedef struct {
	char *name;
	char *pciPath;
	uint64_t guid;
	int ptrSupport;
	int regIsGlobal;
	int forceFlush;
	int speed; /* Mbit/s */
	int port;
	float latency; /* microseconds */
	int maxComms;
	int maxRecvs;
	ncclNetDeviceType netDeviceType;
	int netDeviceVersion;
	ncclNetVDeviceProps_v11_t vProps;
	size_t maxP2pBytes;
	size_t maxCollBytes;
	int maxMultiRequestSize; /* requests that can be posted as one; 1: no such thing */
} ncclNetProperties_v11_t;

/* How many peers, and flows to each, the coming operations will use; each NCCL_NET_ATTR_UNDEF when
 * unknown. */
typedef struct {
	int32_t maxConcurrentPeers;
	int32_t minConcurrentPeers;
	int32_t maxFlowsPerPeer;
	int32_t minFlowsPerPeer;
} ncclNetCommAttr_v11_t;

/* A hint about the traffic to come; op, algo and proto are bit masks. */
typedef struct {
	ncclNetCommAttr_v11_t sendCommAttr;
	ncclNetCommAttr_v11_t recvCommAttr;
	uint32_t op;
	uint32_t algo;
	uint32_t proto;
} ncclNetAttr_v11_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(void **ctx, uint64_t comm_id, ncclNetCommConfig_v11_t *config,
			     ncclDebugLogger_t logger, ncclProfilerCallback_t profiler);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listen_comm);
	ncclResult_t (*connect)(void *ctx, int dev, void *handle, void **send_comm,
				ncclNetDeviceHandle_v11_t **dev_comm);
	ncclResult_t (*accept)(void *listen_comm, void **recv_comm,
			       ncclNetDeviceHandle_v11_t **dev_comm);
	ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
	ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
				    int fd, void **mhandle);
	ncclResult_t (*deregMr)(void *comm, void *mhandle);
	ncclResult_t (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
			      void *phandle, void **request);
	ncclResult_t (*irecv)(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
			      void **mhandles, void **phandles, void **request);
	ncclResult_t (*iflush)(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
			       void **request);
	ncclResult_t (*test)(void *request, int *done, int *sizes);
	ncclResult_t (*closeSend)(void *send_comm);
	ncclResult_t (*closeRecv)(void *recv_comm);
	ncclResult_t (*closeListen)(void *listen_comm);
	ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **dev_mhandle);
	ncclResult_t (*irecvConsumed)(void *recv_comm, int n, void *request);
	ncclResult_t (*makeVDevice)(int *dev, ncclNetVDeviceProps_v11_t *props);
	ncclResult_t (*finalize)(void *ctx);
	ncclResult_t (*setNetAttr)(void *ctx, ncclNetAttr_v11_t *attr);
} ncclNet_v11_t;

/* One piece of a buffer in iallgather and ireducescatter; NCCL passes one. */
typedef struct {
	void *mhandle;
	void *address;
	size_t size;
} ncclNetSGE_v11_t;

typedef struct {
	const char *name;
	ncclResult_t (*init)(void **ctx, uint64_t comm_id, ncclDebugLogger_t logger);
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listen_comm);
	ncclResult_t (*connect)(void *handles[], int nranks, int rank, void *listen_comm,
				void **coll_comm);
	ncclResult_t (*reduceSupport)(ncclDataType_t type, ncclRedOp_t op, int *supported);
	ncclResult_t (*regMr)(void *coll_comm, void *data, size_t size, int type, void **mhandle);
	ncclResult_t (*regMrDmaBuf)(void *coll_comm, void *data, size_t size, int type,
				    uint64_t offset, int fd, void **mhandle);
	ncclResult_t (*deregMr)(void *coll_comm, void *mhandle);
	ncclResult_t (*iallreduce)(void *coll_comm, void *send, void *recv, size_t count,
				   ncclDataType_t type, ncclRedOp_t op, void *send_mhandle,
				   void *recv_mhandle, void **request);
	ncclResult_t (*iallgather)(void *coll_comm, void *send, int nparts, ncclNetSGE_v11_t *parts,
				   size_t bytes_per_rank, size_t window_offset, size_t window_bytes,
				   void *send_mhandle, void **request);
	ncclResult_t (*ireducescatter)(void *coll_comm, int nparts, ncclNetSGE_v11_t *parts,
				       void *recv, size_t bytes_per_rank, size_t window_offset,
				       size_t window_bytes, ncclDataType_t type, ncclRedOp_t op,
				       void *recv_mhandle, void **request);
	ncclResult_t (*iflush)(void *coll_comm, void *data, int size, void *mhandle,
			       void **request);
	ncclResult_t (*test)(void *request, int *done, int *size);
	ncclResult_t (*closeColl)(void *coll_comm);
	ncclResult_t (*closeListen)(void *listen_comm);
	ncclResult_t (*makeVDevice)(int *dev, ncclNetVDeviceProps_v11_t *props);
	ncclResult_t (*finalize)(void *ctx);
} ncclCollNet_v11_t;

#endif
