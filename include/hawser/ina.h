/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ina.h - collectives through a switch that adds: what a process calls (libhawser-ina.so)
 *
 * A process attaches to the backend of its host (ha-backend), which owns the network card; the two
 * share memory, and nothing else. A crash of either costs the other an error, not its incarnation.
 * Groups of 2 to 32 ranks are created by one member and joined by all.
 *
 * Operations are asynchronous and end in the order in which they were posted to their group. Each
 * is cut into segments of HA_INA_SEGMENT bytes; a segment's result reaches the caller's memory
 * whole or not at all, and until it does that part of the caller's memory holds what it held: so
 * whatever happens, every rank still has its own contribution to each segment that it has not got
 * the result of.
 *
 * All calls give 0 or a negative errno; ha_ina_error() says more, in one line. No call but
 * ha_ina_wait() waits longer than a local round trip, or the controller's answer
 * (ha_ina_group_create: its deadline). Any thread may call anything at any time, as long as nobody
 * uses what another thread is closing, leaving or freeing. After fork() the child opens its own;
 * what it has from before ends with -ENOTCONN.
 *
 *   -ENOTCONN   no backend on this host, or it has gone; every operation in flight ends with it.
 *               ha_ina_open() again when it is back
 *   -EAGAIN     (open) the backend has as many clients as it takes; (group_create) the controller
 *               has nothing free: do without the switch; (join) too many groups here;
 *               (group_create, join) 64 of this process's calls wait for the controller already;
 *               (post) too many operations in flight: test some
 *   -ETIMEDOUT  a peer, the switch or the controller was silent for its limit
 *   -ECANCELED  the group has ended: another rank, the controller or the switch ended it
 *   -EINVAL     what no call can mean: the sentence says which argument
 *   -EIO        CUDA refused a copy; the group has ended with it
 *   -EOPNOTSUPP the group's frames cannot carry it (float32 sums and ha-backend --old-frames); the
 *   group has ended with it
 *   -ENOSYS     (post) memory of a GPU, and this process finds no CUDA runtime
 *   -ENOMEM     no memory; -EPROTO the backend says what cannot be, or is of another release;
 *               -EACCES this user may not attach
 */
#ifndef HAWSER_INA_H
#define HAWSER_INA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define HA_INA_SEGMENT (2u << 20) /* bytes */
#define HA_INA_RANKS 32
#define HA_INA_TICKET 192 /* bytes; opaque, the same for all ranks */

struct ha_ina;       /* a process's connection with its host's backend */
struct ha_ina_group; /* this process as one rank of a group */
struct ha_ina_op;    /* an operation */

/* Zero is the default of every field. */
struct ha_ina_options {
	const char *backend; /* the backend's socket; NETCCL_BACKEND, else /run/hawser/ina.sock */
	/* bytes of the copy buffer; NETCCL_COPY_BUFFER, else 64 MiB; rounded up to segments */
	size_t buffer;
	/*
	 * No backend: what is posted comes back as if every rank had brought what this one did
	 * (NETCCL_FRONTEND_LOOPBACK, set to anything but 0). Sums are this rank's value times
	 * ranks, without a switch's rounding; `out` of a broadcast that this rank is not the root
	 * of keeps what it has.
	 */
	bool loopback;
	/*
	 * For another thread that wants this one back: as soon as *give_up is not 0, a call that
	 * waits (ha_ina_open, ha_ina_group_create, ha_ina_group_join of this context) ends with
	 * -ECANCELED, within a tenth of a second. Exists as long as the context; written and read
	 * atomically. NULL: none.
	 */
	const int *give_up;
};

/* 0, and *ina; else *ina is NULL and why[size] holds the sentence. */
int ha_ina_open(struct ha_ina **ina, const struct ha_ina_options *options, char *why, size_t size);
/* Groups and operations end with -ECANCELED first. Those that the caller has are still to be left
 * and freed, which may come after it. */
void ha_ina_close(struct ha_ina *ina);
/* The sentence of this thread's last call that had one, if that was about `ina`; else an empty one.
 * Good until its next call. */
const char *ha_ina_error(const struct ha_ina *ina);
/* The IPv4 address that the backend's card has, in host order: what ha_ina_group_create() wants of
 * every member. */
