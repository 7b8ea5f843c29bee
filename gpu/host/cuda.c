/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names, numbers and signatures are the CUDA driver API's (its reference manual, version 11.7 on).
 */
#include "gpu/host/cuda.h"

#include "base/clock.h"
#include "base/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOT_READY 600
#define ALLOC_PORTABLE_MAPPED 3u /* CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP */
#define REGISTER_IOMEMORY 7u     /* CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP | _IOMEMORY */
#define ATTRIBUTE_MEMORY_TYPE 2  /* of a pointer */
#define ATTRIBUTE_SYNC_MEMOPS 6
#define MEMORY_DEVICE 2
#define DMA_BUF_FD 1
#define STREAM_NON_BLOCKING 1u

static struct {
	int (*init)(unsigned flags);
	int (*ctx_get)(void **context);
	int (*ctx_push)(void *context);
	int (*ctx_pop)(void **context);
	int (*host_alloc)(void **p, size_t bytes, unsigned flags);
	int (*host_free)(void *p);
	int (*host_register)(void *p, size_t bytes, unsigned flags);
	int (*host_unregister)(void *p);
	int (*host_pointer)(uint64_t *device, void *p, unsigned flags);
	int (*mem_alloc)(uint64_t *device, size_t bytes);
	int (*mem_free)(uint64_t device);
	int (*memset8)(uint64_t device, unsigned char value, size_t bytes, void *stream);
	int (*copy_in)(uint64_t to, const void *from, size_t bytes, void *stream);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_destroy)(void *stream);
	int (*stream_query)(void *stream);
	int (*stream_wait)(void *stream);
	int (*pointer_get)(void *value, int attribute, uint64_t p);
	int (*pointer_set)(const void *value, int attribute, uint64_t p);
	int (*range_handle)(void *handle, uint64_t p, size_t bytes, int type,
			    unsigned long long flags);
	int (*error_name)(int error, const char **name);
} cuda;

static const struct {
	void *pointer;
	const char *name;
} calls[] = {
	{ &cuda.init, "cuInit" },
	{ &cuda.ctx_get, "cuCtxGetCurrent" },
	{ &cuda.ctx_push, "cuCtxPushCurrent_v2" },
	{ &cuda.ctx_pop, "cuCtxPopCurrent_v2" },
	{ &cuda.host_alloc, "cuMemHostAlloc" },
	{ &cuda.host_free, "cuMemFreeHost" },
	{ &cuda.host_register, "cuMemHostRegister_v2" },
	{ &cuda.host_unregister, "cuMemHostUnregister" },
	{ &cuda.host_pointer, "cuMemHostGetDevicePointer_v2" },
	{ &cuda.mem_alloc, "cuMemAlloc_v2" },
	{ &cuda.mem_free, "cuMemFree_v2" },
	{ &cuda.memset8, "cuMemsetD8Async" },
	{ &cuda.copy_in, "cuMemcpyHtoDAsync_v2" },
	{ &cuda.stream_create, "cuStreamCreate" },
	{ &cuda.stream_destroy, "cuStreamDestroy_v2" },
	{ &cuda.stream_query, "cuStreamQuery" },
	{ &cuda.stream_wait, "cuStreamSynchronize" },
	{ &cuda.pointer_get, "cuPointerGetAttribute" },
	{ &cuda.pointer_set, "cuPointerSetAttribute" },
	{ &cuda.range_handle, "cuMemGetHandleForAddressRange" },
	{ &cuda.error_name, "cuGetErrorName" },
};

/* The host's: 64 KiB beside some of the GPUs that this is for. */
static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- library, context ---- */

static int load_driver(struct ha_gpu_cuda *c)
{
	void *from;

	c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	from = c->library;
	if (!from) {
		HA_WARN("cuda", "libcuda.so.1 is not where the loader looks: install NVIDIA's "
				"driver, or LD_LIBRARY_PATH");
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *call = dlsym(from, calls[i].name);

		*(void **)calls[i].pointer = call;
		if (call)
			continue;
		HA_WARN("cuda", "the driver has no %s: it must be version 11.7 (515) or newer",
			calls[i].name);
		dlclose(c->library);
		c->library = NULL;
		return -ENOENT;
	}
	return 0;
}

