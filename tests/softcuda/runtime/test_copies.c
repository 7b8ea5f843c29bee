/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and fills: what is read and written, and what of it is done when a call returns. */
#include "tests/softcuda/runtime/support.h"

#include <string.h>

#define SIZE 100000u
#define LARGE ((size_t)20 << 20) /* beyond what is copied aside */

static cudaStream_t stream;
static struct gate gate;

static char *device_bytes(size_t size)
{
	void *pointer;
	OK(cudaMalloc(&pointer, size));
	return pointer;
}

static bool all_are(const char *bytes, char value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* The stream is held up, and yet the source may change: it has been read. */
static void pageable_source_is_read(void)
{
	char *device = device_bytes(SIZE);
	char *host = malloc(SIZE);

	close_gate(&gate, stream);
	memset(host, 1, SIZE);
	OK(cudaMemcpyAsync(device, host, SIZE, cudaMemcpyHostToDevice, stream));
	memset(host, 2, SIZE);
	free(host);
	FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
	open_gate(&gate);
	OK(cudaStreamSynchronize(stream));
	CHECK(all_are(device, 1, SIZE));
	OK(cudaFree(device));
}

/* Page-locked memory is read when the stream comes to it, not before. */
static void locked_source_is_read_in_order(void)
{
	char *device = device_bytes(SIZE);
	void *locked;
	char *registered = malloc(SIZE);

	OK(cudaHostAlloc(&locked, SIZE, cudaHostAllocDefault));
	OK(cudaHostRegister(registered, SIZE, 0));
	for (int round = 0; round < 2; round++) {
		char *host = round == 0 ? locked : registered;
		close_gate(&gate, stream);
		memset(host, 1, SIZE);
		OK(cudaMemcpyAsync(device, host, SIZE, cudaMemcpyHostToDevice, stream));
		memset(host, 2, SIZE);
		open_gate(&gate);
		OK(cudaStreamSynchronize(stream));
		CHECK(all_are(device, 2, SIZE));
	}
	OK(cudaHostUnregister(registered));
	free(registered);
	OK(cudaFreeHost(locked));
	OK(cudaFree(device));
}

static void pageable_target_is_written(void)
{
	char *device = device_bytes(SIZE);
	char *host = malloc(SIZE);

	memset(host, 0, SIZE);
	OK(cudaMemsetAsync(device, 5, SIZE, stream));
	OK(cudaMemcpyAsync(host, device, SIZE, cudaMemcpyDeviceToHost, stream));
	CHECK(all_are(host, 5, SIZE));
	free(host);
	OK(cudaFree(device));
}

static void *open_later(void *data)
{
	wait_semaphore(&gate.reached);
	open_gate(&gate);
	return NULL;
}

/* Too large to be copied aside: the call waits for the stream, and then reads. */
static void large_pageable_source(void)
{
	char *device = device_bytes(LARGE);
	char *host = malloc(LARGE);
	pthread_t opener;

	while (sem_trywait(&gate.reached) == 0)
		continue;
	memset(host, 7, LARGE);
	close_gate(&gate, stream);
	CHECK(pthread_create(&opener, NULL, open_later, NULL) == 0);
	OK(cudaMemcpyAsync(device, host, LARGE, cudaMemcpyHostToDevice, stream));
	memset(host, 8, LARGE);
	CHECK(pthread_join(opener, NULL) == 0);
	OK(cudaStreamSynchronize(stream));
	CHECK(all_are(device, 7, LARGE));
	free(host);
	OK(cudaFree(device));
}

static void synchronous_copies(void)
{
	char *device = device_bytes(SIZE);
	char *other = device_bytes(SIZE);
	char *host = malloc(SIZE);

	memset(host, 3, SIZE);
	OK(cudaMemcpy(device, host, SIZE, cudaMemcpyHostToDevice));
	CHECK(all_are(device, 3, SIZE));
	OK(cudaMemcpy(other, device, SIZE, cudaMemcpyDeviceToDevice));
	OK(cudaMemset(device, 4, SIZE));
	OK(cudaMemcpy(host, other, SIZE, cudaMemcpyDefault));
	CHECK(all_are(host, 3, SIZE));
	OK(cudaMemcpyPeer(other, 0, device, 0, SIZE));
	OK(cudaMemcpy(host, other, SIZE, cudaMemcpyDeviceToHost));
	CHECK(all_are(host, 4, SIZE));
	free(host);
	OK(cudaFree(device));
	OK(cudaFree(other));
}

static void two_dimensions(void)
{
	void *pointer;
	size_t pitch = 0;
	char host[7][100], back[7][100];

	OK(cudaMallocPitch(&pointer, &pitch, 100, 7));
	CHECK(pitch >= 100 && pitch % 512 == 0);
	OK(cudaMemset2D(pointer, pitch, 9, pitch, 7));
	for (int row = 0; row < 7; row++)
		memset(host[row], row + 20, 100);
	OK(cudaMemcpy2DAsync(pointer, pitch, host, 100, 100, 7, cudaMemcpyHostToDevice, stream));
	memset(host, 0, sizeof(host));
	OK(cudaMemcpy2DAsync(back, 100, pointer, pitch, 100, 7, cudaMemcpyDeviceToHost, stream));
	for (int row = 0; row < 7; row++) {
		CHECK(all_are(back[row], (char)(row + 20), 100));
		CHECK(all_are((char *)pointer + row * pitch + 100, 9, pitch - 100));
	}
	FAILS(cudaMemcpy2D(pointer, 50, host, 100, 100, 7, cudaMemcpyHostToDevice),
	      cudaErrorInvalidPitchValue);
	OK(cudaFree(pointer));
}

static void wrong_arguments(void)
{
	char host[16];
	char *device = device_bytes(16);

	FAILS(cudaMemcpy(device, host, 16, (enum cudaMemcpyKind)9),
	      cudaErrorInvalidMemcpyDirection);
	FAILS(cudaMemcpy(NULL, host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	FAILS(cudaMemset(host, 0, 16), cudaErrorInvalidValue);
	OK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
	OK(cudaMemset(device, 0, 0));
	OK(cudaFree(device));
}

int main(void)
{
	make_gate(&gate);
	OK(cudaStreamCreate(&stream));
	pageable_source_is_read();
	locked_source_is_read_in_order();
	pageable_target_is_written();
	large_pageable_source();
	synchronous_copies();
	two_dimensions();
	wrong_arguments();
	OK(cudaStreamDestroy(stream));
	return 0;
}
