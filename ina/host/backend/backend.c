/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/backend.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "ina/host/backend/net.h"
#include "ina/host/backend/ticket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IPV4(a) (a) >> 24, (a) >> 16 & 255, (a) >> 8 & 255, (a)&255

/* ---- clients ---- */

static void attach_client(void *arg, struct ina_shm_peer *shm)
{
	struct ha_backend *b = arg;
	struct ha_peer *p = ha_peer_create(shm, b->net->workers);

	if (!p) {
		ina_shm_peer_end(shm, "the backend has no memory for another client");
		return;
	}
	ina_shm_peer_set(shm, p);
	LIST_INSERT_HEAD(&b->peers, p, sibling);
	b->npeers++;
	b->count.clients++;
	HA_INFO("ina", "client process %d has attached", (int)ina_shm_peer_pid(shm));
	ha_mailbox_send(&b->balancer.mailbox, &p->came, HA_MESSAGE_PEER_CAME, p);
}

static void forget_peer(struct ha_backend *b, struct ha_peer *p)
{
	if (!p->dropped_by_balancer || p->asked)
		return;
	LIST_REMOVE(p, sibling);
	b->npeers--;
	ha_peer_free(p);
}

/* ---- ranks ---- */

/* err 0: its client leaves it; else it ends so for all ranks. asked: by the client. */
static void remove_member(struct ha_backend *b, struct ha_member *m, bool asked, int err,
			  const char *why)
{
	m->going = true;
	m->remove_asked = asked;
	m->remove_err = err;
	snprintf(m->remove_why, sizeof(m->remove_why), "%s", why);
	ha_mailbox_send(&b->balancer.mailbox, &m->remove, HA_MESSAGE_REMOVE, m);
}

/* The one that the registrar has comes back. */
static void drop_waiting_questions(struct ha_peer *p)
{
	struct ha_question *q;

	while ((q = STAILQ_FIRST(&p->waiting))) {
		STAILQ_REMOVE_HEAD(&p->waiting, link);
		p->asked--;
		free(q);
	}
}

static void detach_client(void *arg, struct ina_shm_peer *shm, const char *why)
{
	struct ha_backend *b = arg;
	struct ha_peer *p = ina_shm_peer_get(shm);
	struct ha_member *m;

	if (!p) { /* there was no memory for it */
		ina_shm_peer_release(shm);
		return;
	}
	HA_INFO("ina", "%s", why);
	atomic_store_explicit(&p->is_gone, true, memory_order_relaxed);
	drop_waiting_questions(p);
	LIST_FOREACH(m, &b->members, link)
		if (m->peer == p && !m->going)
			/* whoever still reads its responses finds that this end has gone */
			remove_member(b, m, false, -ENOTCONN, why);
	ha_mailbox_send(&b->balancer.mailbox, &p->gone, HA_MESSAGE_PEER_GONE, p);
}

static struct ha_member *member_of(const struct ha_backend *b, const struct ha_peer *p,
				   uint32_t handle)
{
	struct ha_member *m;

	LIST_FOREACH(m, &b->members, link)
		if (m->peer == p && m->handle == handle && m->joined && !m->going)
			break;
	return m;
}

static uint32_t new_handle(struct ha_backend *b)
{
	for (uint32_t i = 0; i < HA_MEMBERS; i++) {
		uint32_t handle = ++b->handles;

		if (handle && !b->used[handle % HA_MEMBERS]) {
			b->used[handle % HA_MEMBERS] = true;
			return handle;
		}
	}
	return 0;
}

/* ---- what clients ask ---- */

/* NULL: it has been refused. */
static struct ha_question *make_question(struct ha_peer *p, enum ha_question_kind kind,
					 uint32_t serial)
{
	struct ha_question *q;

	if (p->asked >= HA_PEER_QUESTIONS) {
		ina_shm_answer_refused(p->shm, serial, -EAGAIN,
				       "as many questions of this process as may wait for the "
				       "controller do so: ask again when one is answered");
		return NULL;
	}
	q = calloc(1, sizeof(*q));
	if (!q) {
		ina_shm_answer_refused(p->shm, serial, -ENOMEM, "the backend has no memory");
		return NULL;
	}
	q->kind = kind;
	q->peer = p;
	q->serial = serial;
	return q;
}

/* The registrar has one question of each client at most, so that they have it in turn. */
static void send_question(struct ha_backend *b, struct ha_question *q)
{
	if (q->peer->asked++)
		STAILQ_INSERT_TAIL(&q->peer->waiting, q, link);
	else
		ha_mailbox_send(&b->registrar.mailbox, &q->message, q->kind, q);
}

