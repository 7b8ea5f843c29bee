/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/slots.h"

#include "base/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ha_registration {
	struct ha_owner *owner;
	uint32_t conn_id;
	unsigned slot;
	LIST_ENTRY(ha_registration) in_bucket, of_owner;
};

/* ---- slots ---- */

static void write_entry(struct ha_slots *s, unsigned at)
{
	struct ha_slot *slot = &s->slot[at];

	mpib_hint_put(&s->shm->entries[at], slot->value, slot->src, slot->dst);
	s->writes++;
}

void ha_slots_write(struct ha_slots *s, unsigned at, uint32_t value)
{
	if (value > MPIB_HINT_MAX_BW)
		value = MPIB_HINT_MAX_BW;
	if (s->slot[at].value == value)
		return;
	s->slot[at].value = value;
	write_entry(s, at);
}

static void release_slot(struct ha_slots *s, unsigned at)
{
	memset(&s->slot[at], 0, sizeof(s->slot[at]));
	s->used--;
	write_entry(s, at);
}

static int find_slot(const struct ha_slots *s, uint32_t src, uint32_t dst)
{
	for (int i = 0; i < MPIB_HINT_MAX_ENTRIES; i++)
		if (s->slot[i].src == src && s->slot[i].dst == dst)
			return i;
	return -1;
}

void ha_slots_open(struct ha_slots *s, struct mpib_hint_shm *shm, uint64_t now)
{
	memset(s, 0, sizeof(*s));
	s->shm = shm;
	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		const struct mpib_hint_entry *e = &shm->entries[i];
		struct ha_slot *slot = &s->slot[i];
		bool wanted = (e->src_ip || e->dst_ip) && find_slot(s, e->src_ip, e->dst_ip) < 0;

		if (wanted) {
			slot->src = e->src_ip;
			slot->dst = e->dst_ip;
			slot->value = e->sup_bw <= MPIB_HINT_MAX_BW ? e->sup_bw : 0;
			slot->keep_until = now + HA_SLOTS_GRACE_NS;
			slot->inherited = true;
			s->used++;
		}
		if (e->seq & 1 || e->sup_bw != slot->value || e->src_ip != slot->src ||
		    e->dst_ip != slot->dst)
			write_entry(s, i); /* its writer died over it, or it is nonsense */
	}
}

void ha_slots_close(struct ha_slots *s)
{
	struct ha_registration *r;
	struct ha_owner *owner;

	for (unsigned i = 0; i < HA_SLOTS_BUCKETS && s->nregistrations; i++)
		while ((r = LIST_FIRST(&s->bucket[i])) != NULL) {
			LIST_REMOVE(r, in_bucket);
			s->nregistrations--;
			free(r);
		}
	while ((owner = LIST_FIRST(&s->owners)) != NULL) {
		LIST_REMOVE(owner, link);
		free(owner);
	}
}

void ha_slots_expire(struct ha_slots *s, uint64_t now)
{
	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++)
		if (ha_slot_used(&s->slot[i]) && !s->slot[i].refs && now >= s->slot[i].keep_until)
			release_slot(s, i);
}

/* ---- registrations ---- */

static struct ha_registration_list *find_bucket(struct ha_slots *s, const struct ha_owner *owner,
						uint32_t conn_id)
{
	uint64_t h = ((uint64_t)(uintptr_t)owner >> 4) + conn_id * UINT64_C(0x9e3779b97f4a7c15);

	return &s->bucket[(h ^ h >> 32) % HA_SLOTS_BUCKETS];
}

/* NULL: there is none. */
static struct ha_registration *find_registration(struct ha_slots *s, const struct ha_owner *owner,
						 uint32_t conn_id)
{
	struct ha_registration *r;

	LIST_FOREACH(r, find_bucket(s, owner, conn_id), in_bucket)
		if (r->owner == owner && r->conn_id == conn_id)
			break;
	return r;
}

static void drop_registration(struct ha_slots *s, struct ha_registration *r)
{
	LIST_REMOVE(r, in_bucket);
	LIST_REMOVE(r, of_owner);
	if (!--s->slot[r->slot].refs)
		release_slot(s, r->slot);
	s->nregistrations--;
	free(r);
}

