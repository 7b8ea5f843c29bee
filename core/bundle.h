/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle.h - a connection as its data path sees it: rails, slots, requests
 *
 * A slot is one receive (of up to eight grouped buffers) and what was sent into it. Both ends number slots alike, from 0
 * upwards; slot `idx` lives in entry idx % HA_SLOTS of every ring. A request is not allocated: it lies in its slot, and a
 * slot that somebody still holds simply cannot be used again, which isend and irecv report as "not now".
 *
 * Owner: the thread that NCCL calls us from, alone. The service thread and the peer's death reach a bundle only through
 * `attention`, one word that every test() reads.
 */
#ifndef HA_CORE_BUNDLE_H
#define HA_CORE_BUNDLE_H

#include "core/core.h"
#include "core/wire.h"
#include "verbs/ops.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

struct ha_device;
struct ha_stream;

enum ha_req_kind { HA_REQ_SEND = 1, HA_REQ_RECV, HA_REQ_FLUSH };

/* What isend, irecv and iflush hand out. */
struct ha_request {
	uint8_t kind;	/* enum ha_req_kind */
	uint8_t done;	/* nothing more will happen to it */
	uint8_t member; /* send: which buffer of the group */
	uint8_t entry;	/* its slot: number in the ring */
	uint32_t pending; /* flush: mask of the rails that have not answered */
	struct ha_bundle *bundle;
	/* A send's own data; a receive keeps them per buffer in its slot. */
	void *data;
	uint64_t size;
	struct ha_mr *mr;
};
static_assert(sizeof(struct ha_request) == 40, "small, because there are thousands");

enum ha_rail_state {
	HA_RAIL_NONE, /* not there */
	HA_RAIL_INIT, /* queue pair made, peer unknown */
	HA_RAIL_UP,   /* ready to send */
	HA_RAIL_DOWN, /* queue pair in error or gone */
};

#define HA_POLL_BATCH_MAX 256 /* completions fetched by one poll at most: the range of HA_NCCL_POLL_BATCH */

/* One path: one queue pair and its completion queue. The first lines are what a message touches. */
struct ha_rail {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	const struct ha_verbs_hot *hot;
	struct ha_device *dev;
	uint32_t sq_posted;  /* work requests ever posted, modulo 2^32 */
	uint32_t sq_retired; /* of them, known to be out of the send queue */
	uint32_t sq_depth;
	uint32_t rq_debt;      /* receives consumed from the device's shared queue and not yet given back */
	uint32_t ring_rkey;    /* of the peer's ring memory, on this rail */
	uint32_t ring_lkey;    /* of ours */
	uint32_t max_inline;
	uint32_t imm_whole;    /* what the immediate says of a message that this rail carries alone */
	uint32_t max_msg;      /* bytes one work request may carry */
	uint32_t single_max;   /* bytes that may travel in one work request together with their immediate */
	uint16_t weight;       /* parts per 1024 */
	uint8_t index;
	uint8_t state; /* enum ha_rail_state */
	uint32_t epoch;
	/* The one-buffer work request of this side (a send's data, a receive's CTS), filled once but for its variable fields. */
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	/* Below: set-up only. */
	uint32_t psn;
	uint32_t probe; /* sq_posted of the last probe */
	struct ibv_mr *ring_mr;
	struct ha_wire_rail peer;
	struct ha_wire_ece ece; /* ours: offered, then agreed on */
	struct ibv_qp *flush_qp; /* loop-back queue pair of a receiver that must flush GPU memory */
	struct ibv_cq *flush_cq;
};

enum { /* bits of ha_bundle.attention */
	HA_ATTN_PEER_DEAD = 1,	/* the peer is gone for good: its socket ended without a farewell and its rail is mute */
	HA_ATTN_PEER_BYE = 2,	/* the peer closed its end; peer_done says how far it got */
	HA_ATTN_DEVICE = 4,	/* look at the devices under the rails: one has failed for good (ha_device.failed) */
	HA_ATTN_NO_RAIL = 8,	/* set by the owner itself: no rail is left */
	HA_ATTN_PROBE = 16,	/* the socket is lost in a way that says nothing about the peer: do its rails answer? */
};

