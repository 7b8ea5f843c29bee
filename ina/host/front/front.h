/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front.h - inside of libhawser-ina: a context, its groups, their operations, and who may touch
 * what
 *
 * One daemon thread per context does all the work: it copies into and out of the copy buffer,
 * exchanges messages with the backend, and ends operations. Calls only check, put into lists, set
 * flags and wait for it. ctx->lock protects everything but what is marked; the daemon lets go of it
 * while it copies, sleeps, or calls a notify function. So:
 *
 * - an operation is in its group's list until the daemon has ended it; before that nobody frees it
 * - a group is in the context's list from the backend's JOINED (so that no STATE misses it) until
 *   ha_ina_group_leave(), which waits until its operations have ended; then in `leaving` until the
 *   socket has taken the LEAVE
 * - a context exists until it is closed and its last operation and group have been freed (refs)
 *
 * A piece is one segment of an operation. Its incarnation: IDLE, then, in the order of pieces, a
 * place in the copy buffer and FILLING (what this rank brings is being copied in), FULL, ASKED (in
 * the backend's hands), EMPTYING (the result is being copied out), DONE; or FAILED. When its group
 * has failed, the operation does not wait for what is ASKED: the place in the buffer is given back
 * when the backend answers (struct ina_front_asked with no op). It does wait for copies, for these
 * touch the caller's memory.
 */
#ifndef INA_FRONT_H
#define INA_FRONT_H

#include "ina/host/front/cuda.h"
#include "ina/host/shm/buffer.h"
#include "ina/host/shm/client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define GROUPS_MAX 64u
#define OPS_MAX 16384u /* that have not ended, of a context */
#define REASON_MS 5000 /* what a group waits for the sentence that goes with its end */

enum piece_state { IDLE, FILLING, FULL, ASKED, EMPTYING, DONE, FAILED };

struct ina_front_piece {
	_Atomic uint8_t state;     /* also read without the lock */
	uint16_t slot;             /* of ha_ina.slots; FILLING to EMPTYING */
	struct ina_cuda_copy copy; /* CUDA's, when one is under way */
};

/* One piece as a collective of its own. */
struct ina_front_part {
	size_t segment;    /* its number in the operation */
	const uint8_t *in; /* NULL: this rank brings nothing */
	uint8_t *out;      /* NULL: it gets nothing, or has it already */
	uint32_t bytes;
	uint8_t coll, root;
};

struct ha_ina_op {
	struct ha_ina *ctx;
	struct ha_ina_group *group;   /* until it has ended */
	STAILQ_ENTRY(ha_ina_op) link; /* in its group, until it has ended */
	struct ha_ina_request request;
	unsigned rank, ranks;
	int32_t token; /* a barrier's word */
	/* how far it is, in the order of work (not of segments) */
	size_t pieces, filled, asked, finished;
	struct ina_front_piece *piece;
	struct ina_cuda_stream *cuda; /* NULL: host memory */
	void *ready;                  /* CUDA event: the caller's stream was here */
	bool waited_in, waited_out;
	atomic_bool ended; /* release: result, met, why are set */
	int result;
	unsigned met;
	char why[INA_SHM_TEXT];
	void (*notify)(void *arg, int result);
	void *notify_arg;
	bool notify_set; /* it is still to be called: until then the operation is not freed */
	STAILQ_ENTRY(ha_ina_op) link_notify; /* in ha_ina.to_notify */
};

struct ha_ina_group {
	struct ha_ina *ctx;
	LIST_ENTRY(ha_ina_group) link; /* in the context's list, or among those that leave */
	uint32_t handle, owner;        /* the backend's name for it; the copy buffer's */
	unsigned rank, ranks;
	bool listed;                        /* in the context's list */
	STAILQ_HEAD(, ha_ina_op) ops;       /* that have not ended */
	struct ha_ina_op *filling, *asking; /* where the work is */
	uint32_t in_flight;
	int error;                /* what ended it */
	bool own_error, reported; /* the backend is to be notified; it has been */
	bool cut; /* an operation of it ended with an error: with it for all ranks */
	char why[INA_SHM_TEXT];
	/* the backend's word that it has ended; what came before that in the ring comes first */
	int coming;
	char coming_why[INA_SHM_TEXT];
	/*
	 * a request's answer is that it has ended; why comes by another way, until (ha_clock_live)
	 */
	int refused;
	uint64_t refused_until;
};

/* A piece that has its place in the buffer, and then a request in the backend's hands. */
struct ina_front_asked {
	struct ha_ina_op *op;       /* NULL: it has ended without */
	struct ha_ina_group *group; /* with op */
	size_t index;               /* of the piece, in the order of work */
	uint64_t sequence, offset;
	uint32_t bytes;
	bool used, pushed, emptying;
};

/* Somebody who waits for the backend's word. */
struct ina_front_question {
	LIST_ENTRY(ina_front_question) link;
	uint32_t serial;
	bool answered;
	struct ha_ina_group *group; /* JOIN: goes into the context's list with the answer */
	struct ina_shm_message answer;
};

/* The daemon. `id` and `runs` are open.c's, `idle` is its own, the rest is under the lock. */
struct ina_front_thread {
	pthread_t id;
	bool runs;
	int kick;      /* eventfd: wakes it */
	bool sleeping; /* it wants to be woken */
	unsigned idle; /* rounds without work */
};

/* Groups and what is due at their end; under the lock. */
struct ina_front_groups {
	LIST_HEAD(, ha_ina_group) list;    /* those that the backend knows and nobody has left */
	LIST_HEAD(, ha_ina_group) leaving; /* left here, not at the backend yet */
	bool leave_due;                    /* the socket was full: a LEAVE waits for room */
	bool reason_due;                   /* a group's end waits for its sentence */
	unsigned count;                    /* that have been joined, or are being */
	uint32_t owners; /* numbers that the copy buffer knows them by: the last */
};

/* Callers that wait for the backend's word; under the lock. */
struct ina_front_questions {
	uint32_t serials; /* the last */
	LIST_HEAD(, ina_front_question) list;
};

/* Pieces with a place in the copy buffer, by slot; under the lock. */
struct ina_front_slots {
	struct ina_front_asked asked[INA_SHM_ENTRIES];
	uint32_t free[INA_SHM_ENTRIES], free_count;
	uint64_t sequences; /* the last */
};

/* Ended operations whose function is to be called; under the lock, which the call is without. */
struct ina_front_notify {
	STAILQ_HEAD(, ha_ina_op) list;
	struct ha_ina_op *calling; /* now; it is in no list */
};

struct ha_ina {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* operations ended, questions answered */
	unsigned refs;
	LIST_ENTRY(ha_ina) link; /* in the process's list (open.c) */
	bool loopback, closing, forked;
	struct ina_front_thread thread;
	const int *give_up; /* the caller's (struct ha_ina_options) */
	int error;          /* -ENOTCONN: the backend has gone */
	char error_why[INA_SHM_TEXT];
	uint32_t address;
	struct ina_shm_client client;
	struct ina_shm_memory other; /* loopback: the backend's view */
	struct ina_shm_segment *segment;
	struct ina_shm_buffer buffer;
	struct ina_front_groups groups;
	unsigned ops; /* that have not ended */
	struct ina_front_questions questions;
	struct ina_front_slots slots;
	struct ina_cuda_buffer cuda; /* the copy buffer as CUDA knows it, and the streams */
	unsigned emptying;           /* CUDA: copies of results under way */
	struct ina_front_notify notify;
};

/* ---- calls (any thread) ---- */
/* err, with the sentence that ha_ina_error() gives to this thread. */
int ina_front_fail(struct ha_ina *ctx, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* No sentence yet. */
void ina_front_begin(struct ha_ina *ctx);
/* With the lock. */
void ina_front_kick(struct ha_ina *ctx);
void ina_front_put(struct ha_ina *ctx); /* lets go of the lock, too */
/* Nobody has it any more. */
void ina_front_free(struct ha_ina *ctx);
/* With the lock: what ended this group; the first reason counts. own: the backend is to be
 * notified.
 */
void ina_front_group_fail(struct ha_ina_group *group, int err, bool own, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The backend has taken a rank in, and knows it by this name. */
void ina_front_joined(struct ha_ina_group *group, const struct ina_shm_joined *joined);
/* The same, and nobody waits for it any more: it is left at once. */
void ina_front_joined_late(struct ha_ina *ctx, uint32_t handle);

/*
 * Leaves at the backend: it ends the group for all ranks, and answers what it still has of it.
 * False: the socket is full, try again.
 */
bool ina_front_send_leave(struct ha_ina_group *group);
/* Those that have been left. */
void ina_front_send_leaves(struct ha_ina *ctx);
/* for the backend's answer to a question; less in a test */
extern unsigned ina_front_time_limit_ms;

/* ---- the daemon's (with the lock) ---- */
void *ina_front_daemon(void *ctx);
/* All responses that there are. 1: there were some; 0; -EPROTO: the ring is torn. */
int ina_front_responses(struct ha_ina *ctx);
/* Copies, requests, ends of operations. True: something moved. */
bool ina_front_pump(struct ha_ina *ctx);
/* Loopback: what was asked is answered. */
bool ina_front_loopback(struct ha_ina *ctx);
/* An operation ends: the first of its group. */
void ina_front_end(struct ha_ina_op *op, int result);

/* Piece `index` in the order of work. */
struct ina_front_part ina_front_part(const struct ha_ina_op *op, size_t index);

#endif