uint32_t ha_ina_address(const struct ha_ina *ina);

/* One member, for all: asks the controller. member[ranks] in the order of ranks. */
int ha_ina_group_create(struct ha_ina *ina, const uint32_t *member, unsigned ranks,
			const char *name, uint8_t ticket[HA_INA_TICKET]);
/* Each member, the creator too. A ticket is good once for each rank. */
int ha_ina_group_join(struct ha_ina *ina, const uint8_t ticket[HA_INA_TICKET], unsigned rank,
		      struct ha_ina_group **group);
/* Operations in flight end with -ECANCELED, here and, where the frames can say so, on all ranks.
 * The last one that leaves ends the group. */
void ha_ina_group_leave(struct ha_ina_group *group);
unsigned ha_ina_group_rank(const struct ha_ina_group *group);
unsigned ha_ina_group_ranks(const struct ha_ina_group *group);
/* 0, or what ended it. A group that has ended stays so: leave it, and create another. */
int ha_ina_group_state(const struct ha_ina_group *group);

enum ha_ina_coll {
	HA_INA_ALL_REDUCE = 1, /* the frames' numbers */
	HA_INA_REDUCE,
	HA_INA_BROADCAST,
	HA_INA_REDUCE_SCATTER,
	HA_INA_ALL_GATHER,
	HA_INA_BARRIER,
};

enum ha_ina_type {
	HA_INA_BYTES,   /* broadcast, all-gather: anything */
	HA_INA_INT32,   /* sums saturate, and say so */
	HA_INA_FLOAT32, /* an exponent for each 64 elements; docs/ina.md has errors and limits */
};

/* Where memory is. */
enum ha_ina_memory { HA_INA_HOST, HA_INA_CUDA };

struct ha_ina_request {
	enum ha_ina_coll coll;
	enum ha_ina_type type;
	unsigned root; /* reduce, broadcast */
	/*
	 * Bytes of the whole: what one rank brings (all-reduce, reduce, broadcast), or all ranks'
	 * parts together (reduce-scatter: of `in`; all-gather: of `out`), then a multiple of ranks.
	 * A multiple of 4 unless type is HA_INA_BYTES. in == out (for reduce-scatter and
	 * all-gather: the rank's own part of the larger one) is in place; else they do not overlap.
	 * NULL where a rank brings or gets nothing. A broadcast's root may have no `out`, and gets
	 * a copy if it has one. A barrier looks at coll only.
	 */
	size_t bytes;
	const void *in;
	void *out;
	enum ha_ina_memory memory;
	/* cudaStream_t: `in` is ready when what is before in it is; with HA_INA_HOST not looked
	 * at */
	void *stream;
};

/* The memory is the operation's until it has ended. */
int ha_ina_post(struct ha_ina_group *group, const struct ha_ina_request *request,
		struct ha_ina_op **op);
/* True when it has ended: *result is 0, or what ended it. */
bool ha_ina_test(struct ha_ina_op *op, int *result);
/* 0, or what ended it, -ETIME when it has not within timeout_ns. */
int ha_ina_wait(struct ha_ina_op *op, uint64_t timeout_ns);
/* Called once, from a thread of the library's own, when it has ended; at once if it has. It must
 * not call back into the library. */
int ha_ina_notify(struct ha_ina_op *op, void (*call)(void *arg, int result), void *arg);
/*
 * Segments of the whole, in the order of `bytes`, and whether this rank has that one's result (or,
 * bringing only, its acknowledgement). Reduce-scatter and all-gather: each rank's part is cut by
 * itself, so with n = ceil(part / HA_INA_SEGMENT) segment r * n + i is the i-th of rank r's part.
 * The last one of the whole, or of a part, may be shorter. A barrier has none.
 */
size_t ha_ina_op_segments(const struct ha_ina_op *op);
bool ha_ina_op_done(const struct ha_ina_op *op, size_t segment);
/* What a sum met on its way, after the end: HA_INA_SATURATED, HA_INA_NONFINITE. */
#define HA_INA_SATURATED 1u
#define HA_INA_NONFINITE 2u
unsigned ha_ina_op_met(const struct ha_ina_op *op);
/* An operation that has not ended ends with -ECANCELED first, and its group with it. */
void ha_ina_op_free(struct ha_ina_op *op);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