struct ha_bundle {
	_Atomic uint32_t attention; /* set by the service thread (release), read by every test() (relaxed) */
	int error;		    /* 0, or the negative errno that ends every request */
	uint64_t bye_deadline;	    /* when the wait for messages that a closed peer had sent ends; 0 = no farewell seen */
	uint8_t nrails;
	uint8_t active; /* mask of the rails that are up */
	uint8_t first;	/* the rail for what stays on one: the heaviest of the active; policy.c keeps it */
	bool is_send;
	bool probing;	     /* HA_ATTN_PROBE has been acted on, the answers are awaited */
	bool self_driven;    /* no service thread: test() calls ha_ctx_progress() now and then */
	uint16_t idle_polls; /* fruitless polls, for self_driven */
	uint16_t poll_batch; /* HA_NCCL_POLL_BATCH */
	uint16_t poll_max;   /* HA_NCCL_TEST_MAX_POLL */
	uint64_t stripe_min; /* messages below this many bytes stay on one rail; UINT64_MAX: all do; policy.c keeps it */
	uint64_t peer_ring;  /* address of the peer's ring memory */
	void *ring;	     /* ours: CTS ring of a sender, sizes ring of a receiver, then its staging area */
	_Atomic uint64_t peer_done; /* valid with HA_ATTN_PEER_BYE */
	struct ha_ctx *ctx;
	struct ha_rail rail[HA_MAX_RAILS];
	/* Below: set-up, service thread and close only. */
	struct ha_stream *stream; /* to the peer, out of band; NULL once it has ended */
	struct ha_bundle *next, **pprev; /* in ctx->bundles, under ctx->drive */
	struct ha_mr *mrs; /* registered on this connection, under mr_lock */
	pthread_mutex_t mr_lock;
	size_t ring_size;
	uint64_t nonce;
	uint32_t flags;	  /* HA_FLAG_* that both ends have */
	uint16_t version; /* protocol agreed on */
	int traffic_class; /* -1: none asked for */
	uint16_t status; /* its record of the status page, counted from 1; the journal's own */
	char name[160]; /* "mlx5_0:1 -> host[1234] mlx5_2:1", for log lines */
};

struct ha_send_slot {
	uint64_t idx;	 /* absolute index of the receive it serves */
	uint8_t n;	 /* buffers of the receive; 0 = no request here */
	uint8_t have;	 /* mask of the buffers whose send has come */
	uint8_t held;	 /* mask of the requests that NCCL still holds */
	uint8_t pending; /* mask of the rails whose stripe has not completed */
	uint8_t open;    /* being gathered: at the head, not posted yet */
	struct ha_request req[HA_MAX_RECVS];
};

struct ha_send {
	struct ha_bundle b;
	uint64_t head; /* absolute index of the next receive to serve */
	struct ha_send_slot slot[HA_SLOTS];
};

enum { /* bits of ha_recv_slot.busy; the slot is free when none is left */
	HA_SLOT_WIRE = 1, /* the data has not all arrived */
	HA_SLOT_HELD = 2, /* NCCL still holds the request */
};

struct ha_recv_slot {
	uint64_t idx;
	uint32_t imm; /* identity that immediates for this slot carry; spoiled from the first stripe on */
	uint8_t busy; /* HA_SLOT_* */
	uint8_t n;
	uint8_t seen;  /* mask of the stripes that arrived */
	uint8_t mask;  /* mask of the stripes that make the message; 0 = none has arrived yet */
	uint8_t sized; /* lengths are in the sizes ring */
	uint64_t bytes; /* arrived, when not sized */
	struct ha_request req;
	struct { /* what was posted: for flushes, and to write the CTS again after a fault */
		void *data;
		uint64_t size;
		struct ha_mr *mr;
		uint32_t tag;
	} buf[HA_MAX_RECVS];
};

#define HA_FLUSHES 32 /* iflush requests in flight on one connection */

struct ha_recv {
	struct ha_bundle b;
	uint64_t head;	   /* absolute index of the next receive */
	uint64_t done;	   /* every receive below has arrived whole; BYE tells it */
	uint32_t cts_unsignalled;
	uint32_t flush_busy; /* mask of flush[] in use */
	struct ha_request flush[HA_FLUSHES];
	struct ha_recv_slot slot[HA_SLOTS];
};

/* Memory of the ring blocks: what the peer writes comes first, then our staging copies that we write to the peer from. */
#define HA_SEND_RING_SIZE (HA_CTS_RING_SIZE + HA_SIZES_RING_SIZE)
#define HA_RECV_RING_SIZE (HA_SIZES_RING_SIZE + HA_CTS_RING_SIZE + HA_FLUSHES * sizeof(uint64_t))

static inline struct ha_cts *ha_send_cts(const struct ha_send *s, uint64_t idx)
{
	return (struct ha_cts *)((char *)s->b.ring + idx % HA_SLOTS * HA_CTS_SLOT_SIZE);
}

/* What a work request's wr_id says: kind of work, ring entry, and how far the send queue had come when it was posted. */
enum ha_wr_kind { HA_WR_DATA = 1, HA_WR_CTS, HA_WR_FLUSH, HA_WR_PROBE };

#define HA_CTS_SIGNAL 32 /* one CTS in so many asks for a completion, so that the send queue is known to drain */

static inline uint64_t ha_wr_id(enum ha_wr_kind kind, unsigned entry, uint32_t sq_posted)
{
	return (uint64_t)sq_posted << 32 | (unsigned)kind << 16 | entry;
}

/* send.c, recv.c: fill what never changes in slots, requests and prebuilt work requests. For the set-up, once the rails'
 * hot fields, the ring memory and the peer's parameters are known and before the first request. */
void ha_send_prepare(struct ha_send *s);
void ha_recv_prepare(struct ha_recv *c);

/* complete.c: poll every rail once or more, at most b->poll_max completions in all; returns how many there were. */
int ha_bundle_poll(struct ha_bundle *b);
/* complete.c: something set `attention`; act on it. Returns b->error. */
int ha_bundle_attend(struct ha_bundle *b);
/* complete.c: a work request of rail r failed, or posting on it did. */
void ha_rail_failed(struct ha_bundle *b, struct ha_rail *r, const struct ibv_wc *wc, int err);

#endif
