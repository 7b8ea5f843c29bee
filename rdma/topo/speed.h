/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TOPO_SPEED_H
#define HA_TOPO_SPEED_H

#include <stdint.h>

#include "rdma/verbs/ops.h"

/*
 * Mbit/s of a link from its attributes: active width x rate per lane, SDR to XDR (IBTA 14.2.5.6,
 * PortInfo LinkWidthActive and LinkSpeedActive; rates rounded as NCCL reports them, FDR 14,000 and
 * FDR10 10,000). 0: unknown.
 */
int ha_speed_mbps(unsigned width, unsigned speed, unsigned speed_ex);

/* Of a port: what the library says it effectively is, else the above. */
int ha_speed_port(const struct ha_verbs_ops *verbs, struct ibv_context *context, uint8_t port,
		  const struct ha_port_attr *attr);

#endif
