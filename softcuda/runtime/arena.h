/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - the memory of one device: a sparse anonymous file, mapped as a whole, divided by pages
 *
 * A file, so that another process can map a part of it (CUDA IPC) and a NIC can be given a
 * descriptor of it (DMA-BUF).
 * One file per device, so that thousands of allocations need one descriptor. Pages exist from their
 * first use on and are given back when their allocation is freed; the addresses stay mapped, as
 * late access by a NIC hurts nobody then.
 */
#ifndef SOFTCUDA_ARENA_H
#define SOFTCUDA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_PAGE 4096u /* allocations are that aligned, so each can be exported by itself */

struct arena;

/* capacity: a multiple of ARENA_PAGE. NULL with errno. */
struct arena *create_arena(const char *name, size_t capacity);

/*
 * Allocate `size` bytes, rounded up to pages. Returns the offset, or -1 if no gap is large enough.
 */
int64_t allocate_pages(struct arena *arena, size_t size);
/*
 * Give back what allocate_pages gave. What another process maps by CUDA IPC stays as it is until
 * that process has closed it or ended: NCCL's ranks read from a neighbor's memory that has left.
 */
void release_pages(struct arena *arena, size_t offset, size_t size);

/*
 * Write zeros. Pages that nobody has written yet are zero and stay absent: NCCL zeroes every buffer
 * that it allocates, and uses few of them whole.
 */
void zero_pages(struct arena *arena, size_t offset, size_t size);

char *arena_address(const struct arena *arena, size_t offset);
int arena_descriptor(const struct arena *arena);
/* Bytes that are not allocated. */
size_t count_free_bytes(struct arena *arena);

#endif
