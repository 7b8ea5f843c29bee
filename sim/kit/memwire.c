/* SPDX-License-Identifier: BSD-3-Clause */
/* memwire.c - a network in memory with virtual time; see memwire.h */
#include "sim/kit/memwire.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define PACKET_MAX (SR_HDR_MAX + SR_MTU_MAX + 4)
#define BUCKETS 256u
#define FRAMING 66u /* Ethernet, IPv4, UDP, ICRC, preamble and gap around a packet */
#define START_NS 1000000000ull

/* Something that happens at a time: a packet arrives, or a call. */
struct event {
	uint64_t when, order;
	SLIST_ENTRY(event) link; /* of those that are free */
	void (*fn)(void *arg);
	void *arg;
	struct sr_path path; /* as the receiver sees it */
	uint32_t len;
	uint8_t packet[PACKET_MAX];
};

struct sr_memwire_port {
	struct sr_memwire *mw;
	struct sr_nic *nic;
	union ibv_gid gid[SR_GIDS];
	struct sr_memwire_link link;
	struct sr_faults faults;
	uint64_t tx_free; /* when the last byte queued has left */
	/* latest arrival so far, before and behind the receiver's faults: no overtaking */
	uint64_t last_tx, last_rx;
	bool blocked; /* refused a packet */
	LIST_ENTRY(sr_memwire_port) sibling;
};

/* A GID's way to its port. */
struct route {
	union ibv_gid gid;
	struct sr_memwire_port *port;
	LIST_ENTRY(route) link; /* in its bucket */
};

struct sr_memwire {
	uint64_t now, order, steps;
	struct sr_rng rng;
	struct event **heap;
	uint32_t n, size;
	SLIST_HEAD(, event) free;
	LIST_HEAD(, sr_memwire_port) ports;
	LIST_HEAD(, route) routes[BUCKETS];
	sr_memwire_tap tap;
	void *tap_arg;
};

/* ---- the queue of events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static struct event *new_event(struct sr_memwire *mw)
{
	struct event *e = SLIST_FIRST(&mw->free);

	if (mw->n + 4 > mw->size) { /* duplication has up to four packets in hand at once */
		uint32_t size = mw->size ? mw->size * 2 : 256;
		struct event **heap = realloc(mw->heap, size * sizeof(*heap));

		if (!heap)
			return NULL;
		mw->heap = heap;
		mw->size = size;
	}
	if (e)
		SLIST_REMOVE_HEAD(&mw->free, link);
	else
		e = malloc(sizeof(*e));
	if (e)
		e->fn = NULL;
	return e;
}

static void free_event(struct sr_memwire *mw, struct event *e)
{
	SLIST_INSERT_HEAD(&mw->free, e, link);
}

static void push_event(struct sr_memwire *mw, struct event *e, uint64_t when)
{
	uint32_t i = mw->n++;

	e->when = when;
	e->order = mw->order++;
	for (; i && is_before(e, mw->heap[(i - 1) / 2]); i = (i - 1) / 2)
		mw->heap[i] = mw->heap[(i - 1) / 2];
	mw->heap[i] = e;
}

static struct event *pop_event(struct sr_memwire *mw)
{
	struct event *first = mw->heap[0], *last = mw->heap[--mw->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= mw->n)
			break;
		if (child + 1 < mw->n && is_before(mw->heap[child + 1], mw->heap[child]))
			child++;
		if (!is_before(mw->heap[child], last))
			break;
		mw->heap[i] = mw->heap[child];
		i = child;
	}
	mw->heap[i] = last;
	return first;
}

/* ---- routes ---- */

static uint32_t bucket_of(const uint8_t gid[16])
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (int i = 0; i < 16; i++)
		h = (h ^ gid[i]) * 16777619u;
	return (h ^ h >> 16) % BUCKETS;
}

static struct sr_memwire_port *find_route(const struct sr_memwire *mw, const uint8_t gid[16])
{
	const struct route *r;

	LIST_FOREACH(r, &mw->routes[bucket_of(gid)], link)
		if (!memcmp(&r->gid, gid, 16))
			return r->port;
	return NULL;
}

