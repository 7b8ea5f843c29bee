/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/quota.h"

#include <string.h>

const struct ha_quota *ha_quota_of(const struct ha_quotas *quotas, const char *tenant)
{
	for (unsigned i = 0; i < quotas->n; i++)
		if (!strcmp(quotas->quota[i].tenant, tenant))
			return &quotas->quota[i];
	return &quotas->others;
}
