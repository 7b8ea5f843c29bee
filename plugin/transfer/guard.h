/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - one at a time inside a connection: its owner, many million times a second, or the
 * driver, now and then
 *
 * The owner pays a store on the way in and one on the way out, and reads `attention`, which it
 * would read anyway: no lock, no atomic read-modify-write. The driver pays for both: it raises
 * HA_ATTN_HELD, has the kernel run a memory barrier on every processor that runs a thread of this
 * process (membarrier(2)), and then looks whether the owner is inside. Either the owner's store is
 * visible by then, or the owner's later load sees HA_ATTN_HELD; the two cannot miss each other. An
 * owner that finds the connection held says "not now", as if the network were busy.
 */
#ifndef HA_PLUGIN_GUARD_H
#define HA_PLUGIN_GUARD_H

#include "plugin/bundle.h"

enum ha_entry {
	HA_ENTERED,      /* inside */
	HA_ENTERED_LOOK, /* inside, and something asks for attention: look at b->error at least */
	HA_NOT_NOW,      /* not inside */
};

/* Once per process; called by every context. False: every owner must pay for a barrier of its
 * own. */
bool ha_guard_init(void);

/* Something asks for attention. Without a service thread this is where the driver's round runs. */
enum ha_entry ha_bundle_enter_slow(struct ha_bundle *b);

static inline void ha_guard_in(struct ha_bundle *b)
{
	atomic_store_explicit(&b->inside, true, memory_order_relaxed);
	if (__builtin_expect(b->own_barrier, false))
		(void)atomic_exchange_explicit(&b->inside, true, memory_order_seq_cst);
	else
		/* the compiler keeps the order, membarrier does the rest */
		atomic_signal_fence(memory_order_seq_cst);
}

static inline void ha_bundle_leave(struct ha_bundle *b)
{
	/* Release: pairs with ha_bundle_claimed's acquire; what the owner did inside is visible to
	 * the driver. */
	atomic_store_explicit(&b->inside, false, memory_order_release);
}

/* Owner only. False: go on with ha_bundle_enter_slow. */
static inline bool ha_bundle_enter_fast(struct ha_bundle *b)
{
	ha_guard_in(b);
	/* Pairs with ha_bundle_give's release: what the driver did is visible to the owner; and
	 * with ha_bundle_claim. */
	return __builtin_expect(atomic_load_explicit(&b->attention, memory_order_seq_cst) == 0,
				true);
}

/* Owner only. Anything but HA_NOT_NOW must be followed by ha_bundle_leave. */
static inline enum ha_entry ha_bundle_enter(struct ha_bundle *b)
{
	return ha_bundle_enter_fast(b) ? HA_ENTERED : ha_bundle_enter_slow(b);
}

/* Has the peer closed in order? Then posts are taken for ever, and test() fails. After
 * HA_ATTN_ERROR was seen. */
static inline bool ha_bundle_closed(const struct ha_bundle *b)
{
	return b->error && b->abort->quiet;
}

/* What a call that may not enter returns: an error stays one, whoever is inside. */
static inline int ha_bundle_shut(const struct ha_bundle *b)
{
	/* Acquire: pairs with the release that sets the bit; the error does not change behind
	 * it. */
	bool over = atomic_load_explicit(&b->attention, memory_order_acquire) & HA_ATTN_ERROR;

	return over && !ha_bundle_closed(b) ? b->error : 0;
}

/*
 * Driver only, under ctx->drive. Claim as many as there is work for, then one barrier for all of
 * them, then ask of each: true, and it is the driver's until it gives it back; or false, and it has
 * been given back already: the owner is inside and does not come out at once, try again soon.
 */
void ha_bundle_claim(struct ha_bundle *b);
void ha_guard_barrier(const struct ha_ctx *ctx);
bool ha_bundle_claimed(struct ha_bundle *b);
void ha_bundle_give(struct ha_bundle *b);

#endif
