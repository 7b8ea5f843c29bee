/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle.h - a connection as its data path sees it: rails, slots, requests
 *
 * A slot is one receive (of up to eight grouped buffers) and what was sent into it. Both ends
 * number slots alike, from 0 upwards; slot `idx` is in entry idx % HA_SLOTS of every ring. A
 * request is not allocated: it lies in its slot, and a slot that somebody still holds simply cannot
 * be used again, which isend and irecv report as "not now".
 *
 * Owner: the thread that NCCL calls us from. The driver (service.h) reaches a bundle through
 * `attention`, one word that every call reads, and works in it only while the owner is kept out
 * (guard.h).
 */
#ifndef HA_PLUGIN_BUNDLE_H
#define HA_PLUGIN_BUNDLE_H

#include "plugin/balance/balance.h"
#include "plugin/channel/wire.h"
#include "plugin/core.h"
#include "plugin/device/mr.h"
#include "plugin/device/rail.h"
#include "plugin/device/send_queue.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct ha_failover;
struct ha_link;
struct ha_schedule;

enum ha_req_kind { HA_REQ_SEND = 1, HA_REQ_RECV, HA_REQ_FLUSH };

/* What isend, irecv and iflush hand out. */
struct ha_request {
	uint8_t kind;     /* enum ha_req_kind */
	uint8_t done;     /* nothing more will happen to it */
	uint8_t member;   /* send: which buffer of the group */
	uint8_t entry;    /* its slot: number in the ring */
	uint32_t pending; /* flush: mask of the rails that have not answered */
	struct ha_bundle *bundle;
	/* A send's own data; a receive keeps them per buffer in its slot. */
	void *data;
	uint64_t size;
	struct ha_mr *mr;
};
static_assert(sizeof(struct ha_request) == 40, "small, because there are thousands");

/* completions fetched by one poll at most: the range of HA_NCCL_POLL_BATCH */
#define HA_POLL_BATCH_MAX 256

/* bits of ha_bundle.attention */
enum {
	HA_ATTN_HELD = 1,  /* the driver is inside: stay out */
	HA_ATTN_DRIVE = 2, /* there is work for the driver */
	HA_ATTN_ERROR = 4, /* b->error is set */
	HA_ATTN_DOUBT = 8, /* optional receives whose data may still be on its way (recv.c) */
	/* sends complete on the receiver's delivery count: every call writes or reads it
	   (delivery.c) */
	HA_ATTN_DELIVERY = 16,
};

/* How a caller that waits looks for completions. */
struct ha_polling {
	/* mask: those that every poll asks; the others are asked now and then. policy.c keeps it */
	uint8_t rails;
	bool always; /* HA_NCCL_POLL_ALWAYS: whoever waits polls, also where memory would show it */
	uint16_t idle;       /* fruitless polls since the last look around */
	uint16_t idle_limit; /* of them, until the next: HA_NCCL_POLL_STANDBY_INTERVAL */
	uint16_t batch;      /* HA_NCCL_POLL_BATCH */
	uint16_t most;       /* HA_NCCL_TEST_MAX_POLL */
	uint16_t quota;      /* of it, for each of `rails` */
	uint16_t want;       /* of that, with one call */
	/* `rails` again, up to a NULL: a poll follows it and computes nothing */
	struct ha_rail *list[HA_MAX_RAILS + 1];
};

/* An end with an error: every rail is fenced before the application sees it. */
struct ha_abort {
	int error;     /* the errno that the connection will end with; 0: none */
	uint8_t cause; /* enum ha_event_cause */
	bool quiet;    /* no event is reported: the peer has closed in order */
	bool due;      /* ABORT must be sent to the peer */
	int held; /* the errno that it will end with unless the peer closes before held_until */
	uint64_t held_until; /* ns */
	char text[400];      /* the advice is at its end: a line that is cut has none */
};

/* Requests that the peer's NIC refused, or our own for a buffer that has been given back. */
struct ha_refused {
	_Atomic uint64_t at; /* the last one, ns; 0 = none was. Read by whoever reports */
	uint64_t slot; /* 1 + the oldest slot that was open when it last did; 0 = it has not */
	uint8_t rails; /* on these rails, since that slot is the oldest */
};

/* What both ends agreed on when the connection was made. */
struct ha_terms {
	uint64_t nonce;
	uint32_t flags;    /* HA_FLAG_* that both ends have */
	uint32_t offers;   /* HA_FLAG_* that this end has */
	uint16_t version;  /* of the protocol */
	int traffic_class; /* -1: none asked for */
	/* NCCL_IB_OOO_RQ: its queue pairs take messages in any order; once settled as
	 * HA_FLAG_UNORDERED */
	bool unordered;
};

