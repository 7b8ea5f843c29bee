/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_EXPORTER_METRICS_H
#define HAWSER_EXPORTER_METRICS_H

#include <stdio.h>

#include "tools/exporter/reporter.h"
#include "tools/exporter/watcher.h"

enum metrics_form {
	METRICS_OPEN, /* OpenMetrics 1.0 */
	METRICS_TEXT, /* Prometheus' text format 0.0.4, as node_exporter's textfile collector reads
		       */
};

void metrics_print(const struct watcher *w, const struct reporter *r, enum metrics_form form,
		   FILE *out);

#endif
