/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/collnet/pilot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void close_context(struct ha_pilot *p)
{
	if (p->ina)
		p->ops->close(p->ina);
	p->ina = NULL;
}

static void try_task(struct ha_pilot *p)
{
	struct ha_ina_options options = { .backend = p->backend, .give_up = p->give_up };

	p->error = p->ina ? 0 : p->ops->open(&p->ina, &options, p->why, sizeof(p->why));
	if (p->error)
		return;
	if (p->task == HA_PILOT_CREATE)
		p->error = p->ops->group_create(p->ina, p->member, p->ranks, p->name, p->ticket);
	else
		p->error = p->ops->group_join(p->ina, p->ticket, p->rank, &p->group);
	if (p->error)
		snprintf(p->why, sizeof(p->why), "%s", p->ops->error(p->ina));
}

/* A context from before may have lost its backend, and another may be there. */
static void run_task(struct ha_pilot *p)
{
	bool old = p->ina != NULL;

	try_task(p);
	if (p->error == -ENOTCONN)
		close_context(p);
	if (p->error == -ENOTCONN && old)
		try_task(p);
	if (p->error == -ENOTCONN)
		close_context(p);
}

static void *pilot_main(void *arg)
{
	struct ha_pilot *p = arg;

	run_task(p);
	/* Release: whoever sees it ready sees the results. */
	atomic_store_explicit(&p->ready, true, memory_order_release);
	return NULL;
}

int ha_pilot_start(struct ha_pilot *p, enum ha_pilot_task task)
{
	sigset_t all, before;
	int err;

	p->task = task;
	p->error = 0;
	p->why[0] = 0;
	p->group = NULL;
	atomic_store_explicit(&p->ready, false, memory_order_relaxed);
	/* The host's signals are the host's threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&p->thread, NULL, pilot_main, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	p->running = !err;
	return -err;
}

/* Waits for it. */
static void ha_pilot_end(struct ha_pilot *p)
{
	if (!p->running)
		return;
	pthread_join(p->thread, NULL);
	p->running = false;
	__atomic_store_n(p->give_up, 0, __ATOMIC_RELAXED);
}

bool ha_pilot_ended(struct ha_pilot *p)
{
	/* Acquire: pairs with the thread's release. */
	if (!p->running || !atomic_load_explicit(&p->ready, memory_order_acquire))
		return false;
	ha_pilot_end(p);
	return true;
}

void ha_pilot_hurry(struct ha_pilot *p)
{
	/* Release: pairs with the library's acquire. */
	__atomic_store_n(p->give_up, 1, __ATOMIC_RELEASE);
}

void ha_pilot_recall(struct ha_pilot *p)
{
	if (p->running)
		ha_pilot_hurry(p);
	ha_pilot_end(p);
}
