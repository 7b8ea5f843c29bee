/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.h - protection domains, memory regions and windows, and the one check that every access to
 * user memory goes through
 */
#ifndef SOFTROCE_ENGINE_MR_H
#define SOFTROCE_ENGINE_MR_H

#include "softroce/engine/nic.h"

struct sr_pd {
	struct sr_nic *nic;
	TAILQ_ENTRY(sr_pd) link;
	uint32_t refs; /* memory regions, queue pairs and shared receive queues in it */
};

/* beside enum ibv_access_flags: a region, whose key serves our own buffers too */
#define SR_ACCESS_LOCAL (1 << 30)

/*
 * A region, or a window onto a part of one. A window that is not bound is empty, so every access to
 * it fails.
 */
struct sr_mr {
	struct sr_pd *pd;
	char *addr;
	size_t length;
	uint64_t iova;
	int access;   /* enum ibv_access_flags, SR_ACCESS_LOCAL */
	uint32_t qpn; /* a window of type 2: the queue pair that alone may use it; else 0 */
	uint32_t key;
	uint8_t window;       /* enum ibv_mw_type; 0 = a region */
	uint32_t bound;       /* a region: windows bound to it */
	struct sr_mr *parent; /* a bound window: its region */
};

/*
 * Keys are table numbers turned by eight bits, so that the low byte is none of the slot's index:
 * IBTA vol. 1, 10.6.3.3 lets the program choose that byte of a window's key (ibv_inc_rkey()).
 */
static inline uint32_t sr_key_of(uint32_t id)
{
	return id << 8 | id >> 24;
}

static inline uint32_t sr_id_of(uint32_t key)
{
	return key >> 8 | key << 24;
}

/*
 * Where `length` bytes at remote or local address `va` under `key` lie, or NULL: unknown key, other
 * protection domain, missing right (every bit of `access` must be granted), another queue pair's
 * window or any byte outside. length must not be 0: an access of nothing needs no key (IBTA vol. 1,
 * 9.4.3). qpn: the queue pair the peer asks through, 0 for our own buffers (whose access has
 * SR_ACCESS_LOCAL).
 */
static inline char *sr_mr_translate(const struct sr_nic *nic, const struct sr_pd *pd, uint32_t key,
				    uint64_t va, uint64_t length, int access, uint32_t qpn)
{
	const struct sr_mr *mr = sr_table_find(&nic->mrs, sr_id_of(key));
	uint64_t offset;

	if (!mr || mr->pd != pd || (mr->access & access) != access || (mr->qpn && mr->qpn != qpn))
		return NULL;
	offset = va - mr->iova; /* wraps to something huge when va lies below */
	if (offset >= mr->length || length > mr->length - offset)
		return NULL;
	return mr->addr + offset;
}

/* ---- windows, as a send queue's work requests change them ---- */
struct sr_mw_bind {
	uint32_t rkey;   /* the new one: of the window's slot, the low byte at will */
	uint32_t lkey;   /* the region's */
	uint64_t addr;   /* as the region's keys count */
	uint64_t length; /* 0 unbinds a window of type 1 */
	int access;
};

/* 0, or -EACCES: the status of the work request is IBV_WC_MW_BIND_ERR then. */
int sr_mw_bind(struct sr_nic *nic, const struct sr_pd *pd, uint32_t qpn,
	       const struct sr_mw_bind *bind);
/*
 * Unbinds a window of type 2, for its owner or (remote) for the peer of its queue pair. 0 or
 * -EACCES.
 */
int sr_mw_invalidate(struct sr_nic *nic, const struct sr_pd *pd, uint32_t qpn, uint32_t key);

#endif
