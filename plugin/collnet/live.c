/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/collnet/ops.h"

const struct ha_ina_ops ha_ina_ops_live = {
	.open = ha_ina_open,
	.close = ha_ina_close,
	.error = ha_ina_error,
	.address = ha_ina_address,
	.group_create = ha_ina_group_create,
	.group_join = ha_ina_group_join,
	.group_leave = ha_ina_group_leave,
	.group_state = ha_ina_group_state,
	.post = ha_ina_post,
	.test = ha_ina_test,
	.op_done = ha_ina_op_done,
	.op_free = ha_ina_op_free,
};
