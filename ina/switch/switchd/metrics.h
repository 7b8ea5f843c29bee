/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h - the switch in numbers, as OpenMetrics, and in lines for people */
#ifndef INA_SWITCHD_METRICS_H
#define INA_SWITCHD_METRICS_H

#include "ina/switch/switchd/groups.h"

#include <stdio.h>

struct ina_switchd;

void ina_switchd_metrics(const struct ina_switchd *s, FILE *out);
/* Ports, groups with the places of their ranks, addresses behind ports, what was counted. */
void ina_switchd_dump(struct ina_switchd *s, FILE *out);

#endif
