/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/registrar.h"

#include "base/clock.h"
#include "base/log.h"
#include "ina/host/backend/net.h"
#include "ina/host/backend/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So long a switch that nobody knows the way to is not looked for again: each search takes seconds.
 */
#define HIDDEN_NS (3 * HA_NS_PER_S)

struct ha_registrar_lease {
	struct ha_group_facts group;
	unsigned rank;
	uint64_t incarnation, due; /* ns: to be renewed */
	bool doubted;              /* the last answer was none */
	LIST_ENTRY(ha_registrar_lease) link;
};

/* ---- questions ---- */

static void create_group(struct ha_registrar *r, struct ha_question *q)
{
	q->err = r->authority->ops->create(r->authority, &q->spec, &q->group, q->why,
					   sizeof(q->why));
}

static uint64_t interval_of(const struct ha_group_facts *g)
{
	return g->lease_ms ? g->lease_ms * HA_NS_PER_MS / 3 : UINT64_MAX / 2;
}

static const struct ha_registrar_hidden *find_hidden(const struct ha_registrar *r, uint32_t addr)
{
	uint64_t now = ha_clock_now(&ha_clock_live);

	for (unsigned i = 0; i < HA_REGISTRAR_HIDDEN; i++)
		if (r->hidden[i].addr == addr && r->hidden[i].until > now)
			return &r->hidden[i];
	return NULL;
}

/* In the place of the one that ends first. */
static void remember_hidden(struct ha_registrar *r, uint32_t addr, int err, const char *why)
{
	struct ha_registrar_hidden *place = &r->hidden[0];

	for (unsigned i = 1; i < HA_REGISTRAR_HIDDEN; i++)
		if (r->hidden[i].until < place->until)
			place = &r->hidden[i];
	place->addr = addr;
	place->until = ha_clock_now(&ha_clock_live) + HIDDEN_NS;
	place->err = err;
	snprintf(place->why, sizeof(place->why), "%s", why);
}

/*
 * Where packets to the switch go; before the rank is taken: one that cannot reach its switch has
 * not joined.
 */
static int find_switch(struct ha_registrar *r, struct ha_group_facts *g, char *why, size_t size)
{
	const struct ha_registrar_hidden *hidden;
	int err;

	if (r->switch_mac) {
		memcpy(g->switch_mac, r->switch_mac, 6);
		return 0;
	}
	hidden = find_hidden(r, g->switch_addr);
	if (hidden) {
		snprintf(why, size, "%s", hidden->why);
		return hidden->err;
	}
	err = r->net->ops->neighbour(r->net, g->switch_addr, g->switch_mac, why, size);
	if (err == -EHOSTUNREACH)
		remember_hidden(r, g->switch_addr, err, why);
	return err;
}

static void join_group(struct ha_registrar *r, struct ha_question *q)
{
	struct ha_registrar_lease *lease = calloc(1, sizeof(*lease));

	if (!lease) {
		q->err = -ENOMEM;
		snprintf(q->why, sizeof(q->why), "no memory");
		return;
	}
	q->err = r->authority->ops->join(r->authority, &q->group, q->rank, q->incarnation, q->why,
					 sizeof(q->why));
	if (!q->err) {
		q->err = find_switch(r, &q->group, q->why, sizeof(q->why));
		if (q->err)
			r->authority->ops->leave(r->authority, &q->group, q->rank, q->incarnation);
	}
	if (q->err) {
		free(lease);
		return;
	}
	lease->group = q->group;
	lease->rank = q->rank;
	lease->incarnation = q->incarnation;
	lease->due = ha_clock_now(&ha_clock_live) + interval_of(&q->group);
	LIST_INSERT_HEAD(&r->leases, lease, link);
}

static struct ha_registrar_lease *find_lease(const struct ha_registrar *r, uint64_t incarnation)
{
	struct ha_registrar_lease *lease;

	LIST_FOREACH(lease, &r->leases, link)
		if (lease->incarnation == incarnation)
			break;
	return lease;
}

static void remove_lease(struct ha_registrar_lease *lease)
{
	LIST_REMOVE(lease, link);
	free(lease);
}

static int leave_group(struct ha_registrar *r, uint64_t incarnation)
{
	struct ha_registrar_lease *lease = find_lease(r, incarnation);
	int err;

	if (!lease)
		return 0;
	err = r->authority->ops->leave(r->authority, &lease->group, lease->rank, incarnation);
	remove_lease(lease);
	return err;
}

static bool is_asker_gone(const struct ha_question *q)
{
	return q->peer && atomic_load_explicit(&q->peer->is_gone, memory_order_relaxed);
}

static void answer_question(struct ha_registrar *r, struct ha_message *message)
{
	struct ha_question *q = message->what;

	if (message->kind == HA_QUESTION_LEAVE) {
		leave_group(r, q->incarnation);
		free(q);
		return;
	}
	if (is_asker_gone(q))
		q->err = -ENOTCONN;
	else if (message->kind == HA_QUESTION_CREATE)
		create_group(r, q);
	else
		join_group(r, q);
	ha_mailbox_send(r->control, &q->message, message->kind, q);
}

/* ---- leases ---- */

