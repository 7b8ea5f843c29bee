/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/ops.h"

#include <errno.h>

/* What a function does that a table does not have. */
#define NONE(function, ...)                                                          \
	static int none_##function(const struct ha_verbs_ops *v, ##__VA_ARGS__) \
	{                                                                            \
		return -EOPNOTSUPP;                                                  \
	}

NONE(device_list, struct ibv_device ***list, int *n)
NONE(open, struct ibv_device *device, struct ibv_context **context)
NONE(close, struct ibv_context *context)
NONE(hot, struct ibv_context *context, struct ha_verbs_hot *hot)
NONE(fork_init)
NONE(query_device, struct ibv_context *context, struct ibv_device_attr *attr)
NONE(query_port, struct ibv_context *context, uint8_t port, struct ha_port_attr *attr)
NONE(query_port_speed, struct ibv_context *context, uint8_t port, uint64_t *mbps)
NONE(query_gid, struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
NONE(query_gid_ex, struct ibv_context *context, uint8_t port, int index, struct ibv_gid_entry *entry)
NONE(get_async_event, struct ibv_context *context, struct ibv_async_event *event)
NONE(alloc_pd, struct ibv_context *context, struct ibv_pd **pd)
NONE(dealloc_pd, struct ibv_pd *pd)
NONE(reg_mr, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access, struct ibv_mr **mr)
NONE(reg_dmabuf_mr, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access,
     struct ibv_mr **mr)
NONE(dereg_mr, struct ibv_mr *mr)
NONE(create_comp_channel, struct ibv_context *context, struct ibv_comp_channel **channel)
NONE(destroy_comp_channel, struct ibv_comp_channel *channel)
NONE(create_cq, struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
     int comp_vector, struct ibv_cq **cq)
NONE(destroy_cq, struct ibv_cq *cq)
NONE(get_cq_event, struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
NONE(create_srq, struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
NONE(modify_srq, struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
NONE(query_srq, struct ibv_srq *srq, struct ibv_srq_attr *attr)
NONE(destroy_srq, struct ibv_srq *srq)
NONE(create_qp, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
NONE(modify_qp, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
NONE(query_qp, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
NONE(destroy_qp, struct ibv_qp *qp)
NONE(query_ece, struct ibv_qp *qp, struct ibv_ece *ece)
NONE(set_ece, struct ibv_qp *qp, struct ibv_ece *ece)

static void none_device_list_free(const struct ha_verbs_ops *v, struct ibv_device **list)
{
}

static uint64_t none_device_guid(const struct ha_verbs_ops *v, struct ibv_device *device)
{
	return 0;
}

static void none_ack_async_event(const struct ha_verbs_ops *v, struct ibv_async_event *event)
{
}

static void none_ack_cq_events(const struct ha_verbs_ops *v, struct ibv_cq *cq, unsigned n)
{
}

void ha_verbs_ops_fill(struct ha_verbs_ops *ops)
{
#define FILL(function) ops->function = ops->function ? ops->function : none_##function
	FILL(device_list);
	FILL(device_list_free);
	FILL(device_guid);
	FILL(open);
	FILL(close);
	FILL(hot);
	FILL(fork_init);
	FILL(query_device);
	FILL(query_port);
	FILL(query_port_speed);
	FILL(query_gid);
	FILL(query_gid_ex);
	FILL(get_async_event);
	FILL(ack_async_event);
	FILL(alloc_pd);
	FILL(dealloc_pd);
	FILL(reg_mr);
	FILL(reg_dmabuf_mr);
	FILL(dereg_mr);
	FILL(create_comp_channel);
	FILL(destroy_comp_channel);
	FILL(create_cq);
	FILL(destroy_cq);
	FILL(get_cq_event);
	FILL(ack_cq_events);
	FILL(create_srq);
	FILL(modify_srq);
	FILL(query_srq);
	FILL(destroy_srq);
	FILL(create_qp);
	FILL(modify_qp);
	FILL(query_qp);
	FILL(destroy_qp);
	FILL(query_ece);
	FILL(set_ece);
#undef FILL
}
