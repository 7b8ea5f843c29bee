/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation: device memory, host memory, pools; what pointers are; and that freeing waits for
 * whoever may use it. */
#include "tests/softcuda/runtime/support.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

static void device_memory(void)
{
	void *pointers[1000];
	size_t before, after, total;

	OK(cudaMemGetInfo(&before, &total));
	CHECK(total == (256u << 20) && before <= total); /* SOFTCUDA_MEMORY of this test */
	for (int i = 0; i < 1000; i++) {
		OK(cudaMalloc(&pointers[i], (size_t)i * 17 + 1));
		CHECK((uintptr_t)pointers[i] % 512 == 0);
		memset(pointers[i], i, (size_t)i * 17 + 1);
	}
	for (int i = 0; i < 1000; i++)
		CHECK(((char *)pointers[i])[i * 17] == (char)i);
	OK(cudaMemGetInfo(&after, &total));
	CHECK(before - after >= 1000 * 4096);
	for (int i = 0; i < 1000; i += 2)
		OK(cudaFree(pointers[i]));
	for (int i = 1; i < 1000; i += 2)
		OK(cudaFree(pointers[i]));
	OK(cudaMemGetInfo(&after, &total));
	CHECK_INT(after, before);
	OK(cudaMalloc(&pointers[0], after)); /* no gap was lost: all of it in one piece */
	FAILS(cudaMalloc(&pointers[1], 1), cudaErrorMemoryAllocation);
	OK(cudaFree(pointers[0]));
	FAILS(cudaMalloc(&pointers[1], (size_t)1 << 50), cudaErrorMemoryAllocation);
	CHECK(pointers[1] == NULL);
	OK(cudaMalloc(&pointers[0], 0));
	CHECK(pointers[0] == NULL);
	OK(cudaFree(NULL));
}

static void wrong_frees(void)
{
	void *pointer, *host;

	OK(cudaMalloc(&pointer, 100));
	OK(cudaHostAlloc(&host, 100, 0));
	FAILS(cudaFree((char *)pointer + 1), cudaErrorInvalidValue);
	FAILS(cudaFree(host), cudaErrorInvalidValue);
	FAILS(cudaFreeHost(pointer), cudaErrorInvalidValue);
	OK(cudaFree(pointer));
	FAILS(cudaFree(pointer), cudaErrorInvalidValue);
	OK(cudaFreeHost(host));
	FAILS(cudaFreeHost(host), cudaErrorInvalidValue);
}

static void attributes_of_pointers(void)
{
	struct cudaPointerAttributes found;
	void *pointer, *locked, *same;
	char pageable[10000];
	unsigned flags;

	OK(cudaMalloc(&pointer, 100));
	OK(cudaPointerGetAttributes(&found, (char *)pointer + 99));
	CHECK(found.type == cudaMemoryTypeDevice && found.device == 0 && found.hostPointer == NULL);
	CHECK(found.devicePointer == (char *)pointer + 99);
	OK(cudaPointerGetAttributes(&found, (char *)pointer + 100));
	CHECK(found.type == cudaMemoryTypeUnregistered);
	OK(cudaPointerGetAttributes(&found, pageable));
	CHECK(found.type == cudaMemoryTypeUnregistered && found.device == -2 &&
	      found.devicePointer == NULL);
	OK(cudaHostAlloc(&locked, 100, cudaHostAllocMapped));
	OK(cudaPointerGetAttributes(&found, locked));
	CHECK(found.type == cudaMemoryTypeHost && found.hostPointer == locked &&
	      found.devicePointer == locked);
	OK(cudaHostRegister(pageable + 100, 5000, cudaHostRegisterMapped));
	OK(cudaPointerGetAttributes(&found, pageable + 100));
	CHECK(found.type == cudaMemoryTypeHost);
	OK(cudaHostGetDevicePointer(&same, pageable + 200, 0));
	CHECK(same == pageable + 200);
	OK(cudaHostGetFlags(&flags, pageable + 200));
	FAILS(cudaHostRegister(pageable, 200, 0), cudaErrorHostMemoryAlreadyRegistered);
	FAILS(cudaHostUnregister(pageable + 200), cudaErrorHostMemoryNotRegistered);
	OK(cudaHostUnregister(pageable + 100));
	FAILS(cudaHostGetDevicePointer(&same, pageable + 200, 0), cudaErrorInvalidValue);
	OK(cudaFreeHost(locked));
	OK(cudaFree(pointer));
}

/* ---- freeing waits ---- */

struct freeing {
	void *pointer;
	_Atomic int freed;
};

static void *free_it(void *data)
{
	struct freeing *freeing = data;
	OK(cudaFree(freeing->pointer));
	freeing->freed = 1;
	return NULL;
}

static void free_waits_for_all_streams(void)
{
	struct freeing freeing = { 0 };
	struct gate gate;
	cudaStream_t stream;
	pthread_t thread;

	make_gate(&gate);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc(&freeing.pointer, 1 << 20));
	close_gate(&gate, stream);
	OK(cudaMemsetAsync(freeing.pointer, 1, 1 << 20, stream));
	CHECK(pthread_create(&thread, NULL, free_it, &freeing) == 0);
	wait_semaphore(&gate.reached);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	CHECK_INT(freeing.freed, 0);
	open_gate(&gate);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_INT(freeing.freed, 1);
	OK(cudaStreamQuery(stream));
	OK(cudaStreamDestroy(stream));
}

/* ---- pools ---- */

static size_t pool_size(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
	uint64_t size = 0;
	OK(cudaMemPoolGetAttribute(pool, attribute, &size));
	return size;
}

