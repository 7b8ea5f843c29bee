/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/counters.h"

#include <stdlib.h>
#include <string.h>

const struct counter_about counter_about[COUNTER_FAMILIES] = {
	[COUNTER_EVENTS] = { "hawser_plugin_events",
			     { "event", "cause" },
			     "Events of connections, rails and devices." },
	[COUNTER_FAILOVERS] = { "hawser_plugin_failovers",
				{ "device", "cause" },
				"Connections that left a device because their path on it failed." },
	[COUNTER_STALL] = { "hawser_plugin_stall_seconds",
			    { "device" },
			    "Time without progress in failovers away from a device." },
	[COUNTER_REQUESTS] = { "hawser_plugin_replayed_requests",
			       { "device" },
			       "Requests that were posted again on another path." },
	[COUNTER_BYTES] = { "hawser_plugin_replayed_bytes",
			    { "device" },
			    "Bytes that were posted again on another path." },
	[COUNTER_MESSAGES] = { "hawser_plugin_messages",
			       { "direction" },
			       "Messages that were sent and received whole." },
	[COUNTER_UNPROTECTED] = { "hawser_plugin_unprotected_seconds",
				  { NULL },
				  "Time that connections spent without a standby, summed over "
				  "them." },
	[COUNTER_MISSED] = { "hawser_plugin_events_missed",
			     { NULL },
			     "Events that a page no longer held when it was read." },
	[COUNTER_PROCESSES] = { "hawser_plugin_processes_seen",
				{ NULL },
				"Processes with the plugin that were seen." },
	[COUNTER_LAST_FAILOVER] = { "hawser_plugin_last_failover_timestamp_seconds",
				    { "device" },
				    "When a connection last left the device." },
};

static struct counter *find_counter(const struct counters *c, enum counter_family family,
				    const char *a, const char *b)
{
	for (size_t i = 0; i < c->n; i++) {
		struct counter *one = &c->list[i];

		if (one->family == family && !strncmp(one->label[0], a, COUNTER_LABEL - 1) &&
		    !strncmp(one->label[1], b, COUNTER_LABEL - 1))
			return one;
	}
	return NULL;
}

/* NULL: there is no room. */
static struct counter *make_counter(struct counters *c, enum counter_family family, const char *a,
				    const char *b)
{
	struct counter *one;

	if (c->n == c->room && c->room < COUNTERS_MAX) {
		size_t room = c->room ? 2 * c->room : 64;
		struct counter *list = realloc(c->list, room * sizeof(*list));

		if (list) {
			c->list = list;
			c->room = room;
		}
	}
	if (c->n == c->room) {
		c->refused++;
		return NULL;
	}
	one = &c->list[c->n++];
	*one = (struct counter) { .family = family };
	snprintf(one->label[0], COUNTER_LABEL, "%s", a);
	snprintf(one->label[1], COUNTER_LABEL, "%s", b);
	return one;
}

static struct counter *find_or_make(struct counters *c, enum counter_family family, const char *a,
				    const char *b)
{
	struct counter *one;

	if (!a)
		a = "";
	if (!b)
		b = "";
	one = find_counter(c, family, a, b);
	return one ? one : make_counter(c, family, a, b);
}

void counters_add(struct counters *c, enum counter_family family, const char *a, const char *b,
		  double value)
{
	struct counter *one = find_or_make(c, family, a, b);

	if (one)
		one->value += value;
}

void counters_raise(struct counters *c, enum counter_family family, const char *a, double value)
{
	struct counter *one = find_or_make(c, family, a, NULL);

	if (one && one->value < value)
		one->value = value;
}

void counters_free(struct counters *c)
{
	free(c->list);
	*c = (struct counters) { 0 };
}
