/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softcuda/report.h"
#include "softcuda/runtime/memory.h"
#include "softcuda/runtime/process.h"

#define MAGIC 0x6370695464756373ull /* another runtime's handle, or garbage, lacks it */

struct content {
	uint64_t magic;
	int32_t pid;
	int32_t descriptor;
	uint64_t file_system;
	uint64_t file;
	uint64_t offset;
	uint64_t size;
	uint32_t device; /* number on the machine */
	uint32_t zero[3];
};
_Static_assert(sizeof(struct content) == sizeof(cudaIpcMemHandle_t), "a handle has 64 bytes");

/*
 * A file of another process's device memory. What is mapped of it is locked for reading, by which
 * that process knows not to use the pages for something else (arena.c); the kernel ends the locks
 * with the descriptor.
 */
struct source {
	LIST_ENTRY(source) siblings;
	uint64_t file_system;
	uint64_t file;
	int descriptor;
	unsigned count; /* of what is opened */
};

/* What this process has opened. */
struct opened {
	LIST_ENTRY(opened) siblings;
	struct content content;
	struct source *source;
	void *address;
	size_t span;
	unsigned count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the lists */
static LIST_HEAD(, opened) list = LIST_HEAD_INITIALIZER(list);
static LIST_HEAD(, source) sources = LIST_HEAD_INITIALIZER(sources);

cudaError_t make_ipc_handle(const void *pointer, cudaIpcMemHandle_t *handle)
{
	struct range range;
	struct stat status;
	if (!find_range(pointer, &range) || range.kind != RANGE_DEVICE || range.owner != NULL)
		return cudaErrorInvalidValue;
	int descriptor = arena_descriptor(device_arena(find_device(range.device)));
	if (fstat(descriptor, &status) != 0)
		return cudaErrorOperatingSystem;
	struct content content = {
		.magic = MAGIC,
		.pid = getpid(),
		.descriptor = descriptor,
		.file_system = status.st_dev,
		.file = status.st_ino,
		.offset = range.offset,
		.size = range.size,
		.device = find_device_number((unsigned)range.device),
	};
	memcpy(handle, &content, sizeof(content));
	return cudaSuccess;
}

/*
 * The exporting device's ordinal here; if this process does not see the device, the current one
 * stands for it.
 */
static int find_ordinal(uint32_t number)
{
	for (unsigned i = 0; i < count_devices(); i++)
		if (find_device_number(i) == number)
			return (int)i;
	return current_device();
}

/* A descriptor of the file that the handle names, or -1 after a line in the log. */
static int open_file(const struct content *content)
{
	char path[64];
	struct stat status;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", content->pid, content->descriptor);
	int descriptor = open(path, O_RDWR | O_CLOEXEC);
	if (descriptor < 0) {
		report_problem("process %d's device memory cannot be opened (%s: %s); has the "
			       "process ended, or is it "
			       "another user's or container's?",
			       content->pid, path, strerror(errno));
		return -1;
	}
	if (fstat(descriptor, &status) == 0 && status.st_dev == content->file_system &&
	    status.st_ino == content->file)
		return descriptor;
	close(descriptor);
	report_problem("%s is no longer the device memory that a CUDA IPC handle names: its "
		       "process has ended",
		       path);
	return -1;
}

static struct source *open_source_locked(const struct content *content)
{
	struct source *source;

