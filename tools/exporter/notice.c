/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/notice.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/report/event_json.h"

enum notice_priority notice_priority(const struct ha_status_event *e)
{
	switch (e->kind) {
	case HA_EVENT_LOST:
		return NOTICE_ERROR;
	case HA_EVENT_FAILED_OVER:
	case HA_EVENT_SLOW:
		return NOTICE_WARNING;
	case HA_EVENT_NOT_PROTECTED:
		return e->cause == HA_CAUSE_RAIL_LOST || e->cause == HA_CAUSE_STANDBY_FAILED
			       ? NOTICE_WARNING
			       : NOTICE_NOTICE;
	case HA_EVENT_DEVICE:
		return e->cause == HA_CAUSE_PORT_DOWN || e->cause == HA_CAUSE_DEVICE_FAILED
			       ? NOTICE_WARNING
			       : NOTICE_NOTICE;
	case HA_EVENT_RECOVERED:
	case HA_EVENT_FAILED_BACK:
	case HA_EVENT_ADDED:
		return NOTICE_NOTICE;
	default:
		return NOTICE_NONE;
	}
}

/* A value of a page has no line end: status_read.h made it printable. */
void notice_print(const struct ha_status_event *e, char text[NOTICE_TEXT_MAX])
{
	snprintf(text, NOTICE_TEXT_MAX, "%s %s: %s (%s), stalled %.3f ms",
		 *e->connection ? e->connection : e->device, ha_event_kind_text(e->kind),
		 ha_event_cause_text(e->cause), *e->text ? e->text : "no more is known",
		 (double)e->stall / 1e6);
}

static const char *severity_text(enum notice_priority priority)
{
	switch (priority) {
	case NOTICE_ERROR:
		return "error";
	case NOTICE_WARNING:
		return "warning";
	default:
		return "notice";
	}
}

static void put_text(const char *name, const char *text, FILE *out)
{
	json_t *value = json_string(text);
	char *quoted = json_dumps(value, JSON_ENCODE_ANY);

	fprintf(out, ",\"%s\":%s", name, quoted ? quoted : "null");
	free(quoted);
	json_decref(value);
}

char *notice_json(const struct watcher_event *event, const char *host)
{
	const struct ha_status_event *e = &event->event;
	char line[HA_EVENT_JSON_MAX], message[NOTICE_TEXT_MAX], *text = NULL;
	size_t length = ha_event_json(e, e->text, host, event->pid, line), size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	notice_print(e, message);
	fprintf(out, "%.*s", (int)(length - strlen("}\n")), line);
	put_text("job", event->job, out);
	put_text("severity", severity_text(notice_priority(e)), out);
	put_text("message", message, out);
	fputc('}', out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}
