/* SPDX-License-Identifier: BSD-3-Clause */
/* status_view.h - the status pages as a table and as JSON */
#ifndef HA_TOOLS_STATUS_VIEW_H
#define HA_TOOLS_STATUS_VIEW_H

#include "tools/status_read.h"

#include <stdio.h>

/* events: how many of the last ones per process. `dir`: where the pages were looked for. */
void ha_status_print(const struct ha_status_found *found, size_t n, const char *dir, int events,
		     FILE *out);
/* One object: {"processes": [...], "refused": [...]}. Returns 0 or -ENOMEM. */
int ha_status_print_json(const struct ha_status_found *found, size_t n, FILE *out);

const char *ha_status_port_text(unsigned port);
const char *ha_status_rail_text(unsigned state);
const char *ha_status_protection_text(unsigned protection);
/* "nic", "switch", "nic here", "nic there"; "" = nothing, or it does not say. */
const char *ha_status_against_text(unsigned against);

#endif
