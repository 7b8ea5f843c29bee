/* SPDX-License-Identifier: BSD-3-Clause */
/* net_dpdk.h - a port of DPDK's: once in a process */
#ifndef INA_BACKEND_NET_DPDK_H
#define INA_BACKEND_NET_DPDK_H

#include "ina/host/backend/net.h"

/*
 * port: as in ina/frame/port/eal.h; memory_mb: 0 = 256. A queue for each worker where the device
 * steers by DSCP; else whoever is free receives for all, and passes packets on. The kernel does not
 * know the card's address: ARP is asked and answered here. NULL, and why[size]: then the process
 * can only end.
 */
struct ha_net *ha_net_dpdk_open(unsigned workers, uint32_t addr, const char *port,
				unsigned memory_mb, char *why, size_t size);

#endif
