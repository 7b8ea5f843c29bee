/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_softcuda.c - what the host library wants of CUDA, on softcuda: streams that are threads,
 * memory that is one file, page-locked ranges that are known as such
 */
#include "gpu/host/cuda.h"
#include "softcuda/runtime/cuda_api.h"
#include "tests/gpu/job.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ha_gpu_cuda cuda;
static struct ha_gpu_mlx5_memory memory;

static void open_cuda(void)
{
	CHECK_INT(cudaSetDevice(1), cudaSuccess);
	CHECK_INT(ha_gpu_cuda_open(&cuda), 0);
	ha_gpu_cuda_memory(&cuda, &memory);
}

static void close_cuda(void)
{
	int device;

	ha_gpu_cuda_close(&cuda);
	CHECK_INT(cudaGetDevice(&device), cudaSuccess);
	CHECK_INT(device, 1);
}

static enum cudaMemoryType type_of(const void *p)
{
	struct cudaPointerAttributes attributes;

	CHECK_INT(cudaPointerGetAttributes(&attributes, p), cudaSuccess);
	return attributes.type;
}

/* From a thread whose device is another: it is the caller's of open() all the same. */
static void *pin_elsewhere(void *at)
{
	int device;

	CHECK_INT(cudaSetDevice(2), cudaSuccess);
	CHECK_INT(memory.alloc(memory.self, 5000, at), 0);
	CHECK_INT(cudaGetDevice(&device), cudaSuccess);
	CHECK_INT(device, 2);
	return NULL;
}

static void pinned_memory(void)
{
	struct cudaPointerAttributes attributes;
	pthread_t thread;
	uint8_t *p;

	open_cuda();
	CHECK(!pthread_create(&thread, NULL, pin_elsewhere, &p));
	pthread_join(thread, NULL);
	CHECK(!((uintptr_t)p & 4095));
	for (unsigned i = 0; i < 8192; i++)
		CHECK_INT(p[i], 0);
	CHECK_INT(cudaPointerGetAttributes(&attributes, p), cudaSuccess);
	CHECK_INT(attributes.type, cudaMemoryTypeHost);
	CHECK_INT(attributes.device, 1);
	memory.free(memory.self, p, 5000);
	CHECK_INT(type_of(p), cudaMemoryTypeUnregistered);
	close_cuda();
}

/* A page is registered once, and given back with the last register on it. */
static void doorbells_are_mapped(void)
{
	static uint8_t bar[8192] __attribute__((aligned(4096)));
	void *a, *b;

	open_cuda();
	CHECK_INT(memory.map_doorbell(memory.self, bar + 0x800, &a), 0);
	CHECK_INT(memory.map_doorbell(memory.self, bar + 0xa00, &b), 0);
	CHECK(a == bar + 0x800 && b == bar + 0xa00);
	CHECK_INT(type_of(bar), cudaMemoryTypeHost);
	CHECK_INT(type_of(bar + 4096), cudaMemoryTypeUnregistered);
	memory.unmap_doorbell(memory.self, bar + 0x800);
	CHECK_INT(type_of(bar), cudaMemoryTypeHost);
	memory.unmap_doorbell(memory.self, bar + 0xa00);
	CHECK_INT(type_of(bar), cudaMemoryTypeUnregistered);
	CHECK_INT(memory.map_doorbell(memory.self, bar + 0x800, &a), 0); /* and again */
	memory.unmap_doorbell(memory.self, bar + 0x800);
	close_cuda();
}

/* What a NIC gets is the memory that the GPU has: the same bytes, both ways. */
static void dma_buf(void)
{
	uint64_t offset;
	uint8_t *device, *nic, byte = 0x5a;
	void *host;
	int fd;

	open_cuda();
	CHECK_INT(cudaMalloc((void **)&device, 1 << 16), cudaSuccess);
	CHECK_INT(memory.dmabuf(memory.self, device + 5000, 10000, &fd, &offset), 0);
	CHECK_INT(offset, 5000 - 4096);
	nic = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, lseek(fd, 0, SEEK_CUR));
	CHECK(nic != MAP_FAILED);
	close(fd);
	CHECK_INT(cudaMemcpy(device + 5000, &byte, 1, cudaMemcpyHostToDevice), cudaSuccess);
	CHECK_INT(nic[offset], 0x5a);
	nic[offset + 9999] = 0x3c;
	CHECK_INT(cudaMemcpy(&byte, device + 14999, 1, cudaMemcpyDeviceToHost), cudaSuccess);
	CHECK_INT(byte, 0x3c);
	munmap(nic, 16384);
	CHECK_INT(memory.alloc(memory.self, 4096, &host), 0);
	CHECK_INT(memory.dmabuf(memory.self, host, 4096, &fd, &offset), -EOPNOTSUPP);
	CHECK_INT(memory.dmabuf(memory.self, &offset, 8, &fd, &offset), -EOPNOTSUPP);
	memory.free(memory.self, host, 4096);
	CHECK_INT(cudaFree(device), cudaSuccess);
	close_cuda();
}

