/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub.h - a switch in memory behind ops.h, which does to the last segment what a test tells it to
 *
 * Its sums are the exact ones plus HUB_MARK, so they cannot be taken for the ring's. One per
 * process; its calls may come from any thread.
 */
#ifndef HA_TESTS_COLLNET_HUB_H
#define HA_TESTS_COLLNET_HUB_H

#include "plugin/collnet/ops.h"

#define HUB_MARK 0.5f
#define HUB_FOREVER UINT64_MAX

struct hub_rank {
	bool down;      /* no backend: open, and everything in flight, is -ENOTCONN */
	int join_error; /* 0: joins */
	int ended;      /* what its groups say ended them; 0: they live */
	bool hung;      /* its backend answers no question, new or old, until the caller gives up */
	uint64_t limit; /* segments of this group that reach the rank; then nothing comes */
	int fail;       /* errno of its operations when the limit is reached; 0: they stay silent */
	bool at_limit;  /* it fails when all ranks have reached their limits */
};

struct hub {
	struct hub_rank rank[HA_INA_RANKS];
	int create_error;
	unsigned lazy; /* a segment is delivered at every lazy-th look only */
	unsigned groups, opened, ops, joined; /* made so far; open now */
};
extern struct hub hub;
/* A change while calls may be under way, from a thread of theirs. */
#define HUB(...) (hub_lock(), (void)(__VA_ARGS__), hub_unlock())
void hub_lock(void);
void hub_unlock(void);
extern const struct ha_ina_ops hub_ops;

/* As after start: everybody there, everything comes. What is open stays open. */
void hub_reset(void);
/* The backend of rank r, whose address is r + 1. */
const char *hub_backend(unsigned r);

#endif
