/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cuda.c - what the host library wants of CUDA, against a driver of the tests' own: what
 * softcuda (test_softcuda.c) cannot do or be asked. And without one.
 */
#include "gpu/host/cuda.h"
#include "tests/gpu/fake_cuda.h"
#include "tests/gpu/job.h"
#include "tests/ina/switch/named.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

static struct ha_gpu_cuda cuda;
static struct ha_gpu_mlx5_memory memory;
static struct fake_cuda *fake;

static void open_cuda(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	struct fake_cuda *(*get)(void);

	CHECK(library);
	*(void **)&get = dlsym(library, "fake_cuda");
	CHECK(get); /* a real driver where the stand-in should be */
	fake = get();
	CHECK_INT(ha_gpu_cuda_open(&cuda), 0);
	ha_gpu_cuda_memory(&cuda, &memory);
}

static void nothing_left(void)
{
	CHECK_INT(fake->pinned + fake->pages + fake->devices + fake->streams, 0);
	CHECK_INT(fake->depth, 0);
}

static void close_cuda(void)
{
	ha_gpu_cuda_close(&cuda);
	nothing_left();
}

/* Without unified addressing nothing of this works. */
static void another_address(void)
{
	uint8_t *none = NULL;

	open_cuda();
	fake->apart = 1;
	CHECK_INT(memory.alloc(memory.self, 5000, (void **)&none), -EOPNOTSUPP);
	/* it has been given back: whoever cleans up after the failure must not do it again */
	CHECK(!none);
	close_cuda();
}

/* Registers of queue pairs share pages; each page is registered once, and given back with the last
 * of them. */
static void doorbells_are_mapped(void)
{
	static uint8_t bar[8192] __attribute__((aligned(4096)));
	void *a, *b, *c;

	open_cuda();
	CHECK_INT(memory.map_doorbell(memory.self, bar + 0x800, &a), 0);
	CHECK_INT(memory.map_doorbell(memory.self, bar + 0xa00, &b), 0);
	CHECK_INT(memory.map_doorbell(memory.self, bar + 4096 + 0x800, &c), 0);
	CHECK_INT((uint64_t)(uintptr_t)a - (uint64_t)(uintptr_t)bar, FAKE_CUDA_APART + 0x800);
	CHECK_INT((uint64_t)(uintptr_t)b - (uint64_t)(uintptr_t)a, 0x200);
	CHECK_INT((uint64_t)(uintptr_t)c - (uint64_t)(uintptr_t)a, 4096);
	CHECK_INT(fake->registered, 2);
	memory.unmap_doorbell(memory.self, bar + 0x800);
	CHECK_INT(fake->pages, 2);
	memory.unmap_doorbell(memory.self, bar + 0xa00);
	CHECK_INT(fake->pages, 1);
	memory.unmap_doorbell(memory.self, bar + 4096 + 0x800);
	CHECK_INT(fake->pages, 0);
	CHECK_INT(memory.map_doorbell(memory.self, bar + 0x800, &a), 0); /* and again */
	memory.unmap_doorbell(memory.self, bar + 0x800);
	close_cuda();
}

/* A register of its own for each queue pair is a page for each: 127 peers, two connections to each,
 * two NICs. 256 had room. */
static void many_doorbells(void)
{
	enum { PAGES = 600 };
	static uint8_t bar[PAGES * 4096] __attribute__((aligned(4096)));
	void *at;

	open_cuda();
	for (unsigned i = 0; i < PAGES; i++) {
		CHECK_INT(memory.map_doorbell(memory.self, bar + i * 4096 + 0x800, &at), 0);
		CHECK_INT((uint64_t)(uintptr_t)at - (uint64_t)(uintptr_t)bar,
			  FAKE_CUDA_APART + i * 4096 + 0x800);
	}
	CHECK_INT(fake->pages, PAGES);
	for (unsigned i = 0; i < PAGES; i++)
		memory.unmap_doorbell(memory.self, bar + i * 4096 + 0x800);
	CHECK_INT(memory.map_doorbell(memory.self, bar, &at), 0);
	memory.unmap_doorbell(memory.self, bar);
	close_cuda();
}