static bool add_registration(struct ha_slots *s, struct ha_owner *owner, uint32_t conn_id,
			     unsigned at)
{
	struct ha_registration_list *bucket = find_bucket(s, owner, conn_id);
	struct ha_registration *r;

	r = s->nregistrations < HA_SLOTS_REGISTRATIONS ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return false;
	r->owner = owner;
	r->conn_id = conn_id;
	r->slot = at;
	LIST_INSERT_HEAD(bucket, r, in_bucket);
	LIST_INSERT_HEAD(&owner->registrations, r, of_owner);
	s->nregistrations++;
	s->slot[at].refs++;
	return true;
}

/* The flow's slot, a new one if it has none. */
static int claim_slot(struct ha_slots *s, const struct mpib_register *m)
{
	int at = find_slot(s, m->sout_src_ip, m->sout_dst_ip);

	if (at < 0) {
		at = find_slot(s, 0, 0);
		if (at < 0)
			return -1;
		memset(&s->slot[at], 0, sizeof(s->slot[at]));
		s->used++;
		s->slot[at].src = m->sout_src_ip;
		s->slot[at].dst = m->sout_dst_ip;
	}
	return at;
}

/*
 * After a registration: the first one says which addresses the flow's standby has, or the first
 * that knows them. What other processes say of the same flow changes nothing.
 */
static void set_standby(struct ha_slot *slot, const struct mpib_register *m)
{
	bool known = slot->sup_src || slot->sup_dst;

	if (known && slot->refs > 1)
		return;
	slot->sup_src = m->sup_src_ip;
	slot->sup_dst = m->sup_dst_ip;
}

/* A flow that got its first registration: the hint is there before the answer. */
static void write_first_hint(struct ha_slots *s, unsigned at)
{
	struct ha_slot *slot = &s->slot[at];
	uint32_t value = s->advise ? s->advise(s->user, at) : 0;

	slot->inherited = false;
	slot->value = value <= MPIB_HINT_MAX_BW ? value : MPIB_HINT_MAX_BW;
	write_entry(s, at);
}

uint32_t ha_slots_register(struct ha_slots *s, struct ha_owner *owner,
			   const struct mpib_register *m, uint32_t *slot)
{
	const struct ha_registration *known = find_registration(s, owner, m->conn_id);
	int at;

	*slot = MPIB_NO_SLOT;
	if (!m->sout_src_ip || !m->sout_dst_ip)
		return MPIB_STATUS_INVALID;
	if (known) {
		const struct ha_slot *has = &s->slot[known->slot];

		if (has->src != m->sout_src_ip || has->dst != m->sout_dst_ip)
			return MPIB_STATUS_INVALID;
		*slot = known->slot;
		return MPIB_STATUS_OK;
	}
	at = claim_slot(s, m);
	if (at < 0)
		return MPIB_STATUS_NO_SLOT;
	if (!add_registration(s, owner, m->conn_id, (unsigned)at)) {
		if (!s->slot[at].refs && !s->slot[at].inherited)
			release_slot(s, (unsigned)at);
		return MPIB_STATUS_NO_SLOT;
	}
	set_standby(&s->slot[at], m);
	if (s->slot[at].refs == 1)
		write_first_hint(s, (unsigned)at);
	*slot = (uint32_t)at;
	return MPIB_STATUS_OK;
}

uint32_t ha_slots_deregister(struct ha_slots *s, struct ha_owner *owner, uint32_t conn_id)
{
	struct ha_registration *r = find_registration(s, owner, conn_id);

	if (!r)
		return MPIB_STATUS_INVALID;
	drop_registration(s, r);
	return MPIB_STATUS_OK;
}

/* ---- owners ---- */

struct ha_owner *ha_owner_get(struct ha_slots *s, pid_t pid, uid_t uid)
{
	uint64_t start = pid > 0 ? ha_process_start(pid) : 0;
	struct ha_owner *owner = NULL;

	if (start) {
		LIST_FOREACH(owner, &s->owners, link)
			if (owner->pid == pid && owner->start == start)
				break;
	} else {
		/* in another namespace, or it has ended already: its socket is all we know of it */
		pid = 0;
	}
	if (!owner) {
		owner = calloc(1, sizeof(*owner));
		if (!owner)
			return NULL;
		owner->pid = pid;
		owner->start = start;
		LIST_INSERT_HEAD(&s->owners, owner, link);
		s->nowners++;
	}
	owner->uid = uid;
	owner->sockets++;
	return owner;
}

