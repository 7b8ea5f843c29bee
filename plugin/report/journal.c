/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/report/journal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/report/closing.h"
#include "plugin/report/event_json.h"
#include "plugin/report/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REFRESH_NS HA_NS_PER_S /* how old the totals on the page may be */

struct ha_journal {
	pthread_mutex_t lock; /* all below; taken inside ctx->drive, never around it */
	struct ha_status status;
	int fd;      /* of HA_NCCL_EVENTS; -1: none */
	bool wanted; /* lines that are not written count as lost */
	bool warned; /* and that has been said */
	bool torn;   /* the last line was written in part */
	char path[HA_CONFIG_TEXT_MAX];
	char host[64];
	uint64_t due;      /* when the totals are taken over again; under ctx->drive */
	atomic_bool stale; /* an event has changed what the page sums up */
	atomic_bool hold;  /* events wait in the queue until the driver has time */
	STAILQ_HEAD(, queued_event) queue;
};

/* What has happened, and is not reported yet. */
struct queued_event {
	STAILQ_ENTRY(queued_event) entry;
	struct ha_event e;
	struct ha_status_event record;
	char text[];
};

/* ---- the log ---- */

/*
 * Requests that are refused, and a queue pair that a peer broke by asking for a buffer that was
 * given back, are mostly how a connection ends: the program gives its buffers back and closes. An
 * end that is none has its LOST.
 */
static bool is_closing(const struct ha_event *e, uint64_t at)
{
	if (!e->bundle || e->kind == HA_EVENT_LOST)
		return false;
	if (ha_closing_since(&e->bundle->refused->at, at))
		return e->cause == HA_CAUSE_WORK_FAILED || e->cause == HA_CAUSE_QUEUE_ERROR ||
		       e->cause == HA_CAUSE_PEER_NOTICE || e->cause == HA_CAUSE_RAIL_LOST;
	return ha_closing_since(&e->bundle->registered.given_back_at, at) &&
	       (e->cause == HA_CAUSE_QUEUE_ERROR || e->cause == HA_CAUSE_PEER_NOTICE ||
		e->cause == HA_CAUSE_RAIL_LOST);
}

static bool is_warning(const struct ha_event *e, uint64_t at)
{
	if (is_closing(e, at))
		return false;
	switch (e->kind) {
	case HA_EVENT_SUSPECTED:
	case HA_EVENT_FAILED_OVER:
	case HA_EVENT_LOST:
		return true;
	case HA_EVENT_DEVICE:
		return e->cause == HA_CAUSE_PORT_DOWN || e->cause == HA_CAUSE_DEVICE_FAILED ||
		       e->cause == HA_CAUSE_QUEUE_ERROR;
	case HA_EVENT_NOT_PROTECTED:
		return e->cause == HA_CAUSE_RAIL_LOST || e->cause == HA_CAUSE_STANDBY_FAILED;
	default:
		return false;
	}
}

