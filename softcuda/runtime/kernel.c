/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/kernel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "softcuda/report.h"
#include "softcuda/runtime/cuda_driver.h"
#include "softcuda/runtime/handles.h"

#define RESOLVERS_MAX 16
#define BUCKETS 1024u
#define PARAMETERS_MAX (32u << 10) /* bytes; CUDA's own limit, for any device, is below it */

struct kernel_entry {
	LIST_ENTRY(kernel_entry) chain;
	void *binary;
	const void *stub;
	char *name;
	const struct softcuda_kernel *body;
	unsigned resolved_at; /* generation of the resolvers when body was looked up */
	bool complained;
};

struct launch {
	struct operation base;
	const struct softcuda_kernel *body;
	char *name;
	struct launch_shape shape;
	size_t size;
	_Alignas(16) unsigned char parameters[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static LIST_HEAD(, kernel_entry) entries[BUCKETS];
static softcuda_resolve_fn *resolvers[RESOLVERS_MAX];
static unsigned resolver_count;
static unsigned generation = 1;

static unsigned find_bucket(const void *stub)
{
	return (unsigned)(((uintptr_t)stub * 0x9e3779b97f4a7c15ull) >> 54) % BUCKETS;
}

/* ---- resolvers ---- */

int softcuda_add_resolver(softcuda_resolve_fn *resolve)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	if (resolver_count == RESOLVERS_MAX) {
		error = -ENOSPC;
	} else {
		resolvers[resolver_count++] = resolve;
		generation++;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

void softcuda_remove_resolver(softcuda_resolve_fn *resolve)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < resolver_count; i++) {
		if (resolvers[i] != resolve)
			continue;
		memmove(&resolvers[i], &resolvers[i + 1],
			(resolver_count - i - 1) * sizeof(resolvers[0]));
		resolver_count--;
		generation++;
		break;
	}
	pthread_mutex_unlock(&lock);
}

static const struct softcuda_kernel *resolve_locked(struct kernel_entry *entry)
{
	if (entry->resolved_at == generation)
		return entry->body;
	entry->body = NULL;
	for (unsigned i = 0; i < resolver_count && entry->body == NULL; i++)
		entry->body = resolvers[i](entry->name);
	entry->resolved_at = generation;
	return entry->body;
}

const struct softcuda_kernel *resolve_kernel(struct kernel_entry *entry)
{
	pthread_mutex_lock(&lock);
	const struct softcuda_kernel *body = resolve_locked(entry);
	pthread_mutex_unlock(&lock);
	return body;
}

/* ---- registration ---- */

void register_kernel(void *binary, const void *stub, const char *name)
{
	struct kernel_entry *entry = calloc(1, sizeof(*entry));
	char *copy = strdup(name);
	if (entry == NULL || copy == NULL || !add_handle(entry, HANDLE_FUNCTION)) {
		free(entry);
		free(copy);
		return;
	}
	entry->binary = binary;
	entry->stub = stub;
	entry->name = copy;
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&entries[find_bucket(stub)], entry, chain);
	pthread_mutex_unlock(&lock);
}

static void free_entry(struct kernel_entry *entry)
{
	LIST_REMOVE(entry, chain);
	remove_handle(entry, HANDLE_FUNCTION);
	free(entry->name);
	free(entry);
}

void unregister_kernels(void *binary)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct kernel_entry *next;
		for (struct kernel_entry *entry = LIST_FIRST(&entries[i]); entry != NULL;
		     entry = next) {
			next = LIST_NEXT(entry, chain);
			if (entry->binary == binary)
				free_entry(entry);
		}
	}
	pthread_mutex_unlock(&lock);
}

struct kernel_entry *find_kernel(const void *stub)
{
	struct kernel_entry *entry;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(entry, &entries[find_bucket(stub)], chain)
		if (entry->stub == stub)
			break;
	pthread_mutex_unlock(&lock);
	return entry;
}

const char *kernel_name(const struct kernel_entry *entry)
{
	return entry->name;
}

/* ---- launches ---- */