static void freed_in_order(cudaMemPool_t pool)
{
	struct gate gate;
	cudaStream_t stream;
	void *pointer;

	make_gate(&gate);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMallocFromPoolAsync(&pointer, 100000, pool, stream));
	CHECK_INT(pool_size(pool, cudaMemPoolAttrUsedMemCurrent), 100000);
	close_gate(&gate, stream);
	OK(cudaMemsetAsync(pointer, 1, 100000, stream));
	OK(cudaFreeAsync(pointer, stream));
	FAILS(cudaFreeAsync(pointer, stream), cudaErrorInvalidValue);
	/* the stream has not come to it */
	CHECK_INT(pool_size(pool, cudaMemPoolAttrUsedMemCurrent), 100000);
	open_gate(&gate);
	OK(cudaStreamSynchronize(stream));
	CHECK_INT(pool_size(pool, cudaMemPoolAttrUsedMemCurrent), 0);
	CHECK_INT(pool_size(pool, cudaMemPoolAttrUsedMemHigh), 100000);
	OK(cudaStreamDestroy(stream));
}

static void memory_pools(void)
{
	struct cudaMemPoolProps properties = {
		.allocType = cudaMemAllocationTypePinned,
		.location = { .type = cudaMemLocationTypeDevice, .id = 0 },
		.maxSize = 1 << 20,
	};
	cudaMemPool_t pool, standard, current;
	uint64_t threshold = UINT64_MAX;
	cudaIpcMemHandle_t handle;
	void *pointer, *other;

	OK(cudaMemPoolCreate(&pool, &properties));
	OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	CHECK(pool_size(pool, cudaMemPoolAttrReleaseThreshold) == threshold);
	freed_in_order(pool);
	FAILS(cudaMallocFromPoolAsync(&pointer, (1 << 20) + 1, pool, NULL),
	      cudaErrorMemoryAllocation);
	OK(cudaMallocFromPoolAsync(&pointer, 1 << 20, pool, NULL));
	FAILS(cudaIpcGetMemHandle(&handle, pointer), cudaErrorInvalidValue);
	OK(cudaMemPoolDestroy(pool)); /* it stays with its allocation */
	FAILS(cudaMallocFromPoolAsync(&other, 1, pool, NULL), cudaErrorInvalidResourceHandle);
	memset(pointer, 1, 1 << 20);
	OK(cudaFree(pointer));
	OK(cudaDeviceGetDefaultMemPool(&standard, 0));
	OK(cudaDeviceGetMemPool(&current, 0));
	CHECK(standard == current);
	FAILS(cudaMemPoolDestroy(standard), cudaErrorInvalidValue);
	OK(cudaMemPoolCreate(&pool, &properties));
	OK(cudaDeviceSetMemPool(0, pool));
	OK(cudaMallocAsync(&pointer, 1000, NULL));
	CHECK_INT(pool_size(pool, cudaMemPoolAttrUsedMemCurrent), 1000);
	OK(cudaFreeAsync(pointer, NULL));
	OK(cudaMemPoolDestroy(pool));
	OK(cudaMallocAsync(&pointer, 1000, NULL));
	CHECK_INT(pool_size(standard, cudaMemPoolAttrUsedMemCurrent), 1000);
	OK(cudaFreeAsync(pointer, NULL));
	OK(cudaMemPoolTrimTo(standard, 0));
	OK(cudaMalloc(&pointer, 1000));
	FAILS(cudaFreeAsync(pointer, NULL), cudaErrorInvalidValue); /* not a pool's */
	OK(cudaFree(pointer));
	properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	FAILS(cudaMemPoolCreate(&pool, &properties), cudaErrorNotSupported);
}

static size_t count_pages(void *from, size_t pages)
{
	unsigned char there[1024];
	size_t found = 0;

	CHECK(pages <= sizeof(there) && mincore(from, pages * 4096, there) == 0);
	for (size_t i = 0; i < pages; i++)
		found += there[i] & 1;
	return found;
}

/* cudaMemset to zero makes no page of memory that nobody has written, and zeroes what has been. */
static void zeros_make_no_pages(void)
{
	enum { PAGES = 1024, SIZE = PAGES * 4096 };
	char *pointer;

	OK(cudaMalloc((void **)&pointer, SIZE));
	OK(cudaMemset(pointer, 0, SIZE));
	OK(cudaDeviceSynchronize());
	CHECK_INT(count_pages(pointer, PAGES), 0);
	memset(pointer + 4096 * 10 - 1, 1, 2);
	memset(pointer + SIZE - 4096 * 3, 1, 4096 * 3);
	OK(cudaMemset(pointer + 1, 0, SIZE - 2));
	OK(cudaDeviceSynchronize());
	CHECK_INT(count_pages(pointer, PAGES), 5);
	CHECK(pointer[SIZE - 1] == 1); /* behind what was zeroed */
	for (size_t i = 0; i < SIZE - 1; i++)
		CHECK(pointer[i] == 0);
	OK(cudaMemset(pointer, 0x5a, SIZE));
	OK(cudaDeviceSynchronize());
	CHECK(pointer[0] == 0x5a && pointer[SIZE - 1] == 0x5a);
	OK(cudaFree(pointer));
}

int main(void)
{
	setenv("SOFTCUDA_MEMORY", "256M", 1);
	device_memory();
	zeros_make_no_pages();
	wrong_frees();
	attributes_of_pointers();
	free_waits_for_all_streams();
	memory_pools();
	return 0;
}