static int report_error(int error, const char *call, const char *advice)
{
	const char *name = NULL;

	if (cuda.error_name(error, &name) || !name)
		name = "unknown error";
	HA_WARN("cuda", "%s: %s (%d)%s%s", call, name, error, *advice ? ": " : "", advice);
	return -EIO;
}

static int enter_context(struct ha_gpu_cuda *c)
{
	int error = cuda.ctx_push(c->context);

	return error ? report_error(error, "cuCtxPushCurrent", "the context is gone") : 0;
}

static void leave_context(void)
{
	void *unused;

	cuda.ctx_pop(&unused);
}

int ha_gpu_cuda_open(struct ha_gpu_cuda *c)
{
	int r, error;

	memset(c, 0, sizeof(*c));
	r = load_driver(c);
	if (r)
		return r;
	pthread_mutex_init(&c->lock, NULL);
	error = cuda.init(0);
	if (!error)
		error = cuda.ctx_get(&c->context);
	if (error) {
		r = report_error(error, "cuInit", "is there a GPU, and may this process use it?");
	} else if (!c->context) {
		HA_WARN("cuda", "no context is current on this thread: choose a GPU first "
				"(cudaSetDevice and cudaFree(0), or cuCtxSetCurrent)");
		r = -ENODEV;
	} else {
		error = cuda.stream_create(&c->stream, STREAM_NON_BLOCKING);
		r = error ? report_error(error, "cuStreamCreate", "") : 0;
	}
	if (r) {
		pthread_mutex_destroy(&c->lock);
		dlclose(c->library);
		memset(c, 0, sizeof(*c));
	}
	return r;
}

void ha_gpu_cuda_close(struct ha_gpu_cuda *c)
{
	if (!enter_context(c)) {
		cuda.stream_destroy(c->stream);
		leave_context();
	}
	pthread_mutex_destroy(&c->lock);
	free(c->page);
	dlclose(c->library);
	memset(c, 0, sizeof(*c));
}

/*
 * ---- pinned memory: one address for all, which unified addressing gives for what it allocates
 * itself ----
 */

static int pin_memory(size_t bytes, void **at)
{
	uint64_t device = 0;
	int error = cuda.host_alloc(at, bytes, ALLOC_PORTABLE_MAPPED);

	if (error) {
		report_error(error, "cuMemHostAlloc",
			     "look at ulimit -l and at the memory that is free");
		return -ENOMEM;
	}
	error = cuda.host_pointer(&device, *at, 0);
	if (!error && device == (uint64_t)(uintptr_t)*at && !(device % 4096))
		return 0;
	if (error)
		report_error(error, "cuMemHostGetDevicePointer", "");
	else
		HA_WARN("cuda", "pinned memory has another address at the GPU: unified addressing "
				"is needed");
	cuda.host_free(*at);
	return -EOPNOTSUPP;
}

static int pinned_alloc(void *self, size_t bytes, void **memory)
{
	void *at = NULL;
	int r = enter_context(self);

	if (r)
		return r;
	bytes = (bytes + page_bytes() - 1) & ~(page_bytes() - 1);
	r = pin_memory(bytes, &at);
	leave_context();
	if (r)
		return r;
	memset(at, 0, bytes);
	*memory = at;
	return 0;
}

static void pinned_free(void *self, void *memory, size_t bytes)
{
	if (enter_context(self))
		return;
	cuda.host_free(memory);
	leave_context();
}

/* ---- doorbell pages: queue pairs may share one, CUDA registers a page once ---- */

static struct ha_gpu_cuda_page *find_page(struct ha_gpu_cuda *c, uint64_t page)
{
	for (unsigned i = 0; i < c->npages; i++)
		if (c->page[i].page == page)
			return &c->page[i];
	return NULL;
}

/* A free entry of the table, which is made twice as long where there is none. */
static struct ha_gpu_cuda_page *free_page(struct ha_gpu_cuda *c)
{
	unsigned had = c->npages, more = had ? had : 64;
	struct ha_gpu_cuda_page *p = find_page(c, 0);

	if (p)
		return p;
	p = realloc(c->page, (had + more) * sizeof(*p));
	if (!p)
		return NULL;
	memset(p + had, 0, more * sizeof(*p));
	c->page = p;
	c->npages = had + more;
	return p + had;
}

