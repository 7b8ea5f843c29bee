/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h - the controller in numbers, as OpenMetrics */
#ifndef HA_INA_METRICS_H
#define HA_INA_METRICS_H

#include <stdint.h>
#include <stdio.h>

struct ha_server_counters;
struct ha_service;

void ha_controller_metrics(const struct ha_service *service,
			   const struct ha_server_counters *server, uint64_t now, FILE *out);

#endif
