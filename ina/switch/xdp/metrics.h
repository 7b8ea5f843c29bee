/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - the XDP switch's figures as OpenMetrics: names as ha-switch's where they mean the
 * same
 */
#ifndef INA_XDP_METRICS_H
#define INA_XDP_METRICS_H

#include "ina/switch/xdp/datapath.h"
#include "ina/switch/xdp/port.h"

#include <stdio.h>

/* One thread at a time, as all of datapath.h. Ends with # EOF. */
void ina_xdp_metrics(struct ina_xdp *x, const struct ina_xdp_port *ports, unsigned nports,
		     FILE *out);

#endif
