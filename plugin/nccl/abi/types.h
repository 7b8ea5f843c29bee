/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * types.h - what every version of NCCL's network interface shares
 *
 * Our own text of a published binary interface: names, values and order are facts of that
 * interface, layout.c asserts them, scripts/compare-nccl-abi compares them with the public headers.
 * Source of the values: NCCL 2.30.7.
 */
#ifndef HA_NCCL_ABI_TYPES_H
#define HA_NCCL_ABI_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* What NCCL accepts from a plugin as the outcome of a call; ncclTimeout only from 2.30 on. */
typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclTimeout = 8,
} ncclResult_t;

/* Element types; only collnet and rma tables take them. */
typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
} ncclDataType_t;

/* Reductions; ncclMaxRedOp keeps the enum at the width of an int. */
typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
	ncclMaxRedOp = 0x7fffffff,
} ncclRedOp_t;

/* Severity of a log line; NCCL prints those up to the level of NCCL_DEBUG. */
typedef enum {
	NCCL_LOG_NONE = 0,
	NCCL_LOG_VERSION = 1,
	NCCL_LOG_WARN = 2,
	NCCL_LOG_INFO = 3,
	NCCL_LOG_ABORT = 4,
	NCCL_LOG_TRACE = 5,
} ncclDebugLogLevel;

/* Where a log line comes from: a bit each, selected by NCCL_DEBUG_SUBSYS. */
typedef enum {
	NCCL_INIT = 0x1,
	NCCL_COLL = 0x2,
	NCCL_P2P = 0x4,
	NCCL_SHM = 0x8,
	NCCL_NET = 0x10,
	NCCL_GRAPH = 0x20,
	NCCL_TUNING = 0x40,
	NCCL_ENV = 0x80,
	NCCL_ALLOC = 0x100,
	NCCL_CALL = 0x200,
	NCCL_PROXY = 0x400,
	NCCL_NVLS = 0x800,
	NCCL_BOOTSTRAP = 0x1000,
	NCCL_REG = 0x2000,
	NCCL_PROFILE = 0x4000,
	NCCL_RAS = 0x8000,
	NCCL_DESTROY = 0x10000,
	NCCL_ALLOC_HOST = 0x20000,
	NCCL_ALL = ~0,
} ncclDebugLogSubSys;

/* NCCL's logger, printf-like. `file` is printed for warnings as the origin of the line. */
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long subsys, const char *file,
				  int line, const char *fmt, ...);

/* Events a network may report to NCCL's profiler (v10 and later). */
enum {
	ncclProfilerNetEventStart = 0,
	ncclProfilerNetEventStop = 1,
	ncclProfilerNetEventUpdate = 2,
	ncclProfilerNetEventUpdateAndStop = 3,
};

/* `event` is the event's handle, `parent` the phandle that came with the request, `data` belongs to
 * `plugin_id`. */
typedef ncclResult_t (*ncclProfilerCallback_t)(void **event, int type, void *parent,
					       int64_t plugin_id, void *data);

#define NCCL_NET_HANDLE_MAXSIZE 128 /* bytes that listen may fill */
/* upper bound of maxP2pBytes and maxCollBytes */
#define NCCL_MAX_NET_SIZE_BYTES (1 * 1024 * 1024 * 1024 * 1024L)
/* largest message of the int-sized versions v6 to v8 */
#define MAX_NET_SIZE (1024 * 1024 * 1024L)
#define MAX_COLLNET_SIZE (512 * 1024 * 1024L) /* the same for collnet */
/* stands in *request when irecv may complete at once */
#define NCCL_NET_OPTIONAL_RECV_COMPLETION 0x1
#define NCCL_NET_MULTI_REQUEST 0x2
#define NCCL_NET_MAX_REQUESTS 32 /* requests in flight per comm, each of maxRecvs buffers */

/* Kinds of memory (regMr's type, ptrSupport's bits). */
#define NCCL_PTR_HOST 0x1
#define NCCL_PTR_CUDA 0x2
#define NCCL_PTR_DMABUF 0x4

#define NCCL_NET_MR_FLAG_FORCE_SO (1 << 0) /* this memory must be written in order */
#define NCCL_NET_DEVICE_INVALID_VERSION 0x0
/* What of the transport runs on the GPU: nothing, for us. */
typedef enum {
	NCCL_NET_DEVICE_HOST = 0,
	NCCL_NET_DEVICE_UNPACK = 1,
	NCCL_NET_DEVICE_GIN_PROXY = 2,
	NCCL_NET_DEVICE_GIN_GDAKI = 3,
	NCCL_NET_DEVICE_GIN_GPI = 4,
} ncclNetDeviceType;

/* A connection's device-side object; the same in v7 to v12. */
typedef struct {
	ncclNetDeviceType netDeviceType;
	int netDeviceVersion;
	void *handle;
	size_t size; /* of what handle points to */
	int needsProxyProgress;
} ncclNetDeviceHandle_v7_t;

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v8_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v9_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v10_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v11_t;
typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v12_t;

#endif