struct ha_bundle {
	/* What a message touches. */
	_Atomic uint32_t attention; /* HA_ATTN_* */
	atomic_bool inside;         /* the owner is; guard.h */
	bool own_barrier;           /* no membarrier(2) here: the owner pays for a barrier */
	bool is_send;
	/* GPU memory was registered, so its flushes have queue pairs. Any thread that registers */
	atomic_bool flushable;
	uint8_t nrails;
	uint8_t active;   /* mask of the rails that are up */
	uint16_t await;   /* HA_AWAIT_DELIVERY, or 0: what a send waits for beside its stripes */
	bool peer_closed; /* the peer said BYE */
	int error;        /* 0, or the negative errno that ends every request */
	struct ha_polling poll;
	uint64_t peer_ring; /* address of the peer's ring memory */
	/* ours: CTS ring of a sender, sizes ring of a receiver, then board and staging area */
	void *ring;
	struct ha_ctx *ctx;
	struct ha_balance balance;
	struct ha_rail rail[HA_MAX_RAILS];
	struct ha_registered registered;
	struct ha_terms terms;
	/*
	 * HA_FLAG_ACK_MEMORY, HA_FLAG_ONE_SIDED: the count that the receiver last sent, or that the
	 * sender has acted on
	 */
	uint64_t delivered_sent;
	size_t ring_size;
	atomic_bool closing; /* its queue pairs go: events about them are nobody's any more */
	LIST_ENTRY(ha_bundle) entry; /* in ctx->bundles, under ctx->drive */
	/* What other rooms keep of it lies behind it in the same memory (connect/rooms.h). A round
	 * goes from `entry` to `schedule`. */
	struct ha_schedule *schedule; /* channel/schedule.h */
	struct ha_link *link;         /* channel/link.h */
	struct ha_failover *failover; /* failover/control.h */
	struct ha_abort *abort;
	struct ha_refused *refused;
	uint8_t against; /* enum ha_status_against, as it was last reported */
	uint16_t status; /* its record of the status page, counted from 1; the journal's own */
	char name[160];  /* "mlx5_0:1 -> host[1234] mlx5_2:1", for log lines */
};

#define HA_AWAIT_DELIVERY \
	0x100 /* in ha_send_slot.pending: the receiver's delivery count is missing */
#define HA_WORK_COPIED (1ULL << 48) /* in ha_send_slot.work: copied */

struct ha_send_slot {
	uint64_t idx; /* absolute index of the receive it serves */
	uint8_t n;    /* buffers of the receive; 0 = no request here */
	uint8_t have; /* mask of the buffers whose send has come */
	uint8_t held; /* mask of the requests that NCCL still holds */
	uint8_t open; /* being gathered: at the head, not posted yet */
	union {
		struct {
			/* mask of the stripes that have not completed; HA_AWAIT_DELIVERY */
			uint16_t pending;
			/* of the stripes that make the message; each is called after the rail it
			 * was cut for */
			uint8_t mask;
			/* of them: the peer has said, when the rail that carried it was fenced,
			 * that it has seen it */
			uint8_t settled;
			/* of them: another rail carries it now; carrier[] says which */
			uint8_t moved;
			uint8_t parked; /* of them: no rail carries it */
			/* its data lies in the slot's copy (HA_COPY_SLOT_SIZE), and the request was
			 * complete when it was posted */
			bool copied;
		};
		/*
		 * all of the above, for one store: pending in the low 16 bits, mask in the next 8,
		 * copied in HA_WORK_COPIED
		 */
		uint64_t work;
	};
	uint8_t carrier[HA_MAX_RAILS];
	uint16_t weight[HA_MAX_RAILS]; /* that it was cut by, when there are several stripes */
	struct ha_request req;         /* of its first buffer */
	struct ha_request *more;       /* of the others: HA_MAX_RECVS - 1 */
};