/* One that the registrar had is answered. */
static void send_next_question(struct ha_backend *b, struct ha_peer *p)
{
	struct ha_question *q = STAILQ_FIRST(&p->waiting);

	p->asked--;
	if (!q)
		return;
	STAILQ_REMOVE_HEAD(&p->waiting, link);
	ha_mailbox_send(&b->registrar.mailbox, &q->message, q->kind, q);
}

static void create(void *arg, struct ina_shm_peer *shm, uint32_t serial,
		   const struct ina_shm_create *spec)
{
	struct ha_backend *b = arg;
	struct ha_question *q = make_question(ina_shm_peer_get(shm), HA_QUESTION_CREATE, serial);

	if (!q)
		return;
	q->spec = *spec;
	send_question(b, q);
}

/* A sentence about what is wrong for this host, or NULL. */
static const char *check_group(const struct ha_backend *b, const struct ha_group_facts *g,
			       unsigned rank, char *text, size_t size)
{
	if (rank >= g->ranks)
		snprintf(text, size, "rank %u: the group has ranks 0 to %u", rank, g->ranks - 1);
	else if (g->member[rank] != b->net->addr)
		snprintf(text, size,
			 "rank %u is to be on host %u.%u.%u.%u, this one is %u.%u.%u.%u: give the "
			 "members in the order of ranks",
			 rank, IPV4(g->member[rank]), IPV4(b->net->addr));
	else if (g->workers > b->net->workers)
		snprintf(text, size,
			 "the group's hosts have %u workers, this one has %u: start all backends "
			 "with the same number (--workers)",
			 g->workers, b->net->workers);
	else
		return NULL;
	return text;
}

static void join(void *arg, struct ina_shm_peer *shm, uint32_t serial,
		 const uint8_t ticket[HA_INA_TICKET], uint32_t rank)
{
	struct ha_backend *b = arg;
	struct ha_group_facts group;
	struct ha_question *q;
	const char *wrong = NULL;
	char text[INA_SHM_TEXT];

	if (!ha_ticket_read(ticket, &group, &wrong))
		wrong = check_group(b, &group, rank, text, sizeof(text));
	if (wrong) {
		b->count.join_refused++;
		ina_shm_answer_refused(shm, serial, -EINVAL, wrong);
		return;
	}
	q = make_question(ina_shm_peer_get(shm), HA_QUESTION_JOIN, serial);
	if (!q)
		return;
	q->group = group;
	q->rank = rank;
	q->incarnation = b->incarnation = b->incarnation + 1 ? b->incarnation + 1 : 1;
	send_question(b, q);
}

static void leave(void *arg, struct ina_shm_peer *shm, uint32_t serial, uint32_t handle, int err)
{
	struct ha_backend *b = arg;
	struct ha_member *m = member_of(b, ina_shm_peer_get(shm), handle);

	if (!m) {
		ina_shm_answer_refused(shm, serial, -EINVAL, "there is no such group");
		return;
	}
	m->serial = serial;
	remove_member(b, m, true, err, "this rank has left the group");
}

static void wake_balancer(void *arg, struct ina_shm_peer *shm)
{
	struct ha_backend *b = arg;

	ha_sleeper_wake(&b->balancer.sleeper);
}

static const struct ina_shm_server_ops server_ops = {
	.attach = attach_client,
	.create = create,
	.join = join,
	.leave = leave,
	.wake = wake_balancer,
	.detach = detach_client,
};

/* ---- what the registrar answers ---- */

static void answer_create(struct ha_backend *b, struct ha_question *q)
{
	uint8_t ticket[HA_INA_TICKET];

	if (q->err) {
		b->count.groups_refused++;
		ina_shm_answer_refused(q->peer->shm, q->serial, q->err, q->why);
		return;
	}
	b->count.groups_created++;
	ha_ticket_write(&q->group, ticket);
	ina_shm_answer_ticket(q->peer->shm, q->serial, ticket);
}

/* The rank is not needed any more. Without memory its lease ends by itself. */
static void give_back(struct ha_backend *b, uint64_t incarnation)
{
	struct ha_question *q = calloc(1, sizeof(*q));

	if (!q)
		return;
	q->incarnation = incarnation;
	ha_mailbox_send(&b->registrar.mailbox, &q->message, HA_QUESTION_LEAVE, q);
}

/* 0, or a negative errno and q->why. */
static int begin_member(struct ha_backend *b, struct ha_question *q)
{
	struct ha_member *m;
	uint32_t handle = new_handle(b);

	if (!handle) {
		snprintf(q->why, sizeof(q->why), "%u ranks on one host are as many as can be",
			 HA_MEMBERS);
		return -EAGAIN;
	}
	m = ha_member_create(&q->group, q->rank);
	if (!m) {
		b->used[handle % HA_MEMBERS] = false;
		snprintf(q->why, sizeof(q->why), "the backend has no memory");
		return -ENOMEM;
	}
	m->peer = q->peer;
	m->handle = handle;
	m->incarnation = q->incarnation;
	m->serial = q->serial;
	LIST_INSERT_HEAD(&b->members, m, link);
	b->nmembers++;
	ha_mailbox_send(&b->balancer.mailbox, &m->add, HA_MESSAGE_ADD, m);
	return 0;
}