static void remove_routes(struct sr_memwire *mw, const struct sr_memwire_port *port)
{
	struct route *next;

	for (unsigned b = 0; b < BUCKETS; b++)
		for (struct route *r = LIST_FIRST(&mw->routes[b]); r; r = next) {
			next = LIST_NEXT(r, link);
			if (r->port != port)
				continue;
			LIST_REMOVE(r, link);
			free(r);
		}
}

static int add_routes(struct sr_memwire *mw, struct sr_memwire_port *port)
{
	static const union ibv_gid none;

	for (unsigned i = 0; i < SR_GIDS; i++) {
		struct route *r;
		uint32_t b = bucket_of(port->gid[i].raw);

		if (!memcmp(&port->gid[i], &none, sizeof(none)))
			continue;
		r = malloc(sizeof(*r));
		if (!r)
			return -ENOMEM;
		*r = (struct route) { .gid = port->gid[i], .port = port };
		LIST_INSERT_HEAD(&mw->routes[b], r, link);
	}
	return 0;
}

/* ---- packets ---- */

static uint64_t at_least(uint64_t *latest, uint64_t when, bool may_overtake)
{
	if (may_overtake)
		return when;
	if (when < *latest)
		when = *latest;
	*latest = when;
	return when;
}

/*
 * One copy of a packet through the receiver's faults. What a NIC sends to itself meets none: it
 * never leaves it.
 */
static void deliver_copy(struct sr_memwire_port *from, struct event *e, uint64_t when,
			 bool overtakes)
{
	struct sr_memwire *mw = from->mw;
	struct sr_memwire_port *to = find_route(mw, e->path.src);
	struct sr_verdict v;

	if (to == from) {
		push_event(mw, e, when);
		return;
	}
	v = to ? sr_faults_decide(&to->faults.rx, &mw->rng) : (struct sr_verdict) { 0 };
	if (!v.copies) {
		free_event(mw, e);
		return;
	}
	if (v.copies == 2) {
		struct event *copy = new_event(mw);

		if (copy) {
			copy->path = e->path;
			copy->len = e->len;
			memcpy(copy->packet, e->packet, e->len);
			push_event(mw, copy, when + v.delay2_ns);
		}
	}
	push_event(mw, e, at_least(&to->last_rx, when + v.delay_ns, overtakes || v.reordered));
}

/* When it is through. */
static uint64_t pass_bus(const struct sr_memwire_link *link, uint32_t len, uint64_t now)
{
	struct sr_memwire_bus *bus = link->bus;

	len *= link->bus_cost ? link->bus_cost : 1;
	if (!bus || !bus->bytes_per_us)
		return now;
	bus->free = (bus->free > now ? bus->free : now) + (uint64_t)len * 1000 / bus->bytes_per_us;
	return bus->free;
}

/* A packet has been cut loose at the sender: bandwidth, latency, and the sender's faults. */
static void send_packet(struct sr_memwire_port *from, struct event *e)
{
	static const struct sr_fault_dir none;
	struct sr_memwire *mw = from->mw;
	bool inside = find_route(mw, e->path.src) == from;
	struct sr_verdict v;
	uint64_t when = pass_bus(&from->link, e->len + FRAMING, mw->now);

	when = from->tx_free > when ? from->tx_free : when;
	if (from->link.bytes_per_us)
		when += (uint64_t)(e->len + FRAMING) * 1000 / from->link.bytes_per_us;
	from->tx_free = when;
	when += from->link.latency_ns;
	v = sr_faults_decide(inside ? &none : &from->faults.tx, &mw->rng);
	if (!v.copies || (mw->tap && !mw->tap(mw->tap_arg, from, e->packet, &e->len))) {
		free_event(mw, e);
		return;
	}
	if (v.copies == 2) {
		struct event *copy = new_event(mw);

		if (copy) {
			copy->path = e->path;
			copy->len = e->len;
			memcpy(copy->packet, e->packet, e->len);
			deliver_copy(from, copy, when + v.delay2_ns, true);
		}
	}
	deliver_copy(from, e, at_least(&from->last_tx, when + v.delay_ns, v.reordered || inside),
		     v.reordered);
}

