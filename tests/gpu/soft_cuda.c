/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft_cuda.c - the driver's calls that gpu/host wants (libcuda.so.1), each by softcuda
 *
 * What softcuda finds by name as the driver's is taken from there; of the others its runtime has
 * the twin. Driver and runtime have the same numbers for errors and flags, and a CUstream is a
 * cudaStream_t.
 */
#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/cuda_driver.h"

#include <stdlib.h>

#define DEEPEST 16 /* contexts that are pushed */

static _Thread_local CUcontext below[DEEPEST];
static _Thread_local int depth;

static void *find_entry_point(const char *name)
{
	void *function = NULL;

	if (cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, NULL) || !function)
		abort();
	return function;
}

CUresult cuInit(unsigned flags)
{
	CUresult (*call)(unsigned);

	*(void **)&call = find_entry_point("cuInit");
	return call(flags);
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	CUresult (*call)(CUresult, const char **);

	*(void **)&call = find_entry_point("cuGetErrorName");
	return call(error, name);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	CUresult (*call)(CUcontext *);

	*(void **)&call = find_entry_point("cuCtxGetCurrent");
	return call(context);
}

static CUresult set_current(CUcontext context)
{
	CUresult (*call)(CUcontext);

	*(void **)&call = find_entry_point("cuCtxSetCurrent");
	return call(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	CUresult error = depth == DEEPEST ? cudaErrorInvalidValue : cuCtxGetCurrent(&below[depth]);

	if (!error)
		error = set_current(context);
	if (!error)
		depth++;
	return error;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	CUresult error = depth ? cuCtxGetCurrent(context) : cudaErrorInvalidValue;

	return error ? error : set_current(below[--depth]);
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
	return cudaHostAlloc(p, bytes, flags);
}

CUresult cuMemFreeHost(void *p)
{
	return cudaFreeHost(p);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
	return cudaHostRegister(p, bytes, flags);
}

CUresult cuMemHostUnregister(void *p)
{
	return cudaHostUnregister(p);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *p, unsigned flags)
{
	void *at = NULL;
	CUresult error = cudaHostGetDevicePointer(&at, p, flags);

	*device = (CUdeviceptr)(uintptr_t)at;
	return error;
}

CUresult cuMemAlloc_v2(CUdeviceptr *device, size_t bytes)
{
	void *at = NULL;
	CUresult error = cudaMalloc(&at, bytes);

	*device = (CUdeviceptr)(uintptr_t)at;
	return error;
}

CUresult cuMemFree_v2(CUdeviceptr device)
{
	return cudaFree((void *)(uintptr_t)device);
}

CUresult cuMemsetD8Async(CUdeviceptr device, unsigned char value, size_t bytes, CUstream stream)
{
	return cudaMemsetAsync((void *)(uintptr_t)device, value, bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return cudaMemcpyAsync((void *)(uintptr_t)to, from, bytes, cudaMemcpyHostToDevice, stream);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	return cudaStreamCreateWithFlags(stream, flags);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	return cudaStreamDestroy(stream);
}

CUresult cuStreamQuery(CUstream stream)
{
	return cudaStreamQuery(stream);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	return cudaStreamSynchronize(stream);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr p)
{
	CUresult (*call)(void *, int, CUdeviceptr);

	*(void **)&call = find_entry_point("cuPointerGetAttribute");
	return call(value, attribute, p);
}

CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr p)
{
	CUresult (*call)(const void *, int, CUdeviceptr);

	*(void **)&call = find_entry_point("cuPointerSetAttribute");
	return call(value, attribute, p);
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr p, size_t bytes, int type,
				       unsigned long long flags)
{
	CUresult (*call)(void *, CUdeviceptr, size_t, int, unsigned long long);

	*(void **)&call = find_entry_point("cuMemGetHandleForAddressRange");
	return call(handle, p, bytes, type, flags);
}
