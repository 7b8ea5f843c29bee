/* SPDX-License-Identifier: BSD-3-Clause */
/* batch.h - the works of a channel that one function handles, taken out of a launch */
#ifndef SOFTCUDA_NCCL_BATCH_H
#define SOFTCUDA_NCCL_BATCH_H

#include "softcuda/nccl/layout.h"

#include <stddef.h>

#define BATCH_WORK_BYTES 16384 /* the most that the works of a batch and its extensions take */

struct batch {
	enum work_type type;
	unsigned function;
	unsigned work_count;
	size_t work_bytes; /* of one work */
	unsigned last;     /* index of the batch's last part in the launch */
	unsigned jump;     /* from there to the channel's next batch, 0: there is none */
	char works[BATCH_WORK_BYTES] __attribute__((aligned(16)));
};

/* Copy the works of batch `index` and of its extensions. NULL, or what is wrong with it. */
const char *load_batch(struct batch *batch, const struct kernel_arguments *arguments,
		       unsigned index, unsigned channel_id);

static inline const void *work_of_batch(const struct batch *batch, unsigned index)
{
	return batch->works + index * batch->work_bytes;
}

#endif
