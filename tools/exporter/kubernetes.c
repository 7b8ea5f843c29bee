/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/kubernetes.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/exporter/notice.h"

#define SAME_NS (600 * HA_NS_PER_S) /* an event so long after the last one is a new object */
#define COMPONENT "hawser-exporter"

/* ---- what an event is for Kubernetes ---- */

static const char *reason_of_device(unsigned cause)
{
	switch (cause) {
	case HA_CAUSE_PORT_DOWN:
		return "HawserPortDown";
	case HA_CAUSE_PORT_UP:
		return "HawserPortUp";
	case HA_CAUSE_DEVICE_FAILED:
		return "HawserDeviceFailed";
	case HA_CAUSE_DEVICE_BACK:
		return "HawserDeviceBack";
	default:
		return "HawserDeviceChanged";
	}
}

/* The names of the alert rules where there is one. */
static const char *reason_of(const struct ha_status_event *e)
{
	switch (e->kind) {
	case HA_EVENT_LOST:
		return "HawserConnectionLost";
	case HA_EVENT_FAILED_OVER:
		return "HawserFailover";
	case HA_EVENT_SLOW:
		return "HawserSlow";
	case HA_EVENT_NOT_PROTECTED:
		return "HawserUnprotected";
	case HA_EVENT_RECOVERED:
		return "HawserRecovered";
	case HA_EVENT_FAILED_BACK:
		return "HawserFailback";
	case HA_EVENT_ADDED:
		return "HawserPairAdded";
	case HA_EVENT_DEVICE:
		return reason_of_device(e->cause);
	default:
		return "HawserEvent";
	}
}

static const char *type_of(const struct ha_status_event *e)
{
	return notice_priority(e) == NOTICE_NOTICE ? "Normal" : "Warning";
}

/* ---- the objects ---- */

static uint64_t waiting_of(const struct kubernetes_object *o)
{
	return o->count - o->written;
}

static bool is_same(const struct kubernetes_object *o, const struct watcher_event *event,
		    const char *reason)
{
	const struct ha_status_event *a = &o->last.event, *b = &event->event;

	return o->reason == reason && a->cause == b->cause && !strcmp(a->device, b->device) &&
	       !strcmp(o->last.job, event->job) && b->wall < o->latest + SAME_NS;
}

/* A free record; else the one whose last event is oldest, if possible of those that are written. */
static struct kubernetes_object *find_room(struct kubernetes *k)
{
	struct kubernetes_object *best = NULL;

	for (int i = 0; i < KUBERNETES_OBJECTS; i++) {
		struct kubernetes_object *o = &k->object[i];
		bool waits = waiting_of(o) != 0, best_waits = best && waiting_of(best);

		if (!o->reason)
			return o;
		if (o == k->sending)
			continue;
		if (!best || waits < best_waits ||
		    (waits == best_waits && o->latest < best->latest))
			best = o;
	}
	sender_settle(&k->sender, waiting_of(best), false);
	return best;
}

/* Never twice, also not after a restart of the exporter, nor of two that are made at once. */
static void name_object(struct kubernetes *k, struct kubernetes_object *o)
{
	struct timespec now;
	uint64_t number;

	clock_gettime(CLOCK_REALTIME, &now);
	number = (uint64_t)now.tv_sec * HA_NS_PER_S + (uint64_t)now.tv_nsec;
	k->named = number > k->named ? number : k->named + 1;
	snprintf(o->name, sizeof(o->name), "%.230s.%016llx", k->node, (unsigned long long)k->named);
}

void kubernetes_write(struct kubernetes *k, const struct watcher_event *event)
{
	const char *reason = reason_of(&event->event);
	struct kubernetes_object *o = NULL;
	uint64_t wall = event->event.wall;

	if (notice_priority(&event->event) == NOTICE_NONE)
		return;
	pthread_mutex_lock(&k->sender.lock);
	for (int i = 0; i < KUBERNETES_OBJECTS && !o; i++)
		if (is_same(&k->object[i], event, reason))
			o = &k->object[i];
	if (!o) {
		o = find_room(k);
		*o = (struct kubernetes_object) { .reason = reason, .first = wall };
		name_object(k, o);
	}
	o->last = *event;
	o->first = wall < o->first ? wall : o->first;
	o->latest = wall > o->latest ? wall : o->latest;
	o->count++;
	sender_accept(&k->sender);
	pthread_mutex_unlock(&k->sender.lock);
}

/* ---- the API ---- */

static json_t *time_json(uint64_t wall)
{
	time_t seconds = (time_t)(wall / HA_NS_PER_S);
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
	return json_string(text);
}

static json_t *message_json(const struct kubernetes_object *o)
{
	char text[NOTICE_TEXT_MAX], all[NOTICE_TEXT_MAX + WATCHER_JOB + 8];

	notice_print(&o->last.event, text);
	snprintf(all, sizeof(all), "%s; job %s", text, o->last.job);
	return json_string(all);
}

/* The kubelet's own events have the node's name as its uid; `kubectl describe node` looks for it.
 */
static json_t *object_json(const struct kubernetes *k, const struct kubernetes_object *o)
{
	return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s},"
			 " s:s, s:s, s:o, s:{s:s, s:s}, s:s, s:s, s:o, s:o, s:I}",
			 "apiVersion", "v1", "kind", "Event", "metadata", "name", o->name,
			 "namespace", "default", "involvedObject", "apiVersion", "v1", "kind",
			 "Node", "name", k->node, "uid", k->node, "type", type_of(&o->last.event),
			 "reason", o->reason, "message", message_json(o), "source", "component",
			 COMPONENT, "host", k->node, "reportingComponent", COMPONENT,
			 "reportingInstance", k->node, "firstTimestamp", time_json(o->first),
			 "lastTimestamp", time_json(o->latest), "count", (json_int_t)o->count);
}

