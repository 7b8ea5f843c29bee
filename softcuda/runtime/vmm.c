/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softcuda/report.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/process.h"
#include "softcuda/runtime/ranges.h"

struct reservation {
	LIST_ENTRY(reservation) siblings;
	uintptr_t start;
	size_t size;
};

/* protects reservations; mapping and unmapping, as one step */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, reservation) reservations = LIST_HEAD_INITIALIZER(reservations);

/* ---- memory ---- */

static void release_memory(struct vmm_memory *memory)
{
	if (atomic_fetch_sub_explicit(&memory->references, 1, memory_order_acq_rel) != 1)
		return;
	close(memory->descriptor);
	free(memory);
}

/* Takes over the descriptor, also on failure. */
static cudaError_t make_memory(int descriptor, size_t size, const CUmemAllocationProp *properties,
			       struct vmm_memory **memory)
{
	struct vmm_memory *new = calloc(1, sizeof(*new));
	if (new == NULL || !add_handle(new, HANDLE_MEMORY)) {
		free(new);
		close(descriptor);
		return cudaErrorMemoryAllocation;
	}
	atomic_store_explicit(&new->references, 1, memory_order_relaxed);
	atomic_store_explicit(&new->handles, 1, memory_order_relaxed);
	new->descriptor = descriptor;
	new->size = size;
	new->properties = *properties;
	*memory = new;
	return cudaSuccess;
}

static void warn_of_descriptors(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if ((errno == EMFILE || errno == ENFILE) && !atomic_flag_test_and_set(&said))
		report_problem("no file descriptor is left for device memory; raise the limit "
			       "(ulimit -n)");
}

cudaError_t create_memory(size_t size, const CUmemAllocationProp *properties,
			  struct vmm_memory **memory)
{
	if (size == 0 || size % VMM_GRANULARITY != 0)
		return cudaErrorInvalidValue;
	if (size > this_machine()->memory)
		return cudaErrorMemoryAllocation;
	int descriptor = memfd_create("softcuda-memory", MFD_CLOEXEC);
	if (descriptor < 0) {
		warn_of_descriptors();
		return cudaErrorMemoryAllocation;
	}
	if (ftruncate(descriptor, (off_t)size) != 0) {
		close(descriptor);
		return cudaErrorMemoryAllocation;
	}
	return make_memory(descriptor, size, properties, memory);
}

cudaError_t import_memory(int descriptor, struct vmm_memory **memory)
{
	struct stat status;
	if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0)
		return cudaErrorInvalidValue;
	int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
	if (own < 0) {
		warn_of_descriptors();
		return cudaErrorOperatingSystem;
	}
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device() },
	};
	return make_memory(own, (size_t)status.st_size, &properties, memory);
}