struct ha_send {
	struct ha_bundle b;
	uint64_t head;        /* absolute index of the next receive to serve */
	uint32_t polls_seen;  /* of the device, when a send last found no receive */
	uint32_t copy_max;    /* bytes of a send that is copied: HA_NCCL_COPY_MAX; 0: none is */
	struct ha_puts *puts; /* one_sided.h; NULL: it is not */
	/* the process ends: 1 + the send before which copied ones are waited for; 1: none is, any
	 * more; 0: not known yet. Under ctx->drive (drain.c) */
	uint64_t awaited;
	struct ha_send_slot slot[HA_SLOTS];
	/* Not in the slots: a connection whose receives are never grouped does not touch this
	 * memory. Neither zeroed nor prepared before a group is opened (send.c). */
	struct ha_request more[HA_SLOTS][HA_MAX_RECVS - 1];
};

/* Of buffer m. Not const, as strchr()'s result is not: a caller that may change the slot may change
 * this. */
static inline struct ha_request *ha_send_request(const struct ha_send_slot *slot, unsigned m)
{
	return m ? &slot->more[m - 1] : (struct ha_request *)&slot->req;
}

/* bits of ha_recv_slot.busy; the slot is free when none is left */
enum {
	HA_SLOT_WIRE = 1,     /* the data has not all arrived */
	HA_SLOT_HELD = 2,     /* NCCL still holds the request */
	HA_SLOT_OPTIONAL = 4, /* with WIRE: the data alone shows it to the application */
	/* with WIRE: a rail was fenced meanwhile; part of the data may come a second time */
	HA_SLOT_DOUBT = 8,
	/* what goes when all is here */
	HA_SLOT_ARRIVED = HA_SLOT_WIRE | HA_SLOT_OPTIONAL | HA_SLOT_DOUBT,
};

/* A buffer as it was posted: for flushes, and to write the CTS again after a fault. */
struct ha_recv_buffer {
	void *data;
	uint64_t size;
	struct ha_mr *mr;
	uint32_t tag;
};

struct ha_recv_slot {
	uint64_t idx;
	/* identity that immediates for this slot carry; spoiled from the first stripe on */
	uint32_t imm;
	/* what its immediates have in common: the identity, never spoiled, and the mask of several
	 * stripes from the first one on */
	uint32_t common;
	uint8_t busy; /* HA_SLOT_* */
	uint8_t n;
	uint8_t seen;     /* mask of the stripes that arrived, where there are several */
	uint8_t missing;  /* of them, those that have not, from the first one on */
	uint8_t sized;    /* lengths are in the sizes ring */
	uint8_t cts_rail; /* that carries the clear-to-send */
	bool cts_parked;  /* none does: it must be written again */
	uint64_t bytes;   /* arrived, when not sized */
	struct ha_request req;
	struct ha_recv_buffer buf;   /* the first */
	struct ha_recv_buffer *more; /* the others: HA_MAX_RECVS - 1 */
	char unused[16];
};
static_assert(sizeof(struct ha_recv_slot) == 128, "a slot's address is computed by a shift");

#define HA_FLUSHES 32 /* iflush requests in flight on one connection */

struct ha_recv {
	struct ha_bundle b;
	uint64_t head; /* absolute index of the next receive */
	uint64_t done; /* every receive below has arrived whole; BYE carries it */
	/* optional receives that were called complete because their data had been used (fence.c) */
	unsigned superseded;
	uint32_t cts_unsignalled, cts_signal; /* one in cts_signal asks for a completion */
	uint32_t flush_busy;                  /* mask of flush[] in use */
	struct ha_takes *takes;               /* one_sided.h; NULL: it is not */
	struct ha_request flush[HA_FLUSHES];
	struct ha_recv_slot slot[HA_SLOTS];
	struct ha_recv_buffer more[HA_SLOTS][HA_MAX_RECVS - 1]; /* as a sender's */
};

static inline struct ha_recv_buffer *ha_recv_buffer(const struct ha_recv_slot *slot, unsigned m)
{
	return m ? &slot->more[m - 1] : (struct ha_recv_buffer *)&slot->buf;
}

static inline bool ha_recv_overlaps(const struct ha_recv_buffer *buf, const void *data,
				    uint64_t size)
{
	return (const char *)buf->data < (const char *)data + size &&
	       (const char *)data < (const char *)buf->data + buf->size;
}

/* Memory of the ring blocks: what the peer writes comes first, then our staging copies that we
 * write to the peer from. */