static json_t *patch_json(const struct kubernetes_object *o)
{
	return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)o->count, "lastTimestamp",
			 time_json(o->latest), "message", message_json(o));
}

/* The one whose events wait, and whose last one is oldest. */
static struct kubernetes_object *find_waiting(struct kubernetes *k)
{
	struct kubernetes_object *best = NULL;

	for (int i = 0; i < KUBERNETES_OBJECTS; i++) {
		struct kubernetes_object *o = &k->object[i];

		if (waiting_of(o) && (!best || o->latest < best->latest))
			best = o;
	}
	return best;
}

static bool next_object(struct sender *s, struct request *request)
{
	struct kubernetes *k = (struct kubernetes *)s;
	struct kubernetes_object *o = find_waiting(k);
	json_t *body;

	if (!o)
		return false;
	body = o->created ? patch_json(o) : object_json(k, o);
	request->body = json_dumps(body, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(body);
	if (!request->body)
		return false;
	k->sending = o;
	k->sending_count = o->count;
	request->method = o->created ? "PATCH" : "POST";
	request->type = o->created ? "application/merge-patch+json" : "application/json";
	snprintf(request->url, sizeof(request->url), "%s%s%s", k->url, o->created ? "/" : "",
		 o->created ? o->name : "");
	return true;
}

/* 409: an earlier request created it, and its answer was lost. 404: it was there, and has expired.
 * 401, 403: the token has just been replaced, or the rights are still to come. */
static enum sender_verdict judge_status(struct kubernetes *k, struct kubernetes_object *o,
					long status)
{
	if (status == 409 && !o->created) {
		o->created = true;
		return SENDER_NEXT;
	}
	if (status == 404 && o->created) {
		o->created = false;
		name_object(k, o);
		return SENDER_NEXT;
	}
	if (status == 401 || status == 403 || status == 409)
		return SENDER_AGAIN;
	return sender_judge(status);
}

/* Of a Status object its message. */
static void shorten_text(struct answer *answer)
{
	json_t *status = answer->status ? json_loads(answer->text, 0, NULL) : NULL;
	const char *message = json_string_value(json_object_get(status, "message"));

	if (message)
		snprintf(answer->text, sizeof(answer->text), "%s", message);
	json_decref(status);
}

static enum sender_verdict judge_answer(struct sender *s, struct answer *answer)
{
	struct kubernetes *k = (struct kubernetes *)s;
	struct kubernetes_object *o = k->sending;
	enum sender_verdict verdict = judge_status(k, o, answer->status);

	k->sending = NULL;
	shorten_text(answer);
	s->advice = answer->status == 401 || answer->status == 403
			    ? "; does its service account have the rights of "
			      "examples/kubernetes/rbac.yaml?"
			    : NULL;
	if (verdict == SENDER_TAKEN) {
		o->created = true;
		sender_settle(s, k->sending_count - o->written, true);
		o->written = k->sending_count;
	}
	if (verdict == SENDER_REFUSED) {
		sender_settle(s, waiting_of(o), false);
		o->written = o->count;
	}
	return verdict;
}

/* ---- the pod's environment ---- */

static bool is_node_name(const char *name)
{
	return *name && strlen(name) < KUBERNETES_NODE_MAX &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")];
}

/* NULL, or what is missing. */
static const char *read_environment(struct kubernetes *k, const char *account)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	const char *node = getenv("NODE_NAME");
	bool ipv6 = host && strchr(host, ':');

	if (!host || !port || !*host || !*port)
		return "KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set: it does not "
		       "run in a pod";
	if (!node || !is_node_name(node))
		return "NODE_NAME is not the name of a node; set it by the downward API (fieldRef: "
		       "spec.nodeName)";
	snprintf(k->node, sizeof(k->node), "%s", node);
	snprintf(k->url, sizeof(k->url), "https://%s%s%s:%s/api/v1/namespaces/default/events",
		 ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
	snprintf(k->ca, sizeof(k->ca), "%s/ca.crt", account);
	snprintf(k->token, sizeof(k->token), "%s/token", account);
	if (access(k->ca, R_OK) || access(k->token, R_OK))
		return "there is no ca.crt and token of a service account to read "
		       "(automountServiceAccountToken?)";
	return NULL;
}

struct kubernetes *kubernetes_open(const struct libcurl *curl, const char *account,
				   unsigned timeout_ms, const char **why)
{
	static const struct sender_source source = { next_object, judge_answer };
	struct kubernetes *k = calloc(1, sizeof(*k));
	char name[RECEIVER_NAME_MAX];

	*why = k ? read_environment(k, account) : strerror(ENOMEM);
	if (!*why)
		*why = request_check_url(curl, k->url, name);
	if (!*why) {
		const struct client_options client = { .curl = curl,
						       .ca = k->ca,
						       .token = k->token,
						       .direct = true,
						       .timeout_ms = timeout_ms };

		k->sender.source = &source;
		snprintf(k->sender.name, sizeof(k->sender.name), "Kubernetes %s", name);
		if (!sender_open(&k->sender, &client))
			return k;
		*why = "its thread cannot be started";
	}
	free(k);
	return NULL;
}

void kubernetes_close(struct kubernetes *k)
{
	sender_close(&k->sender);
	free(k);
}
