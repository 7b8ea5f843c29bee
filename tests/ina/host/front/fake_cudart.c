/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_cudart.c - a libcudart.so whose GPU is host memory: it records calls, and copies late, on a
 * thread for each stream
 *
 * Signatures and numbers are those of the CUDA Runtime API's manual. Streams work in the order of
 * what was put into them, and not at all in each other's; so whoever forgets an event gets
 * yesterday's bytes. Two devices; the stream's device must be current when it is used.
 */
#include "tests/ina/host/front/fake_cudart.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define INVALID 1
#define NOT_READY 600

struct event {
	uint64_t recorded, done; /* how many times */
	unsigned refs;
};

struct action {
	STAILQ_ENTRY(action) link;
	enum { COPY, RECORD, WAIT, CALL, STOP } kind;
	void *to;
	const void *from;
	size_t bytes;
	struct event *event;
	uint64_t turn;
	void (*call)(void *arg);
};

struct stream {
	int device;
	pthread_t thread;
	STAILQ_HEAD(, action) actions;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct fake_counts count;
static _Thread_local int current;
static char *pinned;
static size_t pinned_bytes;

static void drop_event(struct event *e)
{
	if (!--e->refs)
		free(e);
}

static void run_action(struct action *a)
{
	if (a->kind == COPY) {
		usleep(atomic_load(&count.delay_us));
		memcpy(a->to, a->from, a->bytes);
		atomic_fetch_add(&count.copies_done, 1);
	} else if (a->kind == CALL) {
		a->call(a->to);
	}
}

static void *run_stream(void *arg)
{
	struct stream *s = arg;
	bool stop = false;

	pthread_mutex_lock(&lock);
	while (!stop) {
		struct action *a = STAILQ_FIRST(&s->actions);

		if (!a || (a->kind == WAIT && a->event->done < a->turn)) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		run_action(a);
		pthread_mutex_lock(&lock);
		stop = a->kind == STOP;
		if (a->kind == RECORD)
			a->event->done = a->turn;
		if (a->event)
			drop_event(a->event);
		STAILQ_REMOVE_HEAD(&s->actions, link);
		free(a);
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static int count_wrong_call(void)
{
	atomic_fetch_add(&count.wrong, 1);
	return INVALID;
}

/* With the lock. */
static void append_action(struct stream *s, struct action action)
{
	struct action *a = malloc(sizeof(*a));

	*a = action;
	STAILQ_INSERT_TAIL(&s->actions, a, link);
	pthread_cond_broadcast(&changed);
}

API int cudaGetDevice(int *device)
{
	*device = current;
	return 0;
}

API int cudaSetDevice(int device)
{
	if (device < 0 || device > 1)
		return count_wrong_call();
	current = device;
	return 0;
}

API int cudaHostRegister(void *p, size_t bytes, unsigned flags)
{
	if (flags != 1 || pinned)
		return count_wrong_call();
	pinned = p;
	pinned_bytes = bytes;
	atomic_fetch_add(&count.registered, 1);
	return 0;
}

API int cudaHostUnregister(void *p)
{
	if (p != pinned)
		return count_wrong_call();
	pinned = NULL;
	atomic_fetch_add(&count.unregistered, 1);
	return 0;
}

API int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
	struct stream *s = calloc(1, sizeof(*s));

	s->device = current;
	STAILQ_INIT(&s->actions);
	pthread_create(&s->thread, NULL, run_stream, s);
	*stream = s;
	atomic_fetch_add(&count.streams_made, 1);
	return flags == 1 ? 0 : count_wrong_call();
}

API int cudaStreamDestroy(void *stream)
{
	struct stream *s = stream;

	pthread_mutex_lock(&lock);
	append_action(s, (struct action) { .kind = STOP });
	pthread_mutex_unlock(&lock);
	pthread_join(s->thread, NULL);
	free(s);
	atomic_fetch_add(&count.streams_gone, 1);
	return 0;
}

API int cudaEventCreateWithFlags(void **event, unsigned flags)
{
	struct event *e = calloc(1, sizeof(*e));

	e->refs = 1;
	*event = e;
	atomic_fetch_add(&count.events_made, 1);
	return flags == 2 ? 0 : count_wrong_call();
}

API int cudaEventRecord(void *event, void *stream)
{
	struct event *e = event;
	struct stream *s = stream;

	unsigned n = atomic_fetch_add(&count.records, 1) + 1,
		 from = atomic_load(&count.fail_record_at);

	if (s->device != current)
		return count_wrong_call();
	if (from && n >= from && n - from < atomic_load(&count.fail_records))
		return 700;
	pthread_mutex_lock(&lock);
	e->refs++;
	append_action(s, (struct action) { .kind = RECORD, .event = e, .turn = ++e->recorded });
	pthread_mutex_unlock(&lock);
	return 0;
}

API int cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	struct event *e = event;

	pthread_mutex_lock(&lock);
	e->refs++;
	append_action(stream, (struct action) { .kind = WAIT, .event = e, .turn = e->recorded });
	pthread_mutex_unlock(&lock);
	return flags ? count_wrong_call() : 0;
}

API int cudaStreamQuery(void *stream)
{
	struct stream *s = stream;
	bool idle;

	pthread_mutex_lock(&lock);
	idle = STAILQ_EMPTY(&s->actions);
	pthread_mutex_unlock(&lock);
	return idle ? 0 : NOT_READY;
}

API int cudaEventQuery(void *event)
{
	struct event *e = event;
	bool done;

	pthread_mutex_lock(&lock);
	done = e->done == e->recorded;
	pthread_mutex_unlock(&lock);
	return done ? 0 : NOT_READY;
}

API int cudaEventDestroy(void *event)
{
	pthread_mutex_lock(&lock);
	drop_event(event);
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&count.events_gone, 1);
	return 0;
}

static bool is_pinned(const void *p, size_t bytes)
{
	return pinned && (const char *)p >= pinned &&
	       (const char *)p + bytes <= pinned + pinned_bytes;
}

API int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	struct stream *s = stream;
	unsigned n = atomic_fetch_add(&count.copies_asked, 1) + 1;

	if (s->device != current || (kind != 1 && kind != 2) ||
	    !is_pinned(kind == 1 ? from : to, bytes) || is_pinned(kind == 1 ? to : from, 1))
		return count_wrong_call();
	if (n == atomic_load(&count.fail_at)) {
		atomic_fetch_sub(&count.copies_asked, 1);
		return 700;
	}
	pthread_mutex_lock(&lock);
	append_action(s, (struct action) { .kind = COPY, .to = to, .from = from, .bytes = bytes });
	pthread_mutex_unlock(&lock);
	return 0;
}

API const char *cudaGetErrorString(int error)
{
	return error == 700 ? "an illegal memory access was encountered" : "unknown error";
}

API void fake_launch(void *stream, void (*call)(void *arg), void *arg)
{
	pthread_mutex_lock(&lock);
	append_action(stream, (struct action) { .kind = CALL, .to = arg, .call = call });
	pthread_mutex_unlock(&lock);
}

API struct fake_counts *fake_counts(void)
{
	return &count;
}
