/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda.h - copies between the copy buffer and a GPU, by the CUDA runtime that the process has, or
 * that dlopen finds
 *
 * Nothing is linked and no header is needed. The runtime that the process already has (torch's) is
 * preferred: its streams are ours then. One pair of streams per device and context, so copies
 * overlap with the caller's own work; events give the order (ina.h, `stream`).
 * Calls return 0 or -EIO and why (a sentence that names the CUDA call and its error), -ENOSYS
 * without CUDA. Any thread; one at a time per buffer.
 */
#ifndef INA_FRONT_CUDA_H
#define INA_FRONT_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_WHY 256
#define CUDA_DEVICES 64

/* One device's; exists as long as the buffer. */
struct ina_cuda_stream {
	int device;
	void *in, *out; /* from the device; to it */
};

struct ina_cuda_buffer {
	void *memory; /* registered with CUDA; NULL: not yet */
	struct ina_cuda_stream *stream[CUDA_DEVICES];
};

/*
 * A copy that was queued. stream NULL: there is none. event NULL: CUDA could not say where the
 * copy's end is; it is asked again, and until it can, or the stream has nothing left to do, the
 * copy counts as under way.
 */
struct ina_cuda_copy {
	void *stream, *event;
	int device;
};

/* The calling thread's current device gets its streams, the buffer is registered: both once. */
int ina_cuda_use(struct ina_cuda_buffer *b, void *memory, size_t bytes,
		 struct ina_cuda_stream **stream, char why[CUDA_WHY]);
/* Nothing is being copied any more. From a thread of ours: its current device changes. */
void ina_cuda_drop(struct ina_cuda_buffer *b);

/* An event where the caller's stream is now. */
int ina_cuda_mark(void *callers, void **event, char why[CUDA_WHY]);
void ina_cuda_forget(void *event);
/*
 * Starts a copy. after: an event that must have come before, or NULL. Also after -EIO it may be
 * under way: copy->stream says so.
 */
int ina_cuda_from_device(struct ina_cuda_stream *s, void *to, const void *from, size_t bytes,
			 void *after, struct ina_cuda_copy *copy, char why[CUDA_WHY]);
int ina_cuda_to_device(struct ina_cuda_stream *s, void *to, const void *from, size_t bytes,
		       void *after, struct ina_cuda_copy *copy, char why[CUDA_WHY]);
/* 1: it has ended, and the copy is forgotten; 0: not yet; -EIO, forgotten too. */
int ina_cuda_done(struct ina_cuda_copy *copy, char why[CUDA_WHY]);

#endif
