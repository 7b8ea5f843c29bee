/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/report/event_json.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A byte grows to six at most (\u00xx). The rest of the line, numbers and names of fields, is below
 * 700 bytes. */
static_assert(6 * (HA_EVENT_TEXT_MAX + 64 + sizeof(((struct ha_status_event *)0)->connection) +
		   2 * HA_STATUS_NAME) <
		      HA_EVENT_JSON_MAX - 700,
	      "a line always fits");

struct line {
	char *text;
	size_t at;
};

static __attribute__((format(printf, 2, 3))) void put_format(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->at, HA_EVENT_JSON_MAX - l->at, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->at += (size_t)n;
}

/* How many bytes from `s` on go into a JSON string as they are. */
static size_t count_plain(const char *s, const char *end)
{
	const char *at = s;

	while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 && *at != 0x7f) {
		int n = ha_utf8(at);

		if (!n || n > end - at)
			break;
		at += n;
	}
	return (size_t)(at - s);
}

static void put_bytes(struct line *l, const char *bytes, size_t n)
{
	memcpy(l->text + l->at, bytes, n);
	l->at += n;
}

static void put_escaped(struct line *l, char c)
{
	if (c == '"' || c == '\\')
		put_format(l, "\\%c", c);
	else if ((unsigned char)c < 0x20 || c == 0x7f)
		put_format(l, "\\u%04x", (unsigned)c);
	else
		put_format(l, "\\ufffd");
}

static void put_text(struct line *l, const char *name, const char *text, size_t max)
{
	const char *end = text + strnlen(text, max);

	put_format(l, ",\"%s\":\"", name);
	for (const char *s = text; s < end; s++) {
		size_t n = count_plain(s, end);

		put_bytes(l, s, n);
		s += n;
		if (s == end || ha_utf8(s) > end - s)
			break; /* a sequence that the limit cuts */
		put_escaped(l, *s);
	}
	put_format(l, "\"");
}

static void put_number(struct line *l, const char *name, uint64_t value)
{
	put_format(l, ",\"%s\":%" PRIu64, name, value);
}

static void put_time(struct line *l, uint64_t wall)
{
	time_t seconds = (time_t)(wall / HA_NS_PER_S);
	struct tm tm;
	char text[32];

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
	put_format(l, "{\"time\":\"%s.%09" PRIu64 "Z\"", text, wall % HA_NS_PER_S);
}

size_t ha_event_json(const struct ha_status_event *e, const char *text, const char *host,
		     unsigned pid, char *out)
{
	struct line l = { out, 0 };

	put_time(&l, e->wall);
	put_number(&l, "monotonic_ns", e->mono);
	put_text(&l, "host", host, 64);
	put_number(&l, "pid", pid);
	put_number(&l, "number", e->number);
	put_text(&l, "event", ha_event_kind_text(e->kind), 32);
	put_text(&l, "cause", ha_event_cause_text(e->cause), 32);
	if (*e->connection)
		put_text(&l, "connection", e->connection, sizeof(e->connection));
	if (*e->device)
		put_text(&l, "device", e->device, sizeof(e->device));
	if (e->rail >= 0) {
		put_number(&l, "rail", (uint64_t)e->rail);
		put_text(&l, "peer_device", e->peer_device, sizeof(e->peer_device));
		put_number(&l, "epoch", e->epoch);
	}
	if (e->kind == HA_EVENT_FAILED_OVER || e->requests || e->bytes || e->stall ||
	    e->registration) {
		put_number(&l, "requests", e->requests);
		put_number(&l, "bytes", e->bytes);
		put_number(&l, "stall_ns", e->stall);
		put_number(&l, "registration_ns", e->registration);
	}
	if (*text)
		put_text(&l, "text", text, HA_EVENT_TEXT_MAX);
	put_format(&l, "}\n");
	return l.at;
}
