/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_GPUS_H
#define HAWSER_TOOL_NCCL_GPUS_H

#include <stddef.h>

#include "tools/job/figures.h"
#include "tools/nccl/abi.h"
#include "tools/nccl/buffers.h"

struct ha_library;
struct ha_place;
struct ha_rendezvous;
struct ha_watch;
struct nccl_options;

/*
 * gpus - the GPUs of this process: their streams, buffers and communicators
 *
 * A communicator for each side, so that two transports can take turns in the same processes.
 */

struct nccl_gpu {
	int device;   /* CUDA's ordinal */
	int rank;     /* NCCL's */
	char bus[24]; /* PCI address */
	cuda_stream stream;
	nccl_comm comms[HA_SIDES];
	int mulsum[HA_SIDES]; /* the operation made for the present element type */
};

struct nccl_gpus {
	const struct ha_library *library;
	const struct nccl_options *options;
	struct ha_watch *watch;
	int count; /* of this process */
	int ranks; /* of all processes */
	int sides;
	int mulsum_type;                /* of the operations made; -1: none was */
	struct nccl_buffers buffers[2]; /* out of place the first is sent, the second received */
	struct nccl_gpu *each;
};

/*
 * Opens the GPUs that are this process's and makes the communicators. Collective. 0 or a negative
 * errno with the fault recorded.
 */
int nccl_gpus_open(struct nccl_gpus *gpus, const struct nccl_options *options,
		   const struct ha_library *library, const struct ha_place *place,
		   struct ha_rendezvous *rendezvous, struct ha_watch *watch);

/*
 * Two buffers of so many bytes for each GPU, registered as the options say. Collective where they
 * are windows.
 */
int nccl_gpus_allocate(struct nccl_gpus *gpus, size_t bytes);

/*
 * The operation that multiplies by the rank's factor, for one element type; made anew when the type
 * changes.
 */
int nccl_gpus_mulsum(struct nccl_gpus *gpus, const struct ha_datatype *type);

/* All GPUs' streams have done what was asked of them. */
int nccl_gpus_synchronize(const struct nccl_gpus *gpus);

/* Orderly end: deregisters, destroys, frees. Collective. */
int nccl_gpus_close(struct nccl_gpus *gpus);

#endif
