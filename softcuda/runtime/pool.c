/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/pool.h"

#include <stdlib.h>
#include <string.h>

#include "softcuda/runtime/memory.h"
#include "softcuda/runtime/submit.h"

struct memory_pool {
	_Atomic unsigned references; /* the program's, and one of each allocation */
	int device;
	size_t limit;         /* bytes; 0: the device's memory */
	pthread_mutex_t lock; /* protects what follows */
	size_t used;
	size_t used_high;
	uint64_t release_threshold;
	int reuse[4]; /* by attribute; kept and without effect, as nothing is kept back for reuse */
};

struct free_operation {
	struct operation base;
	struct range range;
};

/* ---- pools ---- */

cudaError_t create_pool(int device, size_t limit, struct memory_pool **pool)
{
	struct memory_pool *new = calloc(1, sizeof(*new));
	if (new == NULL)
		return cudaErrorMemoryAllocation;
	atomic_store_explicit(&new->references, 1, memory_order_relaxed);
	new->device = device;
	new->limit = limit;
	pthread_mutex_init(&new->lock, NULL);
	for (unsigned i = 0; i < 4; i++)
		new->reuse[i] = 1;
	*pool = new;
	return cudaSuccess;
}

void release_pool(struct memory_pool *pool)
{
	if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int pool_device(const struct memory_pool *pool)
{
	return pool->device;
}

cudaError_t find_default_pool(struct device *device, struct memory_pool **pool)
{
	cudaError_t error = cudaSuccess;

	pthread_mutex_lock(&device->lock);
	if (device->default_pool == NULL)
		error = create_pool(device->ordinal, 0, &device->default_pool);
	*pool = device->default_pool;
	pthread_mutex_unlock(&device->lock);
	return error;
}

cudaError_t find_current_pool(struct device *device, struct memory_pool **pool)
{
	pthread_mutex_lock(&device->lock);
	*pool = device->current_pool;
	pthread_mutex_unlock(&device->lock);
	return *pool == NULL ? find_default_pool(device, pool) : cudaSuccess;
}

void set_current_pool(struct device *device, struct memory_pool *pool)
{
	pthread_mutex_lock(&device->lock);
	device->current_pool = pool;
	pthread_mutex_unlock(&device->lock);
}

/* ---- allocations ---- */

static bool count_allocation(struct memory_pool *pool, size_t size)
{
	bool fits;

	pthread_mutex_lock(&pool->lock);
	fits = pool->limit == 0 || (size <= pool->limit && pool->used <= pool->limit - size);
	if (fits)
		pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	pthread_mutex_unlock(&pool->lock);
	return fits;
}

static void count_free(struct memory_pool *pool, size_t size)
{
	pthread_mutex_lock(&pool->lock);
	pool->used -= size;
	pthread_mutex_unlock(&pool->lock);
}

cudaError_t allocate_from_pool(struct memory_pool *pool, size_t size, void **pointer)
{
	*pointer = NULL;
	if (size == 0)
		return cudaSuccess;
	if (!count_allocation(pool, size))
		return cudaErrorMemoryAllocation;
	cudaError_t error = allocate_device_memory(find_device(pool->device), size, pool, pointer);
	if (error != cudaSuccess) {
		count_free(pool, size);
		return error;
	}
	atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
	return cudaSuccess;
}

void release_pool_range(const struct range *range)
{
	struct memory_pool *pool = range->owner;
	release_device_memory(range);
	count_free(pool, range->size);
	release_pool(pool);
}

static void run_free(const struct operation *operation)
{
	release_pool_range(&((const struct free_operation *)operation)->range);
}

cudaError_t free_in_order(void *pointer, struct stream *stream)
{
	struct range range;
	bool found = find_range(pointer, &range) && range.start == (uintptr_t)pointer &&
		     range.kind == RANGE_DEVICE;
	if (!found || range.owner == NULL)
		return cudaErrorInvalidValue;
	struct free_operation *operation =
		create_operation(sizeof(*operation), OPERATION_MEMORY, run_free);
	if (operation == NULL)
		return cudaErrorMemoryAllocation;
	/*
	 * Out of the table at once: a second free is an error now, not when the stream comes to it.
	 */
	if (!remove_range(pointer, RANGE_DEVICE, &operation->range)) {
		release_operation(&operation->base);
		return cudaErrorInvalidValue;
	}
	operation->base.brief = true;
	return submit_operation(stream, &operation->base);
}

/* ---- attributes ---- */

bool set_pool_attribute(struct memory_pool *pool, enum cudaMemPoolAttr attribute, const void *value)
{
	bool known = true;

	pthread_mutex_lock(&pool->lock);
	if (attribute >= cudaMemPoolReuseFollowEventDependencies &&
	    attribute <= cudaMemPoolReuseAllowInternalDependencies)
		memcpy(&pool->reuse[attribute], value, sizeof(int));
	else if (attribute == cudaMemPoolAttrReleaseThreshold)
		memcpy(&pool->release_threshold, value, sizeof(uint64_t));
	else if (attribute == cudaMemPoolAttrUsedMemHigh ||
		 attribute == cudaMemPoolAttrReservedMemHigh)
		/* only a reset to 0 is allowed, which means to what is used now */
		pool->used_high = pool->used;
	else
		known = false;
	pthread_mutex_unlock(&pool->lock);
	return known;
}

static bool read_size(const struct memory_pool *pool, enum cudaMemPoolAttr attribute,
		      uint64_t *size)
{
	switch (attribute) {
	case cudaMemPoolAttrReleaseThreshold:
		*size = pool->release_threshold;
		return true;
	case cudaMemPoolAttrReservedMemCurrent: /* nothing is reserved beyond what is used */
	case cudaMemPoolAttrUsedMemCurrent:
		*size = pool->used;
		return true;
	case cudaMemPoolAttrReservedMemHigh:
	case cudaMemPoolAttrUsedMemHigh:
		*size = pool->used_high;
		return true;
	default:
		return false;
	}
}

bool get_pool_attribute(struct memory_pool *pool, enum cudaMemPoolAttr attribute, void *value)
{
	uint64_t size;
	bool known = true;

	pthread_mutex_lock(&pool->lock);
	if (attribute >= cudaMemPoolReuseFollowEventDependencies &&
	    attribute <= cudaMemPoolReuseAllowInternalDependencies)
		memcpy(value, &pool->reuse[attribute], sizeof(int));
	else if (read_size(pool, attribute, &size))
		memcpy(value, &size, sizeof(size));
	else
		known = false;
	pthread_mutex_unlock(&pool->lock);
	return known;
}
