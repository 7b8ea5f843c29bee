/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots.h - who uses which hint: flows, their slots, the connections that registered them, the
 * processes they belong to
 *
 * A flow is a pair of SOUT addresses; it has one slot of the hints file while anybody has
 * registered it. A registration is a (process, conn_id). It ends by deregistration, or with its
 * process. What a former agent left in the file is taken over: such a slot has no registration,
 * keeps its value, and is freed unless somebody registers its flow in time.
 */
#ifndef HA_AGENT_SLOTS_H
#define HA_AGENT_SLOTS_H

#include "include/mpib_agent_iface.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define HA_SLOTS_REGISTRATIONS 65536 /* at once, of everybody */
#define HA_SLOTS_BUCKETS 16384
#define HA_SLOTS_GRACE_NS UINT64_C(30000000000) /* a slot of a former agent is kept so long */

/* In a bucket, or of an owner. */
LIST_HEAD(ha_registration_list, ha_registration);

struct ha_slot {
	uint32_t src, dst;         /* network byte order; both 0: free */
	uint32_t sup_src, sup_dst; /* of the first registration that knew them */
	uint32_t refs;
	uint32_t value;      /* as in the hints file */
	uint64_t keep_until; /* of a slot without a registration */
	bool inherited;      /* its value is a former agent's */
};

/* A process, or (pid 0: one that we cannot see) a socket. */
struct ha_owner {
	pid_t pid;
	uint64_t start; /* base/process.h */
	uid_t uid;
	unsigned sockets;
	struct ha_registration_list registrations;
	LIST_ENTRY(ha_owner) link;
};

struct ha_slots {
	struct mpib_hint_shm *shm;
	struct ha_slot slot[MPIB_HINT_MAX_ENTRIES];
	struct ha_registration_list bucket[HA_SLOTS_BUCKETS];
	LIST_HEAD(, ha_owner) owners;
	struct ha_owner *sweep; /* where the search for dead processes goes on */
	unsigned nregistrations, nowners, used;
	uint64_t writes, reclaimed;
	/* A flow got a slot: what shall its hint be? NULL: 0. */
	uint32_t (*advise)(void *user, unsigned slot);
	void *user;
};

/* Takes over what is in `shm`; that has a valid header. now: ns. */
void ha_slots_open(struct ha_slots *s, struct mpib_hint_shm *shm, uint64_t now);
void ha_slots_close(struct ha_slots *s);

/* The process that a socket came from; counted until ha_owner_hang_up. NULL: no memory. */
struct ha_owner *ha_owner_get(struct ha_slots *s, pid_t pid, uid_t uid);
/* One of its sockets is closed. The owner may be gone afterwards. */
void ha_owner_hang_up(struct ha_slots *s, struct ha_owner *owner);
/* Look at up to `most` processes and forget those that have ended. */
void ha_owner_sweep(struct ha_slots *s, unsigned most);

/* Both return an enum mpib_status. Registering the same again is no error and counts once. */
uint32_t ha_slots_register(struct ha_slots *s, struct ha_owner *owner,
			   const struct mpib_register *m, uint32_t *slot);
uint32_t ha_slots_deregister(struct ha_slots *s, struct ha_owner *owner, uint32_t conn_id);

/* Write a hint if it differs. value: at most MPIB_HINT_MAX_BW, more is cut. */
void ha_slots_write(struct ha_slots *s, unsigned at, uint32_t value);
/* Free what nobody came back for. */
void ha_slots_expire(struct ha_slots *s, uint64_t now);
/* Counts everything anew; false: the books are wrong. For tests. */
bool ha_slots_consistent(const struct ha_slots *s);

static inline bool ha_slot_used(const struct ha_slot *slot)
{
	return slot->src || slot->dst;
}

#endif
