/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/progress.h"
#include "tools/job/rendezvous.h"
#include "tools/nccl/check.h"
#include "tools/nccl/gpus.h"
#include "tools/nccl/library.h"
#include "tools/nccl/watch.h"

#define LOOK_NS 20000000 /* between two looks */
/* for the calling thread to come back from aborted communicators */
#define COME_BACK_NS 5000000000

enum watch_state { WATCH_IDLE, WATCH_INSIDE, WATCH_FAILED };

struct ha_watch {
	pthread_t thread;
	pthread_mutex_t lock; /* protects what follows, but for moved_ns */
	pthread_cond_t wake;  /* of the thread: it is to end, or the calling thread has come back */
	enum watch_state state;
	bool inside, stop;
	int err; /* in WATCH_FAILED */
	const char *what;
	/* the thread's in WATCH_INSIDE, else the calling thread's */
	struct ha_rendezvous *rendezvous;
	struct ha_progress *progress;
	int rank, timeout_s;
	const struct nccl_gpus *gpus;
	void (*leave)(void *context);
	void *context;
	const cuda_event *events; /* those still to be reached */
	int events_count;
	int64_t moved_ns; /* relaxed: nothing but a time depends on it */
};

/* Waits so long, or until it is woken. With the lock held. */
static void wait_for_wake(struct ha_watch *w, int64_t ns)
{
	int64_t until = ha_monotonic_ns() + ns;
	struct timespec t = { until / 1000000000, until % 1000000000 };

	pthread_cond_timedwait(&w->wake, &w->lock, &t);
}

/* ---- what can be seen ---- */

static int communicators_look(struct ha_watch *w)
{
	const struct nccl_gpus *g = w->gpus;
	int err = 0, error;

	for (int i = 0; g && i < g->count && !err; i++) {
		for (int s = 0; s < g->sides && !err; s++) {
			if (!g->each[i].comms[s] ||
			    g->library->nccl.comm_async_error(g->each[i].comms[s], &error))
				continue;
			if (error != NCCL_OK && error != NCCL_IN_PROGRESS)
				err = nccl_check(g->library, &g->each[i], error, w->what);
		}
	}
	return err;
}

static void events_look(struct ha_watch *w)
{
	while (w->gpus && w->events_count && !w->gpus->library->cuda.event_query(*w->events)) {
		w->events++;
		w->events_count--;
		if (w->progress->iteration + 1 < w->progress->iterations)
			w->progress->iteration++;
		ha_watch_moved(w);
	}
}

static int look_around(struct ha_watch *w)
{
	int64_t now = ha_monotonic_ns(), idle;
	int err = communicators_look(w);

	events_look(w);
	idle = now - __atomic_load_n(&w->moved_ns, __ATOMIC_RELAXED);
	if (!err)
		err = ha_rendezvous_poll(w->rendezvous);
	if (!err && idle > (int64_t)w->timeout_s * 1000000000)
		err = ha_fault(-ETIMEDOUT, "nothing has moved for %d s in %s", w->timeout_s,
			       w->what);
	if (!err && !w->rank)
		ha_progress_print(w->progress, now);
	return err;
}

/* ---- what is done about it ---- */

/* Returns how many communicators there were. */
static int communicators_abort(const struct nccl_gpus *g)
{
	int n = 0;

	for (int i = 0; g && i < g->count; i++) {
		for (int s = 0; s < g->sides; s++) {
			if (!g->each[i].comms[s])
				continue;
			(void)g->library->nccl.comm_abort(g->each[i].comms[s]);
			n++;
		}
	}
	return n;
}

/* With the lock held, which is given away while NCCL aborts. */
static void fail_run(struct ha_watch *w, int err)
{
	const struct nccl_gpus *gpus = w->gpus;
	int64_t deadline;
	int aborted;

	w->state = WATCH_FAILED;
	w->err = err;
	pthread_mutex_unlock(&w->lock);
	aborted = communicators_abort(gpus);
	pthread_mutex_lock(&w->lock);
	deadline = ha_monotonic_ns() + (aborted ? COME_BACK_NS : 0);
	while (w->inside && !w->stop && ha_monotonic_ns() < deadline)
		wait_for_wake(w, LOOK_NS);
	if (w->inside && w->leave)
		w->leave(w->context);
}

static void *watch_run(void *argument)
{
	struct ha_watch *w = argument;
	int err;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		wait_for_wake(w, LOOK_NS);
		if (w->state != WATCH_INSIDE)
			continue;
		err = look_around(w);
		if (err)
			fail_run(w, err);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- the interface ---- */

struct ha_watch *ha_watch_open(struct ha_rendezvous *rendezvous, struct ha_progress *progress,
			       int rank, int timeout_s)
{
	struct ha_watch *w = calloc(1, sizeof(*w));
	pthread_condattr_t monotonic;
	int err = w ? 0 : ENOMEM;

	if (w) {
		progress->printed_ns = ha_monotonic_ns();
		*w = (struct ha_watch) { .rendezvous = rendezvous,
					 .progress = progress,
					 .rank = rank,
					 .timeout_s = timeout_s };
		pthread_mutex_init(&w->lock, NULL);
		pthread_condattr_init(&monotonic);
		pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
		pthread_cond_init(&w->wake, &monotonic);
		pthread_condattr_destroy(&monotonic);
		err = pthread_create(&w->thread, NULL, watch_run, w);
	}
	if (!err)
		return w;
	free(w);
	ha_fault(-err, "no thread to watch over NCCL's calls");
	return NULL;
}

void ha_watch_gpus(struct ha_watch *w, const struct nccl_gpus *gpus)
{
	pthread_mutex_lock(&w->lock);
	w->gpus = gpus;
	pthread_mutex_unlock(&w->lock);
}

void ha_watch_leaver(struct ha_watch *w, void (*leave)(void *context), void *context)
{
	pthread_mutex_lock(&w->lock);
	w->leave = leave;
	w->context = context;
	pthread_mutex_unlock(&w->lock);
}

void ha_watch_enter(struct ha_watch *w, const char *what)
{
	ha_watch_moved(w);
	pthread_mutex_lock(&w->lock);
	w->what = what;
	w->inside = true;
	if (w->state == WATCH_IDLE)
		w->state = WATCH_INSIDE;
	pthread_mutex_unlock(&w->lock);
}

int ha_watch_leave(struct ha_watch *w)
{
	int err;

	pthread_mutex_lock(&w->lock);
	w->inside = false;
	w->events_count = 0;
	err = w->err;
	if (w->state == WATCH_INSIDE)
		w->state = WATCH_IDLE;
	else
		pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	return err;
}

void ha_watch_follow(struct ha_watch *w, const cuda_event *events, int count)
{
	pthread_mutex_lock(&w->lock);
	w->events = events;
	w->events_count = count;
	pthread_mutex_unlock(&w->lock);
}

void ha_watch_moved(struct ha_watch *w)
{
	__atomic_store_n(&w->moved_ns, ha_monotonic_ns(), __ATOMIC_RELAXED);
}

void ha_watch_close(struct ha_watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