static int register_page(uint64_t page, uint64_t *device)
{
	void *at = (void *)(uintptr_t)page;
	int error = cuda.host_register(at, page_bytes(), REGISTER_IOMEMORY);

	if (error)
		return report_error(error, "cuMemHostRegister of a doorbell page",
				    "the driver maps a NIC's registers for root, or with "
				    "PeerMappingOverride=1 in NVreg_RegistryDwords; "
				    "HA_GPU_PROXY=1 lets the host ring");
	error = cuda.host_pointer(device, at, 0);
	if (!error)
		return 0;
	cuda.host_unregister(at);
	return report_error(error, "cuMemHostGetDevicePointer of a doorbell page",
			    "HA_GPU_PROXY=1 lets the host ring");
}

/* The entry of the page that is mapped, or is now. */
static int map_page(struct ha_gpu_cuda *c, uint64_t page, struct ha_gpu_cuda_page **out)
{
	struct ha_gpu_cuda_page *p = find_page(c, page);
	uint64_t device = 0;
	int r;

	if (!p) {
		p = free_page(c);
		r = p ? register_page(page, &device) : -ENOMEM;
		if (r)
			return r;
		p->page = page;
		p->device = device;
	}
	*out = p;
	return 0;
}

static int map_doorbell(void *self, void *at, void **device)
{
	uint64_t page = (uint64_t)(uintptr_t)at & ~(page_bytes() - 1);
	struct ha_gpu_cuda_page *p;
	struct ha_gpu_cuda *c = self;
	int r = enter_context(c);

	if (r)
		return r;
	pthread_mutex_lock(&c->lock);
	r = map_page(c, page, &p);
	if (!r) {
		p->users++;
		*device = (void *)(uintptr_t)(p->device + ((uint64_t)(uintptr_t)at - page));
	}
	pthread_mutex_unlock(&c->lock);
	leave_context();
	return r;
}

static void unmap_doorbell(void *self, void *at)
{
	uint64_t page = (uint64_t)(uintptr_t)at & ~(page_bytes() - 1);
	struct ha_gpu_cuda *c = self;
	struct ha_gpu_cuda_page *p;
	int error, r = enter_context(c);

	if (r)
		return;
	pthread_mutex_lock(&c->lock);
	p = find_page(c, page);
	if (p && !--p->users) {
		error = cuda.host_unregister((void *)(uintptr_t)page);
		if (error)
			report_error(error, "cuMemHostUnregister of a doorbell page", "");
		p->page = 0;
	}
	pthread_mutex_unlock(&c->lock);
	leave_context();
}

/* ---- the GPU's memory for a NIC ---- */

static int export_range(uint64_t from, size_t bytes, int *fd, uint64_t *offset)
{
	uint64_t in = page_bytes() - 1, base = from & ~in, end = (from + bytes + in) & ~in;
	unsigned yes = 1;
	int error = cuda.pointer_set(&yes, ATTRIBUTE_SYNC_MEMOPS, from);

	if (error)
		return report_error(error, "cuPointerSetAttribute(SYNC_MEMOPS)",
				    "a copy and a NIC could pass each other");
	error = cuda.range_handle(fd, base, end - base, DMA_BUF_FD, 0);
	if (error)
		return -EOPNOTSUPP; /* nvidia-peermem may do it */
	*offset = from - base;
	return 0;
}

/* In the context. */
static bool is_of_device(uint64_t at)
{
	int type = 0;

	return !cuda.pointer_get(&type, ATTRIBUTE_MEMORY_TYPE, at) && type == MEMORY_DEVICE;
}

static bool is_device(void *self, const void *address)
{
	bool yes;

	if (enter_context(self))
		return false;
	yes = is_of_device((uint64_t)(uintptr_t)address);
	leave_context();
	return yes;
}

static int dmabuf(void *self, void *address, size_t bytes, int *fd, uint64_t *offset)
{
	uint64_t at = (uint64_t)(uintptr_t)address;
	int r = enter_context(self);

	if (r)
		return r;
	r = is_of_device(at) ? export_range(at, bytes, fd, offset) : -EOPNOTSUPP;
	leave_context();
	return r;
}

