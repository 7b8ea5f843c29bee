/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.h - registered memory: one buffer of one connection, and the per-device cache of registrations
 * behind it */
#ifndef HA_PLUGIN_MR_H
#define HA_PLUGIN_MR_H

#include "plugin/core.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct ha_bundle;
struct ha_opening;
struct ha_mr_cache;
struct ha_dmabuf;
struct ha_mr_entry; /* one ibv_mr on one protection domain, counted; see mr_cache.c */

#define HA_MR_FORCE_SO 1u /* NCCL_NET_MR_FLAG_FORCE_SO: writes must appear in order */

/* What is to be registered. Entries are equal when these are, `fd` and `offset` apart: see
 * mr_cache.c. */
struct ha_mr_want {
	uintptr_t addr; /* page-aligned unless dmabuf */
	size_t size;
	uint64_t offset; /* in the dma-buf */
	int fd;
	bool dmabuf;
	bool strict; /* no relaxed ordering */
	uint8_t type;
};

/* Keys by rail index; 0 = not registered on that rail's device (yet). */
struct ha_mr {
	uint32_t lkey[HA_MAX_RAILS];
	uint32_t rkey[HA_MAX_RAILS];
	uint8_t type; /* enum ha_mem_type */
	void *addr;
	size_t size;
	struct ha_mr_entry *entry[HA_MAX_RAILS];
	/* for devices that it is registered on later; its descriptor is that of `kept`, or -1 */
	struct ha_mr_want want;
	/* NULL: not a dma-buf, no other rail will want it, or no descriptor was left */
	struct ha_dmabuf *kept;
	LIST_ENTRY(ha_mr) link; /* in its bundle's list, under registered.list_lock */
};

/* Of a connection. */
struct ha_registered {
	/* Registrations, deregistrations, and what else is slow on a rail's device: held across
	 * slow verbs, so the driver never waits for it (ha_bundle_try_mr). */
	pthread_mutex_t lock;
	/* The list alone, and that what is on it is not given back; for moments, within `lock` or
	 * without. */
	pthread_mutex_t list_lock;
	LIST_HEAD(, ha_mr) list;
	/* Mask of the rails on whose device every buffer is registered. Changed under `lock`; the
	 * driver also looks without. */
	_Atomic uint8_t rails;
	/* Mask of those that a send waits for: the peer has sent keys there, and this end has none.
	 */
	_Atomic uint8_t wanted;
	_Atomic uint64_t given_back_at; /* when the last buffer was, ns; 0 = none was */
};

/* Is it one that the connection still has? For receives and sends whose buffer may have been given
 * back while they were in flight, which nobody should do and some do before they close. NULL is
 * not. Under registered.list_lock, until it is no longer used. */
bool ha_mr_known(const struct ha_bundle *b, const struct ha_mr *mr);

/* At the end of a connection: registrations that their user has not given back. */
void ha_bundle_free_mrs(struct ha_bundle *b);

/* What an operator can do when it cannot be registered on another device. */
const char *ha_mr_advice(const struct ha_mr *mr);

/* limit: registrations kept that nobody uses any more. */
struct ha_mr_cache *ha_mr_cache_new(struct ha_opening *opening, unsigned limit);
/* Deregisters everything. NULL is fine. */
void ha_mr_cache_free(struct ha_mr_cache *cache);
/* Register, or count one more user. */
int ha_mr_cache_get(struct ha_mr_cache *cache, const struct ha_mr_want *want,
		    struct ha_mr_entry **entry);
void ha_mr_cache_put(struct ha_mr_entry *entry);
const struct ibv_mr *ha_mr_entry_mr(const struct ha_mr_entry *entry);
/* For tests and status: entries in use, entries kept. */
void ha_mr_cache_count(struct ha_mr_cache *cache, unsigned *used, unsigned *kept);

#endif
