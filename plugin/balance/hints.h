/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hints.h - the agent's hints, as a reader sees them that must not be hurt by the agent
 *
 * ha_hints_read is for the data path, from any thread: a few loads from memory, no system call, no
 * lock, a bounded number of attempts. Whatever is wrong, it says what, and the caller takes the
 * weights it would have without an agent.
 *
 * ha_hints_look is the driver's, every 100 ms or so: it finds the file, judges it and watches the
 * agent's heartbeat. Readers see its verdict as one pointer, which is NULL unless the hints may be
 * believed. A file that another takes the place of stays mapped until ha_hints_close, because a
 * reader may be in it; there are HA_HINTS_FILES of them at most.
 *
 * What it does not protect against: the file's owner, whom we trust (root or our own user), making
 * the file shorter.
 */
#ifndef HA_PLUGIN_HINTS_H
#define HA_PLUGIN_HINTS_H

#include "include/mpib_agent_iface.h"

#include <stdatomic.h>
#include <sys/types.h>

#define HA_HINTS_FILES 64

/* What became of one look at an entry. */
enum ha_hint {
	HA_HINT_OK,
	HA_HINT_NONE,    /* no slot, no file, or an agent whose heartbeat stands still */
	HA_HINT_TORN,    /* it was being written at every attempt, or its writer died over it */
	HA_HINT_FOREIGN, /* the entry belongs to another flow now */
	HA_HINT_KINDS
};

enum ha_hints_state {
	HA_HINTS_ABSENT, /* there is no file */
	/* there is one, not to be trusted or not of this layout; `why` says which */
	HA_HINTS_REFUSED,
	HA_HINTS_WAITING, /* its writer has not shown a heartbeat yet */
	HA_HINTS_FRESH,   /* may be read */
	HA_HINTS_STALE,   /* the heartbeat has stood still for too long */
};

struct ha_hints {
	/* NULL: not to be believed. Release by the driver, acquire by readers. */
	_Atomic(const struct mpib_hint_shm *) shm;

	/* The driver's own. */
	char path[256];
	uint64_t stale_ns;
	enum ha_hints_state state;
	const char *why; /* of HA_HINTS_REFUSED; else "" */
	dev_t dev;
	ino_t ino;
	uint32_t heartbeat;
	uint64_t heartbeat_at; /* when it last changed, or the file was found */
	unsigned nfiles;
	const struct mpib_hint_shm *file[HA_HINTS_FILES]; /* the last is the current one */
	bool gone; /* the current one is no longer what `path` names */
};

/* Nothing is opened yet. stale_ns: how long the agent's heartbeat may stand still.
 * -ENAMETOOLONG. */
int ha_hints_open(struct ha_hints *h, const char *path, uint64_t stale_ns);
/* No reader may be left. */
void ha_hints_close(struct ha_hints *h);
/* Driver only. now: ns of a clock that does not go back. true: the state has changed: time for an
 * event. */
bool ha_hints_look(struct ha_hints *h, uint64_t now);
/* "fresh", "the agent's heartbeat stands still" ... */
const char *ha_hints_state_text(enum ha_hints_state state);
const char *ha_hint_text(enum ha_hint hint);

/*
 * The share of SUP for the flow src to dst (IPv4 addresses in network byte order) that registered
 * as `slot`; MPIB_NO_SLOT is none. *sup_bw is written with HA_HINT_OK only. It is at most
 * MPIB_HINT_MAX_BW: an entry above that means the same, everything over SUP.
 */
static inline enum ha_hint ha_hints_read(const struct ha_hints *h, uint32_t slot, uint32_t src,
					 uint32_t dst, uint32_t *sup_bw)
{
	const struct mpib_hint_shm *shm = atomic_load_explicit(&h->shm, memory_order_acquire);
	struct mpib_hint_entry e;

	if (!shm || slot >= MPIB_HINT_MAX_ENTRIES)
		return HA_HINT_NONE;
	if (!mpib_hint_get(&shm->entries[slot], &e))
		return HA_HINT_TORN;
	if (e.src_ip != src || e.dst_ip != dst)
		return HA_HINT_FOREIGN;
	*sup_bw = e.sup_bw < MPIB_HINT_MAX_BW ? e.sup_bw : MPIB_HINT_MAX_BW;
	return HA_HINT_OK;
}

#endif
