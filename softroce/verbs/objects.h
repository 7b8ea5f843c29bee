/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * objects.h - the objects behind the public structs of libibverbs
 *
 * Each begins with the public struct that applications see, so that a pointer to one is a pointer
 * to the other. The public functions translate negative errno of the engine into what verbs return:
 * a positive errno, or NULL and errno.
 */
#ifndef SOFTROCE_VERBS_OBJECTS_H
#define SOFTROCE_VERBS_OBJECTS_H

#include "softroce/adapter.h"
#include "softroce/verbs/notice.h"

#include <errno.h>
#include <sys/queue.h>

struct sr_vdevice {
	struct ibv_device dev; /* first */
	struct sr_adapter *adapter;
	unsigned incarnation; /* of the adapter, when it was listed */
	int refs;             /* lists, and open contexts; under the adapter's lock */
	uint8_t gid[16];      /* the address when it was listed: the node GUID comes from it */
};

struct sr_context {
	struct sr_vdevice *device;
	struct sr_adapter *adapter;
	unsigned incarnation;
	LIST_ENTRY(sr_context) link; /* in the adapter's list, under its lock */
	struct sr_notices async;
	struct verbs_context verbs; /* last: older applications know only its end */
};

struct sr_vpd {
	struct ibv_pd pd; /* first */
	struct sr_pd *engine;
};

struct sr_vmr {
	struct ibv_mr mr; /* first */
	struct sr_mr *engine;
	void *map; /* of a dma-buf, or NULL */
	size_t map_len;
};

struct sr_vmw {
	struct ibv_mw mw; /* first */
	struct sr_mr *engine;
};

struct sr_vcq {
	union {
		struct ibv_cq cq; /* first */
		struct ibv_cq_ex ex;
	};
	struct sr_cq *engine;
	struct sr_context *context;
	struct sr_channel *channel;
	uint32_t comp_events, async_events; /* taken by the application; under the queue's lock */
	/* idle passes of a thread, before every further one offers the processor */
	unsigned idle_most;
	_Atomic uint64_t idle_pass; /* in which it was last found empty */
	struct ibv_wc wc;           /* the current one of start_poll() */
};

struct sr_channel {
	struct ibv_comp_channel channel; /* first */
	struct sr_notices queue;
};

struct sr_vsrq {
	struct ibv_srq srq; /* first */
	struct sr_srq *engine;
	struct sr_context *context;
	uint32_t events;
};

struct sr_vqp {
	union {
		struct ibv_qp qp; /* first */
		struct ibv_qp_ex ex;
	};
	struct sr_qp *engine;
	struct sr_context *context;
	uint32_t events;
	struct sr_wr_builder *builder; /* ibv_wr_*(); NULL when not created for it */
};

static inline struct sr_context *sr_context_of(const struct ibv_context *context)
{
	return (struct sr_context *)((char *)context - offsetof(struct sr_context, verbs.context));
}

static inline bool sr_context_enter(struct sr_context *context)
{
	return sr_adapter_enter(context->adapter, context->incarnation);
}

static inline void sr_context_leave(struct sr_context *context)
{
	sr_adapter_leave(context->adapter);
}

/* errno for a failed creation; NULL for the caller to return. */
static inline void *sr_fail(int err)
{
	errno = err < 0 ? -err : err;
	return NULL;
}

extern const struct sr_event_ops sr_verbs_events;

/* The entries of the ops tables that live in other files. */
int sr_cq_poll_verb(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int sr_cq_notify_verb(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *sr_cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int sr_srq_post_verb(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sr_qp_post_send_verb(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sr_qp_post_recv_verb(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *sr_qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_mw *sr_mw_alloc_verb(struct ibv_pd *pd, enum ibv_mw_type type);
int sr_mw_dealloc_verb(struct ibv_mw *mw);
int sr_mw_bind_verb(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_srq *sr_srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int sr_query_port_verb(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		       size_t len);
int sr_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t len);
/*
 * A datagram queue pair with the number 1, where messages of the connection manager go; a device
 * has one.
 */
struct ibv_qp *sr_qp_create_gsi(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* ibv_wr_*(): give the queue pair its functions, and take them away. */
int sr_wr_builder_create(struct sr_vqp *qp, uint64_t ops);
void sr_wr_builder_destroy(struct sr_vqp *qp);

/* Locally administered EUI-64 made from the address. */
__be64 sr_guid_of(const uint8_t gid[16]);

#endif