static void turn_round(struct sr_path *to, const struct sr_path *from)
{
	*to = *from;
	memcpy(to->src, from->dst, 16);
	memcpy(to->dst, from->src, 16);
}

static uint64_t backlog_of(const struct sr_memwire_port *port)
{
	return port->link.backlog_ns ? port->link.backlog_ns : SR_MEMWIRE_BACKLOG_NS;
}

static int port_send(void *wire, const struct sr_frame *frame)
{
	struct sr_memwire_port *port = wire;
	struct sr_memwire *mw = port->mw;
	struct event *e;

	if (port->tx_free > mw->now + backlog_of(port)) {
		port->blocked = true;
		return -EAGAIN;
	}
	e = new_event(mw);
	if (!e)
		return 0; /* out of memory: the packet is lost, which a network may do */
	turn_round(&e->path, frame->path);
	memcpy(e->packet, frame->hdr, frame->hdr_len);
	e->len = frame->hdr_len;
	for (unsigned i = 0; i < frame->iov_n; i++) {
		memcpy(e->packet + e->len, frame->iov[i].iov_base, frame->iov[i].iov_len);
		e->len += (uint32_t)frame->iov[i].iov_len;
	}
	memset(e->packet + e->len, 0, frame->pad);
	e->len += frame->pad;
	send_packet(port, e);
	return 0;
}

static const struct sr_wire_ops port_ops = { .send = port_send };

int sr_memwire_inject(struct sr_memwire_port *from, const struct sr_path *path, const void *packet,
		      uint32_t len)
{
	struct event *e;

	if (len > PACKET_MAX)
		return -EMSGSIZE;
	e = new_event(from->mw);
	if (!e)
		return -ENOMEM;
	turn_round(&e->path, path);
	memcpy(e->packet, packet, len);
	e->len = len;
	send_packet(from, e);
	return 0;
}

/* ---- ports ---- */

struct sr_memwire *sr_memwire_create(uint64_t seed, int *err)
{
	struct sr_memwire *mw = calloc(1, sizeof(*mw));

	*err = mw ? 0 : -ENOMEM;
	if (mw) {
		mw->rng.state = seed;
		mw->now = START_NS;
	}
	return mw;
}

struct sr_nic *sr_memwire_nic(struct sr_memwire *mw, const struct sr_nic_config *config, int *err)
{
	struct sr_nic_config wired = *config;
	struct sr_memwire_port *port = calloc(1, sizeof(*port));

	*err = -ENOMEM;
	if (!port)
		return NULL;
	port->mw = mw;
	port->link = (struct sr_memwire_link) {
		.latency_ns = SR_MEMWIRE_LATENCY_NS,
		.bytes_per_us = SR_MEMWIRE_BYTES_PER_US,
	};
	memcpy(port->gid, config->gid, sizeof(port->gid));
	wired.wire_ops = &port_ops;
	wired.wire = port;
	port->nic = sr_nic_create(&wired, err);
	if (!port->nic)
		goto free_port;
	*err = add_routes(mw, port);
	if (*err)
		goto remove_routes;
	LIST_INSERT_HEAD(&mw->ports, port, sibling);
	return port->nic;
remove_routes:
	remove_routes(mw, port);
	sr_nic_destroy(port->nic);
free_port:
	free(port);
	return NULL;
}

/* Takes the NIC off the wire and destroys it; packets on their way to it vanish. */
static void remove_port(struct sr_memwire *mw, struct sr_memwire_port *port)
{
	LIST_REMOVE(port, sibling);
	remove_routes(mw, port);
	sr_nic_destroy(port->nic);
	free(port);
}

void sr_memwire_destroy(struct sr_memwire *mw)
{
	struct event *e;

	while (!LIST_EMPTY(&mw->ports))
		remove_port(mw, LIST_FIRST(&mw->ports));
	while (mw->n)
		free_event(mw, mw->heap[--mw->n]);
	while ((e = SLIST_FIRST(&mw->free))) {
		SLIST_REMOVE_HEAD(&mw->free, link);
		free(e);
	}
	free(mw->heap);
	free(mw);
}

struct sr_memwire_port *sr_memwire_port_of(struct sr_memwire *mw, const struct sr_nic *nic)
{
	struct sr_memwire_port *port;

