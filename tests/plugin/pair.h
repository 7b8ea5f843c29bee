/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.h - a connected sender and receiver in one process, over whatever HA_NCCL_VERBS names
 * (tests: the software NIC) */
#ifndef HA_TESTS_CORE_PAIR_H
#define HA_TESTS_CORE_PAIR_H

#include "plugin/core.h"
#include "rdma/verbs/ops.h"

#define PAIR_TRIES_MAX 2000000 /* fruitless calls after which a test gives up; see pair_idle() */

struct pair {
	struct ha_ctx *ctx;
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;
};

/* What one end sends from or receives into. */
struct pair_side {
	struct ha_mr *mr;
	char *data;
	struct ha_request *req;
	int done;
};

/* A context from the environment, and one connection from device 0 to device 0 with nmore further
 * rails (devices 1, 2, ...). */
void pair_open(struct pair *p, int nmore);
/* The same over another table of verbs. */
void pair_open_over(struct pair *p, int nmore, const struct ha_verbs_ops *verbs);
/* The library of HA_NCCL_VERBS, for pair_open_over; `change` is called for the functions of the hot
 * path of each device that is opened, and may put others in their place. One library at a time;
 * ha_verbs_close_library() ends it. */
struct ha_verbs_ops *pair_open_library(void (*change)(struct ha_verbs_hot *hot));
/* As pair_open, for puts (ha_put, ha_take). */
void pair_open_one_sided(struct pair *p, int nmore);
/* One more connection in a context. */
void pair_connect(struct pair *p, struct ha_ctx *ctx, int nmore);
/* The connection ends, the context stays; or both end. */
void pair_disconnect(struct pair *p);
void pair_close(struct pair *p);
/* Page-aligned zeroed memory; it exists to the end of the process. */
void *pair_alloc(size_t size);
/* Between two fruitless calls, the k-th in a row: spin at first, then give the processor away. */
void pair_idle(struct pair *p, int k);
/* Until the request is done. */
void pair_finish(struct pair *p, struct ha_request *req);
/* Flushes what was received, and waits until something has answered: a read, or a fence's end. */
void pair_flush(struct pair *p, const struct pair_side *recv, int size);

/* n messages of `size` bytes, one after the other; the first byte counts, and is looked at. */
void pair_messages(struct pair *p, struct pair_side *send, struct pair_side *recv, int n,
		   size_t size);

#endif
