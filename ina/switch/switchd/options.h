/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the command line of ha-switch */
#ifndef INA_SWITCHD_OPTIONS_H
#define INA_SWITCHD_OPTIONS_H

#include "ina/frame/port/eal.h"
#include "ina/switch/follow.h"
#include "ina/switch/switchd/faults.h"
#include "ina/switch/switchd/mark.h"

#define INA_SERVES_MAX 16
#define INA_DPDK_MAX 16

struct ina_switch_options {
	struct ina_eal_options eal; /* ports, processors, memory */
	const char *dpdk[INA_DPDK_MAX + 1];
	unsigned ndpdk;
	uint32_t addr;
	uint8_t mac[6];
	bool has_mac;
	unsigned cores, queues, slots, packets, queue, idle_us;
	struct ina_mark_config mark;
	struct ina_faults_config faults;
	bool reflect;
	const char *groups;               /* a file, or NULL */
	const char *metrics;              /* ADDRESS:PORT, or none */
	struct ina_follow_options follow; /* client.address NULL: no controller */
	const char *serves[INA_SERVES_MAX];
	unsigned nserves;
	char name[64];
};

/* 0: go on; else the exit status + 1, after one line. */
int ina_options_parse(struct ina_switch_options *o, int argc, char **argv);

#endif
