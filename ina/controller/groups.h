/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * groups.h - which group has which aggregators of which switch, and until when
 *
 * A state machine without clock, network or disk: every call is given the time (ns of any steady
 * clock).
 *
 *     create          lease runs out, destroyed, switch gone          late_ns later
 *   ---------> LIVE ----------------------------------------> CLOSED ---------------> forgotten
 *              ^  | renewed by any member
 *              +--+
 *
 * LIVE: the switch aggregates for it. CLOSED: it was ended here, and its switch's table lacks it;
 * its number and its range are nobody's while late packets may still arrive. Each incarnation of a
 * number has an epoch of its own, which also advances when the switch has lost its memory. After a
 * restart every lease and every quarantine begins anew: no clock is trusted across it.
 */
#ifndef HA_INA_GROUPS_H
#define HA_INA_GROUPS_H

#include "ina/controller/buddy.h"
#include "ina/controller/quota.h"
#include "ina/frame/address.h"

#include <stddef.h>
#include <sys/queue.h>

#define HA_GROUP_IDS 256u /* the frame has 8 bits; 0 is no group */
#define HA_GROUP_MEMBERS_MIN 2u
#define HA_GROUP_MEMBERS_MAX 32u /* the slot's bitmap */
#define HA_GROUP_NONCE 32u       /* bytes of a request's number, at most */
#define HA_GROUP_WORKERS_MAX 64u /* the DSCP */
#define HA_GROUP_NAME 64u        /* with the final 0 */
#define HA_SWITCH_NAME 32u
#define HA_SWITCH_PREFIXES 16u
#define HA_GROUPS_SWITCHES 64u

struct ha_switch_info {
	char name[HA_SWITCH_NAME];
	uint32_t address, slots;
	unsigned nserves;
	struct ha_prefix serves[HA_SWITCH_PREFIXES];
	bool configured; /* in the file of settings; else it came by registration */
	bool registers;  /* counts as up only while it says so */
};

enum ha_group_state { HA_GROUP_LIVE = 1, HA_GROUP_CLOSED = 2 };

/* What is kept over a restart. */
struct ha_group_record {
	uint64_t serial;  /* > 0, never used again */
	uint64_t key;     /* who knows it may renew and destroy */
	uint64_t created; /* seconds since 1970, for people */
	uint32_t epoch, base, len, lease_ms, member[HA_GROUP_MEMBERS_MAX];
	/* by rank: the incarnation that has joined; 0: none yet */
	uint64_t joined[HA_GROUP_MEMBERS_MAX];
	uint8_t id, members, state, nonce_len, nonce[HA_GROUP_NONCE];
	uint8_t workers; /* of each rank; 0: nobody said */
	bool extended;   /* the frames that it uses */
	bool plain;      /* nobody asked for a lease: a client that cannot renew */
	char switch_name[HA_SWITCH_NAME], tenant[HA_TENANT_NAME], name[HA_GROUP_NAME];
};

struct ha_switch;

struct ha_group {
	struct ha_group_record r;
	struct ha_switch *home;
	uint64_t due;     /* ns: the end of the lease or of the quarantine */
	uint32_t renewed; /* bit per rank: it has renewed since the start */
	uint32_t left;    /* bit per rank: it is out of it */
	uint64_t last_seen[HA_GROUP_MEMBERS_MAX];
	const char *why;           /* CLOSED: a word for people */
	LIST_ENTRY(ha_group) link; /* in ha_groups.all */
};

struct ha_switch {
	struct ha_switch_info info;
	bool gone;            /* no longer in the settings, or another one has its address */
	bool moved;           /* while we were away: what is restored on it has ended */
	uint64_t incarnation; /* of its memory, 0 = not known */
	uint64_t last_seen;   /* ns */
	bool ever_seen;
	uint64_t version; /* of its table; changes with every live group that comes or goes */
	uint32_t epoch[HA_GROUP_IDS];
	struct ha_group *group[HA_GROUP_IDS]; /* LIVE or CLOSED */
	uint8_t last_id;
	struct ha_buddy buddy;
};

struct ha_groups_limits {
	uint64_t late_ns;    /* quarantine: how long packets may live */
	uint64_t silence_ns; /* a switch that registers and says nothing for so long is away */
	uint32_t lease_min_ms, lease_max_ms;
	uint32_t plain_lease_ms; /* of a group whose creator asked for none */
	uint32_t length;         /* slots when nobody asks for another number */
};

struct ha_groups {
	struct ha_groups_limits limits;
	struct ha_quotas quotas;
	struct ha_switch *sw[HA_GROUPS_SWITCHES];
	unsigned nsw;
	LIST_HEAD(, ha_group) all;
	unsigned live, closed;
	uint64_t serial;   /* the last one */
	uint64_t versions; /* the start of an incarnation's table versions */
};