/* A name of the tables as a person would write it. */
static const char *to_words(const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s", name);
	for (char *c = out; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	return out;
}

/* The connection, else the device, else nobody. */
static const char *event_subject(const struct ha_event *e, const struct ha_status_event *r)
{
	if (e->bundle)
		return e->bundle->name;
	return *r->device ? r->device : NULL;
}

static bool event_has_sums(const struct ha_event *e)
{
	return e->requests || e->bytes || e->stall_ns || e->kind == HA_EVENT_FAILED_OVER;
}

/* "rail 1 (mlx5_2:1 to mlx5_3:1, epoch 4) failed over: 3 requests (1024 bytes) replayed, ..." */
static void log_event(const struct ha_event *e, const struct ha_status_event *r, const char *text)
{
	const char *name = event_subject(e, r);
	char rail[128] = "", sums[200] = "", kind[32], cause[32], line[1024];

	if (r->rail >= 0)
		snprintf(rail, sizeof(rail), "rail %d (%s to %s, epoch %u) ", r->rail, r->device,
			 r->peer_device, r->epoch);
	if (event_has_sums(e))
		snprintf(sums, sizeof(sums),
			 ": %" PRIu64 " requests (%" PRIu64
			 " bytes) replayed, %.3f ms without progress, "
			 "%.3f ms of it registering",
			 e->requests, e->bytes, (double)e->stall_ns / 1e6,
			 (double)e->registration_ns / 1e6);
	to_words(ha_event_kind_text(e->kind), kind, sizeof(kind));
	to_words(ha_event_cause_text(e->cause), cause, sizeof(cause));
	if (!*text && (e->cause != HA_CAUSE_NONE || e->kind == HA_EVENT_DEVICE))
		text = cause;
	if (e->kind == HA_EVENT_DEVICE)
		snprintf(line, sizeof(line), "%s", text);
	else
		snprintf(line, sizeof(line), "%s%s%s%s%s", rail, kind, sums, *text ? ": " : "",
			 text);
	if (is_warning(e, r->mono))
		HA_WARN(name, "%s", line);
	else
		HA_INFO(name, "%s", line);
}

/* ---- the file ---- */

static void lose_line(struct ha_journal *j, const char *why)
{
	j->status.totals.lines_lost++;
	if (j->warned)
		return;
	j->warned = true;
	HA_WARN(NULL,
		"HA_NCCL_EVENTS: %s: %s; lines that cannot be written are only counted (`ha "
		"status`)",
		j->path, why);
}

static void open_file(struct ha_journal *j, const struct ha_config *config)
{
	struct stat st;

	j->fd = -1;
	if (!*config->events)
		return;
	j->wanted = true;
	if (!ha_process_expand(config->events, j->path, sizeof(j->path))) {
		HA_WARN(NULL, "HA_NCCL_EVENTS: the name is too long; no lines are written");
		j->warned = true;
		return;
	}
	/* Not blocking: a pipe whose reader sleeps must not stop a failover. */
	j->fd = open(j->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		     0644);
	if (j->fd >= 0 && !fstat(j->fd, &st) && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
		/* whoever reads a pipe may go, and the signal would kill the host program */
		close(j->fd);
		j->fd = -1;
		errno = EINVAL;
	}
	if (j->fd >= 0)
		return;
	HA_WARN(NULL,
		"HA_NCCL_EVENTS: cannot append to %s: %s; lines are only counted (`ha status`)",
		j->path, strerror(errno));
	j->warned = true;
}

static void write_line(struct ha_journal *j, const struct ha_status_event *record, const char *text)
{
	char line[1 + HA_EVENT_JSON_MAX];
	size_t skip = !j->torn,
	       size = 1 + ha_event_json(record, text, j->host, (unsigned)getpid(), line + 1);
	ssize_t n;

	line[0] = '\n'; /* behind a torn line */
	if (j->fd < 0) {
		lose_line(j, "not open");
		return;
	}
	do
		n = write(j->fd, line + skip, size - skip);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)(size - skip)) {
		j->torn = false;
		return;
	}
	j->torn |= n > 0;
	lose_line(j, n < 0 ? strerror(errno) : "no room for a whole line");
}

/* ---- events ---- */

/* Under a simulator's clock nothing may depend on the day. */
static uint64_t wall_now(const struct ha_ctx *ctx)
{
	struct timespec ts;

	if (ctx->clock != &ha_clock_live)
		return ha_clock_now(ctx->clock);
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * HA_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = 0;
}

static void fill_record(const struct ha_ctx *ctx, const struct ha_event *e, const char *text,
			struct ha_status_event *r)
{
	const struct ha_device *dev = ha_event_device(e);

	memset(r, 0, sizeof(*r));
	r->kind = (uint16_t)e->kind;
	r->cause = (uint16_t)e->cause;
	r->wall = wall_now(ctx);
	r->mono = ha_clock_now(ctx->clock);
	r->requests = e->requests;
	r->bytes = e->bytes;
	r->stall = e->stall_ns;
	r->registration = e->registration_ns;
	r->rail = e->rail ? e->rail->index : -1;
	r->epoch = e->rail ? e->rail->epoch : 0;
	if (e->bundle)
		copy_text(r->connection, sizeof(r->connection), e->bundle->name);
	if (dev)
		copy_text(r->device, HA_STATUS_NAME, dev->name);
	if (e->rail)
		copy_text(r->peer_device, sizeof(r->peer_device), e->rail->setup.peer.name);
	copy_text(r->text, sizeof(r->text), text);
}

/* Under j->lock. */
static void report_event(struct ha_journal *j, const struct ha_event *e,
			 const struct ha_status_event *record, const char *text)
{
	log_event(e, record, text);
	if (j->wanted)
		write_line(j, record, text);
	ha_status_event(&j->status, e, record);
}

/* Under j->lock. */
static bool report_first(struct ha_journal *j)
{
	struct queued_event *t = STAILQ_FIRST(&j->queue);

	if (!t)
		return false;
	STAILQ_REMOVE_HEAD(&j->queue, entry);
	report_event(j, &t->e, &t->record, t->text);
	free(t);
	return true;
}

/* One at a time, so that a thread with news never waits for many. */
static void report_queue(struct ha_journal *j)
{
	bool more;

	do {
		pthread_mutex_lock(&j->lock);
		more = report_first(j);
		pthread_mutex_unlock(&j->lock);
	} while (more);
}

/* Under j->lock. */
static bool enqueue_event(struct ha_journal *j, const struct ha_event *e,
			  const struct ha_status_event *record, const char *text)
{
	size_t size = strlen(text) + 1;
	struct queued_event *t = malloc(sizeof(*t) + size);

	if (!t)
		return false;
	t->e = *e;
	t->record = *record;
	memcpy(t->text, text, size);
	STAILQ_INSERT_TAIL(&j->queue, t, entry);
	return true;
}

