/* SPDX-License-Identifier: BSD-3-Clause */
/* port_errors.h - what a port has counted of a bad cable: symbol errors, links that went down */
#ifndef HA_TOPO_PORT_ERRORS_H
#define HA_TOPO_PORT_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

/* Since somebody reset the port's counters; -1: the driver has no such file. */
struct ha_port_errors {
	long symbols, downs, recoveries;
};

/* /sys/class/infiniband/DEVICE/ports/PORT/counters. True: at least one is not 0. */
bool ha_port_errors_read(const char *sysfs_root, const char *device, int port,
			 struct ha_port_errors *errors);
/* The same of a port as "mlx5_0:1", in words: "12 symbol errors, link down 3 times"; "" when all
 * are 0. Returns text. */
const char *ha_port_errors_text(const char *sysfs_root, const char *label, char *text, size_t size);

#endif
