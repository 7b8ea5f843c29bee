/* SPDX-License-Identifier: BSD-3-Clause */
/* quota.h - how much each client may have; ranges in quarantine count */
#ifndef HA_INA_QUOTA_H
#define HA_INA_QUOTA_H

#include <stdint.h>

#define HA_TENANT_NAME 64u /* with the final 0 */
#define HA_QUOTAS 256u

struct ha_quota {
	char tenant[HA_TENANT_NAME];
	uint32_t groups, slots;
};

struct ha_quotas {
	struct ha_quota others; /* of who has no line of its own */
	struct ha_quota quota[HA_QUOTAS];
	unsigned n;
};

const struct ha_quota *ha_quota_of(const struct ha_quotas *quotas, const char *tenant);

#endif