static void join_answered(struct ha_backend *b, struct ha_question *q)
{
	bool holds = !q->err;

	if (!q->err && !q->peer->is_gone)
		q->err = begin_member(b, q);
	if (!q->err && !q->peer->is_gone)
		return;
	if (holds)
		give_back(b, q->incarnation);
	b->count.join_refused++;
	ina_shm_answer_refused(q->peer->shm, q->serial, q->err ? q->err : -ENOTCONN, q->why);
}

static void end_member(struct ha_backend *b, const struct ha_question *q)
{
	struct ha_member *m;

	LIST_FOREACH(m, &b->members, link)
		if (m->incarnation == q->incarnation)
			break;
	if (!m || m->going || m->ending)
		return;
	m->ending = true;
	m->end_err = q->err;
	snprintf(m->end_why, sizeof(m->end_why), "%s", q->why);
	ha_mailbox_send(&b->balancer.mailbox, &m->end, HA_MESSAGE_END, m);
}

/* ---- what the balancer says ---- */

static void confirm_join(struct ha_backend *b, struct ha_member *m)
{
	char name[24];

	snprintf(name, sizeof(name), "group %u rank %u", m->group.id, m->rank);
	m->joined = true;
	b->count.joined++;
	HA_INFO(name,
		"joined: %u ranks, switch %s (%u.%u.%u.%u), slots %u to %u for %u workers, epoch "
		"%u",
		m->group.ranks, m->group.switch_name, IPV4(m->group.switch_addr), m->group.base,
		m->group.base + m->group.len - 1, m->group.workers, m->group.epoch);
	ina_shm_answer_joined(m->peer->shm, m->serial, m->handle, m->rank, m->group.ranks);
}

static void report_end(struct ha_backend *b, struct ha_member *m)
{
	b->count.ended++;
	HA_WARN("ina", "%s", m->why);
	if (!m->going)
		ina_shm_peer_state(m->peer->shm, m->handle, m->err, m->why);
}

static void drop_member(struct ha_backend *b, struct ha_member *m)
{
	if (m->remove_asked)
		ina_shm_answer_left(m->peer->shm, m->serial, m->handle);
	give_back(b, m->incarnation);
	b->used[m->handle % HA_MEMBERS] = false;
	LIST_REMOVE(m, link);
	b->nmembers--;
	ha_member_free(m);
}

/* ---- messages ---- */

static void take_question(struct ha_backend *b, struct ha_question *q, int kind)
{
	struct ha_peer *p = q->peer;

	if (kind == HA_QUESTION_CREATE)
		answer_create(b, q);
	else if (kind == HA_QUESTION_JOIN)
		join_answered(b, q);
	else
		end_member(b, q);
	free(q);
	if (p) {
		send_next_question(b, p);
		forget_peer(b, p);
	}
}

static void take_message(struct ha_backend *b, struct ha_message *message)
{
	switch (message->kind) {
	case HA_MESSAGE_ADDED:
		confirm_join(b, message->what);
		break;
	case HA_MESSAGE_ENDED:
		report_end(b, message->what);
		break;
	case HA_MESSAGE_REMOVED:
		drop_member(b, message->what);
		break;
	case HA_MESSAGE_DROPPED:
		((struct ha_peer *)message->what)->dropped_by_balancer = true;
		forget_peer(b, message->what);
		break;
	default:
		take_question(b, message->what, message->kind);
	}
}

static void take_messages(struct ha_backend *b)
{
	struct ha_message *message;

	while ((message = ha_mailbox_take(&b->mailbox)))
		take_message(b, message);
}

static void tick_net(struct ha_backend *b)
{
	uint64_t now;

	if (!b->net->ops->tick)
		return;
	now = ha_clock_now(&ha_clock_live);
	if (now - b->ticked_at < 100 * HA_NS_PER_MS)
		return;
	b->ticked_at = now;
	b->net->ops->tick(b->net);
}

void ha_backend_serve(struct ha_backend *b, int timeout_ms)
{
	ha_sleeper_announce(&b->sleeper);
	if (ha_mailbox_filled(&b->mailbox))
		ha_sleeper_stay(&b->sleeper);
	else
		ha_sleeper_wait(&b->sleeper, ina_shm_server_fd(b->server),
				timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * HA_NS_PER_MS);
	take_messages(b);
	ina_shm_server_poll(b->server, 0);
	tick_net(b);
}