void ha_journal_event(struct ha_ctx *ctx, const struct ha_event *e)
{
	const char *text = e->text ? e->text : "";
	struct ha_journal *j = ctx->journal;
	struct ha_status_event record;
	bool hold;

	fill_record(ctx, e, text, &record);
	if (!j) {
		log_event(e, &record, text);
		return;
	}
	/* Who learns of the end of a connection may end the process. */
	hold = e->kind != HA_EVENT_LOST && atomic_load_explicit(&j->hold, memory_order_relaxed);
	pthread_mutex_lock(&j->lock);
	record.number = j->status.totals.next_event++;
	if ((hold || !STAILQ_EMPTY(&j->queue)) && enqueue_event(j, e, &record, text)) {
		pthread_mutex_unlock(&j->lock);
		if (!hold)
			report_queue(j);
	} else {
		report_event(j, e, &record, text);
		pthread_mutex_unlock(&j->lock);
	}
	if (!hold && j->status.file.page &&
	    !atomic_exchange_explicit(&j->stale, true, memory_order_relaxed))
		ha_loop_wake(&ctx->loop);
}

void ha_journal_hold(struct ha_ctx *ctx)
{
	if (ctx->journal)
		atomic_store_explicit(&ctx->journal->hold, true, memory_order_relaxed);
}

void ha_journal_release(struct ha_ctx *ctx)
{
	struct ha_journal *j = ctx->journal;

	if (!j || !atomic_load_explicit(&j->hold, memory_order_relaxed))
		return;
	atomic_store_explicit(&j->hold, false, memory_order_relaxed);
	atomic_store_explicit(&j->stale, true, memory_order_relaxed);
	report_queue(j);
}

void ha_journal_eventf(struct ha_ctx *ctx, const struct ha_event *event, const char *fmt, ...)
{
	struct ha_event e = *event;
	char text[HA_EVENT_TEXT_MAX + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	e.text = text;
	ha_journal_event(ctx, &e);
}

uint64_t ha_journal_count(struct ha_ctx *ctx, enum ha_event_kind kind)
{
	struct ha_journal *j = ctx->journal;
	uint64_t n;

	if (!j)
		return 0;
	report_queue(j);
	pthread_mutex_lock(&j->lock);
	n = j->status.totals.events[kind];
	pthread_mutex_unlock(&j->lock);
	return n;
}

void ha_journal_flush(struct ha_ctx *ctx)
{
	if (ctx->journal)
		report_queue(ctx->journal);
}

void ha_journal_forget(struct ha_bundle *b)
{
	struct ha_journal *j = b->ctx->journal;

	if (!j)
		return;
	report_queue(j); /* the queue knows the bundle */
	pthread_mutex_lock(&j->lock);
	ha_status_forget(&j->status, b);
	pthread_mutex_unlock(&j->lock);
	atomic_store_explicit(&j->stale, true, memory_order_relaxed);
}

void ha_status_kept_out(struct ha_ctx *ctx)
{
	if (ctx->journal)
		atomic_fetch_add_explicit(&ctx->journal->status.kept_out, 1, memory_order_relaxed);
}

uint64_t ha_journal_round(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_journal *j = ctx->journal;

	if (!j || !j->status.file.page || atomic_load_explicit(&j->hold, memory_order_relaxed))
		return UINT64_MAX;
	if (now >= j->due || atomic_load_explicit(&j->stale, memory_order_relaxed)) {
		atomic_store_explicit(&j->stale, false, memory_order_relaxed);
		pthread_mutex_lock(&j->lock);
		ha_status_refresh(&j->status, ctx, now);
		pthread_mutex_unlock(&j->lock);
		j->due = now + REFRESH_NS;
	}
	return LIST_EMPTY(&ctx->bundles) ? UINT64_MAX : j->due;
}

void ha_journal_open(struct ha_ctx *ctx)
{
	struct ha_journal *j = calloc(1, sizeof(*j));

	if (!j) {
		HA_WARN(NULL, "no memory for the journal; events are only logged");
		return;
	}
	pthread_mutex_init(&j->lock, NULL);
	atomic_init(&j->stale, false);
	atomic_init(&j->hold, false);
	STAILQ_INIT(&j->queue);
	gethostname(j->host, sizeof(j->host) - 1);
	open_file(j, &ctx->config);
	ha_status_open(&j->status, ctx);
	ctx->journal = j;
}

void ha_journal_close(struct ha_ctx *ctx)
{
	struct ha_journal *j = ctx->journal;

	if (!j)
		return;
	ctx->journal = NULL;
	report_queue(j);
	ha_status_close(&j->status);
	if (j->fd >= 0)
		close(j->fd);
	pthread_mutex_destroy(&j->lock);
	free(j);
}