static void reclaim_registrations(struct ha_slots *s, struct ha_owner *owner)
{
	while (!LIST_EMPTY(&owner->registrations)) {
		drop_registration(s, LIST_FIRST(&owner->registrations));
		s->reclaimed++;
	}
}

static void remove_owner(struct ha_slots *s, struct ha_owner *owner)
{
	reclaim_registrations(s, owner);
	if (s->sweep == owner)
		s->sweep = LIST_NEXT(owner, link);
	LIST_REMOVE(owner, link);
	s->nowners--;
	free(owner);
}

void ha_owner_hang_up(struct ha_slots *s, struct ha_owner *owner)
{
	if (--owner->sockets)
		return;
	if (!owner->pid || LIST_EMPTY(&owner->registrations))
		remove_owner(s, owner);
}

void ha_owner_sweep(struct ha_slots *s, unsigned most)
{
	struct ha_owner *owner = s->sweep ? s->sweep : LIST_FIRST(&s->owners), *next;

	if (!ha_process_start(getpid()))
		return; /* no /proc, or no descriptor left: we know nothing */
	for (; owner && most; owner = next, most--) {
		next = LIST_NEXT(owner, link);
		if (!owner->pid || ha_process_start(owner->pid) == owner->start)
			continue;
		/* A child may still hold its socket; that one is closed by whoever holds it, and is
		 * nobody's now. */
		reclaim_registrations(s, owner);
		owner->pid = 0;
		if (!owner->sockets)
			remove_owner(s, owner);
	}
	s->sweep = owner;
}

/* Without the fuzzer's counters, which would take ten times the check's own time and lead the
 * fuzzer into it. */
#ifdef __clang__
#define UNCOUNTED __attribute__((no_sanitize("coverage")))
#else
#define UNCOUNTED
#endif

/* No earlier slot has the same flow. */
UNCOUNTED static bool first_of_flow(const struct ha_slots *s, int at)
{
	for (int i = 0; i < at; i++)
		if (s->slot[i].src == s->slot[at].src && s->slot[i].dst == s->slot[at].dst)
			return false;
	return true;
}

/* Every registration stands in its owner's list, and in no other's. */
UNCOUNTED static bool owners_are_linked(const struct ha_slots *s)
{
	const struct ha_registration *r;
	const struct ha_owner *o;
	unsigned owned = 0, owners = 0;

	LIST_FOREACH(o, &s->owners, link) {
		owners++;
		LIST_FOREACH(r, &o->registrations, of_owner) {
			owned++;
			if (r->owner != o)
				return false;
		}
	}
	return owned == s->nregistrations && owners == s->nowners;
}

/* The page says of this slot what we know of it. */
UNCOUNTED static bool entry_is_right(const struct ha_slots *s, int at, unsigned refs)
{
	const struct mpib_hint_entry *e = &s->shm->entries[at];
	const struct ha_slot *slot = &s->slot[at];

	if (slot->refs != refs || (slot->refs && !ha_slot_used(slot)) || e->seq & 1)
		return false;
	if (e->sup_bw != slot->value || e->src_ip != slot->src || e->dst_ip != slot->dst)
		return false;
	if (slot->value > MPIB_HINT_MAX_BW)
		return false;
	return !ha_slot_used(slot) || first_of_flow(s, at);
}

UNCOUNTED bool ha_slots_consistent(const struct ha_slots *s)
{
	unsigned refs[MPIB_HINT_MAX_ENTRIES] = { 0 }, n = 0, used = 0;
	const struct ha_registration *r;

	for (unsigned i = 0; i < HA_SLOTS_BUCKETS; i++)
		LIST_FOREACH(r, &s->bucket[i], in_bucket) {
			refs[r->slot]++;
			n++;
		}
	if (n != s->nregistrations || !owners_are_linked(s))
		return false;
	for (int i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		used += ha_slot_used(&s->slot[i]);
		if (!entry_is_right(s, i, refs[i]))
			return false;
	}
	return used == s->used;
}