/* ---- beginning and end ---- */

static int start_workers(struct ha_backend *b, const struct ha_backend_options *o)
{
	b->worker = calloc(b->net->workers, sizeof(*b->worker));
	for (unsigned i = 0; b->worker && i < b->net->workers; i++) {
		struct ha_worker_thread *w =
			aligned_alloc(_Alignof(struct ha_worker_thread), sizeof(*w));
		int err;

		if (!w)
			return -ENOMEM;
		memset(w, 0, sizeof(*w));
		w->number = i;
		w->net = b->net;
		w->limits = o->limits;
		w->cpu = o->cpu ? o->cpu[1 + i] : -1;
		w->balancer = &b->balancer.sleeper;
		b->worker[i] = w;
		err = ha_worker_thread_start(w);
		if (err)
			return err;
	}
	return b->worker ? 0 : -ENOMEM;
}

static int open_balancer(struct ha_backend *b, const struct ha_backend_options *o)
{
	b->balancer.workers = b->net->workers;
	b->balancer.idle_ns = o->limits.idle_ns;
	b->balancer.shared = o->limits.shared;
	b->balancer.loop = o->loop;
	b->balancer.cpu = o->cpu ? o->cpu[0] : -1;
	b->balancer.control = &b->mailbox;
	return ha_balancer_open(&b->balancer);
}

static int start_registrar(struct ha_backend *b, const struct ha_backend_options *o)
{
	b->registrar.authority = b->authority;
	b->registrar.net = b->net;
	b->registrar.switch_mac = o->switch_mac;
	b->registrar.control = &b->mailbox;
	return ha_registrar_start(&b->registrar);
}

struct ha_backend *ha_backend_open(const struct ha_backend_options *o, struct ha_net *net,
				   struct ha_authority *authority, char *why, size_t size)
{
	struct ha_backend *b = aligned_alloc(_Alignof(struct ha_backend), sizeof(*b));
	struct ina_shm_server_config server = o->server;
	int err = -ENOMEM;

	if (!b) {
		snprintf(why, size, "no memory");
		net->ops->close(net);
		authority->ops->close(authority);
		return NULL;
	}
	memset(b, 0, sizeof(*b));
	b->sleeper.fd = -1;
	b->net = net;
	b->authority = authority;
	b->incarnation = ha_random_u64();
	server.address = net->addr;
	err = ha_sleeper_open(&b->sleeper);
	ha_mailbox_open(&b->mailbox, &b->sleeper);
	/* Workers ring the balancer; its thread looks at them. */
	if (!err)
		err = open_balancer(b, o);
	if (!err)
		err = start_workers(b, o);
	b->balancer.worker = b->worker;
	if (!err)
		err = ha_balancer_start(&b->balancer);
	if (!err)
		err = start_registrar(b, o);
	if (err)
		snprintf(why, size, "it cannot start its threads: %s", strerror(-err));
	else
		b->server = ina_shm_server_open(&server, &server_ops, b, why, size);
	if (b->server)
		return b;
	ha_backend_close(b);
	return NULL;
}

/* What is on its way to nobody. */
static void drain_mailbox(struct ha_backend *b)
{
	struct ha_message *message;

	while ((message = ha_mailbox_take(&b->mailbox)))
		if (message->kind >= HA_QUESTION_CREATE)
			free(message->what);
}

void ha_backend_close(struct ha_backend *b)
{
	struct ha_peer *p;

	atomic_store_explicit(&b->balancer.closing, true, memory_order_relaxed);
	if (b->server)
		/* detach_client() for each: their ranks are removed, and notify the switch */
		ina_shm_server_close(b->server);
	b->server = NULL;
	while (b->nmembers) {
		ha_sleeper_announce(&b->sleeper);
		if (ha_mailbox_filled(&b->mailbox))
			ha_sleeper_stay(&b->sleeper);
		else
			ha_sleeper_wait(&b->sleeper, -1, UINT64_MAX);
		take_messages(b);
	}
	ha_registrar_stop(&b->registrar);
	ha_balancer_stop(&b->balancer);
	for (unsigned i = 0; b->worker && i < b->net->workers && b->worker[i]; i++) {
		ha_worker_thread_stop(b->worker[i]);
		free(b->worker[i]);
	}
	free(b->worker);
	ha_balancer_close(&b->balancer);
	drain_mailbox(b);
	while ((p = LIST_FIRST(&b->peers))) {
		LIST_REMOVE(p, sibling);
		ha_peer_free(p);
	}
	ha_sleeper_close(&b->sleeper);
	ha_mailbox_close(&b->mailbox);
	b->net->ops->close(b->net);
	b->authority->ops->close(b->authority);
	free(b);
}
