/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_types.h - CUDA 12's public types, as far as softcuda has them: names and numbers are the
 * interface's own
 */
#ifndef SOFTCUDA_CUDA_TYPES_H
#define SOFTCUDA_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum cudaError {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorInvalidPitchValue = 12,
	cudaErrorInvalidSymbol = 13,
	cudaErrorInvalidDevicePointer = 17,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorMissingConfiguration = 52,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorDeviceUninitialized = 201,
	cudaErrorMapBufferObjectFailed = 205,
	cudaErrorAlreadyMapped = 208,
	cudaErrorNotMapped = 211,
	cudaErrorUnsupportedLimit = 215,
	cudaErrorPeerAccessUnsupported = 217,
	cudaErrorOperatingSystem = 304,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorIllegalState = 401,
	cudaErrorLossyQuery = 402,
	cudaErrorSymbolNotFound = 500,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorLaunchOutOfResources = 701,
	cudaErrorPeerAccessAlreadyEnabled = 704,
	cudaErrorPeerAccessNotEnabled = 705,
	cudaErrorHostMemoryAlreadyRegistered = 712,
	cudaErrorHostMemoryNotRegistered = 713,
	cudaErrorLaunchFailure = 719,
	cudaErrorNotPermitted = 800,
	cudaErrorNotSupported = 801,
	cudaErrorStreamCaptureUnsupported = 900,
	cudaErrorStreamCaptureInvalidated = 901,
	cudaErrorStreamCaptureMerge = 902,
	cudaErrorStreamCaptureUnmatched = 903,
	cudaErrorStreamCaptureUnjoined = 904,
	cudaErrorStreamCaptureIsolation = 905,
	cudaErrorStreamCaptureImplicit = 906,
	cudaErrorCapturedEvent = 907,
	cudaErrorStreamCaptureWrongThread = 908,
	cudaErrorGraphExecUpdateFailure = 910,
	cudaErrorUnknown = 999,
} cudaError_t;

typedef struct stream *cudaStream_t;
typedef struct event *cudaEvent_t;
typedef struct graph *cudaGraph_t;
typedef struct graph_node *cudaGraphNode_t;
typedef struct graph_exec *cudaGraphExec_t;
typedef struct user_object *cudaUserObject_t;
typedef struct memory_pool *cudaMemPool_t;
typedef struct kernel_entry *cudaFunction_t;
typedef void (*cudaHostFn_t)(void *data);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum {
	cudaEventDefault = 0,
	cudaEventBlockingSync = 1,
	cudaEventDisableTiming = 2,
	cudaEventInterprocess = 4
};
enum { cudaEventRecordDefault = 0, cudaEventRecordExternal = 1 };
enum { cudaEventWaitDefault = 0, cudaEventWaitExternal = 1 };
enum {
	cudaHostAllocDefault = 0,
	cudaHostAllocPortable = 1,
	cudaHostAllocMapped = 2,
	cudaHostAllocWriteCombined = 4
};
enum {
	cudaHostRegisterPortable = 1,
	cudaHostRegisterMapped = 2,
	cudaHostRegisterIoMemory = 4,
	cudaHostRegisterReadOnly = 8
};
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
enum { cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2 };

enum cudaMemcpyKind {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4,
};

enum cudaMemoryType {
	cudaMemoryTypeUnregistered = 0,
	cudaMemoryTypeHost = 1,
	cudaMemoryTypeDevice = 2,
	cudaMemoryTypeManaged = 3,
};

enum cudaLimit {
	cudaLimitStackSize = 0,
	cudaLimitPrintfFifoSize = 1,
	cudaLimitMallocHeapSize = 2,
	cudaLimitPersistingL2CacheSize = 6,
};

typedef struct dim3 {
	unsigned x, y, z;
} dim3;

typedef struct cudaUUID {
	char bytes[16];
} cudaUUID_t;

typedef struct cudaIpcMemHandle {
	char reserved[64];
} cudaIpcMemHandle_t;

typedef struct cudaIpcEventHandle {
	char reserved[64];
} cudaIpcEventHandle_t;

struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer;
	void *hostPointer;
};

struct cudaFuncAttributes {
	size_t sharedSizeBytes;
	size_t constSizeBytes;
	size_t localSizeBytes;
	int maxThreadsPerBlock;
	int numRegs;
	int ptxVersion;
	int binaryVersion;
	int cacheModeCA;
	int maxDynamicSharedSizeBytes;
	int preferredShmemCarveout;
	int cluster[6];
	int reserved[16];
};

enum cudaFuncAttribute {
	cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
	cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};

#endif