	LIST_FOREACH(port, &mw->ports, sibling)
		if (port->nic == nic)
			break;
	return port;
}

struct sr_nic *sr_memwire_nic_of(const struct sr_memwire_port *port)
{
	return port->nic;
}

void sr_memwire_set_link(struct sr_memwire_port *port, const struct sr_memwire_link *link)
{
	port->link = *link;
}

struct sr_faults *sr_memwire_faults(struct sr_memwire_port *port)
{
	return &port->faults;
}

void sr_memwire_cut(struct sr_memwire_port *port, bool cut)
{
	port->faults.cut = cut;
	sr_nic_set_link(port->nic, !cut);
}

void sr_memwire_kill(struct sr_memwire_port *port)
{
	port->faults.kill = 1;
	sr_nic_kill(port->nic);
}

void sr_memwire_set_gid(struct sr_memwire *mw, struct sr_nic *nic, unsigned index,
			const union ibv_gid *gid)
{
	struct sr_memwire_port *port = sr_memwire_port_of(mw, nic);

	port->gid[index] = *gid;
	remove_routes(mw, port);
	add_routes(mw, port);
	sr_nic_set_gid(nic, index, gid);
}

void sr_memwire_set_tap(struct sr_memwire *mw, sr_memwire_tap tap, void *arg)
{
	mw->tap = tap;
	mw->tap_arg = arg;
}

/* ---- time ---- */

int sr_memwire_at(struct sr_memwire *mw, uint64_t when, void (*fn)(void *arg), void *arg)
{
	struct event *e = new_event(mw);

	if (!e)
		return -ENOMEM;
	e->fn = fn;
	e->arg = arg;
	push_event(mw, e, when < mw->now ? mw->now : when);
	return 0;
}

uint64_t sr_memwire_now(const struct sr_memwire *mw)
{
	return mw->now;
}

uint64_t sr_memwire_steps(const struct sr_memwire *mw)
{
	return mw->steps;
}

/*
 * When a port's NIC must be looked after: its own deadline, or room on the wire that it waits for.
 */
static uint64_t port_due(const struct sr_memwire_port *port)
{
	uint64_t due = sr_nic_deadline(port->nic);

	if (port->blocked && port->tx_free - backlog_of(port) < due)
		due = port->tx_free - backlog_of(port);
	return due;
}

static void look_after(struct sr_memwire_port *port)
{
	port->blocked = false;
	sr_nic_progress(port->nic, port->mw->now, 0);
}

static void run_event(struct sr_memwire *mw, struct event *e)
{
	struct sr_memwire_port *port;

	if (e->fn) {
		e->fn(e->arg);
	} else {
		port = find_route(mw, e->path.src);
		if (port)
			sr_nic_receive(port->nic, mw->now, &e->path, e->packet, e->len);
	}
	free_event(mw, e);
}

/* The port to be looked after first, and when; UINT64_MAX = none. */
static struct sr_memwire_port *first_port(struct sr_memwire *mw, uint64_t *when)
{
	struct sr_memwire_port *port, *first = NULL;

	*when = UINT64_MAX;
	LIST_FOREACH(port, &mw->ports, sibling) {
		uint64_t due = port_due(port);

		if (due < *when) {
			*when = due;
			first = port;
		}
	}
	return first;
}

/* The next thing, unless it comes later than `limit`. */
static bool take_step(struct sr_memwire *mw, uint64_t limit)
{
	uint64_t when;
	struct sr_memwire_port *port = first_port(mw, &when);
	bool packet = mw->n && (!port || mw->heap[0]->when < when);

	if (packet)
		when = mw->heap[0]->when;
	if ((!packet && !port) || when > limit)
		return false;
	if (when > mw->now)
		mw->now = when;
	mw->steps++;
	if (packet)
		run_event(mw, pop_event(mw));
	else
		look_after(port);
	return true;
}

bool sr_memwire_step(struct sr_memwire *mw)
{
	return take_step(mw, UINT64_MAX);
}

void sr_memwire_run_until(struct sr_memwire *mw, uint64_t when)
{
	while (take_step(mw, when))
		;
	if (when > mw->now)
		mw->now = when;
}