cudaError_t export_memory(const struct vmm_memory *memory, int *descriptor)
{
	if ((memory->properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
	    0)
		return cudaErrorInvalidValue;
	int own = fcntl(memory->descriptor, F_DUPFD_CLOEXEC, 3);
	if (own < 0) {
		warn_of_descriptors();
		return cudaErrorOperatingSystem;
	}
	*descriptor = own;
	return cudaSuccess;
}

void retain_memory_handle(struct vmm_memory *memory)
{
	pthread_mutex_lock(&lock);
	if (atomic_fetch_add_explicit(&memory->handles, 1, memory_order_relaxed) == 0)
		add_handle(memory, HANDLE_MEMORY);
	atomic_fetch_add_explicit(&memory->references, 1, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

cudaError_t release_memory_handle(struct vmm_memory *memory)
{
	pthread_mutex_lock(&lock);
	unsigned handles = atomic_fetch_sub_explicit(&memory->handles, 1, memory_order_relaxed);
	if (handles == 1)
		remove_handle(memory, HANDLE_MEMORY);
	pthread_mutex_unlock(&lock);
	release_memory(memory);
	return cudaSuccess;
}

/* ---- addresses ---- */

cudaError_t reserve_addresses(size_t size, size_t alignment, void **address)
{
	if (size == 0 || size % VMM_GRANULARITY != 0 || (alignment & (alignment - 1)) != 0)
		return cudaErrorInvalidValue;
	if (alignment < VMM_GRANULARITY)
		alignment = VMM_GRANULARITY;
	struct reservation *reservation = malloc(sizeof(*reservation));
	if (reservation == NULL)
		return cudaErrorMemoryAllocation;
	/* More than needed, so that an aligned part lies in it; the rest is given back. */
	char *whole = mmap(NULL, size + alignment, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (whole == MAP_FAILED) {
		free(reservation);
		return cudaErrorMemoryAllocation;
	}
	size_t before = (alignment - (uintptr_t)whole % alignment) % alignment;
	if (before != 0)
		munmap(whole, before);
	munmap(whole + before + size, alignment - before);
	reservation->start = (uintptr_t)whole + before;
	reservation->size = size;
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&reservations, reservation, siblings);
	pthread_mutex_unlock(&lock);
	*address = whole + before;
	return cudaSuccess;
}

static bool has_mapping(uintptr_t start, size_t size)
{
	struct range range;
	for (size_t at = 0; at < size; at += VMM_GRANULARITY)
		if (find_range((void *)(start + at), &range))
			return true;
	return false;
}

cudaError_t free_addresses(void *address, size_t size)
{
	struct reservation *reservation;
	cudaError_t error = cudaErrorInvalidValue;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(reservation, &reservations, siblings)
		if (reservation->start == (uintptr_t)address && reservation->size == size)
			break;
	if (reservation != NULL && !has_mapping(reservation->start, size)) {
		LIST_REMOVE(reservation, siblings);
		munmap(address, size);
		free(reservation);
		error = cudaSuccess;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

/* ---- mappings ---- */

static bool is_reserved_locked(uintptr_t start, size_t size)
{
	struct reservation *reservation;
	LIST_FOREACH(reservation, &reservations, siblings)
		if (start >= reservation->start && start - reservation->start < reservation->size &&
		    size <= reservation->size - (start - reservation->start))
			return true;
	return false;
}

static cudaError_t map_locked(void *address, size_t size, size_t offset, struct vmm_memory *memory)
{
	const CUmemLocation *location = &memory->properties.location;
	struct range range = {
		.start = (uintptr_t)address,
		.size = size,
		.kind = RANGE_MAPPED,
		.device = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : -1,
		.offset = offset,
		.owner = memory,
		.span = size,
	};
	if (!is_reserved_locked(range.start, size))
		return cudaErrorInvalidValue;
	if (!add_range(&range))
		return cudaErrorAlreadyMapped;
	void *mapped = mmap(address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->descriptor,
			    (off_t)offset);
	if (mapped == MAP_FAILED) {
		remove_range(address, RANGE_MAPPED, &range);
		return cudaErrorMapBufferObjectFailed;
	}
	madvise(address, size, MADV_DONTDUMP);
	madvise(address, size, MADV_DONTFORK);
	atomic_fetch_add_explicit(&memory->references, 1, memory_order_relaxed);
	return cudaSuccess;
}

cudaError_t map_memory(void *address, size_t size, size_t offset, struct vmm_memory *memory)
{
	bool aligned = ((uintptr_t)address | size | offset) % VMM_GRANULARITY == 0;
	if (!aligned || size == 0 || offset > memory->size || size > memory->size - offset)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&lock);
	cudaError_t error = map_locked(address, size, offset, memory);
	pthread_mutex_unlock(&lock);
	return error;
}

/* Whether mappings fill the range exactly. */
static bool is_mapped_exactly(uintptr_t start, size_t size)
{
	struct range range;
	size_t at = 0;
	while (at < size) {
		if (!find_range((void *)(start + at), &range) || range.kind != RANGE_MAPPED)
			return false;
		if (range.start != start + at)
			return false;
		at += range.size;
	}
	return at == size;
}

static void unmap_first_locked(uintptr_t start, size_t *size)
{
	struct range range;
	remove_range((void *)start, RANGE_MAPPED, &range);
	/* The addresses stay reserved; where that fails, with the memory that was there. */
	(void)mmap((void *)start, range.size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	release_memory(range.owner);
	*size = range.size;
}

cudaError_t unmap_memory(void *address, size_t size)
{
	uintptr_t start = (uintptr_t)address;
	cudaError_t error = cudaErrorInvalidValue;

	pthread_mutex_lock(&lock);
	if (size != 0 && is_mapped_exactly(start, size)) {
		size_t done = 0;
		while (done < size) {
			size_t first;
			unmap_first_locked(start + done, &first);
			done += first;
		}
		error = cudaSuccess;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static bool is_mapped(uintptr_t start, size_t size)
{
	struct range range;
	for (size_t at = 0; at < size; at += VMM_GRANULARITY)
		if (!find_range((void *)(start + at), &range) || range.kind != RANGE_MAPPED)
			return false;
	return true;
}

cudaError_t allow_access(void *address, size_t size, int flags)
{
	cudaError_t error = cudaErrorInvalidValue;
	/*
	 * All devices and the host share one address space: what one of them was given is not taken
	 * away for another.
	 */
	bool change = flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;

	pthread_mutex_lock(&lock);
	if (size != 0 && is_mapped((uintptr_t)address, size))
		error = cudaSuccess;
	if (error == cudaSuccess && change && mprotect(address, size, PROT_READ | PROT_WRITE) != 0)
		error = cudaErrorOperatingSystem;
	pthread_mutex_unlock(&lock);
	return error;
}
