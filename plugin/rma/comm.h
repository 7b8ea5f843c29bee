/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - a communicator from the inside
 *
 * Two connections serve a pair of ranks, one in each direction: a peer is a rank that we write
 * to, a source one that writes to us. Both come into being when they are needed. Everything is
 * under `lock`.
 */
#ifndef HA_RMA_COMM_H
#define HA_RMA_COMM_H

#include "plugin/rma/gdrcopy.h"
#include "plugin/rma/rma.h"
#include "plugin/rma/wire.h"

#include <pthread.h>
#include <sys/queue.h>

/*
 * How soon after a look at the connections another one is worth while, ns. NCCL's proxy calls
 * progress for each of its contexts and ranks in every round, eight times in a row with two ranks.
 */
#define HA_RMA_LOOK_NS 500
#define HA_RMA_BATCH 32 /* records of one source that are applied together */
/*
 * Sources that one call of progress looks at, in turns: NCCL's proxy calls it once for each rank
 * that it writes to, so all of them each time would be the square of the ranks in every round.
 */
#define HA_RMA_SOURCES 16

/* How this process adds to a counter in a window. */
enum ha_rma_reach { HA_RMA_UNREACHED, HA_RMA_DIRECT, HA_RMA_GDRCOPY };

struct ha_rma_window {
	uint32_t number; /* the same at every rank */
	void *addr;
	size_t size;
	int type; /* enum ha_mem_type */
	uint64_t offset;
	int fd; /* of a dma-buf, ours; or -1 */
	unsigned flags;
	enum ha_rma_reach reach;
	struct ha_gdr_pages pages; /* HA_RMA_GDRCOPY: those with counters; under rma's lock */
	struct ha_held *held;      /* keeps it registered between connections */
};

/*
 * WAITING: not posted. POSTED: request is the core's. AWAITED: a get that the other end has been
 * asked for. DONE: the caller's to take.
 *
 *   WAITING ──► POSTED ──► DONE       put
 *   WAITING ──► POSTED ──► AWAITED ──► DONE     get; or from POSTED, when the answer comes first
 */
enum ha_rma_state { HA_RMA_WAITING, HA_RMA_POSTED, HA_RMA_AWAITED, HA_RMA_DONE };

struct ha_rma_op {
	STAILQ_ENTRY(ha_rma_op) link; /* peer's waiting or posted, or rma's unused */
	LIST_ENTRY(ha_rma_op) gets;   /* rma's, of kind get until it is answered */
	uint8_t state;                /* enum ha_rma_state */
	bool is_get, answered;
	bool orphan; /* nobody will test it: it answers a get, and frees itself */
	int rank;
	size_t size;
	struct ha_rma_window *source;
	uint64_t source_offset;
	uint32_t target; /* window there */
	uint64_t target_offset;
	uint64_t id;
	struct ha_rma_record record; /* kind 0: none */
	struct ha_request *request;
};
STAILQ_HEAD(ha_rma_ops, ha_rma_op);

/* Where operations come from; they go with the communicator, tested or not. */
struct ha_rma_slab {
	SLIST_ENTRY(ha_rma_slab) link;
	struct ha_rma_op op[64];
};

/* A rank that we write to. */
struct ha_rma_peer {
	struct ha_send *send; /* NULL: not connected */
	struct ha_mr **mr;    /* by window; NULL where it is not registered with this connection */
	unsigned nmr;
	struct ha_rma_ops waiting, posted; /* in order */
	bool connecting;
	bool busy;   /* on rma's list */
	bool tested; /* a test has looked for completions since progress did */
	TAILQ_ENTRY(ha_rma_peer) link;
};

/* A rank that writes to us; which one, nobody needs to know. */
struct ha_rma_source {
	struct ha_recv *recv;
	struct ha_mr **mr; /* by window */
	unsigned nmr;
	/*
	 * What has been taken and not applied: it waits for reads behind the data that came
	 * before it.
	 */
	struct ha_request *flush;
	const struct ha_rma_window *through; /* whose buffer that reads; NULL: none is under way */
	bool flushed;
	unsigned n;
	struct ha_rma_record record[HA_RMA_BATCH];
	TAILQ_ENTRY(ha_rma_source) link;
};

struct ha_rma_listen {
	struct ha_ctx *ctx;
	int dev;
	struct ha_comm_opts opts;
	struct ha_listen *listen;
	unsigned users; /* NCCL, and the communicator. Under `lock` */
	pthread_mutex_t lock;
};

struct ha_rma {
	pthread_mutex_t lock;
	struct ha_ctx *ctx;
	struct ha_rma_listen *listen;
	int nranks, rank;
	char (*handle)[HA_HANDLE_MAX];
	struct ha_rma_peer *peer;
	TAILQ_HEAD(, ha_rma_peer) busy;      /* have something waiting or posted */
	TAILQ_HEAD(, ha_rma_source) sources; /* the next to look at first */
	unsigned nsources;
	struct ha_rma_window **window; /* by number; NULL: refused, or deregistered */
	unsigned nwindows, room;
	unsigned gpu; /* windows of GPU memory that are registered */
	SLIST_HEAD(, ha_rma_slab) slabs;
	struct ha_rma_ops unused;
	LIST_HEAD(, ha_rma_op) gets;
	uint64_t next_id;
	_Atomic uint64_t looked; /* when progress last looked at connections, ns */
	int error;
};

/* error.c: what comes back is the first error that it was given. */
int ha_rma_fail(struct ha_rma *rma, int err, const char *what);

/* window.c: in no list any more. */
void ha_rma_window_free(struct ha_rma_window *w);
/* window.c: with this connection; *mr stays the connection's. */
int ha_rma_window_on(struct ha_rma_window *w, struct ha_bundle *bundle, struct ha_mr ***mr,
		     unsigned *nmr);
/* window.c: every window with a new source. */
int ha_rma_offer_all(struct ha_rma *rma, struct ha_rma_source *s);
/* window.c: `size` bytes at `offset` lie within; size 0: anything does. */
bool ha_rma_within(const struct ha_rma_window *w, uint64_t offset, uint64_t size);

/* op.c */
struct ha_rma_op *ha_rma_op_new(struct ha_rma *rma);
void ha_rma_op_free(struct ha_rma *rma, struct ha_rma_op *op);
/* op.c: it goes when its turn has come. */
void ha_rma_op_start(struct ha_rma *rma, struct ha_rma_op *op);
/* op.c: answers that were to come from this window say that there is none. */
void ha_rma_refuse_answers(struct ha_rma *rma, const struct ha_rma_window *w);
/* op.c: connect, post, look for completions. */
int ha_rma_peer_step(struct ha_rma *rma, struct ha_rma_peer *peer);

/* source.c: new ones, and what the next HA_RMA_SOURCES of them have brought. */
int ha_rma_sources_step(struct ha_rma *rma);
/* source.c: nothing of it reads this window any more; waits for a read that is under way. */
void ha_rma_source_leave(struct ha_rma_source *s, const struct ha_rma_window *w);
void ha_rma_source_close(struct ha_rma_source *s);

#endif