#define HA_SEND_STAGED (HA_SENDER_BOARD + sizeof(struct ha_board))
#define HA_RECV_STAGED (HA_RECEIVER_BOARD + sizeof(struct ha_board))
#define HA_SEND_COPIES (HA_SEND_STAGED + sizeof(struct ha_board) + HA_SIZES_RING_SIZE)
#define HA_COPY_SLOT_SIZE 64 /* the range of HA_NCCL_COPY_MAX */
#define HA_SEND_RING_SIZE (HA_SEND_COPIES + HA_SLOTS * HA_COPY_SLOT_SIZE)
#define HA_RECV_LANDING (HA_RECV_STAGED + sizeof(struct ha_board)) /* of the reads that flush */
/* Clear-to-sends: a place for what is posted inline, which the work request copies, then one for
 * each slot. Where every clear-to-send goes inline the others are neither registered nor
 * touched. */
#define HA_RECV_CTS (HA_RECV_LANDING + HA_FLUSHES * sizeof(uint64_t))
#define HA_RECV_INLINE_SIZE (HA_RECV_CTS + HA_CTS_SLOT_SIZE)
#define HA_RECV_RING_SIZE (HA_RECV_INLINE_SIZE + HA_CTS_RING_SIZE)

/* For the driver, which waits for no registration. False: one is under way. */
static inline bool ha_bundle_try_mr(struct ha_bundle *b)
{
	return !pthread_mutex_trylock(&b->registered.lock);
}

/* The address, in a register from here on: the compiler would rather compute it from an index
 * before each use. */
#define HA_KEEP(pointer)                               \
	({                                             \
		__typeof__(pointer) kept_ = (pointer); \
		__asm__("" : "+r"(kept_));             \
		kept_;                                 \
	})

/* No stripe of this slot is missing any more, and no word. */
static inline void ha_send_settled(struct ha_send_slot *slot)
{
	slot->pending = 0;
	for (unsigned m = 0; m < slot->n; m++)
		ha_send_request(slot, m)->done = 1;
}

static inline void ha_bundle_note_refusal(struct ha_bundle *b, uint64_t now)
{
	atomic_store_explicit(&b->refused->at, now, memory_order_relaxed);
}

/* Where a slot's data is kept that its request does not wait for. */
static inline void *ha_send_copy(const struct ha_send *s, unsigned entry)
{
	return (char *)s->b.ring + HA_SEND_COPIES + entry * HA_COPY_SLOT_SIZE;
}

static inline struct ha_cts *ha_send_cts(const struct ha_send *s, uint64_t idx)
{
	return (struct ha_cts *)((char *)s->b.ring + idx % HA_SLOTS * HA_CTS_SLOT_SIZE);
}

/* send.c, recv.c: fill what never changes in slots and requests; before the first request. */
void ha_send_prepare(struct ha_send *s);
void ha_recv_prepare(struct ha_recv *c);
/* And in the prebuilt work request of a rail, at the start of each of its incarnations. */
void ha_send_prepare_rail(struct ha_send *s, struct ha_rail *r);
void ha_recv_prepare_rail(struct ha_recv *c, struct ha_rail *r);

/* send.c: how many sends below `end` were complete when they were posted and are not acknowledged.
 * Owner, or driver with the bundle taken. */
unsigned ha_send_copies(const struct ha_send *s, uint64_t end);
/* send.c: post a stripe that is parked. -EAGAIN: no rail has room, or keys, for it now. */
int ha_send_replay(struct ha_send *s, struct ha_send_slot *slot, unsigned stripe, uint64_t *bytes);
/* recv.c: write a clear-to-send again that is parked. -EAGAIN as above. */
int ha_recv_replay(struct ha_recv *c, struct ha_recv_slot *slot);

/* complete.c: poll the polled rails once or more, at most b->poll.most completions in all; returns
 * how many there were. */
int ha_bundle_poll(struct ha_bundle *b);
/* complete.c: nothing has come for a while: look where a poll does not look each time. True: it is
 * time for a round. */
bool ha_bundle_look_around(struct ha_bundle *b);
/* complete.c: a call that posts could not, and has polled. Without a service thread nobody but the
 * calls may be left to look why: now and then the next one makes a round, before it is inside. */
void ha_bundle_count_idle(struct ha_bundle *b);
/* complete.c: the same of one rail, whatever its state. */
int ha_rail_poll(struct ha_bundle *b, struct ha_rail *r);
/* delivery.c: with HA_ATTN_DELIVERY, send the peer how far we are, or take what it sends. Owner or
 * driver. */
void ha_bundle_delivery(struct ha_bundle *b);
/* complete.c: everything of this receive is here (or counts as such). */
void ha_recv_arrived(struct ha_recv *c, struct ha_recv_slot *slot);
/* delivery.c: every receive below count is complete. */
void ha_delivery_take(struct ha_send *s, uint64_t count);
#endif
