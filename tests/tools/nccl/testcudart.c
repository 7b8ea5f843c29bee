/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for libcudart.so.12 in the tests of `ha nccl`: device memory is host memory, work is
 * done when it is asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 8

struct event {
	struct timespec at;
};

/* A graph is what was asked of NCCL between begin and end of a capture: testnccl.c keeps it. */
EXPORT void *testcudart_capture; /* the stream that captures, or NULL */
EXPORT void (*testcudart_replay)(void);
EXPORT void (*testcudart_forget)(void);

#ifdef TESTCUDART_SOFT
EXPORT void softcuda_add_resolver(void)
{
}
#endif

static int devices_count(void)
{
	const char *text = getenv("TESTCUDART_DEVICES");

	return text ? atoi(text) : DEVICES;
}

EXPORT int cudaGetDeviceCount(int *count)
{
	*count = devices_count();
	return *count ? 0 : 100;
}

EXPORT int cudaSetDevice(int device)
{
	return device < 0 || device >= devices_count() ? 101 : 0;
}

EXPORT int cudaMalloc(void **memory, size_t size)
{
	*memory = malloc(size);
	return *memory ? 0 : 2;
}

EXPORT int cudaFree(void *memory)
{
	free(memory);
	return 0;
}

EXPORT int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
	memcpy(to, from, size);
	return 0;
}

EXPORT int cudaMemset(void *memory, int value, size_t size)
{
	memset(memory, value, size);
	return 0;
}

EXPORT int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
	*stream = malloc(1);
	return 0;
}

EXPORT int cudaStreamDestroy(void *stream)
{
	free(stream);
	return 0;
}

EXPORT int cudaStreamSynchronize(void *stream)
{
	return 0;
}

EXPORT int cudaEventCreate(void **event)
{
	*event = calloc(1, sizeof(struct event));
	return 0;
}

EXPORT int cudaEventDestroy(void *event)
{
	free(event);
	return 0;
}

EXPORT int cudaEventRecord(void *event, void *stream)
{
	clock_gettime(CLOCK_MONOTONIC, &((struct event *)event)->at);
	return 0;
}

EXPORT int cudaEventQuery(void *event)
{
	return 0;
}

EXPORT int cudaEventElapsedTime(float *ms, void *first, void *second)
{
	const struct event *a = first, *b = second;

	*ms = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3 +
		      (double)(b->at.tv_nsec - a->at.tv_nsec) / 1e6);
	return 0;
}

EXPORT const char *cudaGetErrorString(int error)
{
	return error == 100 ? "no CUDA-capable device is detected" : "an error of the test";
}

EXPORT int cudaRuntimeGetVersion(int *version)
{
	*version = 12040;
	return 0;
}

EXPORT int cudaDeviceGetPCIBusId(char *text, int size, int device)
{
	snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
	return 0;
}

EXPORT int cudaStreamBeginCapture(void *stream, int mode)
{
	testcudart_capture = stream;
	return 0;
}

EXPORT int cudaStreamEndCapture(void *stream, void **graph)
{
	testcudart_capture = NULL;
	*graph = malloc(1);
	return 0;
}

EXPORT int cudaGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
	*executable = malloc(1);
	return 0;
}

EXPORT int cudaGraphLaunch(void *executable, void *stream)
{
	testcudart_replay();
	return 0;
}

EXPORT int cudaGraphDestroy(void *graph)
{
	free(graph);
	return 0;
}

EXPORT int cudaGraphExecDestroy(void *executable)
{
	testcudart_forget();
	free(executable);
	return 0;
}
