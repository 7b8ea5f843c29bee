/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - one emulated GPU in this process: its memory, its streams
 */
#ifndef SOFTCUDA_DEVICE_H
#define SOFTCUDA_DEVICE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#include "softcuda/machine.h"
#include "softcuda/runtime/arena.h"
#include "softcuda/runtime/stream.h"

struct device {
	int ordinal;                   /* in this process */
	struct stream *_Atomic legacy; /* made at the first use, under the lock */
	unsigned number;               /* on the machine */
	uint32_t peers;                /* ordinals whose memory was made accessible, a bit each */
	pthread_mutex_t lock;          /* protects what follows */
	struct arena *arena;
	/* all but the legacy one; closed ones until their last task is done */
	LIST_HEAD(, stream) streams;
	struct memory_pool *default_pool;
	struct memory_pool *current_pool; /* NULL: the default one */
};

/* The device of a valid ordinal. */
struct device *find_device(int ordinal);
/* The calling thread's. */
struct device *this_device(void);

/* Its memory, made at the first use. NULL after a line in the log. */
struct arena *device_arena(struct device *device);

/*
 * The stream that a handle means on the current device: 0 and 1 the legacy one, 2 the thread's own.
 */
cudaError_t find_stream(cudaStream_t handle, struct stream **stream);
/* Wait for everything that the device was asked to do before. */
cudaError_t synchronize_device(struct device *device);

#endif
