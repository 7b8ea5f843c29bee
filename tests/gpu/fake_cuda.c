/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/gpu/fake_cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INVALID 1
#define NO_MEMORY 2
#define ALREADY_REGISTERED 712
#define NOT_SUPPORTED 801
#define RANGES 1024

static struct fake_cuda state = { .has_context = 1, .dmabuf = 1 };
static int context;

static struct range {
	enum { FREE, PINNED, PAGE, DEVICE } kind;
	uint64_t at, bytes;
} range[RANGES];

static struct work {
	uint64_t to;
	const void *from; /* NULL: filled with `value` */
	size_t bytes;
	unsigned char value;
} waiting[64], elsewhere; /* on our stream; on the default one */
static int nwaiting;

struct fake_cuda *fake_cuda(void)
{
	return &state;
}

static int this_call_fails(void)
{
	return ++state.calls == state.fail_at;
}

static struct range *range_at(uint64_t at, int kind)
{
	for (int i = 0; i < RANGES; i++)
		if (range[i].kind == (unsigned)kind && at >= range[i].at &&
		    at - range[i].at < range[i].bytes)
			return &range[i];
	return NULL;
}

static struct range *range_new(uint64_t at, uint64_t bytes, int kind)
{
	for (int i = 0; i < RANGES; i++)
		if (range[i].kind == FREE) {
			range[i].kind = (unsigned)kind;
			range[i].at = at;
			range[i].bytes = bytes;
			return &range[i];
		}
	abort();
}

int cuInit(unsigned flags)
{
	return this_call_fails() ? INVALID : 0;
}

int cuCtxGetCurrent(void **c)
{
	*c = state.has_context ? &context : NULL;
	return 0;
}

int cuCtxPushCurrent_v2(void *c)
{
	if (c != &context)
		return INVALID;
	__atomic_fetch_add(&state.depth, 1, __ATOMIC_RELAXED);
	return 0;
}

int cuCtxPopCurrent_v2(void **c)
{
	__atomic_fetch_sub(&state.depth, 1, __ATOMIC_RELAXED);
	*c = &context;
	return 0;
}

int cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
	if (this_call_fails() || flags != 3)
		return NO_MEMORY;
	*p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	memset(*p, 0xaa, bytes); /* the real one does not clear it, either */
	range_new((uint64_t)(uintptr_t)*p, bytes, PINNED);
	state.pinned++;
	return 0;
}

int cuMemFreeHost(void *p)
{
	struct range *r = range_at((uint64_t)(uintptr_t)p, PINNED);

	if (!r)
		return INVALID;
	r->kind = FREE;
	free(p);
	state.pinned--;
	return 0;
}

/* IOMEMORY: whole pages, once each. */
int cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
	uint64_t at = (uint64_t)(uintptr_t)p;

	if (this_call_fails() || flags != 7 || at % 4096 || bytes != 4096)
		return INVALID;
	if (range_at(at, PAGE))
		return ALREADY_REGISTERED;
	range_new(at, bytes, PAGE);
	state.pages++;
	state.registered++;
	return 0;
}

int cuMemHostUnregister(void *p)
{
	struct range *r = range_at((uint64_t)(uintptr_t)p, PAGE);

	if (!r)
		return INVALID;
	r->kind = FREE;
	state.pages--;
	return 0;
}

int cuMemHostGetDevicePointer_v2(uint64_t *device, void *p, unsigned flags)
{
	uint64_t at = (uint64_t)(uintptr_t)p;

	if (this_call_fails())
		return INVALID;
	if (range_at(at, PAGE))
		*device = at + FAKE_CUDA_APART;
	else if (range_at(at, PINNED))
		*device = at + (state.apart ? FAKE_CUDA_APART : 0);
	else
		return INVALID;
	return 0;
}

int cuMemAlloc_v2(uint64_t *device, size_t bytes)
{
	void *p = this_call_fails() ? NULL : aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	if (!p)
		return NO_MEMORY;
	memset(p, 0xcc, bytes);
	*device = (uint64_t)(uintptr_t)p;
	range_new(*device, bytes, DEVICE);
	state.devices++;
	return 0;
}

int cuMemFree_v2(uint64_t device)
{
	struct range *r = range_at(device, DEVICE);

	if (!r)
		return INVALID;
	r->kind = FREE;
	free((void *)(uintptr_t)device);
	state.devices--;
	return 0;
}

/* The host does not wait for it. */
int cuMemsetD8_v2(uint64_t device, unsigned char value, size_t bytes)
{
	if (this_call_fails() || !range_at(device, DEVICE))
		return INVALID;
	elsewhere = (struct work) { .to = device, .bytes = bytes, .value = value };
	return 0;
}

static int enqueue_work(struct work w)
{
	if (this_call_fails() || !range_at(w.to, DEVICE) || nwaiting == 64)
		return INVALID;
	waiting[nwaiting++] = w;
	return 0;
}

int cuMemsetD8Async(uint64_t device, unsigned char value, size_t bytes, void *stream)
{
	return enqueue_work((struct work) { .to = device, .bytes = bytes, .value = value });
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
	return enqueue_work((struct work) { .to = to, .from = from, .bytes = bytes });
}

static void fill_or_copy(const struct work *w)
{
	if (!w->from) {
		memset((void *)(uintptr_t)w->to, w->value, w->bytes);
		return;
	}
	memcpy((void *)(uintptr_t)w->to, w->from, w->bytes);
	state.copied += w->bytes;
	state.order[state.norder++ % 64] = w->to;
}

int cuStreamSynchronize(void *stream)
{
	if (this_call_fails()) {
		nwaiting = 0; /* a context that has failed copies nothing more */
		return INVALID;
	}
	for (int i = 0; i < nwaiting; i++)
		fill_or_copy(&waiting[i]);
	nwaiting = 0;
	if (elsewhere.bytes)
		fill_or_copy(&elsewhere);
	elsewhere.bytes = 0;
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	if (this_call_fails())
		return INVALID;
	*stream = &state;
	state.streams++;
	return 0;
}

int cuStreamDestroy_v2(void *stream)
{
	state.streams--;
	return 0;
}

int cuStreamQuery(void *stream)
{
	return state.stream;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t p)
{
	if (attribute != 2 || (!range_at(p, DEVICE) && !range_at(p, PINNED)))
		return INVALID; /* memory that CUDA has no knowledge of */
	*(int *)value = range_at(p, DEVICE) ? 2 : 1;
	return 0;
}

int cuPointerSetAttribute(const void *value, int attribute, uint64_t p)
{
	if (this_call_fails() || attribute != 6 || *(const unsigned *)value != 1 ||
	    !range_at(p, DEVICE))
		return INVALID;
	state.synced++;
	return 0;
}

int cuMemGetHandleForAddressRange(void *handle, uint64_t p, size_t bytes, int type,
				  unsigned long long flags)
{
	if (!state.dmabuf)
		return NOT_SUPPORTED;
	if (this_call_fails() || type != 1 || p % 4096 || bytes % 4096 || !range_at(p, DEVICE))
		return INVALID;
	*(int *)handle = memfd_create("dma-buf", MFD_CLOEXEC);
	return *(int *)handle < 0 ? INVALID : 0;
}

int cuGetErrorName(int error, const char **name)
{
	*name = "CUDA_ERROR_OTHER";
	if (error == INVALID)
		*name = "CUDA_ERROR_INVALID_VALUE";
	else if (error == NO_MEMORY)
		*name = "CUDA_ERROR_OUT_OF_MEMORY";
	return 0;
}
