/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter.c - see filter.h
 *
 * Hot functions get no table, only a queue pair or queue. What belongs to one is found by its
 * context in a process-wide list (`attachments`). Stacked filters share a context; each depth has
 * functions of its own, made by the macro DEPTH, so that the function itself says which filter of
 * the stack it belongs to.
 */
#include "tests/rdma/verbs/filter.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum action { ACTION_FAIL, ACTION_STATUS, ACTION_DROP, ACTION_DELAY };

struct rule {
	enum action action;
	enum ha_filter_call call; /* ACTION_FAIL */
	uint64_t first, last;     /* numbers of calls, or of completions */
	int value;                /* negative errno, completion status, or polls */
};

/* A completion on its way out. */
struct held {
	STAILQ_ENTRY(held) link;
	struct ibv_cq *cq;
	unsigned polls; /* until it may go */
	struct ibv_wc wc;
};

struct ha_verbs_filter {
	struct ha_verbs_ops ops; /* first: the table's address is ours */
	const struct ha_verbs_ops *inner;
	pthread_mutex_t lock; /* everything below */
	int nrules;
	struct rule rules[HA_FILTER_RULES_MAX];
	uint64_t calls[HA_FILTER_CALLS];
	uint64_t completions;
	STAILQ_HEAD(, held) held; /* in order of arrival */
};

/* A context whose hot functions go through a filter. */
struct attachment {
	LIST_ENTRY(attachment) link;
	struct ibv_context *context;
	struct ha_verbs_filter *filter;
	int depth; /* filters of the stack below this one */
	struct ha_verbs_hot hot;
};

static pthread_mutex_t attachments_lock = PTHREAD_MUTEX_INITIALIZER; /* the list below */
static LIST_HEAD(, attachment) attachments;

static struct ha_verbs_filter *filter_of(const struct ha_verbs_ops *v)
{
	return (struct ha_verbs_filter *)(void *)v;
}

/* Attachments live until their context is closed or their filter is destroyed: the result stays
 * valid for a caller. */
static struct attachment *attachment_find(const struct ibv_context *context, int depth)
{
	struct attachment *a;

	pthread_mutex_lock(&attachments_lock);
	LIST_FOREACH(a, &attachments, link)
		if (a->context == context && a->depth == depth)
			break;
	pthread_mutex_unlock(&attachments_lock);
	return a;
}

/* Context or filter may be NULL: any. */
static void attachments_remove(const struct ibv_context *context,
			       const struct ha_verbs_filter *filter)
{
	struct attachment *a, *next;

	pthread_mutex_lock(&attachments_lock);
	for (a = LIST_FIRST(&attachments); a; a = next) {
		next = LIST_NEXT(a, link);
		if ((!context || a->context == context) && (!filter || a->filter == filter)) {
			LIST_REMOVE(a, link);
			free(a);
		}
	}
	pthread_mutex_unlock(&attachments_lock);
}

/* Counts a call. 0, or the error that a rule has for it. */
static int call_enter(struct ha_verbs_filter *f, enum ha_filter_call call)
{
	int error = 0;
	uint64_t n;

	pthread_mutex_lock(&f->lock);
	n = ++f->calls[call];
	for (int i = 0; i < f->nrules; i++)
		if (f->rules[i].action == ACTION_FAIL && f->rules[i].call == call &&
		    n >= f->rules[i].first && n <= f->rules[i].last)
			error = f->rules[i].value;
	pthread_mutex_unlock(&f->lock);
	return error;
}

/* Called with the lock. The rule for completion number `n`, or NULL. */
static const struct rule *completion_rule(const struct ha_verbs_filter *f, uint64_t n)
{
	for (int i = 0; i < f->nrules; i++)
		if (f->rules[i].action != ACTION_FAIL && n >= f->rules[i].first &&
		    n <= f->rules[i].last)
			return &f->rules[i];
	return NULL;
}

/* Called with the lock. False: there is no memory; the completion then goes out at once. */
static bool completion_hold(struct ha_verbs_filter *f, struct ibv_cq *cq, const struct ibv_wc *wc,
			    unsigned polls)
{
	struct held *h = malloc(sizeof(*h));

	if (!h)
		return false;
	*h = (struct held) { .cq = cq, .polls = polls, .wc = *wc };
	STAILQ_INSERT_TAIL(&f->held, h, link);
	return true;
}

/* Called with the lock. Applies the rules to n completions in place; returns how many are left. */
static int completions_pass(struct ha_verbs_filter *f, struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int out = 0;

	for (int i = 0; i < n; i++) {
		const struct rule *rule = completion_rule(f, ++f->completions);

		if (rule && rule->action == ACTION_DROP)
			continue;
		if (rule && rule->action == ACTION_DELAY &&
		    completion_hold(f, cq, &wc[i], (unsigned)rule->value))
			continue;
		wc[out] = wc[i];
		if (rule && rule->action == ACTION_STATUS)
			wc[out].status = (enum ibv_wc_status)rule->value;
		out++;
	}
	return out;
}

