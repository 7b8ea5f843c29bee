/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - a backend's figures: as OpenMetrics (hawser_backend_*), and as lines for the operator
 */
#ifndef INA_BACKEND_METRICS_H
#define INA_BACKEND_METRICS_H

#include "ina/host/backend/backend.h"

#include <stdio.h>

void ha_backend_metrics(const struct ha_backend *b, FILE *out);

/* What the last line was made from. */
struct ha_backend_figures {
	uint64_t at_ns, answered[INA_WORKERS_MAX];
};
/*
 * A line for each worker with traffic since the last time: its rate with headers and without
 * (NetCCL's SW_TPT and SW_GPT), packets in flight, congestion window.
 */
void ha_backend_figures_log(const struct ha_backend *b, struct ha_backend_figures *f,
			    uint64_t now_ns);

#endif