	LIST_FOREACH(source, &sources, siblings)
		if (source->file_system == content->file_system && source->file == content->file)
			break;
	if (source == NULL) {
		int descriptor = open_file(content);
		source = descriptor < 0 ? NULL : malloc(sizeof(*source));
		if (source == NULL) {
			if (descriptor >= 0)
				close(descriptor);
			return NULL;
		}
		*source = (struct source) { .file_system = content->file_system,
					    .file = content->file,
					    .descriptor = descriptor };
		LIST_INSERT_HEAD(&sources, source, siblings);
	}
	source->count++;
	return source;
}

static void close_source_locked(struct source *source)
{
	if (--source->count != 0)
		return;
	LIST_REMOVE(source, siblings);
	close(source->descriptor);
	free(source);
}

static void lock_pages(const struct source *source, const struct content *content, size_t span,
		       short type)
{
	struct flock pages = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)content->offset,
		.l_len = (off_t)span,
	};

	if (fcntl(source->descriptor, F_OFD_SETLK, &pages) != 0)
		report_problem("device memory of process %d cannot be locked (%s): do not free it "
			       "there before it is closed here",
			       content->pid, strerror(errno));
}

static cudaError_t add_address(const struct content *content, void *address, size_t span)
{
	struct range range = {
		.start = (uintptr_t)address,
		.size = content->size,
		.kind = RANGE_IPC,
		.device = find_ordinal(content->device),
		.offset = content->offset,
		.span = span,
	};
	return add_range(&range) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* The address in this process, or NULL. */
static void *map_pages(const struct source *source, const struct content *content, size_t span)
{
	void *address = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED, source->descriptor,
			     (off_t)content->offset);
	if (address == MAP_FAILED)
		return NULL;
	madvise(address, span, MADV_DONTDUMP);
	madvise(address, span, MADV_DONTFORK);
	if (add_address(content, address, span) == cudaSuccess)
		return address;
	munmap(address, span);
	return NULL;
}

static cudaError_t map_locked(const struct content *content, void **pointer)
{
	size_t span = (content->size + ARENA_PAGE - 1) & ~(size_t)(ARENA_PAGE - 1);
	struct source *source = open_source_locked(content);
	if (source == NULL)
		return cudaErrorMapBufferObjectFailed;
	struct opened *opened = malloc(sizeof(*opened));
	void *address = opened == NULL ? NULL : map_pages(source, content, span);
	if (address == NULL) {
		close_source_locked(source);
		free(opened);
		return cudaErrorMemoryAllocation;
	}
	lock_pages(source, content, span, F_RDLCK);
	*opened = (struct opened) {
		.content = *content, .source = source, .address = address, .span = span, .count = 1
	};
	LIST_INSERT_HEAD(&list, opened, siblings);
	*pointer = address;
	return cudaSuccess;
}

static bool is_content(const struct content *content)
{
	if (content->magic != MAGIC || content->size == 0 || content->offset % ARENA_PAGE != 0)
		return false;
	return content->size <= this_machine()->memory &&
	       content->offset <= this_machine()->memory - content->size;
}

cudaError_t open_ipc_handle(const cudaIpcMemHandle_t *handle, void **pointer)
{
	struct content content;
	struct opened *opened;
	cudaError_t error = cudaSuccess;

	memcpy(&content, handle, sizeof(content));
	if (!is_content(&content))
		return cudaErrorInvalidValue;
	if (content.pid == getpid())
		/* as CUDA: a process does not open its own memory */
		return cudaErrorDeviceUninitialized;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(opened, &list, siblings)
		if (memcmp(&opened->content, &content, sizeof(content)) == 0)
			break;
	if (opened != NULL) {
		opened->count++;
		*pointer = opened->address;
	} else {
		error = map_locked(&content, pointer);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

cudaError_t close_ipc_memory(void *pointer)
{
	struct opened *opened;
	struct range range;
	cudaError_t error = cudaSuccess;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(opened, &list, siblings)
		if (opened->address == pointer)
			break;
	if (opened == NULL) {
		error = cudaErrorInvalidValue;
	} else if (--opened->count == 0) {
		LIST_REMOVE(opened, siblings);
		remove_range(pointer, RANGE_IPC, &range);
		munmap(pointer, opened->span);
		lock_pages(opened->source, &opened->content, opened->span, F_UNLCK);
		close_source_locked(opened->source);
		free(opened);
	}
	pthread_mutex_unlock(&lock);
	return error;
}
