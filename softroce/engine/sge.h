/* SPDX-License-Identifier: BSD-3-Clause */
/* sge.h - walking a work request's buffers in packet-sized steps */
#ifndef SOFTROCE_ENGINE_SGE_H
#define SOFTROCE_ENGINE_SGE_H

#include "softroce/engine/mr.h"

/* A place in a scatter/gather list; all zero is its beginning. */
struct sr_sge_pos {
	uint32_t index;  /* entry */
	uint32_t offset; /* bytes into it */
	uint64_t bytes;  /* bytes before it in all */
};

struct sr_sge_list {
	const struct ibv_sge *sge;
	uint32_t n;
};

/* Moves pos to `bytes` from the beginning; does nothing when it is there. */
void sr_sge_seek(struct sr_sge_list list, struct sr_sge_pos *pos, uint64_t bytes);
/*
 * The next `length` bytes as iovecs; pos moves behind them. How many iovecs, or -EFAULT: a key or
 * bound is wrong.
 */
int sr_sge_gather(const struct sr_pd *pd, struct sr_sge_list list, struct sr_sge_pos *pos,
		  uint32_t length, struct iovec iov[SR_MAX_SGE]);
/*
 * Copies `length` bytes into the list; pos moves behind them. 0 or -EFAULT, then nothing was
 * copied.
 */
int sr_sge_scatter(const struct sr_pd *pd, struct sr_sge_list list, struct sr_sge_pos *pos,
		   const void *from, uint32_t length);
/* Whether the whole list may be written to. 0 or -EFAULT. */
int sr_sge_check_writable(const struct sr_pd *pd, struct sr_sge_list list);

#endif
