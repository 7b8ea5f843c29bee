/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "tools/job/fault.h"
#include "tools/nccl/buffers.h"
#include "tools/nccl/check.h"
#include "tools/nccl/gpus.h"
#include "tools/nccl/library.h"
#include "tools/nccl/options.h"
#include "tools/nccl/watch.h"

#define PAGE 4096u

static int registration_known(const struct nccl_gpus *g)
{
	const struct nccl_api *nccl = &g->library->nccl;
	bool known = nccl->mem_alloc && nccl->mem_free;
	char text[32];

	if (g->options->registration == NCCL_SYMMETRIC)
		known = known && nccl->window_register && nccl->window_deregister;
	else
		known = known && nccl->comm_register && nccl->comm_deregister;
	if (known)
		return 0;
	return ha_fault(-ENOSYS, "NCCL %s does not know the registration of -R %d",
			ha_nccl_version_text(g->library->nccl_version, text),
			g->options->registration);
}

static int plain_allocate(const struct nccl_gpus *g, const struct nccl_gpu *gpu, size_t bytes,
			  void **at)
{
	int err = g->library->cuda.malloc(at, bytes);

	if (!err)
		return 0;
	return ha_fault(-ENOMEM, "cudaMalloc of %zu bytes on rank %d, GPU %d: %s", bytes, gpu->rank,
			gpu->device, g->library->cuda.error_string(err));
}

static int buffer_allocate(const struct nccl_gpus *g, const struct nccl_gpu *gpu, size_t bytes,
			   struct nccl_buffer *buffer)
{
	void *at = NULL;
	int err;

	(void)g->library->cuda.set_device(gpu->device);
	if (g->options->registration)
		err = nccl_check(g->library, gpu, g->library->nccl.mem_alloc(&at, bytes),
				 "ncclMemAlloc");
	else
		err = plain_allocate(g, gpu, bytes, &at);
	buffer->device = at;
	return err;
}

static int buffer_register(const struct nccl_gpus *g, const struct nccl_gpu *gpu,
			   struct nccl_buffer *buffer, size_t bytes, int side)
{
	const struct nccl_api *nccl = &g->library->nccl;
	void **handle = &buffer->registration[side];

	(void)g->library->cuda.set_device(gpu->device);
	if (g->options->registration == NCCL_SYMMETRIC)
		return nccl->window_register(gpu->comms[side], buffer->device, bytes, handle,
					     NCCL_WIN_SYMMETRIC);
	return nccl->comm_register(gpu->comms[side], buffer->device, bytes, handle);
}

/* With one communicator of each GPU: a window is made by all ranks together. */
static int buffers_register(const struct nccl_gpus *g, struct nccl_buffers *buffers, int side)
{
	bool windows = g->options->registration == NCCL_SYMMETRIC;
	const char *call = windows ? "ncclCommWindowRegister" : "ncclCommRegister";
	int result = 0, end = 0;

	if (windows)
		result = g->library->nccl.group_start();
	for (int i = 0; i < g->count && !result; i++)
		result = buffer_register(g, &g->each[i], &buffers->each[i], buffers->bytes, side);
	if (windows)
		end = g->library->nccl.group_end();
	return nccl_check(g->library, &g->each[0], result ? result : end, call);
}

int nccl_buffers_open(const struct nccl_gpus *g, size_t bytes, struct nccl_buffers *buffers)
{
	int err = g->options->registration ? registration_known(g) : 0, left;

	if (err)
		return err;
	buffers->bytes = (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
	buffers->each = calloc((size_t)g->count, sizeof(*buffers->each));
	if (!buffers->each)
		return ha_fault(-ENOMEM, "out of memory");
	for (int i = 0; i < g->count && !err; i++)
		err = buffer_allocate(g, &g->each[i], buffers->bytes, &buffers->each[i]);
	if (err || !g->options->registration)
		return err;
	ha_watch_enter(g->watch, "the registration of buffers");
	for (int s = 0; s < g->sides && !err; s++)
		err = buffers_register(g, buffers, s);
	left = ha_watch_leave(g->watch);
	return err ? err : left;
}

static int buffer_deregister(const struct nccl_gpus *g, const struct nccl_gpu *gpu,
			     struct nccl_buffer *buffer)
{
	const struct nccl_api *nccl = &g->library->nccl;
	int result = 0;

	for (int s = 0; s < g->sides && !result; s++) {
		if (!buffer->registration[s])
			continue;
		if (g->options->registration == NCCL_SYMMETRIC)
			result = nccl->window_deregister(gpu->comms[s], buffer->registration[s]);
		else
			result = nccl->comm_deregister(gpu->comms[s], buffer->registration[s]);
	}
	return nccl_check(g->library, gpu, result, "the deregistration of a buffer");
}

static int buffer_free(const struct nccl_gpus *g, const struct nccl_gpu *gpu,
		       struct nccl_buffer *buffer)
{
	if (!buffer->device)
		return 0;
	if (g->options->registration)
		return nccl_check(g->library, gpu, g->library->nccl.mem_free(buffer->device),
				  "ncclMemFree");
	return nccl_cuda_check(g->library, gpu, g->library->cuda.free(buffer->device), "cudaFree");
}

int nccl_buffers_close(const struct nccl_gpus *g, struct nccl_buffers *buffers)
{
	int err = 0;

	for (int i = 0; buffers->each && i < g->count && !err; i++) {
		(void)g->library->cuda.set_device(g->each[i].device);
		err = buffer_deregister(g, &g->each[i], &buffers->each[i]);
		if (!err)
			err = buffer_free(g, &g->each[i], &buffers->each[i]);
	}
	free(buffers->each);
	buffers->each = NULL;
	return err;
}
