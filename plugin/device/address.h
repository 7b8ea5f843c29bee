/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - how peers reach a port: what of it may change while the process runs (GID, LID,
 * MTU) */
#ifndef HA_PLUGIN_ADDRESS_H
#define HA_PLUGIN_ADDRESS_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct ha_address {
	union ibv_gid gid;
	int gid_index;
	uint16_t lid;
	uint8_t mtu; /* enum ibv_mtu */
};

#endif
