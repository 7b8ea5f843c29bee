/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that programs use which were compiled with --default-stream per-thread: there, stream 0 is
 * the thread's own. A suffix of _ptsz marks functions that take a stream, _ptds those that have
 * none.
 */
#include "softcuda/runtime/cuda_api_more.h"

#pragma GCC visibility push(default)

static cudaStream_t to_own_stream(cudaStream_t stream)
{
	return stream == NULL ? cudaStreamPerThread : stream;
}

/* A function and its parameters; in the call, `stream` stands for to_own_stream(stream). */
#define PER_THREAD(name, parameters, arguments) \
	cudaError_t name##_ptsz parameters;     \
	cudaError_t name##_ptsz parameters      \
	{                                       \
		stream = to_own_stream(stream); \
		return name arguments;          \
	}

/* One without a stream: the asynchronous form, and a wait. */
#define PER_THREAD_WAIT(name, parameters, arguments)                                 \
	cudaError_t name##_ptds parameters;                                          \
	cudaError_t name##_ptds parameters                                           \
	{                                                                            \
		cudaStream_t stream = cudaStreamPerThread;                           \
		cudaError_t error = name##Async arguments;                           \
		return error != cudaSuccess ? error : cudaStreamSynchronize(stream); \
	}

PER_THREAD(cudaMemcpyAsync,
	   (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream),
	   (to, from, size, kind, stream))
PER_THREAD(cudaMemcpy2DAsync,
	   (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
	    size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
	   (to, to_pitch, from, from_pitch, width, height, kind, stream))
PER_THREAD(cudaMemcpyPeerAsync,
	   (void *to, int to_device, const void *from, int from_device, size_t size,
	    cudaStream_t stream),
	   (to, to_device, from, from_device, size, stream))
PER_THREAD(cudaMemsetAsync, (void *pointer, int value, size_t size, cudaStream_t stream),
	   (pointer, value, size, stream))
PER_THREAD(cudaMemset2DAsync,
	   (void *pointer, size_t pitch, int value, size_t width, size_t height,
	    cudaStream_t stream),
	   (pointer, pitch, value, width, height, stream))
PER_THREAD_WAIT(cudaMemcpy, (void *to, const void *from, size_t size, enum cudaMemcpyKind kind),
		(to, from, size, kind, stream))
PER_THREAD_WAIT(cudaMemcpy2D,
		(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		 size_t height, enum cudaMemcpyKind kind),
		(to, to_pitch, from, from_pitch, width, height, kind, stream))
PER_THREAD_WAIT(cudaMemset, (void *pointer, int value, size_t size), (pointer, value, size, stream))
PER_THREAD_WAIT(cudaMemset2D, (void *pointer, size_t pitch, int value, size_t width, size_t height),
		(pointer, pitch, value, width, height, stream))

PER_THREAD(cudaStreamSynchronize, (cudaStream_t stream), (stream))
PER_THREAD(cudaStreamQuery, (cudaStream_t stream), (stream))
PER_THREAD(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), (stream, id))
PER_THREAD(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), (stream, flags))
PER_THREAD(cudaStreamGetPriority, (cudaStream_t stream, int *priority), (stream, priority))
PER_THREAD(cudaStreamGetDevice, (cudaStream_t stream, int *device), (stream, device))
PER_THREAD(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
	   (stream, event, flags))
PER_THREAD(cudaStreamAddCallback,
	   (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags),
	   (stream, callback, data, flags))
PER_THREAD(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
	   (stream, function, data))
PER_THREAD(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
PER_THREAD(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
	   (event, stream, flags))

PER_THREAD(cudaLaunchKernel,
	   (const void *function, dim3 grid, dim3 block, void **parameters, size_t shared_memory,
	    cudaStream_t stream),
	   (function, grid, block, parameters, shared_memory, stream))
PER_THREAD(cudaLaunchCooperativeKernel,
	   (const void *function, dim3 grid, dim3 block, void **parameters, size_t shared_memory,
	    cudaStream_t stream),
	   (function, grid, block, parameters, shared_memory, stream))

PER_THREAD(cudaMallocAsync, (void **pointer, size_t size, cudaStream_t stream),
	   (pointer, size, stream))
PER_THREAD(cudaMallocFromPoolAsync,
	   (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),
	   (pointer, size, pool, stream))
PER_THREAD(cudaFreeAsync, (void *pointer, cudaStream_t stream), (pointer, stream))

PER_THREAD(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
	   (stream, mode))
PER_THREAD(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (stream, graph))
PER_THREAD(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
	   (stream, status))
PER_THREAD(cudaStreamGetCaptureInfo_v2,
	   (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
	    cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count),
	   (stream, status, id, graph, nodes, count))
PER_THREAD(cudaStreamGetCaptureInfo_v3,
	   (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
	    cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
	    size_t *count),
	   (stream, status, id, graph, nodes, edges, count))
PER_THREAD(cudaStreamUpdateCaptureDependencies,
	   (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags),
	   (stream, nodes, count, flags))
PER_THREAD(cudaStreamUpdateCaptureDependencies_v2,
	   (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges,
	    size_t count, unsigned flags),
	   (stream, nodes, edges, count, flags))
PER_THREAD(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
PER_THREAD(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))

/* With a configuration in place of a stream. */
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *function,
				     void **parameters);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *function,
				     void **parameters)
{
	if (config == NULL)
		return cudaLaunchKernelExC(config, function, parameters);
	cudaLaunchConfig_t changed = *config;
	changed.stream = to_own_stream(config->stream);
	return cudaLaunchKernelExC(&changed, function, parameters);
}

#pragma GCC visibility pop
