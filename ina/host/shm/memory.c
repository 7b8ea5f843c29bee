/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define NODES 1024 /* the kernel's most */

static void init_rings(struct ina_shm_memory *memory)
{
	struct ina_shm_control *control = (struct ina_shm_control *)(memory->map + INA_SHM_CONTROL);

	memory->buffer = memory->map + INA_SHM_BUFFER;
	memory->buffer_bytes = (uint64_t)memory->segments * HA_INA_SEGMENT;
	ina_shm_ring_init(&memory->requests, &control->requests, memory->map + INA_SHM_REQUESTS,
			  INA_SHM_ENTRIES, sizeof(struct ina_shm_request));
	ina_shm_ring_init(&memory->responses, &control->responses, memory->map + INA_SHM_RESPONSES,
			  INA_SHM_ENTRIES, sizeof(struct ina_shm_response));
}

/*
 * Copies run on any node and the card sits on one: spread evenly. Where the kernel does not let us,
 * pages lie where they are first touched.
 */
static void interleave_pages(void *map, uint64_t bytes)
{
	unsigned long node[NODES / (8 * sizeof(long))] = { 0 };
	unsigned nodes = 0;

	if (syscall(SYS_get_mempolicy, NULL, node, (unsigned long)NODES, NULL,
		    (unsigned long)MPOL_F_MEMS_ALLOWED))
		return;
	for (size_t i = 0; i < sizeof(node) / sizeof(node[0]); i++)
		nodes += (unsigned)__builtin_popcountl(node[i]);
	if (nodes > 1)
		(void)syscall(SYS_mbind, map, (unsigned long)bytes, MPOL_INTERLEAVE, node,
			      (unsigned long)NODES, 0UL);
}

static int map_it(struct ina_shm_memory *memory, int file, uint64_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (map == MAP_FAILED)
		return -errno;
	memory->map = map;
	memory->bytes = bytes;
	return 0;
}

/*
 * All pages are there. A signal may end fallocate(), which then has done nothing: by segments it
 * comes to its end.
 */
static int allocate_pages(int file, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += HA_INA_SEGMENT)
		while (fallocate(file, 0, (off_t)at, HA_INA_SEGMENT))
			if (errno != EINTR)
				return -errno;
	return 0;
}

/* Gives the file its size, for good; *step: what it was at when it failed. */
static int size_file(int fd, uint64_t bytes, const char **step)
{
	*step = "memfd_create";
	if (fd < 0)
		return -errno;
	*step = "ftruncate";
	if (ftruncate(fd, (off_t)bytes))
		return -errno;
	*step = "seals";
	return fcntl(fd, F_ADD_SEALS, SEALS) ? -errno : 0;
}

int ina_shm_memory_make(struct ina_shm_memory *memory, uint32_t segments, int *file, char *why,
			size_t size)
{
	uint64_t bytes = ina_shm_bytes(segments);
	const char *step;
	int fd = memfd_create("hawser-ina", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	memset(memory, 0, sizeof(*memory));
	err = size_file(fd, bytes, &step);
	if (err)
		goto failed;
	step = "mmap";
	err = map_it(memory, fd, bytes);
	if (err)
		goto failed;
	interleave_pages(memory->map, bytes);
	/* where the system gives shared memory huge pages on request */
	madvise(memory->map, bytes, MADV_HUGEPAGE);
	madvise(memory->map, bytes, MADV_DONTFORK);
	step = "fallocate";
	err = allocate_pages(fd, bytes);
	if (err)
		goto failed;
	ina_shm_header_fill((struct ina_shm_header *)memory->map, segments);
	memory->segments = segments;
	init_rings(memory);
	*file = fd;
	return 0;
failed:
	snprintf(why, size,
		 "no %llu MiB of memory to share with the backend (%s: %s): give this process "
		 "more, or a smaller copy buffer",
		 (unsigned long long)(bytes >> 20), step, strerror(-err));
	ina_shm_memory_drop(memory);
	if (fd >= 0)
		close(fd);
	return err;
}

/*
 * Reading what is not there must not end the reader, nor make it pay for pages: so no other kind of
 * file, none that can shrink, none that runs out of huge pages. What else may go wrong with it is
 * the guard's.
 */
static const char *check_file(int file, uint64_t most, uint64_t *bytes)
{
	struct stat st;
	struct statfs fs;
	int seals = fcntl(file, F_GET_SEALS);

	if (fstat(file, &st) || fstatfs(file, &fs) || !S_ISREG(st.st_mode) ||
	    (unsigned long)fs.f_type != TMPFS_MAGIC || seals < 0)
		return "the file is not one of memfd_create()'s in normal pages";
	if ((seals & SEALS) != SEALS)
		return "the file may still shrink or grow: it is not sealed";
	*bytes = (uint64_t)st.st_size;
	if (*bytes < ina_shm_bytes(1))
		return "the file is too small";
	if (*bytes > most)
		return "the file is larger than the backend allows: a smaller copy buffer "
		       "(NETCCL_COPY_BUFFER), or a larger limit there";
	if ((uint64_t)st.st_blocks * 512 < *bytes)
		return "the file has holes";
	return NULL;
}

/*
 * No holes, not now and not later. Where both sides have their mappings the file is sealed against
 * further ones that write; that seal also forbids to punch holes (Linux 5.1; before, only the guard
 * helps). Pages beyond the end may hide holes from check_file(), so those are filled, at this
 * side's cost, at most once.
 */
static const char *keep_pages(int file, uint64_t bytes)
{
	int err;

	if (fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) && errno != EINVAL)
		return "the file cannot be sealed against holes: it has a last seal already";
	err = allocate_pages(file, bytes);
	return err ? strerror(-err) : NULL;
}

int ina_shm_memory_take(struct ina_shm_memory *memory, int file, uint64_t most, char *why,
			size_t size)
{
	struct ina_shm_header header;
	const char *what;
	uint64_t bytes;
	int err = -EPROTO;

	memset(memory, 0, sizeof(*memory));
	what = check_file(file, most, &bytes);
	if (!what) {
		err = map_it(memory, file, bytes);
		what = err ? strerror(-err) : NULL;
	}
	if (!what) {
		memory->guard = ina_shm_guard_put(memory->map, bytes);
		what = memory->guard ? keep_pages(file, bytes) : "there is no guard left for it";
	}
	if (!what) {
		memcpy(&header, memory->map, sizeof(header));
		__asm__ volatile("" ::: "memory"); /* what is checked is the copy */
		err = ina_shm_header_check(&header, bytes, &memory->segments, &what);
	}
	if (err || what) {
		snprintf(why, size, "%s", what);
		ina_shm_memory_drop(memory);
		return err ? err : -EPROTO;
	}
	madvise(memory->map, bytes, MADV_DONTFORK);
	init_rings(memory);
	return 0;
}

void ina_shm_memory_drop(struct ina_shm_memory *memory)
{
	if (memory->guard)
		ina_shm_guard_remove(memory->guard);
	if (memory->map)
		munmap(memory->map, memory->bytes);
	memset(memory, 0, sizeof(*memory));
}
