/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/notice.h"

#include <stdio.h>

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
