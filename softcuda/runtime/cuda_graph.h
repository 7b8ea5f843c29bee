/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_graph.h - CUDA 12's public types of stream capture and graphs
 */
#ifndef SOFTCUDA_CUDA_GRAPH_H
#define SOFTCUDA_CUDA_GRAPH_H

#include "softcuda/runtime/cuda_types.h"

enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone = 0,
	cudaStreamCaptureStatusActive = 1,
	cudaStreamCaptureStatusInvalidated = 2,
};

enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal = 0,
	cudaStreamCaptureModeThreadLocal = 1,
	cudaStreamCaptureModeRelaxed = 2,
};

enum { cudaStreamAddCaptureDependencies = 0, cudaStreamSetCaptureDependencies = 1 };
enum { cudaUserObjectNoDestructorSync = 1 };
enum { cudaGraphUserObjectMove = 1 };

enum cudaGraphNodeType {
	cudaGraphNodeTypeKernel = 0,
	cudaGraphNodeTypeMemcpy = 1,
	cudaGraphNodeTypeMemset = 2,
	cudaGraphNodeTypeHost = 3,
	cudaGraphNodeTypeGraph = 4,
	cudaGraphNodeTypeEmpty = 5,
	cudaGraphNodeTypeWaitEvent = 6,
	cudaGraphNodeTypeEventRecord = 7,
};

typedef struct cudaGraphEdgeData {
	unsigned char from_port;
	unsigned char to_port;
	unsigned char type;
	unsigned char reserved[5];
} cudaGraphEdgeData;

struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim;
	dim3 blockDim;
	unsigned sharedMemBytes;
	void **kernelParams;
	void **extra;
};

struct cudaHostNodeParams {
	cudaHostFn_t fn;
	void *userData;
};

struct cudaMemsetParams {
	void *dst;
	size_t pitch;
	unsigned value;
	unsigned elementSize;
	size_t width;
	size_t height;
};

#endif