static void run_launch(const struct operation *operation)
{
	const struct launch *own = (const struct launch *)operation;
	const struct launch_shape *shape = &own->shape;
	struct softcuda_launch launch = {
		.name = own->name,
		.parameters = own->parameters,
		.parameters_size = own->size,
		.grid = { shape->grid.x, shape->grid.y, shape->grid.z },
		.block = { shape->block.x, shape->block.y, shape->block.z },
		.shared_memory = shape->shared_memory,
		.device = shape->device,
	};
	own->body->run(&launch);
}

static void clean_launch(struct operation *operation)
{
	free(((struct launch *)operation)->name);
}

/* The largest power of two that divides the size, at most 8. */
static size_t find_alignment(size_t size)
{
	size_t alignment = size & -size;
	return alignment > 8 || alignment == 0 ? 8 : alignment;
}

static size_t align_offset(size_t offset, size_t size)
{
	size_t alignment = find_alignment(size);
	return (offset + alignment - 1) & ~(alignment - 1);
}

static size_t measure_pointers(const struct softcuda_kernel *body)
{
	size_t offset = 0;
	for (unsigned i = 0; i < body->parameter_count; i++)
		offset = align_offset(offset, body->parameter_size[i]) + body->parameter_size[i];
	return offset;
}

static void copy_pointers(const struct softcuda_kernel *body, void **pointers, unsigned char *to)
{
	size_t offset = 0;
	for (unsigned i = 0; i < body->parameter_count; i++) {
		offset = align_offset(offset, body->parameter_size[i]);
		memcpy(to + offset, pointers[i], body->parameter_size[i]);
		offset += body->parameter_size[i];
	}
}

/* CUDA's list: a marker and a value, until the end marker. */
static bool read_extra(void **extra, const void **buffer, size_t *size)
{
	*buffer = NULL;
	*size = 0;
	for (unsigned i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*buffer = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			*size = *(const size_t *)extra[i + 1];
		else
			return false;
	}
	return (*buffer != NULL || *size == 0) && *size <= PARAMETERS_MAX;
}

static bool is_launch_shape(const struct launch_shape *shape)
{
	dim3 grid = shape->grid;
	dim3 block = shape->block;
	if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 ||
	    block.z == 0)
		return false;
	return (uint64_t)block.x * block.y * block.z <= 1024 && grid.x <= 0x7fffffffu;
}

static const struct softcuda_kernel *resolve_or_complain(struct kernel_entry *entry)
{
	pthread_mutex_lock(&lock);
	const struct softcuda_kernel *body = resolve_locked(entry);
	bool complain = body == NULL && !entry->complained;
	if (complain)
		entry->complained = true;
	pthread_mutex_unlock(&lock);
	if (complain)
		report_problem("no resolver knows the kernel %s: its launch is refused",
			       entry->name);
	return body;
}

static struct launch *allocate_launch(struct kernel_entry *entry, size_t size)
{
	struct launch *launch =
		create_operation(sizeof(*launch) + size, OPERATION_KERNEL, run_launch);
	if (launch == NULL)
		return NULL;
	launch->base.clean = clean_launch;
	launch->size = size;
	launch->name = strdup(entry->name);
	if (launch->name == NULL) {
		release_operation(&launch->base);
		return NULL;
	}
	return launch;
}

cudaError_t create_launch(struct kernel_entry *entry, const struct launch_shape *shape,
			  void **pointers, void **extra, struct operation **operation)
{
	const struct softcuda_kernel *body = resolve_or_complain(entry);
	if (body == NULL)
		return cudaErrorNotSupported;
	if (!is_launch_shape(shape))
		return cudaErrorInvalidConfiguration;
	const void *buffer = NULL;
	size_t size = 0;
	if (extra != NULL && !read_extra(extra, &buffer, &size))
		return cudaErrorInvalidValue;
	if (extra == NULL)
		size = measure_pointers(body);
	if (extra == NULL && pointers == NULL && size != 0)
		return cudaErrorInvalidValue;
	struct launch *launch = allocate_launch(entry, size);
	if (launch == NULL)
		return cudaErrorMemoryAllocation;
	launch->body = body;
	launch->shape = *shape;
	if (extra == NULL)
		copy_pointers(body, pointers, launch->parameters);
	else if (size != 0)
		memcpy(launch->parameters, buffer, size);
	*operation = &launch->base;
	return cudaSuccess;
}
