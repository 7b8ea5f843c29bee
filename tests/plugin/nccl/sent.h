/* SPDX-License-Identifier: BSD-3-Clause */
/* sent.h - what a NIC has sent, by its own counters: a software NIC of this process, or the
 * kernel's rdma_rxe */
#ifndef HA_TESTS_NCCL_SENT_H
#define HA_TESTS_NCCL_SENT_H

#include "tests/plugin/nccl/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softroce/control.h"

/* Packets, of the whole machine. */
static inline uint64_t rig_sent_by_kernel(const char *device)
{
	char path[128];
	unsigned long long packets;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/sent_pkts",
		 device);
	file = fopen(path, "re");
	CHECK(file && fscanf(file, "%llu", &packets) == 1, "no %s", path);
	fclose(file);
	return packets;
}

/* Bytes of payload that count as one. */
static inline double rig_sent_unit(void)
{
	return strncmp(rig_device(0), "soft", 4) ? 4096 : 1;
}

/* Bytes on the wire; of a kernel's NIC packets, of which large messages have a number in
 * proportion. */
static inline uint64_t rig_sent_by(const char *device)
{
	char selector[64];
	struct sr_control_entry *list;
	uint64_t bytes;
	int n;

	if (strncmp(device, "soft", 4))
		return rig_sent_by_kernel(device);
	snprintf(selector, sizeof(selector), "%s:%d", device, (int)getpid());
	list = sr_control_list(selector, &n);
	CHECK(list && n == 1, "%d devices are called %s", n, selector);
	CHECK(!sr_control_refresh(list), "its counters are not there");
	bytes = list->page.counters.sent_bytes;
	free(list);
	return bytes;
}

/* How far from its share a rail's part of `all` bytes may be: 1 %, and what a busy NIC had to send
 * again, in no proportion. */
static inline double rig_sent_slack(double all, double payload)
{
	return 0.01 + (all > payload ? (all - payload) / all : 0);
}

#endif
