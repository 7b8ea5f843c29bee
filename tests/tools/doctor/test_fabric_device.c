/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's number in a context that has left another one out, as it does with one that is down when
 * it is made. Environment: HA_NCCL_VERBS, the software NIC. */
#include "tools/doctor/fabric/survey.h"

#include "base/check.h"
#include "base/config.h"
#include "plugin/core.h"

#include <stdlib.h>

static void expect_devices(const char *filter, int first, int second)
{
	struct ha_config config;
	struct ha_ctx_params params = { .config = &config };
	struct ha_ctx *ctx;

	setenv("NCCL_IB_HCA", filter, 1);
	ha_config_load_env(&config);
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	CHECK_INT(fabric_device_find(ctx, "soft0:1"), first);
	CHECK_INT(fabric_device_find(ctx, "soft1:1"), second);
	CHECK_INT(fabric_device_find(ctx, "soft1:2"), -1);
	ha_ctx_destroy(ctx);
}

int main(void)
{
	expect_devices("", 0, 1);
	expect_devices("=soft1", -1, 0);
	expect_devices("=soft0", 0, -1);
	return 0;
}