static void the_gpus_own(void)
{
	uint64_t device, offset;
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *host;
	int (*alloc)(uint64_t *, size_t), (*release)(uint64_t), fd = -1;

	open_cuda();
	*(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
	*(void **)&release = dlsym(library, "cuMemFree_v2");
	CHECK_INT(alloc(&device, 1 << 16), 0);
	CHECK_INT(memory.dmabuf(memory.self, (void *)(uintptr_t)(device + 5000), 10000, &fd,
				&offset),
		  0);
	CHECK(fd >= 0);
	CHECK_INT(offset, 5000 - 4096);
	CHECK_INT(fake->synced, 1); /* a copy and a NIC may not pass each other */
	close(fd);
	CHECK_INT(memory.alloc(memory.self, 4096, &host), 0);
	CHECK(memory.is_device(memory.self, (void *)(uintptr_t)(device + 5000)));
	CHECK(!memory.is_device(memory.self, host) && !memory.is_device(memory.self, &offset));
	CHECK_INT(memory.dmabuf(memory.self, host, 4096, &fd, &offset), -EOPNOTSUPP);
	/* nothing that CUDA knows */
	CHECK_INT(memory.dmabuf(memory.self, &offset, 8, &fd, &offset), -EOPNOTSUPP);
	fake->dmabuf = 0;
	CHECK_INT(memory.dmabuf(memory.self, (void *)(uintptr_t)device, 4096, &fd, &offset),
		  -EOPNOTSUPP);
	memory.free(memory.self, host, 4096);
	CHECK_INT(release(device), 0);
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

static void add_connections(void)
{
	job_all(&job, job_connect_1_1);
	job_want(&job, 0);
}

/* The copy stays where it is; a growth copies its own rows, waits, and only then counts them. */
static void only_the_increment(void)
{
	struct ha_gpu_cuda_world w;
	struct ha_gpu_world *there;
	uint64_t before;

	open_cuda();
	start_job();
	CHECK_INT(ha_gpu_cuda_world_make(&cuda, job.pe[0].host, &w), 0);
	there = (struct ha_gpu_world *)(uintptr_t)w.device;
	CHECK_INT(there->nrows, 4);
	CHECK(ha_gpu_world_conn(there, 3, 1) == ha_gpu_world_conn(job.pe[0].world, 3, 1) &&
	      ha_gpu_world_conn(there, 3, 1));
	CHECK(!ha_gpu_world_conn(there, 0, 0) && !ha_gpu_world_conn(there, 4, 1));
	before = fake->copied;
	add_connections();
	CHECK_INT(there->nrows, 4);
	fake->norder = 0;
	CHECK_INT(ha_gpu_cuda_world_grow(&w), 0);
	CHECK_INT(fake->copied - before, 2 * sizeof(uint64_t) + sizeof(uint64_t));
	CHECK_INT(cuda.copied, fake->copied);
	CHECK_INT(fake->norder, 2);
	CHECK_INT(fake->order[0] - w.device, offsetof(struct ha_gpu_world, row) + 4 * 8);
	CHECK_INT(fake->order[1] - w.device, offsetof(struct ha_gpu_world, nrows));
	CHECK_INT(there->nrows, 6);
	CHECK(ha_gpu_world_conn(there, 5, 1) == ha_gpu_world_conn(job.pe[0].world, 5, 1));
	CHECK_INT(ha_gpu_cuda_world_grow(&w), 0); /* nothing new, nothing copied */
	CHECK_INT(fake->norder, 2);
	ha_gpu_cuda_world_free(&w);
	end_job();
	close_cuda();
}

/* The copy was cleared on the default stream, and filled on one of ours: nothing kept the first
 * from coming last. */
static void cleared_before_it_is_filled(void)
{
	struct ha_gpu_cuda_world w;
	struct ha_gpu_world *there;

	open_cuda();
	start_job();
	CHECK_INT(ha_gpu_cuda_world_make(&cuda, job.pe[1].host, &w), 0);
	there = (struct ha_gpu_world *)(uintptr_t)w.device;
	CHECK_INT(there->pe, 1);
	CHECK_INT(there->pes, 2);
	CHECK_INT(there->nrows, 4);
	CHECK_INT(there->row[HA_GPU_ROWS_MAX - 1], 0);
	ha_gpu_cuda_world_free(&w);
	end_job();
	close_cuda();
}

static void *connect_dc(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_connect_dc(p->host, 1, 1);
	return NULL;
}

/* The copy knows which of its rows are dynamically connected, whether it was made before them or
 * after: a kernel took one for a queue pair of its own, and found none that is dynamic. */
static void dynamic_rows(void)
{
	struct ha_gpu_cuda_world early, late;
	struct ha_gpu_world *there, *here;

	open_cuda();
	job_start(&job, 2, 2);
	job_all(&job, job_open);
	job_want(&job, 0);
	here = job.pe[0].world;
	CHECK_INT(ha_gpu_cuda_world_make(&cuda, job.pe[0].host, &early), 0);
	there = (struct ha_gpu_world *)(uintptr_t)early.device;
	job_all(&job, connect_dc);
	job_want(&job, 0);
	add_connections();
	CHECK_INT(there->nrows, 0);
	fake->norder = 0;
	CHECK_INT(ha_gpu_cuda_world_grow(&early), 0);
	CHECK_INT(fake->order[fake->norder - 1] - early.device,
		  offsetof(struct ha_gpu_world, nrows));
	CHECK_INT(there->dc, 2);
	CHECK(ha_gpu_world_conn(there, 1, 1) == ha_gpu_world_conn(here, 1, 1) &&
	      ha_gpu_world_conn(there, 1, 1));
	CHECK(!ha_gpu_world_conn(there, 2, 1));
	CHECK_INT(ha_gpu_cuda_world_make(&cuda, job.pe[0].host, &late), 0);
	CHECK_INT(((struct ha_gpu_world *)(uintptr_t)late.device)->dc, 2);
	ha_gpu_cuda_world_free(&late);
	ha_gpu_cuda_world_free(&early);
	end_job();
	close_cuda();
}

static void failed_kernel(void)
{
	open_cuda();
	start_job();
	fake->stream = 700; /* an illegal address */
	CHECK_INT(ha_gpu_cuda_launch(&cuda, job.pe[0].host, NULL, 20), -EIO);
	fake->stream = 0;
	CHECK_INT(ha_gpu_cuda_launch(&cuda, job.pe[0].host, NULL, 20), 0);
	end_job();
	close_cuda();
}

/* ---- what may fail, fails once ---- */

static int all_of_it(void)
{
	static uint8_t bar[4096] __attribute__((aligned(4096)));
	void *host = NULL, *bell = NULL;
	struct ha_gpu_cuda_world w = { 0 };
	int r = ha_gpu_cuda_open(&cuda), failed = r;

	if (r)
		return r;
	ha_gpu_cuda_memory(&cuda, &memory);
	r = memory.alloc(memory.self, 4096, &host);
	if (!r)
		memory.free(memory.self, host, 4096);
	failed = failed ? failed : r;
	r = memory.map_doorbell(memory.self, bar, &bell);
	if (!r)
		memory.unmap_doorbell(memory.self, bar);
	failed = failed ? failed : r;
	r = ha_gpu_cuda_world_make(&cuda, job.pe[0].host, &w);
	if (!r)
		ha_gpu_cuda_world_free(&w);
	failed = failed ? failed : r;
	ha_gpu_cuda_close(&cuda);
	return failed;
}

static void each_call_fails(void)
{
	int n = 0;

	open_cuda();
	close_cuda();
	start_job();
	fake->calls = fake->fail_at = 0;
	CHECK_INT(all_of_it(), 0);
	n = fake->calls;
	CHECK(n > 10);
	for (int at = 1; at <= n; at++) {
		fake->calls = 0;
		fake->fail_at = at;
		CHECK(all_of_it() < 0);
		nothing_left();
	}
	fake->fail_at = 0;
	end_job();
}

static void no_context(void)
{
	open_cuda();
	close_cuda();
	fake->has_context = 0;
	CHECK_INT(ha_gpu_cuda_open(&cuda), -ENODEV);
	nothing_left();
}

/* A driver that lacks calls. */
static void old_driver_is_refused(void)
{
	CHECK_INT(ha_gpu_cuda_open(&cuda), -ENOENT);
}

static const struct named_test tests[] = {
	{ "another_address", another_address },
	{ "doorbells", doorbells_are_mapped },
	{ "many_doorbells", many_doorbells },
	{ "the_gpus_own", the_gpus_own },
	{ "only_the_increment", only_the_increment },
	{ "cleared_before_it_is_filled", cleared_before_it_is_filled },
	{ "dynamic_rows", dynamic_rows },
	{ "failed_kernel", failed_kernel },
	{ "each_call_fails", each_call_fails },
	{ "no_context", no_context },
	{ "old", old_driver_is_refused },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