/* Called with the lock. Appends completions of `cq` that have waited long enough. */
static int completions_release(struct ha_verbs_filter *f, struct ibv_cq *cq, int out, int room,
			       struct ibv_wc *wc)
{
	struct held *h, *next;

	for (h = STAILQ_FIRST(&f->held); h; h = next) {
		next = STAILQ_NEXT(h, link);
		if (h->cq != cq)
			continue;
		if (h->polls > 0 || out == room) {
			h->polls -= h->polls > 0;
			continue;
		}
		wc[out++] = h->wc;
		STAILQ_REMOVE(&f->held, h, held, link);
		free(h);
	}
	return out;
}

static int poll_filtered(struct attachment *a, struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct ha_verbs_filter *f = a->filter;
	int error = call_enter(f, HA_FILTER_poll_cq);
	int got;

	if (error)
		return error;
	got = a->hot.poll_cq(cq, n, wc);
	if (got < 0)
		return got;
	pthread_mutex_lock(&f->lock);
	got = completions_pass(f, cq, got, wc);
	got = completions_release(f, cq, got, n, wc);
	pthread_mutex_unlock(&f->lock);
	return got;
}

#define POST(depth, function, object, work)                                                    \
	static int function##_##depth(struct object *o, struct work *wr, struct work **bad_wr) \
	{                                                                                      \
		struct attachment *a = attachment_find(o->context, depth);                     \
		int error = call_enter(a->filter, HA_FILTER_##function);                       \
                                                                                               \
		if (!error)                                                                    \
			return a->hot.function(o, wr, bad_wr);                                 \
		*bad_wr = wr;                                                                  \
		return -error;                                                                 \
	}

#define DEPTH(depth)                                                                  \
	POST(depth, post_send, ibv_qp, ibv_send_wr)                                   \
	POST(depth, post_recv, ibv_qp, ibv_recv_wr)                                   \
	POST(depth, post_srq_recv, ibv_srq, ibv_recv_wr)                              \
	static int poll_cq_##depth(struct ibv_cq *cq, int n, struct ibv_wc *wc)       \
	{                                                                             \
		return poll_filtered(attachment_find(cq->context, depth), cq, n, wc); \
	}                                                                             \
	static int req_notify_cq_##depth(struct ibv_cq *cq, int solicited_only)       \
	{                                                                             \
		struct attachment *a = attachment_find(cq->context, depth);           \
		int error = call_enter(a->filter, HA_FILTER_req_notify_cq);           \
                                                                                      \
		return error ? -error : a->hot.req_notify_cq(cq, solicited_only);     \
	}

DEPTH(0)
DEPTH(1)
DEPTH(2)
DEPTH(3)

#define HOT(depth)                                                                            \
	{                                                                                     \
		post_send_##depth, post_recv_##depth, post_srq_recv_##depth, poll_cq_##depth, \
			req_notify_cq_##depth                                                 \
	}

static const struct ha_verbs_hot hot_functions[HA_FILTER_DEPTH_MAX] = { HOT(0), HOT(1), HOT(2),
									HOT(3) };

/* The wrappers of everything that returns a status; hot and close get more below. */
#define X(function, params, args)                                           \
	static int filter_##function params                                 \
	{                                                                   \
		const struct ha_verbs_ops *inner = filter_of(v)->inner;     \
		int error = call_enter(filter_of(v), HA_FILTER_##function); \
                                                                            \
		return error ? error : inner->function args;                \
	}
#include "rdma/verbs/ops_list.h"
#undef X

/* Filters below `v`; a table of another kind ends the count. */
static int depth_below(const struct ha_verbs_ops *v)
{
	const struct ha_verbs_ops *inner = filter_of(v)->inner;

	return inner->query_device == filter_query_device ? 1 + depth_below(inner) : 0;
}

static int attach_filter(const struct ha_verbs_ops *v, struct ibv_context *context,
			 struct ha_verbs_hot *hot)
{
	int depth = depth_below(v);
	struct attachment *a;
	int rc;

	if (depth >= HA_FILTER_DEPTH_MAX)
		return -ENOSPC;
	rc = filter_hot(v, context, hot);
	if (rc)
		return rc;
	if (!attachment_find(context, depth)) {
		a = malloc(sizeof(*a));
		if (!a)
			return -ENOMEM;
		*a = (struct attachment) {
			.context = context, .filter = filter_of(v), .depth = depth, .hot = *hot
		};
		pthread_mutex_lock(&attachments_lock);
		LIST_INSERT_HEAD(&attachments, a, link);
		pthread_mutex_unlock(&attachments_lock);
	}
	*hot = hot_functions[depth];
	return 0;
}

static int detach_filter(const struct ha_verbs_ops *v, struct ibv_context *context)
{
	int rc = filter_close(v, context);

	if (!rc)
		attachments_remove(context, filter_of(v));
	return rc;
}

/* What cannot fail goes straight down. */
static void pass_device_list_free(const struct ha_verbs_ops *v, struct ibv_device **list)
{
	filter_of(v)->inner->device_list_free(filter_of(v)->inner, list);
}

static uint64_t pass_device_guid(const struct ha_verbs_ops *v, struct ibv_device *device)
{
	return filter_of(v)->inner->device_guid(filter_of(v)->inner, device);
}

static void pass_ack_async_event(const struct ha_verbs_ops *v, struct ibv_async_event *event)
{
	filter_of(v)->inner->ack_async_event(filter_of(v)->inner, event);
}

static void pass_ack_cq_events(const struct ha_verbs_ops *v, struct ibv_cq *cq, unsigned n)
{
	filter_of(v)->inner->ack_cq_events(filter_of(v)->inner, cq, n);
}

int ha_verbs_filter_create(const struct ha_verbs_ops *inner, struct ha_verbs_filter **filter)
{
	struct ha_verbs_filter *f = calloc(1, sizeof(*f));

	*filter = f;
	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	f->inner = inner;
	STAILQ_INIT(&f->held);
#define X(function, params, args) f->ops.function = filter_##function;
#include "rdma/verbs/ops_list.h"
#undef X
	f->ops.name = inner->name;
	f->ops.optional_access = inner->optional_access;
	f->ops.hot = attach_filter;
	f->ops.close = detach_filter;
	f->ops.device_list_free = pass_device_list_free;
	f->ops.device_guid = pass_device_guid;
	f->ops.ack_async_event = pass_ack_async_event;
	f->ops.ack_cq_events = pass_ack_cq_events;
	return 0;
}

void ha_verbs_filter_destroy(struct ha_verbs_filter *filter)
{
	struct held *h;

	if (!filter)
		return;
	attachments_remove(NULL, filter);
	while ((h = STAILQ_FIRST(&filter->held))) {
		STAILQ_REMOVE_HEAD(&filter->held, link);
		free(h);
	}
	pthread_mutex_destroy(&filter->lock);
	free(filter);
}

const struct ha_verbs_ops *ha_verbs_filter_ops(struct ha_verbs_filter *filter)
{
	return &filter->ops;
}

/* `rule` names its calls or completions from now on; the filter counts from its start. */
static int rule_add(struct ha_verbs_filter *f, struct rule rule, uint64_t count)
{
	int rc = -ENOSPC;

	pthread_mutex_lock(&f->lock);
	if (f->nrules < HA_FILTER_RULES_MAX) {
		rule.first += rule.action == ACTION_FAIL ? f->calls[rule.call] : f->completions;
		rule.last = count > UINT64_MAX - rule.first ? UINT64_MAX : rule.first + count - 1;
		f->rules[f->nrules++] = rule;
		rc = 0;
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

int ha_verbs_filter_fail(struct ha_verbs_filter *filter, enum ha_filter_call call, uint64_t first,
			 uint64_t count, int error)
{
	return rule_add(filter, (struct rule) { ACTION_FAIL, call, first, 0, error }, count);
}

int ha_verbs_filter_completion_error(struct ha_verbs_filter *filter, uint64_t first, uint64_t count,
				     enum ibv_wc_status status)
{
	return rule_add(filter, (struct rule) { ACTION_STATUS, 0, first, 0, (int)status }, count);
}

int ha_verbs_filter_completion_drop(struct ha_verbs_filter *filter, uint64_t first, uint64_t count)
{
	return rule_add(filter, (struct rule) { ACTION_DROP, 0, first, 0, 0 }, count);
}

int ha_verbs_filter_completion_delay(struct ha_verbs_filter *filter, uint64_t first, uint64_t count,
				     unsigned polls)
{
	return rule_add(filter, (struct rule) { ACTION_DELAY, 0, first, 0, (int)polls }, count);
}

void ha_verbs_filter_clear(struct ha_verbs_filter *filter)
{
	struct held *h;

	pthread_mutex_lock(&filter->lock);
	filter->nrules = 0;
	STAILQ_FOREACH(h, &filter->held, link)
		h->polls = 0;
	pthread_mutex_unlock(&filter->lock);
}

uint64_t ha_verbs_filter_calls(struct ha_verbs_filter *filter, enum ha_filter_call call)
{
	uint64_t n;

	pthread_mutex_lock(&filter->lock);
	n = filter->calls[call];
	pthread_mutex_unlock(&filter->lock);
	return n;
}

uint64_t ha_verbs_filter_completions(struct ha_verbs_filter *filter)
{
	uint64_t n;

	pthread_mutex_lock(&filter->lock);
	n = filter->completions;
	pthread_mutex_unlock(&filter->lock);
	return n;
}
