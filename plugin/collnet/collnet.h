/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet.h - sums of 2 and more ranks, by the switch where there is one, over the plugin's own
 * rails where there is none
 *
 * A communicator is one object per rank. It is at any moment on the switch or on its rails, the
 * same for all ranks at the same operation. When the switch, the way to it or the backend fails,
 * what is in flight is finished over the rails: the ranks agree for each segment (HA_INA_SEGMENT
 * bytes) whether any of them has the switch's result. If so, that rank gives its bytes to all; if
 * not, the segment is summed round the ring. All ranks end with the same bits. docs/ina.md
 * ("CollNet") is the prose.
 *
 * Nothing here blocks, but ha_collnet_listen() and ha_collnet_close(), which may take a local round
 * trip and two seconds. Everything moves from iallreduce and test. One thread drives a communicator
 * at a time; different ones may be driven from different threads.
 */
#ifndef HA_COLLNET_COLLNET_H
#define HA_COLLNET_COLLNET_H

#include "plugin/core.h"

struct ha_collnet;
struct ha_collnet_listen;
struct ha_collnet_op;
struct ha_clock;
struct ha_ina_ops;

struct ha_collnet_params {
	struct ha_ctx *core;
	struct ha_comm_opts opts;
	const struct ha_ina_ops *ina; /* &ha_ina_ops_live */
	/* its socket; NULL: libhawser-ina's own choice. Exists as long as the communicator */
	const char *backend;
	const struct ha_clock *clock; /* NULL: the live one */
	uint64_t timeout_ns;          /* for connecting */
	/* of the switch, after which an operation is finished over the rails */
	uint64_t silence_ns;
	bool always; /* HA_NCCL_COLLNET=1: without a switch, too */
};

#define HA_COLLNET_RANKS 32
#define HA_COLLNET_DEPTH 32 /* operations in flight */

/* Fills NCCL's handle (128 bytes). */
int ha_collnet_listen(const struct ha_collnet_params *params, int dev, void *handle,
		      struct ha_collnet_listen **listen);
void ha_collnet_close_listen(struct ha_collnet_listen *listen);

/*
 * The communicator of `nranks` listeners. begin: -EINVAL, -EPROTO (a handle is not ours); then step
 * until it is 0 or an error that is not -EAGAIN. All ranks come to the same end, unless one dies.
 * -ENOTCONN: no switch for this group, and not `always`. In any case close; the listener may go as
 * soon as step is over.
 */
int ha_collnet_connect(struct ha_collnet_listen *listen, void *const *handles, int nranks, int rank,
		       struct ha_collnet **comm);
int ha_collnet_connect_step(struct ha_collnet *comm);
/* In any state. Requests in flight are forgotten. */
void ha_collnet_close(struct ha_collnet *comm);

/*
 * A sum of float32; in == out, or they do not overlap; bytes a multiple of 4, at most 1 GiB. All
 * ranks in the same order. *op stays NULL: not now, again. -EINVAL, -EMSGSIZE; or what ended the
 * communicator.
 */
int ha_collnet_iallreduce(struct ha_collnet *comm, const void *in, void *out, size_t bytes,
			  struct ha_collnet_op **op);
/* *done = 1 frees the request. An error ends it too, and all others of the communicator. */
int ha_collnet_test(struct ha_collnet_op *op, int *done, size_t *bytes);

/* For tests. */
struct ha_collnet_stats {
	bool on_switch;
	uint64_t epochs;           /* how often it has gone to the switch */
	uint64_t breaks;           /* and left it again */
	uint64_t attempts;         /* at it, the unsuccessful ones included */
	uint64_t switched, railed; /* operations that ended by the switch alone; all others */
	/* segments: of a broken group, by a rank that had them; round the ring */
	uint64_t given, summed;
};
void ha_collnet_stats(const struct ha_collnet *comm, struct ha_collnet_stats *stats);

#endif
