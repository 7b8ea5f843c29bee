/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA IPC: two processes that share device memory. The exporter is a process of its own, told what
 * to do by a pipe. */
#include "tests/softcuda/runtime/support.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 100000u

static int from_exporter[2], to_exporter[2];

static void send_bytes(int fd, const void *bytes, size_t size)
{
	CHECK(write(fd, bytes, size) == (ssize_t)size);
}

static void receive_bytes(int fd, void *bytes, size_t size)
{
	CHECK(read(fd, bytes, size) == (ssize_t)size);
}

/* Free what the importer has mapped: nobody gets its pages before that is closed. */
static void check_release(char **pointers)
{
	size_t before, kept, after, total;
	char *other;
	char go;

	OK(cudaMemGetInfo(&before, &total));
	OK(cudaFree(pointers[0]));
	OK(cudaFree(pointers[1]));
	OK(cudaMemGetInfo(&kept, &total));
	CHECK(kept == before);
	OK(cudaMalloc((void **)&other, SIZE));
	CHECK(other != pointers[0] && other != pointers[1]);
	OK(cudaMemset(other, 7, SIZE));
	OK(cudaDeviceSynchronize());
	send_bytes(from_exporter[1], "d", 1);
	receive_bytes(to_exporter[0], &go, 1); /* it has closed */
	OK(cudaFree(other));
	OK(cudaMemGetInfo(&after, &total));
	CHECK(after >= before + 2 * SIZE);
	OK(cudaMalloc((void **)&other, SIZE));
	CHECK(other == pointers[0] && other[0] == 0);
}

/* Two allocations of device 1, filled with 1 and 2; the second is exported by an address inside of
 * it. */
static void run_exporter(void)
{
	cudaIpcMemHandle_t handles[2];
	char *pointers[2];
	char go;

	OK(cudaSetDevice(1));
	for (int i = 0; i < 2; i++) {
		OK(cudaMalloc((void **)&pointers[i], SIZE));
		OK(cudaMemset(pointers[i], i + 1, SIZE));
		OK(cudaIpcGetMemHandle(&handles[i], pointers[i] + 500 * i));
	}
	OK(cudaDeviceSynchronize());
	send_bytes(from_exporter[1], handles, sizeof(handles));
	receive_bytes(to_exporter[0], &go, 1); /* the importer has written */
	for (unsigned i = 0; i < SIZE; i++)
		CHECK(pointers[1][i] == 9);
	CHECK(pointers[0][SIZE - 1] == 1);
	check_release(pointers);
	exit(0);
}

static void check_import(const cudaIpcMemHandle_t *handles)
{
	struct cudaPointerAttributes attributes;
	char *first, *second, *again, answer, host[SIZE];

	OK(cudaIpcOpenMemHandle((void **)&first, handles[0], cudaIpcMemLazyEnablePeerAccess));
	OK(cudaIpcOpenMemHandle((void **)&second, handles[1], cudaIpcMemLazyEnablePeerAccess));
	OK(cudaIpcOpenMemHandle((void **)&again, handles[1], cudaIpcMemLazyEnablePeerAccess));
	CHECK(again == second && first != second);
	OK(cudaMemcpy(host, first, SIZE, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < SIZE; i++)
		CHECK(host[i] == 1);
	CHECK(second[0] == 2 && second[SIZE - 1] == 2);
	OK(cudaPointerGetAttributes(&attributes, second + SIZE - 1));
	CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 1);
	OK(cudaMemset(second, 9, SIZE));
	OK(cudaDeviceSynchronize());
	send_bytes(to_exporter[1], "w", 1);
	receive_bytes(from_exporter[0], &answer, 1); /* it has freed both */
	CHECK(first[0] == 1 && first[SIZE - 1] == 1);
	CHECK(second[0] == 9 && second[SIZE - 1] == 9);
	FAILS(cudaFree(second), cudaErrorInvalidValue);
	OK(cudaIpcCloseMemHandle(second));
	CHECK(second[1] == 9); /* opened twice */
	OK(cudaIpcCloseMemHandle(second));
	FAILS(cudaIpcCloseMemHandle(second), cudaErrorInvalidValue);
	OK(cudaIpcCloseMemHandle(first));
	OK(cudaPointerGetAttributes(&attributes, second));
	CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

static void refuse_wrong_handles(void)
{
	cudaIpcMemHandle_t handle;
	void *pointer, *opened, *host;

	memset(&handle, 0x5a, sizeof(handle));
	FAILS(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
	      cudaErrorInvalidValue);
	OK(cudaMalloc(&pointer, 100));
	OK(cudaIpcGetMemHandle(&handle, pointer));
	FAILS(cudaIpcOpenMemHandle(&opened, handle, 0), cudaErrorInvalidValue);
	FAILS(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
	      cudaErrorDeviceUninitialized);
	FAILS(cudaIpcCloseMemHandle(pointer), cudaErrorInvalidValue);
	OK(cudaFree(pointer));
	FAILS(cudaIpcGetMemHandle(&handle, pointer), cudaErrorInvalidValue);
	OK(cudaHostAlloc(&host, 100, 0));
	FAILS(cudaIpcGetMemHandle(&handle, host), cudaErrorInvalidValue);
	OK(cudaFreeHost(host));
}

int main(void)
{
	cudaIpcMemHandle_t handles[2];
	void *opened;
	int status;

	CHECK(pipe(from_exporter) == 0 && pipe(to_exporter) == 0);
	pid_t exporter = fork(); /* before anybody has used CUDA */
	CHECK(exporter >= 0);
	/* Who waits for a peer that has failed reads the end. */
	close(exporter == 0 ? from_exporter[0] : from_exporter[1]);
	close(exporter == 0 ? to_exporter[1] : to_exporter[0]);
	if (exporter == 0)
		run_exporter();
	receive_bytes(from_exporter[0], handles, sizeof(handles));
	check_import(handles);
	refuse_wrong_handles();
	send_bytes(to_exporter[1], "c", 1);
	CHECK(waitpid(exporter, &status, 0) == exporter && status == 0);
	/* Its process is gone: one line, and an error. */
	FAILS(cudaIpcOpenMemHandle(&opened, handles[0], cudaIpcMemLazyEnablePeerAccess),
	      cudaErrorMapBufferObjectFailed);
	return 0;
}
