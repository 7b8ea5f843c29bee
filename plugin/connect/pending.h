/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending.h - a connection in the making, at either end
 *
 * One state machine with a handler per state (pending.c has the table, connect.c and accept.c the
 * handlers). While its state is not final it belongs to whoever holds ctx->drive. The final state
 * is stored with release; from then on it belongs to the ha_connect or ha_accept that finds it
 * (acquire) and takes it out of its list.
 */
#ifndef HA_PLUGIN_PENDING_H
#define HA_PLUGIN_PENDING_H

#include "plugin/bundle.h"
#include "plugin/channel/oob.h"

#include <stdatomic.h>
#include <sys/queue.h>

struct ha_listen;
struct ha_watch;
struct ha_stream;

enum ha_pending_state {
	/* The connecting end. */
	HA_PENDING_START,      /* make the queue pairs */
	HA_PENDING_DIAL,       /* wait for the moment to dial, dial */
	HA_PENDING_DIALLING,   /* the network is at it */
	HA_PENDING_HELLO_OUT,  /* HELLO is on its way out */
	HA_PENDING_WELCOME_IN, /* WELCOME or REFUSE must come */
	HA_PENDING_OURS,       /* our queue pairs are being connected */
	HA_PENDING_OFFERED,    /* ha_connect must take it */
	HA_PENDING_READY_OUT,  /* READY is on its way out */
	/* The listening end. */
	HA_PENDING_HELLO_IN,    /* anybody may have connected; HELLO with the nonce must come */
	HA_PENDING_THEIRS,      /* the queue pairs for the peer are being connected */
	HA_PENDING_WELCOME_OUT, /* WELCOME is on its way out */
	HA_PENDING_READY_IN,    /* READY must come */
	HA_PENDING_REFUSE_OUT,  /* REFUSE is on its way out, then that was it */
	/* Final. */
	HA_PENDING_UP,
	HA_PENDING_FAILED,
};

struct ha_pending;

/* What each state does, and what becomes of it; one table for each end. */
struct ha_pending_side {
	struct {
		/* Returns the next state, -EAGAIN to stay, or another negative errno to fail. */
		int (*handle)(struct ha_pending *p);
		const char *doing; /* for the line that says why it failed */
	} state[HA_PENDING_UP];
	/* It is up, and has been handed over. NULL: nobody needs to be notified. */
	void (*up)(struct ha_listen *listen);
	/* It has failed, and is to be freed. NULL: ha_connect does that. */
	void (*failed)(struct ha_pending *p);
};

struct ha_pending {
	_Atomic int state; /* enum ha_pending_state */
	int error;         /* FAILED: the negative errno for the caller */
	const struct ha_pending_side *side;
	struct ha_ctx *ctx;
	struct ha_listen *listen; /* NULL at the connecting end */
	struct ha_stream *stream;
	struct ha_bundle *bundle;
	/* in ctx->setup.driven, or ctx->setup.incoming before; in neither once its state is final
	 */
	LIST_ENTRY(ha_pending) driven;
	LIST_ENTRY(ha_pending)
	entry;                  /* in ctx->setup.connects or listen->accepts, under ctx->lock */
	uint64_t deadline;      /* when the time limit ends */
	uint64_t dial_at;       /* DIAL: not before */
	uint32_t dials;         /* attempts so far */
	int dial_error;         /* of the last one */
	uint64_t refused_since; /* the first refusal of a row; 0 = none */
	bool runnable;          /* its socket has something, or it is new */
	bool unauthenticated;   /* has not shown the nonce */
	bool explained;         /* the log has said why already */
	bool taken;             /* by the call of ha_connect that returns it */
	bool untaken;           /* it has failed before that */
	const void *key;        /* where the caller keeps the handle */
	struct ha_wire_handle handle;
	int dev;
	struct ha_comm_opts opts;
	char who[HA_OOB_NAME_MAX];
	char why[192];
};

/* A new one in its first state; the caller puts it into ctx->setup.incoming or ctx->setup.driven.
 * NULL: no memory. */
struct ha_pending *ha_pending_new(struct ha_ctx *ctx, const struct ha_pending_side *side,
				  enum ha_pending_state state, uint64_t limit_ms);
/* With what it has; in no list any more. */
void ha_pending_free(struct ha_pending *p);
/* Remember the reason for the line that a failure writes; returns err. */
int ha_pending_why(struct ha_pending *p, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Take it from the driver; under ctx->drive, and ctx->lock where it may be in ctx->setup.incoming.
 */
void ha_pending_forget(struct ha_pending *p);

/* Every pending connection that can move moves. Under ctx->drive. Returns when the next one must be
 * looked at (ns of the context's clock, UINT64_MAX = when a socket says so). */
uint64_t ha_pending_drive(struct ha_ctx *ctx);
/* The same for one of them, in ctx->setup.driven, whether its socket has something or not. */
void ha_pending_push(struct ha_pending *p);
/* ready() of a pending connection's stream. */
void ha_pending_ready(struct ha_watch *watch, uint32_t events);
/* done() of its queue pairs. */
void ha_pending_connected(void *pending);

#endif