static void report_lost_lease(struct ha_registrar *r, const struct ha_registrar_lease *lease,
			      int err, const char *why)
{
	struct ha_question *q = calloc(1, sizeof(*q));

	if (!q) /* the switch will say so, too */
		return;
	q->incarnation = lease->incarnation;
	q->err = err;
	snprintf(q->why, sizeof(q->why), "%s", why);
	ha_mailbox_send(r->control, &q->message, HA_QUESTION_LOST, q);
}

/* What renew_lease() has found. */
enum renewal {
	RENEWED,
	UNANSWERED, /* nobody knows; it goes on */
	OVER,
};

static enum renewal renew_lease(struct ha_registrar *r, struct ha_registrar_lease *lease)
{
	char why[320] = "", name[24];
	int err = r->authority->ops->renew(r->authority, &lease->group, lease->rank,
					   lease->incarnation, why, sizeof(why));

	lease->due = ha_clock_now(&ha_clock_live) + interval_of(&lease->group);
	if (err == -ECANCELED || err == -ETIMEDOUT) {
		report_lost_lease(r, lease, err, why);
		return OVER;
	}
	snprintf(name, sizeof(name), "group %u rank %u", lease->group.id, lease->rank);
	if (err && !lease->doubted)
		HA_WARN(name, "its lease cannot be renewed: %s; it goes on", why);
	else if (!err && lease->doubted)
		HA_INFO(name, "its lease is renewed again");
	lease->doubted = err != 0;
	return err ? UNANSWERED : RENEWED;
}

/* The one that is due for the longest time, or NULL. */
static struct ha_registrar_lease *find_due(const struct ha_registrar *r, uint64_t now)
{
	struct ha_registrar_lease *lease, *first = NULL;

	LIST_FOREACH(lease, &r->leases, link)
		if (lease->due <= now && (!first || lease->due < first->due))
			first = lease;
	return first;
}

/*
 * Each that is due now, once. A controller that is away is waited for once only, and the question
 * that is next has its turn.
 */
static void renew_due_leases(struct ha_registrar *r)
{
	uint64_t now = ha_clock_now(&ha_clock_live);
	struct ha_registrar_lease *lease;
	enum renewal renewal = RENEWED;

	while (renewal != UNANSWERED && !atomic_load_explicit(&r->stop, memory_order_acquire)) {
		lease = find_due(r, now);
		if (!lease)
			return;
		renewal = renew_lease(r, lease);
		if (renewal == OVER)
			remove_lease(lease);
	}
}

static uint64_t next_due(const struct ha_registrar *r)
{
	const struct ha_registrar_lease *lease;
	uint64_t due = UINT64_MAX;

	LIST_FOREACH(lease, &r->leases, link)
		due = lease->due < due ? lease->due : due;
	return due;
}

/* ---- the thread ---- */

static void wait_for_work(struct ha_registrar *r)
{
	uint64_t due = next_due(r), now = ha_clock_now(&ha_clock_live), wait = due;

	if (due != UINT64_MAX)
		wait = due > now ? due - now : 0;
	ha_sleeper_announce(&r->sleeper);
	if (ha_mailbox_filled(&r->mailbox) || atomic_load_explicit(&r->stop, memory_order_acquire))
		ha_sleeper_stay(&r->sleeper);
	else
		ha_sleeper_wait(&r->sleeper, -1, wait);
}

static void *run_registrar(void *arg)
{
	struct ha_registrar *r = arg;
	struct ha_message *message;
	int err = 0;

	pthread_setname_np(pthread_self(), "ina-registrar");
	/*
	 * In turn, for each may take seconds: no lease waits for more than one question, and no
	 * question for more than one renewal that is not answered.
	 */
	while (!atomic_load_explicit(&r->stop, memory_order_acquire)) {
		wait_for_work(r);
		message = ha_mailbox_take(&r->mailbox);
		if (message)
			answer_question(r, message);
		renew_due_leases(r);
	}
	/* A controller that is away is not waited for once for each rank. */
	while ((message = ha_mailbox_take(&r->mailbox))) {
		struct ha_question *q = message->what;

		if (message->kind == HA_QUESTION_LEAVE && !err)
			err = leave_group(r, q->incarnation);
		free(q);
	}
	while (!LIST_EMPTY(&r->leases) && !err)
		err = leave_group(r, LIST_FIRST(&r->leases)->incarnation);
	while (!LIST_EMPTY(&r->leases))
		remove_lease(LIST_FIRST(&r->leases));
	return NULL;
}

int ha_registrar_start(struct ha_registrar *r)
{
	int err = ha_sleeper_open(&r->sleeper);

	if (err)
		return err;
	ha_mailbox_open(&r->mailbox, &r->sleeper);
	err = -pthread_create(&r->thread, NULL, run_registrar, r);
	if (err)
		ha_sleeper_close(&r->sleeper);
	r->running = !err;
	return err;
}

void ha_registrar_stop(struct ha_registrar *r)
{
	if (!r->running)
		return;
	atomic_store_explicit(&r->stop, true, memory_order_release);
	ha_sleeper_ring(&r->sleeper);
	pthread_join(r->thread, NULL);
	ha_sleeper_close(&r->sleeper);
	ha_mailbox_close(&r->mailbox);
	r->running = false;
}
