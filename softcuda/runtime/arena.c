/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

/* A gap between allocations. The list is sorted by offset, and no two gaps touch. */
struct gap {
	LIST_ENTRY(gap) siblings;
	size_t offset;
	size_t size;
};

struct arena {
	char *base;
	size_t capacity;
	int descriptor;
	pthread_mutex_t lock; /* protects the lists and free_bytes */
	LIST_HEAD(, gap) gaps;
	LIST_HEAD(, gap) imported; /* released here, and mapped by other processes */
	size_t free_bytes;
};

static size_t round_to_pages(size_t size)
{
	return (size + ARENA_PAGE - 1) & ~(size_t)(ARENA_PAGE - 1);
}

/* Map the file. A core dump must not contain it: reading the gaps would create their pages. */
static bool map_arena(struct arena *arena)
{
	void *base = mmap(NULL, arena->capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			  arena->descriptor, 0);
	if (base == MAP_FAILED)
		return false;
	madvise(base, arena->capacity, MADV_DONTDUMP);
	madvise(base, arena->capacity, MADV_DONTFORK);
	arena->base = base;
	return true;
}

static bool open_arena(struct arena *arena, const char *name)
{
	arena->descriptor = memfd_create(name, MFD_CLOEXEC);
	if (arena->descriptor < 0)
		return false;
	if (ftruncate(arena->descriptor, (off_t)arena->capacity) == 0 && map_arena(arena))
		return true;
	int error = errno;
	close(arena->descriptor);
	errno = error;
	return false;
}

struct arena *create_arena(const char *name, size_t capacity)
{
	struct arena *arena = calloc(1, sizeof(*arena));
	struct gap *whole = calloc(1, sizeof(*whole));
	if (arena == NULL || whole == NULL) {
		free(arena);
		free(whole);
		errno = ENOMEM;
		return NULL;
	}
	arena->capacity = capacity;
	if (!open_arena(arena, name)) {
		free(arena);
		free(whole);
		return NULL;
	}
	pthread_mutex_init(&arena->lock, NULL);
	whole->size = capacity;
	LIST_INSERT_HEAD(&arena->gaps, whole, siblings);
	arena->free_bytes = capacity;
	return arena;
}

/* Join `gap` with its successor where they touch. */
static void join_next_locked(struct gap *gap)
{
	struct gap *next = LIST_NEXT(gap, siblings);
	if (next == NULL || gap->offset + gap->size != next->offset)
		return;
	gap->size += next->size;
	LIST_REMOVE(next, siblings);
	free(next);
}

/*
 * Behind `before`, or in front if that is NULL. Without memory for a gap its pages are lost for
 * this process; nothing worse.
 */
static void insert_gap_locked(struct arena *arena, struct gap *before, size_t offset, size_t size)
{
	struct gap *gap = malloc(sizeof(*gap));
	if (gap == NULL)
		return;
	*gap = (struct gap) { .offset = offset, .size = size };
	if (before != NULL)
		LIST_INSERT_AFTER(before, gap, siblings);
	else
		LIST_INSERT_HEAD(&arena->gaps, gap, siblings);
	arena->free_bytes += size;
	join_next_locked(gap);
}

static void add_gap_locked(struct arena *arena, size_t offset, size_t size)
{
	struct gap *before = NULL;
	struct gap *gap;

	LIST_FOREACH(gap, &arena->gaps, siblings) {
		if (gap->offset >= offset)
			break;
		before = gap;
	}
	if (before != NULL && before->offset + before->size == offset) {
		before->size += size;
		arena->free_bytes += size;
		join_next_locked(before);
		return;
	}
	insert_gap_locked(arena, before, offset, size);
}

/* Does another process map some of it? Its lock says so (ipc.c), and ends with it. */
static bool is_imported(const struct arena *arena, size_t offset, size_t size)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)offset,
		.l_len = (off_t)size,
	};

	return fcntl(arena->descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static void make_gap_locked(struct arena *arena, size_t offset, size_t size)
{
	/* Before the gap is there: whoever gets it next must not lose what it wrote. */
	fallocate(arena->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		  (off_t)size);
	add_gap_locked(arena, offset, size);
}

static void reclaim_imported_locked(struct arena *arena)
{
	struct gap *next;

	for (struct gap *gap = LIST_FIRST(&arena->imported); gap != NULL; gap = next) {
		next = LIST_NEXT(gap, siblings);
		if (is_imported(arena, gap->offset, gap->size))
			continue;
		LIST_REMOVE(gap, siblings);
		make_gap_locked(arena, gap->offset, gap->size);
		free(gap);
	}
}

/* Without memory for the note its pages are lost for this process, as in insert_gap_locked. */
static void keep_imported_locked(struct arena *arena, size_t offset, size_t size)
{
	struct gap *gap = malloc(sizeof(*gap));
	if (gap == NULL)
		return;
	*gap = (struct gap) { .offset = offset, .size = size };
	LIST_INSERT_HEAD(&arena->imported, gap, siblings);
}

int64_t allocate_pages(struct arena *arena, size_t size)
{
	struct gap *gap;
	int64_t offset = -1;

	if (size > arena->capacity)
		return -1;
	size = round_to_pages(size);
	pthread_mutex_lock(&arena->lock);
	reclaim_imported_locked(arena);
	LIST_FOREACH(gap, &arena->gaps, siblings)
		if (gap->size >= size)
			break;
	if (gap != NULL) {
		offset = (int64_t)gap->offset;
		gap->offset += size;
		gap->size -= size;
		arena->free_bytes -= size;
		if (gap->size == 0) {
			LIST_REMOVE(gap, siblings);
			free(gap);
		}
	}
	pthread_mutex_unlock(&arena->lock);
	return offset;
}

void release_pages(struct arena *arena, size_t offset, size_t size)
{
	size = round_to_pages(size);
	pthread_mutex_lock(&arena->lock);
	reclaim_imported_locked(arena);
	if (is_imported(arena, offset, size))
		keep_imported_locked(arena, offset, size);
	else
		make_gap_locked(arena, offset, size);
	pthread_mutex_unlock(&arena->lock);
}

void zero_pages(struct arena *arena, size_t offset, size_t size)
{
	off_t at = (off_t)offset;
	off_t end = (off_t)(offset + size);

	while (at < end) {
		off_t data = lseek(arena->descriptor, at, SEEK_DATA);
		if (data < 0 || data >= end)
			return;
		off_t hole = lseek(arena->descriptor, data, SEEK_HOLE);
		if (hole < 0 || hole > end)
			hole = end;
		memset(arena->base + data, 0, (size_t)(hole - data));
		at = hole;
	}
}

char *arena_address(const struct arena *arena, size_t offset)
{
	return arena->base + offset;
}

int arena_descriptor(const struct arena *arena)
{
	return arena->descriptor;
}

size_t count_free_bytes(struct arena *arena)
{
	pthread_mutex_lock(&arena->lock);
	reclaim_imported_locked(arena);
	size_t bytes = arena->free_bytes;
	pthread_mutex_unlock(&arena->lock);
	return bytes;
}
