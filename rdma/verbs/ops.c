/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/verbs/ops.h"

#include <errno.h>

/* What a function does that a table does not have. */
#define X(function, params, args)         \
	static int none_##function params \
	{                                 \
		return -EOPNOTSUPP;       \
	}
#include "rdma/verbs/ops_list.h"
#undef X

static uint64_t none_device_guid(const struct ha_verbs_ops *v, struct ibv_device *device)
{
	return 0;
}

static void none_device_list_free(const struct ha_verbs_ops *v, struct ibv_device **list)
{
}

static void none_ack_async_event(const struct ha_verbs_ops *v, struct ibv_async_event *event)
{
}

static void none_ack_cq_events(const struct ha_verbs_ops *v, struct ibv_cq *cq, unsigned n)
{
}

void ha_verbs_ops_fill(struct ha_verbs_ops *ops)
{
#define FILL(function) ops->function = ops->function ? ops->function : none_##function;
#define X(function, params, args) FILL(function)
#include "rdma/verbs/ops_list.h"
#undef X
	FILL(device_guid)
	FILL(device_list_free)
	FILL(ack_async_event)
	FILL(ack_cq_events)
#undef FILL
}
