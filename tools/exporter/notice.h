/* SPDX-License-Identifier: BSD-3-Clause */
/* notice.h - the events that an operator acts on: how urgent they are, as text and as JSON */
#ifndef HAWSER_EXPORTER_NOTICE_H
#define HAWSER_EXPORTER_NOTICE_H

#include "tools/exporter/watcher.h"

#define NOTICE_TEXT_MAX 640

/* syslog's numbers */
enum notice_priority {
	NOTICE_NONE = 0, /* nothing that an operator acts on */
	NOTICE_ERROR = 3,
	NOTICE_WARNING = 4,
	NOTICE_NOTICE = 5,
};

enum notice_priority notice_priority(const struct ha_status_event *e);
void notice_print(const struct ha_status_event *e, char text[NOTICE_TEXT_MAX]);
/* One object, malloc'ed: the fields of HA_NCCL_EVENTS' lines, job, severity and message. NULL: no
 * memory. */
char *notice_json(const struct watcher_event *event, const char *host);

#endif
