/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_bytes.h - what went through the ports of this host's processes
 *
 * A software NIC is its process's alone, and counts by its control page. A real port is counted by
 * the kernel, for all processes together.
 */
#ifndef HA_TOOLS_PORT_BYTES_H
#define HA_TOOLS_PORT_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "include/hawser/status.h"

struct ha_port_bytes {
	pid_t pid;
	char name[HA_STATUS_NAME]; /* "mlx5_0:1", as status pages name it */
	bool soft;                 /* a software NIC of this user */
	bool shared;               /* a real port that is in the list before, for another process */
	uint64_t sent, received;   /* bytes */
};

/* Fills in all but pid and name. sysfs: stands for "/" ("": the live system). */
void ha_port_bytes_read(struct ha_port_bytes *ports, unsigned n, const char *sysfs);

#endif
