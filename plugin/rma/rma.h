/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h - one-sided operations among the ranks of a communicator: what plugin/nccl/ calls
 *
 * No call waits. Functions return 0 or a negative errno; after an error of a connection every
 * later call on the communicator returns it. Any thread may call; one at a time is inside.
 * Somebody must call ha_rma_progress all the time, at every rank: what others send here is taken
 * there. docs/one-sided.md has the contract.
 */
#ifndef HA_RMA_RMA_H
#define HA_RMA_RMA_H

#include "plugin/core.h"

struct ha_rma;
struct ha_rma_listen;
struct ha_rma_window; /* memory that was registered at every rank */
struct ha_rma_op;

enum ha_rma_signal { HA_RMA_NO_SIGNAL, HA_RMA_INC, HA_RMA_ADD };

/* Fill `handle` (HA_HANDLE_MAX bytes) for the other ranks. opts->one_sided is set here. */
int ha_rma_listen(struct ha_ctx *ctx, int dev, const struct ha_comm_opts *opts, void *handle,
		  struct ha_rma_listen **listen);
/*
 * The communicator of the ranks that have these handles. A connection to a rank is made when the
 * first operation needs it.
 */
int ha_rma_connect(struct ha_rma_listen *listen, const void *const *handles, int nranks, int rank,
		   struct ha_rma **rma);
/* Of the connections that this rank makes from now on. */
void ha_rma_set_traffic_class(struct ha_rma *rma, int traffic_class);
/* Either order. Operations in flight are forgotten. NULL is fine. */
void ha_rma_close_listen(struct ha_rma_listen *listen);
void ha_rma_close(struct ha_rma *rma);

/*
 * Register `size` bytes at `data`. Every rank registers its windows in the same order, of which one
 * that is refused is one; sizes and kinds may differ. As ha_reg_mr; with HA_MR_FORCE_SO the memory
 * may hold signals, so the processor must be able to write it, through GDRCopy if it is a GPU's
 * that is not mapped: -EOPNOTSUPP where it cannot, with a line.
 */
int ha_rma_register(struct ha_rma *rma, void *data, size_t size, int type, uint64_t offset, int fd,
		    unsigned flags, struct ha_rma_window **window);
int ha_rma_deregister(struct ha_rma *rma, struct ha_rma_window *window);

/*
 * A write of `size` bytes, from `source` here to `target` there, and behind it a signal. Offsets
 * and sizes in bytes.
 */
struct ha_rma_put {
	int rank;
	size_t size; /* may be 0 */
	struct ha_rma_window *source, *target;
	uint64_t source_offset, target_offset;
	enum ha_rma_signal signal;
	struct ha_rma_window *signals;
	uint64_t signal_offset; /* of a 64-bit counter, a multiple of 8 */
	uint64_t value;         /* HA_RMA_ADD */
};
/*
 * Complete (ha_rma_test) when the source may be overwritten. The signal is visible after its own
 * data and that of every put before it to this rank.
 */
int ha_rma_put(struct ha_rma *rma, const struct ha_rma_put *put, struct ha_rma_op **op);
/*
 * Read from `target` there into `source` here; complete when the data is here, and visible to the
 * GPU. No signal.
 */
int ha_rma_get(struct ha_rma *rma, const struct ha_rma_put *get, struct ha_rma_op **op);
/* *done = 1 frees the operation. */
int ha_rma_test(struct ha_rma *rma, struct ha_rma_op *op, int *done);

/* Post, take, apply; a thread that finds another inside returns at once. */
int ha_rma_progress(struct ha_rma *rma);
/* The error that every call returns from now on, or 0. */
int ha_rma_error(const struct ha_rma *rma);

#endif
