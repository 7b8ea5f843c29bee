/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - ha-backend's options and environment */
#ifndef INA_BACKEND_OPTIONS_H
#define INA_BACKEND_OPTIONS_H

#include "ina/controller/client.h"
#include "ina/host/backend/backend.h"

enum ha_backend_net { HA_BACKEND_NET_PACKET, HA_BACKEND_NET_DPDK, HA_BACKEND_NET_LOOPBACK };

struct ha_backend_settings {
	enum ha_backend_net net;
	uint32_t addr;
	const char *interface, *port, *cpus, *metrics;
	unsigned workers, log_s, memory_mb;
	struct ha_group_defaults groups;
	uint64_t lease_ns; /* of groups */
	/* address NULL: none, groups are this host's alone */
	struct ha_ina_client_options controller;
	uint8_t switch_mac[6];
	bool has_switch_mac;
	struct ha_backend_options backend;
};

struct ha_config;

/* The texts of config are kept. 0: go on; else the exit status + 1, after one line. */
int ha_backend_options_parse(int argc, char **argv, const struct ha_config *config,
			     struct ha_backend_settings *s);

#endif