void ha_gpu_cuda_memory(struct ha_gpu_cuda *c, struct ha_gpu_mlx5_memory *memory)
{
	*memory = (struct ha_gpu_mlx5_memory) { .self = c,
						.alloc = pinned_alloc,
						.free = pinned_free,
						.map_doorbell = map_doorbell,
						.unmap_doorbell = unmap_doorbell,
						.dmabuf = dmabuf,
						.is_device = is_device };
}

/* ---- the GPU's copy of the rows ---- */

/* Done when this returns: what is copied next is seen after it. */
static int copy_to_gpu(struct ha_gpu_cuda *c, uint64_t to, const void *from, size_t bytes)
{
	int error = cuda.copy_in(to, from, bytes, c->stream);

	if (!error)
		error = cuda.stream_wait(c->stream);
	if (error)
		return report_error(error, "copying a table to the GPU", "");
	c->copied += bytes;
	return 0;
}

int ha_gpu_cuda_world_grow(struct ha_gpu_cuda_world *w)
{
	uint64_t rows = ha_gpu_load(&w->host->nrows),
		 row = w->device + offsetof(struct ha_gpu_world, row) + 8 * w->rows;
	int r = enter_context(w->cuda);

	if (r)
		return r;
	if (rows > w->rows) {
		r = copy_to_gpu(w->cuda, row, &w->host->row[w->rows],
				(rows - w->rows) * sizeof(w->host->row[0]));
		if (!r && w->host->dc && !w->rows)
			r = copy_to_gpu(w->cuda, w->device + offsetof(struct ha_gpu_world, dc),
					&w->host->dc, sizeof(w->host->dc));
		if (!r)
			r = copy_to_gpu(w->cuda, w->device + offsetof(struct ha_gpu_world, nrows),
					&rows, sizeof(rows));
		if (!r)
			w->rows = rows;
	}
	leave_context();
	return r;
}

int ha_gpu_cuda_world_make(struct ha_gpu_cuda *c, struct ha_gpu_host *h,
			   struct ha_gpu_cuda_world *w)
{
	const struct ha_gpu_world *host = ha_gpu_host_world(h);
	int error, r = enter_context(c);

	if (r)
		return r;
	*w = (struct ha_gpu_cuda_world) { .cuda = c, .host = host };
	error = cuda.mem_alloc(&w->device, sizeof(*host));
	if (!error)
		/* the stream of the copies: it comes before them */
		error = cuda.memset8(w->device, 0, sizeof(*host), c->stream);
	if (error)
		r = report_error(error, "memory of the GPU for the rows", "");
	if (!r)
		r = copy_to_gpu(c, w->device + offsetof(struct ha_gpu_world, pe), &host->pe,
				2 * sizeof(host->pe));
	leave_context();
	if (!r)
		r = ha_gpu_cuda_world_grow(w);
	if (r)
		ha_gpu_cuda_world_free(w);
	return r;
}

void ha_gpu_cuda_world_free(struct ha_gpu_cuda_world *w)
{
	if (w->device && !enter_context(w->cuda)) {
		cuda.mem_free(w->device);
		leave_context();
	}
	memset(w, 0, sizeof(*w));
}

/* ---- launches ---- */

int ha_gpu_cuda_launch(struct ha_gpu_cuda *c, struct ha_gpu_host *h, void *stream,
		       unsigned limit_ms)
{
	const struct timespec nap = { 0, 100000 };
	int64_t end = ha_monotonic_ms() + limit_ms, now;
	int error, r = enter_context(c);

	if (r)
		return r;
	while ((error = cuda.stream_query(stream)) == NOT_READY && ha_monotonic_ms() < end)
		nanosleep(&nap, NULL);
	leave_context();
	if (error == NOT_READY) {
		HA_WARN("launch", "the stream is not done after %u ms: wait for it", limit_ms);
		return -EBUSY;
	}
	if (error)
		return report_error(
			error, "a kernel of before",
			"it has failed: ha_gpu_host_repair() frees what it held, in a new "
			"context or process");
	now = ha_monotonic_ms();
	return ha_gpu_host_launch(h, now < end ? (unsigned)(end - now) : 0);
}