/* ---- with a host ---- */

static struct job job;

static void start_job(void)
{
	job_start(&job, 2, 2);
	job_all(&job, job_open);
	job_want(&job, 0);
	job_all(&job, job_connect_2_1);
	job_want(&job, 0);
}

static void end_job(void)
{
	job_all(&job, job_finalize);
	job_want(&job, 0);
	job_end(&job);
}

static void same_rows(const struct ha_gpu_cuda_world *w, const struct ha_gpu_world *here,
		      uint64_t nrows)
{
	static struct ha_gpu_world there;

	CHECK_INT(cudaMemcpy(&there, (void *)(uintptr_t)w->device, sizeof(there),
			     cudaMemcpyDeviceToHost),
		  cudaSuccess);
	CHECK_INT(there.nrows, nrows);
	CHECK_INT(there.pe, here->pe);
	CHECK_INT(there.pes, here->pes);
	for (uint64_t i = 0; i < nrows; i++)
		CHECK(there.row[i] == here->row[i]);
	for (uint64_t i = nrows; i < HA_GPU_ROWS_MAX; i++)
		CHECK_INT(there.row[i], 0);
}

static void wait_for_flag(void *flag)
{
	while (!ha_gpu_load(flag))
		usleep(100);
}

/*
 * The GPU's copy of the rows, on a stream of its own: what the program has under way on another,
 * the legacy one too, does not keep a growth from its end.
 */
static void rows_are_copied(void)
{
	struct ha_gpu_cuda_world w;
	uint64_t go = 0;

	open_cuda();
	start_job();
	CHECK_INT(cudaLaunchHostFunc(NULL, wait_for_flag, &go), cudaSuccess);
	CHECK_INT(ha_gpu_cuda_world_make(&cuda, job.pe[0].host, &w), 0);
	CHECK_INT(type_of((void *)(uintptr_t)w.device), cudaMemoryTypeDevice);
	job_all(&job, job_connect_1_1);
	job_want(&job, 0);
	CHECK_INT(ha_gpu_cuda_world_grow(&w), 0);
	CHECK_INT(cuda.copied, 2 * sizeof(uint32_t) + (4 + 1) * 8 + (2 + 1) * 8);
	CHECK_INT(cudaStreamQuery(NULL), cudaErrorNotReady);
	ha_gpu_store(&go, 1);
	same_rows(&w, job.pe[0].world, 6);
	ha_gpu_cuda_world_free(&w);
	end_job();
	close_cuda();
}

/* A launch waits for what is on its stream, and for nothing else. */
static void launch_waits_for_kernels(void)
{
	cudaStream_t stream, other;
	struct ha_gpu_host *h;
	uint64_t go = 0, never = 0;

	open_cuda();
	start_job();
	h = job.pe[0].host;
	CHECK_INT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	CHECK_INT(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
	CHECK_INT(cudaLaunchHostFunc(other, wait_for_flag, &never), cudaSuccess);
	CHECK_INT(ha_gpu_cuda_launch(&cuda, h, stream, 60000), 0);
	CHECK_INT(cudaLaunchHostFunc(stream, wait_for_flag, &go), cudaSuccess);
	CHECK_INT(ha_gpu_cuda_launch(&cuda, h, stream, 20), -EBUSY);
	ha_gpu_store(&go, 1);
	CHECK_INT(ha_gpu_cuda_launch(&cuda, h, stream, 600000), 0);
	ha_gpu_world_enter(job.pe[0].world);
	CHECK_INT(ha_gpu_cuda_launch(&cuda, h, stream, 20), -EBUSY);
	ha_gpu_host_repair(h);
	CHECK_INT(ha_gpu_cuda_launch(&cuda, h, stream, 60000), 0);
	ha_gpu_store(&never, 1);
	CHECK_INT(cudaStreamDestroy(other), cudaSuccess);
	CHECK_INT(cudaStreamDestroy(stream), cudaSuccess);
	end_job();
	close_cuda();
}

static const struct named_test tests[] = {
	{ "pinned", pinned_memory },
	{ "doorbells", doorbells_are_mapped },
	{ "dma_buf", dma_buf },
	{ "rows", rows_are_copied },
	{ "launches", launch_waits_for_kernels },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
