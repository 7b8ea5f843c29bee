/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.h - registered memory: one buffer of one connection, and the per-device cache of registrations behind it */
#ifndef HA_CORE_MR_H
#define HA_CORE_MR_H

#include "core/core.h"

#include <infiniband/verbs.h>

struct ha_device;
struct ha_mr_entry; /* one ibv_mr on one protection domain, counted; see mr.c */

/* Keys by rail index; 0 = not registered on that rail's device (yet). */
struct ha_mr {
	uint32_t lkey[HA_MAX_RAILS];
	uint32_t rkey[HA_MAX_RAILS];
	uint8_t type; /* enum ha_mem_type */
	void *addr;
	size_t size;
	struct ha_mr_entry *entry[HA_MAX_RAILS];
};

#endif
