/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.c - the size of every interface structure and the place of every field, as numbers
 *
 * The numbers hold for x86_64 and aarch64 (LP64) and are those of NCCL 2.30.7's public headers; a
 * header that drifts stops the build here. scripts/compare-nccl-abi checks the same against a
 * checkout of the public headers.
 */
#include <assert.h>

#include "plugin/nccl/abi/gin_v11.h"
#include "plugin/nccl/abi/gin_v12.h"
#include "plugin/nccl/abi/gin_v13.h"
#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"
#include "plugin/nccl/abi/rma_v14.h"
#include "plugin/nccl/abi/rma_v15.h"
#include "plugin/nccl/abi/rma_v16.h"
#include "plugin/nccl/abi/rma_v17.h"
#include "plugin/nccl/abi/types.h"

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, field, bytes) \
	static_assert(offsetof(type, field) == (bytes), "place of " #field " in " #type)

static_assert(sizeof(void *) == 8 && sizeof(long) == 8, "the interface is only known for LP64");

SIZE(ncclResult_t, 4);
SIZE(ncclDataType_t, 4);
SIZE(ncclRedOp_t, 4);
SIZE(ncclDebugLogLevel, 4);
SIZE(ncclDebugLogSubSys, 4);
SIZE(ncclNetDeviceType, 4);
SIZE(ncclDebugLogger_t, 8);
SIZE(ncclProfilerCallback_t, 8);

SIZE(ncclNetDeviceHandle_v7_t, 32);
AT(ncclNetDeviceHandle_v7_t, netDeviceType, 0);
AT(ncclNetDeviceHandle_v7_t, netDeviceVersion, 4);
AT(ncclNetDeviceHandle_v7_t, handle, 8);
AT(ncclNetDeviceHandle_v7_t, size, 16);
AT(ncclNetDeviceHandle_v7_t, needsProxyProgress, 24);

SIZE(ncclNetProperties_v6_t, 48);
AT(ncclNetProperties_v6_t, name, 0);
AT(ncclNetProperties_v6_t, pciPath, 8);
AT(ncclNetProperties_v6_t, guid, 16);
AT(ncclNetProperties_v6_t, ptrSupport, 24);
AT(ncclNetProperties_v6_t, speed, 28);
AT(ncclNetProperties_v6_t, port, 32);
AT(ncclNetProperties_v6_t, latency, 36);
AT(ncclNetProperties_v6_t, maxComms, 40);
AT(ncclNetProperties_v6_t, maxRecvs, 44);

SIZE(ncclNet_v6_t, 136);
AT(ncclNet_v6_t, name, 0);
AT(ncclNet_v6_t, init, 8);
AT(ncclNet_v6_t, devices, 16);
AT(ncclNet_v6_t, getProperties, 24);
AT(ncclNet_v6_t, listen, 32);
AT(ncclNet_v6_t, connect, 40);
AT(ncclNet_v6_t, accept, 48);
AT(ncclNet_v6_t, regMr, 56);
AT(ncclNet_v6_t, regMrDmaBuf, 64);
AT(ncclNet_v6_t, deregMr, 72);
AT(ncclNet_v6_t, isend, 80);
AT(ncclNet_v6_t, irecv, 88);
AT(ncclNet_v6_t, iflush, 96);
AT(ncclNet_v6_t, test, 104);
AT(ncclNet_v6_t, closeSend, 112);
AT(ncclNet_v6_t, closeRecv, 120);
AT(ncclNet_v6_t, closeListen, 128);

SIZE(ncclNetProperties_v7_t, 56);
AT(ncclNetProperties_v7_t, name, 0);
AT(ncclNetProperties_v7_t, pciPath, 8);
AT(ncclNetProperties_v7_t, guid, 16);
AT(ncclNetProperties_v7_t, ptrSupport, 24);
AT(ncclNetProperties_v7_t, speed, 28);
AT(ncclNetProperties_v7_t, port, 32);
AT(ncclNetProperties_v7_t, latency, 36);
AT(ncclNetProperties_v7_t, maxComms, 40);
AT(ncclNetProperties_v7_t, maxRecvs, 44);
AT(ncclNetProperties_v7_t, netDeviceType, 48);
AT(ncclNetProperties_v7_t, netDeviceVersion, 52);

SIZE(ncclNet_v7_t, 152);
AT(ncclNet_v7_t, name, 0);
AT(ncclNet_v7_t, init, 8);
AT(ncclNet_v7_t, devices, 16);
AT(ncclNet_v7_t, getProperties, 24);
AT(ncclNet_v7_t, listen, 32);
AT(ncclNet_v7_t, connect, 40);
AT(ncclNet_v7_t, accept, 48);
AT(ncclNet_v7_t, regMr, 56);
AT(ncclNet_v7_t, regMrDmaBuf, 64);
AT(ncclNet_v7_t, deregMr, 72);
AT(ncclNet_v7_t, isend, 80);
AT(ncclNet_v7_t, irecv, 88);
AT(ncclNet_v7_t, iflush, 96);
AT(ncclNet_v7_t, test, 104);
AT(ncclNet_v7_t, closeSend, 112);
AT(ncclNet_v7_t, closeRecv, 120);
AT(ncclNet_v7_t, closeListen, 128);
AT(ncclNet_v7_t, getDeviceMr, 136);
AT(ncclNet_v7_t, irecvConsumed, 144);

SIZE(ncclNetProperties_v8_t, 64);
AT(ncclNetProperties_v8_t, name, 0);
AT(ncclNetProperties_v8_t, pciPath, 8);
AT(ncclNetProperties_v8_t, guid, 16);
AT(ncclNetProperties_v8_t, ptrSupport, 24);
AT(ncclNetProperties_v8_t, regIsGlobal, 28);
AT(ncclNetProperties_v8_t, speed, 32);
AT(ncclNetProperties_v8_t, port, 36);
AT(ncclNetProperties_v8_t, latency, 40);
AT(ncclNetProperties_v8_t, maxComms, 44);
AT(ncclNetProperties_v8_t, maxRecvs, 48);
AT(ncclNetProperties_v8_t, netDeviceType, 52);
AT(ncclNetProperties_v8_t, netDeviceVersion, 56);

SIZE(ncclNet_v8_t, 152);
AT(ncclNet_v8_t, name, 0);
AT(ncclNet_v8_t, init, 8);
AT(ncclNet_v8_t, devices, 16);
AT(ncclNet_v8_t, getProperties, 24);
AT(ncclNet_v8_t, listen, 32);
AT(ncclNet_v8_t, connect, 40);
AT(ncclNet_v8_t, accept, 48);
AT(ncclNet_v8_t, regMr, 56);
AT(ncclNet_v8_t, regMrDmaBuf, 64);
AT(ncclNet_v8_t, deregMr, 72);
AT(ncclNet_v8_t, isend, 80);
AT(ncclNet_v8_t, irecv, 88);
AT(ncclNet_v8_t, iflush, 96);
AT(ncclNet_v8_t, test, 104);
AT(ncclNet_v8_t, closeSend, 112);
AT(ncclNet_v8_t, closeRecv, 120);
AT(ncclNet_v8_t, closeListen, 128);
AT(ncclNet_v8_t, getDeviceMr, 136);
AT(ncclNet_v8_t, irecvConsumed, 144);

SIZE(ncclNetVDeviceProps_v9_t, 20);
AT(ncclNetVDeviceProps_v9_t, ndevs, 0);
AT(ncclNetVDeviceProps_v9_t, devs, 4);

SIZE(ncclNetProperties_v9_t, 104);
AT(ncclNetProperties_v9_t, name, 0);
AT(ncclNetProperties_v9_t, pciPath, 8);
AT(ncclNetProperties_v9_t, guid, 16);
AT(ncclNetProperties_v9_t, ptrSupport, 24);
AT(ncclNetProperties_v9_t, regIsGlobal, 28);
AT(ncclNetProperties_v9_t, forceFlush, 32);
AT(ncclNetProperties_v9_t, speed, 36);
AT(ncclNetProperties_v9_t, port, 40);
AT(ncclNetProperties_v9_t, latency, 44);
AT(ncclNetProperties_v9_t, maxComms, 48);
AT(ncclNetProperties_v9_t, maxRecvs, 52);
AT(ncclNetProperties_v9_t, netDeviceType, 56);
AT(ncclNetProperties_v9_t, netDeviceVersion, 60);
AT(ncclNetProperties_v9_t, vProps, 64);
AT(ncclNetProperties_v9_t, maxP2pBytes, 88);
AT(ncclNetProperties_v9_t, maxCollBytes, 96);

SIZE(ncclNet_v9_t, 160);
AT(ncclNet_v9_t, name, 0);
AT(ncclNet_v9_t, init, 8);
AT(ncclNet_v9_t, devices, 16);
AT(ncclNet_v9_t, getProperties, 24);
AT(ncclNet_v9_t, listen, 32);
AT(ncclNet_v9_t, connect, 40);
AT(ncclNet_v9_t, accept, 48);
AT(ncclNet_v9_t, regMr, 56);
AT(ncclNet_v9_t, regMrDmaBuf, 64);
AT(ncclNet_v9_t, deregMr, 72);
AT(ncclNet_v9_t, isend, 80);
AT(ncclNet_v9_t, irecv, 88);
AT(ncclNet_v9_t, iflush, 96);
AT(ncclNet_v9_t, test, 104);
AT(ncclNet_v9_t, closeSend, 112);
AT(ncclNet_v9_t, closeRecv, 120);
AT(ncclNet_v9_t, closeListen, 128);
AT(ncclNet_v9_t, getDeviceMr, 136);
AT(ncclNet_v9_t, irecvConsumed, 144);
AT(ncclNet_v9_t, makeVDevice, 152);

SIZE(ncclNetVDeviceProps_v10_t, 20);
AT(ncclNetVDeviceProps_v10_t, ndevs, 0);
AT(ncclNetVDeviceProps_v10_t, devs, 4);

SIZE(ncclNetCommConfig_v10_t, 4);
AT(ncclNetCommConfig_v10_t, trafficClass, 0);

SIZE(ncclNetProperties_v10_t, 104);
AT(ncclNetProperties_v10_t, name, 0);
AT(ncclNetProperties_v10_t, pciPath, 8);
AT(ncclNetProperties_v10_t, guid, 16);
AT(ncclNetProperties_v10_t, ptrSupport, 24);
AT(ncclNetProperties_v10_t, regIsGlobal, 28);
AT(ncclNetProperties_v10_t, forceFlush, 32);
AT(ncclNetProperties_v10_t, speed, 36);
AT(ncclNetProperties_v10_t, port, 40);
AT(ncclNetProperties_v10_t, latency, 44);
AT(ncclNetProperties_v10_t, maxComms, 48);
AT(ncclNetProperties_v10_t, maxRecvs, 52);
AT(ncclNetProperties_v10_t, netDeviceType, 56);
AT(ncclNetProperties_v10_t, netDeviceVersion, 60);
AT(ncclNetProperties_v10_t, vProps, 64);
AT(ncclNetProperties_v10_t, maxP2pBytes, 88);
AT(ncclNetProperties_v10_t, maxCollBytes, 96);

SIZE(ncclNet_v10_t, 160);
AT(ncclNet_v10_t, name, 0);
AT(ncclNet_v10_t, init, 8);
AT(ncclNet_v10_t, devices, 16);
AT(ncclNet_v10_t, getProperties, 24);
AT(ncclNet_v10_t, listen, 32);
AT(ncclNet_v10_t, connect, 40);
AT(ncclNet_v10_t, accept, 48);
AT(ncclNet_v10_t, regMr, 56);
AT(ncclNet_v10_t, regMrDmaBuf, 64);
AT(ncclNet_v10_t, deregMr, 72);
AT(ncclNet_v10_t, isend, 80);
AT(ncclNet_v10_t, irecv, 88);
AT(ncclNet_v10_t, iflush, 96);
AT(ncclNet_v10_t, test, 104);
AT(ncclNet_v10_t, closeSend, 112);
AT(ncclNet_v10_t, closeRecv, 120);
AT(ncclNet_v10_t, closeListen, 128);
AT(ncclNet_v10_t, getDeviceMr, 136);
AT(ncclNet_v10_t, irecvConsumed, 144);
AT(ncclNet_v10_t, makeVDevice, 152);

SIZE(ncclNetVDeviceProps_v11_t, 20);
AT(ncclNetVDeviceProps_v11_t, ndevs, 0);
AT(ncclNetVDeviceProps_v11_t, devs, 4);

SIZE(ncclNetCommConfig_v11_t, 4);
AT(ncclNetCommConfig_v11_t, trafficClass, 0);

SIZE(ncclNetProperties_v11_t, 112);
AT(ncclNetProperties_v11_t, name, 0);
AT(ncclNetProperties_v11_t, pciPath, 8);
AT(ncclNetProperties_v11_t, guid, 16);
AT(ncclNetProperties_v11_t, ptrSupport, 24);
AT(ncclNetProperties_v11_t, regIsGlobal, 28);
AT(ncclNetProperties_v11_t, forceFlush, 32);
AT(ncclNetProperties_v11_t, speed, 36);
AT(ncclNetProperties_v11_t, port, 40);
AT(ncclNetProperties_v11_t, latency, 44);
AT(ncclNetProperties_v11_t, maxComms, 48);
AT(ncclNetProperties_v11_t, maxRecvs, 52);
AT(ncclNetProperties_v11_t, netDeviceType, 56);
AT(ncclNetProperties_v11_t, netDeviceVersion, 60);
AT(ncclNetProperties_v11_t, vProps, 64);
AT(ncclNetProperties_v11_t, maxP2pBytes, 88);
AT(ncclNetProperties_v11_t, maxCollBytes, 96);
AT(ncclNetProperties_v11_t, maxMultiRequestSize, 104);

SIZE(ncclNetCommAttr_v11_t, 16);
AT(ncclNetCommAttr_v11_t, maxConcurrentPeers, 0);
AT(ncclNetCommAttr_v11_t, minConcurrentPeers, 4);
AT(ncclNetCommAttr_v11_t, maxFlowsPerPeer, 8);
AT(ncclNetCommAttr_v11_t, minFlowsPerPeer, 12);

SIZE(ncclNetAttr_v11_t, 44);
AT(ncclNetAttr_v11_t, sendCommAttr, 0);
AT(ncclNetAttr_v11_t, recvCommAttr, 16);
AT(ncclNetAttr_v11_t, op, 32);
AT(ncclNetAttr_v11_t, algo, 36);
AT(ncclNetAttr_v11_t, proto, 40);

SIZE(ncclNet_v11_t, 176);
AT(ncclNet_v11_t, name, 0);
AT(ncclNet_v11_t, init, 8);
AT(ncclNet_v11_t, devices, 16);
AT(ncclNet_v11_t, getProperties, 24);
AT(ncclNet_v11_t, listen, 32);
AT(ncclNet_v11_t, connect, 40);
AT(ncclNet_v11_t, accept, 48);
AT(ncclNet_v11_t, regMr, 56);
AT(ncclNet_v11_t, regMrDmaBuf, 64);
AT(ncclNet_v11_t, deregMr, 72);
AT(ncclNet_v11_t, isend, 80);
AT(ncclNet_v11_t, irecv, 88);
AT(ncclNet_v11_t, iflush, 96);
AT(ncclNet_v11_t, test, 104);
AT(ncclNet_v11_t, closeSend, 112);
AT(ncclNet_v11_t, closeRecv, 120);
AT(ncclNet_v11_t, closeListen, 128);
AT(ncclNet_v11_t, getDeviceMr, 136);
AT(ncclNet_v11_t, irecvConsumed, 144);
AT(ncclNet_v11_t, makeVDevice, 152);
AT(ncclNet_v11_t, finalize, 160);
AT(ncclNet_v11_t, setNetAttr, 168);

SIZE(ncclNetVDeviceProps_v12_t, 36);
AT(ncclNetVDeviceProps_v12_t, ndevs, 0);
AT(ncclNetVDeviceProps_v12_t, devs, 4);

SIZE(ncclNetCommConfig_v12_t, 4);
AT(ncclNetCommConfig_v12_t, trafficClass, 0);

SIZE(ncclNetProperties_v12_t, 128);
AT(ncclNetProperties_v12_t, name, 0);
AT(ncclNetProperties_v12_t, pciPath, 8);
AT(ncclNetProperties_v12_t, guid, 16);
AT(ncclNetProperties_v12_t, ptrSupport, 24);
AT(ncclNetProperties_v12_t, regIsGlobal, 28);
AT(ncclNetProperties_v12_t, forceFlush, 32);
AT(ncclNetProperties_v12_t, speed, 36);
AT(ncclNetProperties_v12_t, port, 40);
AT(ncclNetProperties_v12_t, latency, 44);
AT(ncclNetProperties_v12_t, maxComms, 48);
AT(ncclNetProperties_v12_t, maxRecvs, 52);
AT(ncclNetProperties_v12_t, netDeviceType, 56);
AT(ncclNetProperties_v12_t, netDeviceVersion, 60);
AT(ncclNetProperties_v12_t, vProps, 64);
AT(ncclNetProperties_v12_t, maxP2pBytes, 104);
AT(ncclNetProperties_v12_t, maxCollBytes, 112);
AT(ncclNetProperties_v12_t, maxMultiRequestSize, 120);
AT(ncclNetProperties_v12_t, railId, 124);
AT(ncclNetProperties_v12_t, planeId, 126);

SIZE(ncclNetCommAttr_v12_t, 16);
AT(ncclNetCommAttr_v12_t, maxConcurrentPeers, 0);
AT(ncclNetCommAttr_v12_t, minConcurrentPeers, 4);
AT(ncclNetCommAttr_v12_t, maxFlowsPerPeer, 8);
AT(ncclNetCommAttr_v12_t, minFlowsPerPeer, 12);

SIZE(ncclNetAttr_v12_t, 44);
AT(ncclNetAttr_v12_t, sendCommAttr, 0);
AT(ncclNetAttr_v12_t, recvCommAttr, 16);
AT(ncclNetAttr_v12_t, op, 32);
AT(ncclNetAttr_v12_t, algo, 36);
AT(ncclNetAttr_v12_t, proto, 40);

SIZE(ncclNet_v12_t, 176);
AT(ncclNet_v12_t, name, 0);
AT(ncclNet_v12_t, init, 8);
AT(ncclNet_v12_t, devices, 16);
AT(ncclNet_v12_t, getProperties, 24);
AT(ncclNet_v12_t, listen, 32);
AT(ncclNet_v12_t, connect, 40);
AT(ncclNet_v12_t, accept, 48);
AT(ncclNet_v12_t, regMr, 56);
AT(ncclNet_v12_t, regMrDmaBuf, 64);
AT(ncclNet_v12_t, deregMr, 72);
AT(ncclNet_v12_t, isend, 80);
AT(ncclNet_v12_t, irecv, 88);
AT(ncclNet_v12_t, iflush, 96);
AT(ncclNet_v12_t, test, 104);
AT(ncclNet_v12_t, closeSend, 112);
AT(ncclNet_v12_t, closeRecv, 120);
AT(ncclNet_v12_t, closeListen, 128);
AT(ncclNet_v12_t, getDeviceMr, 136);
AT(ncclNet_v12_t, irecvConsumed, 144);
AT(ncclNet_v12_t, makeVDevice, 152);
AT(ncclNet_v12_t, finalize, 160);
AT(ncclNet_v12_t, setNetAttr, 168);

SIZE(ncclCollNet_v6_t, 120);
AT(ncclCollNet_v6_t, name, 0);
AT(ncclCollNet_v6_t, init, 8);
AT(ncclCollNet_v6_t, devices, 16);
AT(ncclCollNet_v6_t, getProperties, 24);
AT(ncclCollNet_v6_t, listen, 32);
AT(ncclCollNet_v6_t, connect, 40);
AT(ncclCollNet_v6_t, reduceSupport, 48);
AT(ncclCollNet_v6_t, regMr, 56);
AT(ncclCollNet_v6_t, regMrDmaBuf, 64);
AT(ncclCollNet_v6_t, deregMr, 72);
AT(ncclCollNet_v6_t, iallreduce, 80);
AT(ncclCollNet_v6_t, iflush, 88);
AT(ncclCollNet_v6_t, test, 96);
AT(ncclCollNet_v6_t, closeColl, 104);
AT(ncclCollNet_v6_t, closeListen, 112);

SIZE(ncclCollNet_v7_t, 120);
AT(ncclCollNet_v7_t, name, 0);
AT(ncclCollNet_v7_t, init, 8);
AT(ncclCollNet_v7_t, devices, 16);
AT(ncclCollNet_v7_t, getProperties, 24);
AT(ncclCollNet_v7_t, listen, 32);
AT(ncclCollNet_v7_t, connect, 40);
AT(ncclCollNet_v7_t, reduceSupport, 48);
AT(ncclCollNet_v7_t, regMr, 56);
AT(ncclCollNet_v7_t, regMrDmaBuf, 64);
AT(ncclCollNet_v7_t, deregMr, 72);
AT(ncclCollNet_v7_t, iallreduce, 80);
AT(ncclCollNet_v7_t, iflush, 88);
AT(ncclCollNet_v7_t, test, 96);
AT(ncclCollNet_v7_t, closeColl, 104);
AT(ncclCollNet_v7_t, closeListen, 112);

SIZE(ncclNetSGE_v8_t, 24);
AT(ncclNetSGE_v8_t, mhandle, 0);
AT(ncclNetSGE_v8_t, address, 8);
AT(ncclNetSGE_v8_t, size, 16);

SIZE(ncclCollNet_v8_t, 136);
AT(ncclCollNet_v8_t, name, 0);
AT(ncclCollNet_v8_t, init, 8);
AT(ncclCollNet_v8_t, devices, 16);
AT(ncclCollNet_v8_t, getProperties, 24);
AT(ncclCollNet_v8_t, listen, 32);
AT(ncclCollNet_v8_t, connect, 40);
AT(ncclCollNet_v8_t, reduceSupport, 48);
AT(ncclCollNet_v8_t, regMr, 56);
AT(ncclCollNet_v8_t, regMrDmaBuf, 64);
AT(ncclCollNet_v8_t, deregMr, 72);
AT(ncclCollNet_v8_t, iallreduce, 80);
AT(ncclCollNet_v8_t, iallgather, 88);
AT(ncclCollNet_v8_t, ireducescatter, 96);
AT(ncclCollNet_v8_t, iflush, 104);
AT(ncclCollNet_v8_t, test, 112);
AT(ncclCollNet_v8_t, closeColl, 120);
AT(ncclCollNet_v8_t, closeListen, 128);

SIZE(ncclNetSGE_v9_t, 24);
AT(ncclNetSGE_v9_t, mhandle, 0);
AT(ncclNetSGE_v9_t, address, 8);
AT(ncclNetSGE_v9_t, size, 16);

SIZE(ncclCollNet_v9_t, 144);
AT(ncclCollNet_v9_t, name, 0);
AT(ncclCollNet_v9_t, init, 8);
AT(ncclCollNet_v9_t, devices, 16);
AT(ncclCollNet_v9_t, getProperties, 24);
AT(ncclCollNet_v9_t, listen, 32);
AT(ncclCollNet_v9_t, connect, 40);
AT(ncclCollNet_v9_t, reduceSupport, 48);
AT(ncclCollNet_v9_t, regMr, 56);
AT(ncclCollNet_v9_t, regMrDmaBuf, 64);
AT(ncclCollNet_v9_t, deregMr, 72);
AT(ncclCollNet_v9_t, iallreduce, 80);
AT(ncclCollNet_v9_t, iallgather, 88);
AT(ncclCollNet_v9_t, ireducescatter, 96);
AT(ncclCollNet_v9_t, iflush, 104);
AT(ncclCollNet_v9_t, test, 112);
AT(ncclCollNet_v9_t, closeColl, 120);
AT(ncclCollNet_v9_t, closeListen, 128);
AT(ncclCollNet_v9_t, makeVDevice, 136);

SIZE(ncclNetSGE_v10_t, 24);
AT(ncclNetSGE_v10_t, mhandle, 0);
AT(ncclNetSGE_v10_t, address, 8);
AT(ncclNetSGE_v10_t, size, 16);

SIZE(ncclCollNet_v10_t, 144);
AT(ncclCollNet_v10_t, name, 0);
AT(ncclCollNet_v10_t, init, 8);
AT(ncclCollNet_v10_t, devices, 16);
AT(ncclCollNet_v10_t, getProperties, 24);
AT(ncclCollNet_v10_t, listen, 32);
AT(ncclCollNet_v10_t, connect, 40);
AT(ncclCollNet_v10_t, reduceSupport, 48);
AT(ncclCollNet_v10_t, regMr, 56);
AT(ncclCollNet_v10_t, regMrDmaBuf, 64);
AT(ncclCollNet_v10_t, deregMr, 72);
AT(ncclCollNet_v10_t, iallreduce, 80);
AT(ncclCollNet_v10_t, iallgather, 88);
AT(ncclCollNet_v10_t, ireducescatter, 96);
AT(ncclCollNet_v10_t, iflush, 104);
AT(ncclCollNet_v10_t, test, 112);
AT(ncclCollNet_v10_t, closeColl, 120);
AT(ncclCollNet_v10_t, closeListen, 128);
AT(ncclCollNet_v10_t, makeVDevice, 136);

SIZE(ncclNetSGE_v11_t, 24);
AT(ncclNetSGE_v11_t, mhandle, 0);
AT(ncclNetSGE_v11_t, address, 8);
AT(ncclNetSGE_v11_t, size, 16);

SIZE(ncclCollNet_v11_t, 152);
AT(ncclCollNet_v11_t, name, 0);
AT(ncclCollNet_v11_t, init, 8);
AT(ncclCollNet_v11_t, devices, 16);
AT(ncclCollNet_v11_t, getProperties, 24);
AT(ncclCollNet_v11_t, listen, 32);
AT(ncclCollNet_v11_t, connect, 40);
AT(ncclCollNet_v11_t, reduceSupport, 48);
AT(ncclCollNet_v11_t, regMr, 56);
AT(ncclCollNet_v11_t, regMrDmaBuf, 64);
AT(ncclCollNet_v11_t, deregMr, 72);
AT(ncclCollNet_v11_t, iallreduce, 80);
AT(ncclCollNet_v11_t, iallgather, 88);
AT(ncclCollNet_v11_t, ireducescatter, 96);
AT(ncclCollNet_v11_t, iflush, 104);
AT(ncclCollNet_v11_t, test, 112);
AT(ncclCollNet_v11_t, closeColl, 120);
AT(ncclCollNet_v11_t, closeListen, 128);
AT(ncclCollNet_v11_t, makeVDevice, 136);
AT(ncclCollNet_v11_t, finalize, 144);

SIZE(ncclNetSGE_v12_t, 24);
AT(ncclNetSGE_v12_t, mhandle, 0);
AT(ncclNetSGE_v12_t, address, 8);
AT(ncclNetSGE_v12_t, size, 16);

SIZE(ncclCollNet_v12_t, 152);
AT(ncclCollNet_v12_t, name, 0);
AT(ncclCollNet_v12_t, init, 8);
AT(ncclCollNet_v12_t, devices, 16);
AT(ncclCollNet_v12_t, getProperties, 24);
AT(ncclCollNet_v12_t, listen, 32);
AT(ncclCollNet_v12_t, connect, 40);
AT(ncclCollNet_v12_t, reduceSupport, 48);
AT(ncclCollNet_v12_t, regMr, 56);
AT(ncclCollNet_v12_t, regMrDmaBuf, 64);
AT(ncclCollNet_v12_t, deregMr, 72);
AT(ncclCollNet_v12_t, iallreduce, 80);
AT(ncclCollNet_v12_t, iallgather, 88);
AT(ncclCollNet_v12_t, ireducescatter, 96);
AT(ncclCollNet_v12_t, iflush, 104);
AT(ncclCollNet_v12_t, test, 112);
AT(ncclCollNet_v12_t, closeColl, 120);
AT(ncclCollNet_v12_t, closeListen, 128);
AT(ncclCollNet_v12_t, makeVDevice, 136);
AT(ncclCollNet_v12_t, finalize, 144);

SIZE(ncclGin_v11_t, 152);
AT(ncclGin_v11_t, name, 0);
AT(ncclGin_v11_t, init, 8);
AT(ncclGin_v11_t, devices, 16);
AT(ncclGin_v11_t, getProperties, 24);
AT(ncclGin_v11_t, listen, 32);
AT(ncclGin_v11_t, connect, 40);
AT(ncclGin_v11_t, createContext, 48);
AT(ncclGin_v11_t, regMrSym, 56);
AT(ncclGin_v11_t, regMrSymDmaBuf, 64);
AT(ncclGin_v11_t, deregMrSym, 72);
AT(ncclGin_v11_t, destroyContext, 80);
AT(ncclGin_v11_t, closeColl, 88);
AT(ncclGin_v11_t, closeListen, 96);
AT(ncclGin_v11_t, iput, 104);
AT(ncclGin_v11_t, iputSignal, 112);
AT(ncclGin_v11_t, test, 120);
AT(ncclGin_v11_t, ginProgress, 128);
AT(ncclGin_v11_t, queryLastError, 136);
AT(ncclGin_v11_t, finalize, 144);

SIZE(ncclGin_v12_t, 152);
AT(ncclGin_v12_t, name, 0);
AT(ncclGin_v12_t, init, 8);
AT(ncclGin_v12_t, devices, 16);
AT(ncclGin_v12_t, getProperties, 24);
AT(ncclGin_v12_t, listen, 32);
AT(ncclGin_v12_t, connect, 40);
AT(ncclGin_v12_t, createContext, 48);
AT(ncclGin_v12_t, regMrSym, 56);
AT(ncclGin_v12_t, regMrSymDmaBuf, 64);
AT(ncclGin_v12_t, deregMrSym, 72);
AT(ncclGin_v12_t, destroyContext, 80);
AT(ncclGin_v12_t, closeColl, 88);
AT(ncclGin_v12_t, closeListen, 96);
AT(ncclGin_v12_t, iput, 104);
AT(ncclGin_v12_t, iputSignal, 112);
AT(ncclGin_v12_t, test, 120);
AT(ncclGin_v12_t, ginProgress, 128);
AT(ncclGin_v12_t, queryLastError, 136);
AT(ncclGin_v12_t, finalize, 144);

SIZE(ncclGinConfig_v13_t, 20);
AT(ncclGinConfig_v13_t, nSignals, 0);
AT(ncclGinConfig_v13_t, nCounters, 4);
AT(ncclGinConfig_v13_t, nContexts, 8);
AT(ncclGinConfig_v13_t, queueDepth, 12);
AT(ncclGinConfig_v13_t, trafficClass, 16);

SIZE(ncclGin_v13_t, 168);
AT(ncclGin_v13_t, name, 0);
AT(ncclGin_v13_t, init, 8);
AT(ncclGin_v13_t, devices, 16);
AT(ncclGin_v13_t, getProperties, 24);
AT(ncclGin_v13_t, listen, 32);
AT(ncclGin_v13_t, connect, 40);
AT(ncclGin_v13_t, createContext, 48);
AT(ncclGin_v13_t, regMrSym, 56);
AT(ncclGin_v13_t, regMrSymDmaBuf, 64);
AT(ncclGin_v13_t, deregMrSym, 72);
AT(ncclGin_v13_t, destroyContext, 80);
AT(ncclGin_v13_t, closeColl, 88);
AT(ncclGin_v13_t, closeListen, 96);
AT(ncclGin_v13_t, iput, 104);
AT(ncclGin_v13_t, iputSignal, 112);
AT(ncclGin_v13_t, iget, 120);
AT(ncclGin_v13_t, iflush, 128);
AT(ncclGin_v13_t, test, 136);
AT(ncclGin_v13_t, ginProgress, 144);
AT(ncclGin_v13_t, queryLastError, 152);
AT(ncclGin_v13_t, finalize, 160);

SIZE(ncclRmaConfig_v14_t, 12);
AT(ncclRmaConfig_v14_t, nContexts, 0);
AT(ncclRmaConfig_v14_t, trafficClass, 4);
AT(ncclRmaConfig_v14_t, rankStride, 8);

SIZE(ncclRma_v14_t, 168);
AT(ncclRma_v14_t, name, 0);
AT(ncclRma_v14_t, init, 8);
AT(ncclRma_v14_t, devices, 16);
AT(ncclRma_v14_t, getProperties, 24);
AT(ncclRma_v14_t, listen, 32);
AT(ncclRma_v14_t, connect, 40);
AT(ncclRma_v14_t, createContext, 48);
AT(ncclRma_v14_t, regMrSym, 56);
AT(ncclRma_v14_t, regMrSymDmaBuf, 64);
AT(ncclRma_v14_t, deregMrSym, 72);
AT(ncclRma_v14_t, destroyContext, 80);
AT(ncclRma_v14_t, closeColl, 88);
AT(ncclRma_v14_t, closeListen, 96);
AT(ncclRma_v14_t, iput, 104);
AT(ncclRma_v14_t, iputSignal, 112);
AT(ncclRma_v14_t, iget, 120);
AT(ncclRma_v14_t, iflush, 128);
AT(ncclRma_v14_t, test, 136);
AT(ncclRma_v14_t, rmaProgress, 144);
AT(ncclRma_v14_t, queryLastError, 152);
AT(ncclRma_v14_t, finalize, 160);

SIZE(ncclRma_v15_t, 168);
AT(ncclRma_v15_t, name, 0);
AT(ncclRma_v15_t, init, 8);
AT(ncclRma_v15_t, devices, 16);
AT(ncclRma_v15_t, getProperties, 24);
AT(ncclRma_v15_t, listen, 32);
AT(ncclRma_v15_t, connect, 40);
AT(ncclRma_v15_t, createContext, 48);
AT(ncclRma_v15_t, regMrSym, 56);
AT(ncclRma_v15_t, regMrSymDmaBuf, 64);
AT(ncclRma_v15_t, deregMrSym, 72);
AT(ncclRma_v15_t, destroyContext, 80);
AT(ncclRma_v15_t, closeColl, 88);
AT(ncclRma_v15_t, closeListen, 96);
AT(ncclRma_v15_t, iput, 104);
AT(ncclRma_v15_t, iputSignal, 112);
AT(ncclRma_v15_t, iget, 120);
AT(ncclRma_v15_t, iflush, 128);
AT(ncclRma_v15_t, test, 136);
AT(ncclRma_v15_t, rmaProgress, 144);
AT(ncclRma_v15_t, queryLastError, 152);
AT(ncclRma_v15_t, finalize, 160);

SIZE(ncclRmaProperties_v16_t, 1);
AT(ncclRmaProperties_v16_t, flushesAllPutsOnAnySignal, 0);

SIZE(ncclRma_v16_t, 176);
AT(ncclRma_v16_t, name, 0);
AT(ncclRma_v16_t, init, 8);
AT(ncclRma_v16_t, devices, 16);
AT(ncclRma_v16_t, getRmaProperties, 24);
AT(ncclRma_v16_t, getProperties, 32);
AT(ncclRma_v16_t, listen, 40);
AT(ncclRma_v16_t, connect, 48);
AT(ncclRma_v16_t, createContext, 56);
AT(ncclRma_v16_t, regMrSym, 64);
AT(ncclRma_v16_t, regMrSymDmaBuf, 72);
AT(ncclRma_v16_t, deregMrSym, 80);
AT(ncclRma_v16_t, destroyContext, 88);
AT(ncclRma_v16_t, closeColl, 96);
AT(ncclRma_v16_t, closeListen, 104);
AT(ncclRma_v16_t, iput, 112);
AT(ncclRma_v16_t, iputSignal, 120);
AT(ncclRma_v16_t, iget, 128);
AT(ncclRma_v16_t, iflush, 136);
AT(ncclRma_v16_t, test, 144);
AT(ncclRma_v16_t, rmaProgress, 152);
AT(ncclRma_v16_t, queryLastError, 160);
AT(ncclRma_v16_t, finalize, 168);

SIZE(ncclRmaConfig_v17_t, 24);
AT(ncclRmaConfig_v17_t, nContexts, 0);
AT(ncclRmaConfig_v17_t, trafficClass, 4);
AT(ncclRmaConfig_v17_t, peerArray, 8);
AT(ncclRmaConfig_v17_t, peerArrayCount, 16);

SIZE(ncclRma_v17_t, 176);
AT(ncclRma_v17_t, name, 0);
AT(ncclRma_v17_t, init, 8);
AT(ncclRma_v17_t, devices, 16);
AT(ncclRma_v17_t, getRmaProperties, 24);
AT(ncclRma_v17_t, getProperties, 32);
AT(ncclRma_v17_t, listen, 40);
AT(ncclRma_v17_t, connect, 48);
AT(ncclRma_v17_t, createContext, 56);
AT(ncclRma_v17_t, regMrSym, 64);
AT(ncclRma_v17_t, regMrSymDmaBuf, 72);
AT(ncclRma_v17_t, deregMrSym, 80);
AT(ncclRma_v17_t, destroyContext, 88);
AT(ncclRma_v17_t, closeColl, 96);
AT(ncclRma_v17_t, closeListen, 104);
AT(ncclRma_v17_t, iput, 112);
AT(ncclRma_v17_t, iputSignal, 120);
AT(ncclRma_v17_t, iget, 128);
AT(ncclRma_v17_t, iflush, 136);
AT(ncclRma_v17_t, test, 144);
AT(ncclRma_v17_t, rmaProgress, 152);
AT(ncclRma_v17_t, queryLastError, 160);
AT(ncclRma_v17_t, finalize, 168);