enum ha_refusal_kind {
	HA_REFUSAL_NONE,
	HA_REFUSAL_FULL, /* no range of that length */
	HA_REFUSAL_IDS,  /* no group number */
	HA_REFUSAL_QUOTA,
	HA_REFUSAL_UNREACHED, /* no switch serves all members */
	HA_REFUSAL_AWAY,      /* those that do are not answering */
	HA_REFUSAL_INVALID,   /* it makes no sense; the others mean: do without the switch */
};

struct ha_refusal {
	enum ha_refusal_kind kind;
	char text[160];
};

struct ha_group_spec {
	const char *tenant, *name;
	const uint32_t *member;
	size_t members;
	/* slots; 0 = the default or `least`, whichever is more, and a quarter of what is wanted */
	uint32_t length, least;
	uint32_t lease_ms; /* 0 = a plain client */
	uint32_t workers;  /* of each rank; 0 = not known. Else ranks may have one address */
	bool extended;
	const uint8_t *nonce; /* of this request: asked again, the same group is the answer */
	size_t nonce_len;
	uint64_t created;
};

void ha_groups_open(struct ha_groups *g, const struct ha_groups_limits *limits);
void ha_groups_close_all(struct ha_groups *g);

/*
 * A switch as it is now; known by its name. What it held stays, if it fits. NULL: there is no room
 * for another switch.
 * Groups behind its new end are CLOSED.
 */
struct ha_switch *ha_groups_switch(struct ha_groups *g, const struct ha_switch_info *info,
				   uint64_t now);
/* Another switch, not gone, that has the address of `info`: the same machine under another name
 * must not get groups twice. NULL: nobody, or one that is away, empty and not configured; it gives
 * its place to a new name. */
struct ha_switch *ha_groups_switch_same(const struct ha_groups *g,
					const struct ha_switch_info *info, uint64_t now);
struct ha_switch *ha_groups_switch_find(const struct ha_groups *g, const char *name);
/*
 * It is no longer in the settings, or another one has its address: its groups are CLOSED, it gets
 * no new ones.
 */
void ha_groups_switch_gone(struct ha_groups *g, struct ha_switch *s, uint64_t now);
/*
 * It reports that it runs. true: it has lost its memory since, and every live group on it has a new
 * epoch.
 */
bool ha_groups_switch_reported(struct ha_groups *g, struct ha_switch *s, uint64_t incarnation,
			       uint64_t now);
/* It holds no group, LIVE or CLOSED. */
bool ha_groups_switch_empty(const struct ha_switch *s);
bool ha_groups_switch_up(const struct ha_groups *g, const struct ha_switch *s, uint64_t now);

/* NULL and why. *again: the same request has had its answer before, this is it. */
struct ha_group *ha_groups_create(struct ha_groups *g, const struct ha_group_spec *spec,
				  uint64_t now, bool *again, struct ha_refusal *why);
/* rank: who says so, or -1. The lease begins anew. */
void ha_groups_renew(struct ha_group *group, int rank, uint64_t now);
/*
 * A rank begins: its lease begins, and no other incarnation of it can. False: another one has
 * joined. Asked again by the same one it is the same.
 * *changed: the record has.
 */
bool ha_groups_join(struct ha_group *group, unsigned rank, uint64_t incarnation, uint64_t now,
		    bool *changed);
/* A rank is out of it. True: all are. */
bool ha_groups_leave(struct ha_group *group, unsigned rank);
/* LIVE -> CLOSED. */
void ha_groups_end(struct ha_groups *g, struct ha_group *group, const char *why, uint64_t now);
/* CLOSED -> forgotten; frees the group. */
void ha_groups_forget(struct ha_groups *g, struct ha_group *group);
/* The first group whose lease (LIVE) or quarantine (CLOSED) is over, or NULL. */
struct ha_group *ha_groups_due(const struct ha_groups *g, uint64_t now);
/*
 * For `still` ns before now nothing could be received: the process was stopped, or waited for its
 * disk. Leases, quarantines and silences are as if that time had not been.
 */
void ha_groups_stood_still(struct ha_groups *g, uint64_t still, uint64_t now);
/* Ranks that have renewed before and have now been silent for a lease: a bit each. */
uint32_t ha_groups_silent(const struct ha_group *group, uint64_t now);

/*
 * After a restart: a switch that is not known yet; no other gives its place to it. NULL: there is
 * no room.
 */
struct ha_switch *ha_groups_switch_restore(struct ha_groups *g, const struct ha_switch_info *info,
					   uint64_t now);
/* After a restart. false: it contradicts what is there. Its switch must be known. */
bool ha_groups_restore(struct ha_groups *g, const struct ha_group_record *record, uint64_t now);

/* What is wrong inside, or NULL; for tests. */
const char *ha_groups_check(const struct ha_groups *g);

#endif
