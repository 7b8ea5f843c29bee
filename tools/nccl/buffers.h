/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_BUFFERS_H
#define HAWSER_TOOL_NCCL_BUFFERS_H

#include <stddef.h>

#include "tools/job/figures.h"

struct nccl_gpus;

/*
 * buffers - GPU memory, one piece for each GPU of this process, made known to NCCL as -R asks
 *
 * Whatever an operation sends from or receives into is allocated here: NCCL takes registered
 * buffers at both ends of a connection or at neither, and does not end where they are mixed.
 */

struct nccl_buffer {
	char *device;                 /* GPU memory */
	void *registration[HA_SIDES]; /* handle or window with each communicator; NULL: none */
};

struct nccl_buffers {
	struct nccl_buffer *each; /* in the order of the GPUs; NULL: none were opened */
	size_t bytes;             /* of each */
};

/*
 * One buffer of at least so many bytes for each GPU. Collective where they are windows. 0 or a
 * negative errno with the fault recorded.
 */
int nccl_buffers_open(const struct nccl_gpus *gpus, size_t bytes, struct nccl_buffers *buffers);

/* Deregisters and frees; nothing happens to those that were not opened. */
int nccl_buffers_close(const struct nccl_gpus *gpus, struct nccl_buffers *buffers);

#endif
