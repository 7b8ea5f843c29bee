/* SPDX-License-Identifier: BSD-3-Clause */
/* dump.h - everything that the agent knows, as JSON for people and programs, and as OpenMetrics for
 * monitoring */
#ifndef HA_AGENT_DUMP_H
#define HA_AGENT_DUMP_H

#include <stdio.h>

struct ha_daemon;

/* One JSON object and a newline; docs/operations.md has its fields. */
void ha_dump(const struct ha_daemon *d, FILE *out);
/* OpenMetrics 1.0 text, with its end. */
void ha_dump_metrics(const struct ha_daemon *d, FILE *out);

#endif
