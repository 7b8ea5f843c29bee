/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steer.h - the device puts each worker's packets into a queue of their own: by protocol and DSCP,
 * as NetCCL's backend does
 */
#ifndef INA_PORT_STEER_H
#define INA_PORT_STEER_H

#include "ina/frame/port/port.h"

/*
 * IPv4 packets of protocols 253 and 254 with DSCP w go to queue first + w, for w below workers; the
 * rest where it went before (queue 0, or by RSS).
 * 0, or -ENOTSUP and why: the driver cannot; then nothing is changed, and spread.h does it in
 * software.
 */
int ina_steer_open(const struct ina_port *p, unsigned first, unsigned workers, char *why,
		   size_t size);
/* Takes all rules of the port away. */
void ina_steer_close(const struct ina_port *p);

#endif
