/* SPDX-License-Identifier: BSD-3-Clause */
/* event_json.h - an event as one line of JSON */
#ifndef HA_PLUGIN_EVENT_JSON_H
#define HA_PLUGIN_EVENT_JSON_H

#include "include/hawser/status.h"

#include <stddef.h>

#define HA_EVENT_JSON_MAX 10240 /* bytes of a line, newline and final 0 included */
#define HA_EVENT_TEXT_MAX 1000  /* bytes of text taken */

/* One object and a newline into `line` (HA_EVENT_JSON_MAX bytes), always whole and always valid
 * UTF-8, whatever the names hold. text: in place of e->text, which may be shortened. Returns its
 * length. */
size_t ha_event_json(const struct ha_status_event *e, const char *text, const char *host,
		     unsigned pid, char *line);

#endif
