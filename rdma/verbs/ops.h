/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - the verbs that hawser uses, as one table
 *
 * The live table comes from a libibverbs found at run time (dlopen.h); tests put a filter
 * (tests/rdma/verbs/filter.h) around any other. Every function gets the table as its first
 * argument, so that tables can be stacked. Functions return 0 or a negative errno: the positive
 * errno and the NULL pointers of libibverbs end here. There are no gaps: a table goes through
 * ha_verbs_ops_fill, which puts a function that returns -EOPNOTSUPP into each; callers never test
 * for NULL.
 *
 * The hot functions are apart: a caller takes them once per context into a struct ha_verbs_hot and
 * then calls straight into the NIC's driver, with libibverbs' own conventions.
 */
#ifndef HA_VERBS_OPS_H
#define HA_VERBS_OPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A port's attributes, with the field that newer libraries append. Libraries that do not know it
 * leave it 0. */
struct ha_port_attr {
	struct ibv_port_attr attr;
	uint32_t active_speed_ex; /* rates from XDR on, one bit; 0: attr.active_speed says it */
};

/*
 * As in struct ibv_context_ops: post_* return 0 or a positive errno, poll_cq a count or a negative
 * value. The verbs' own objects are passed, so nothing of ours lies between caller and driver.
 */
struct ha_verbs_hot {
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr);
	int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
};

struct ha_verbs_ops {
	const char *name;     /* "system", "soft", a path: for messages */
	void *priv;           /* of the implementation */
	bool optional_access; /* reg_mr passes IBV_ACCESS_RELAXED_ORDERING on (rdma-core 28) */

#define V const struct ha_verbs_ops *v
	/* Devices. *list ends with NULL and belongs to the caller until device_list_free; open
	 * contexts outlive it. */
	int (*device_list)(V, struct ibv_device ***list, int *n);
	void (*device_list_free)(V, struct ibv_device **list);
	uint64_t (*device_guid)(V, struct ibv_device *device); /* in host byte order */
	int (*open)(V, struct ibv_device *device, struct ibv_context **context);
	int (*close)(V, struct ibv_context *context);
	/* The hot functions of this context; after this call they need the table no more. */
	int (*hot)(V, struct ibv_context *context, struct ha_verbs_hot *hot);
	/* Makes registered memory survive fork (slow: page by page). */
	int (*fork_init)(V);

	int (*query_device)(V, struct ibv_context *context, struct ibv_device_attr *attr);
	int (*query_port)(V, struct ibv_context *context, uint8_t port, struct ha_port_attr *attr);
	/* Effective Mbit/s of a port; optional, newer libraries only. */
	int (*query_port_speed)(V, struct ibv_context *context, uint8_t port, uint64_t *mbps);
	int (*query_gid)(V, struct ibv_context *context, uint8_t port, int index,
			 union ibv_gid *gid);
	/* With the GID's type and interface; optional. -ENODATA: the index is empty. */
	int (*query_gid_ex)(V, struct ibv_context *context, uint8_t port, int index,
			    struct ibv_gid_entry *entry);

	/* The filled entries of all ports at once, at most `max`; *n: how many. Optional. */
	int (*query_gid_table)(V, struct ibv_context *context, struct ibv_gid_entry *entries,
			       int max, int *n);

	/* Waits; after ha_verbs_events_nonblock (status.h) -EAGAIN when there is none. Acknowledge
	 * each. */
	int (*get_async_event)(V, struct ibv_context *context, struct ibv_async_event *event);
	void (*ack_async_event)(V, struct ibv_async_event *event);

	int (*alloc_pd)(V, struct ibv_context *context, struct ibv_pd **pd);
	int (*dealloc_pd)(V, struct ibv_pd *pd);
	/* access may hold IBV_ACCESS_RELAXED_ORDERING: a library or kernel that does not know it
	 * ignores it. */
	int (*reg_mr)(V, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		      unsigned access, struct ibv_mr **mr);
	/* Optional: -EOPNOTSUPP or -EPROTONOSUPPORT where the kernel or driver cannot. */
	int (*reg_dmabuf_mr)(V, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			     int fd, int access, struct ibv_mr **mr);
	/* ConnectX with data direct, a PCIe function of its own beside a GPU (rdma-core 54): where
	 * that function is in sysfs, and a dma-buf whose data goes through it. Optional. */
	int (*data_direct_path)(V, struct ibv_context *context, char *path, size_t len);
	int (*reg_data_direct_mr)(V, struct ibv_pd *pd, uint64_t offset, size_t length,
				  uint64_t iova, int fd, int access, struct ibv_mr **mr);
	int (*dereg_mr)(V, struct ibv_mr *mr);

	int (*create_comp_channel)(V, struct ibv_context *context,
				   struct ibv_comp_channel **channel);
	int (*destroy_comp_channel)(V, struct ibv_comp_channel *channel);
	/* channel may be NULL. cqe is the least number of entries. */
	int (*create_cq)(V, struct ibv_context *context, int cqe, void *cq_context,
			 struct ibv_comp_channel *channel, int comp_vector, struct ibv_cq **cq);
	int (*destroy_cq)(V, struct ibv_cq *cq);
	int (*get_cq_event)(V, struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	void (*ack_cq_events)(V, struct ibv_cq *cq, unsigned n);

	int (*create_srq)(V, struct ibv_pd *pd, struct ibv_srq_init_attr *attr,
			  struct ibv_srq **srq);
	int (*modify_srq)(V, struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(V, struct ibv_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(V, struct ibv_srq *srq);

	/* attr->cap comes back with what was really given. */
	int (*create_qp)(V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
	int (*modify_qp)(V, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(V, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init);
	int (*destroy_qp)(V, struct ibv_qp *qp);
	/* A reliable queue pair whose messages arrive in any order (mlx5's out-of-order data
	 * placement, rdma-core 55), at both ends or at none: writes and their receives, in which
	 * each message is whole when its own completion says so; completions of what was posted
	 * come in order. Optional. 0: this device can. */
	int (*query_unordered)(V, struct ibv_context *context);
	/* As create_qp. */
	int (*create_unordered_qp)(V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
				   struct ibv_qp **qp);
	/* Enhanced connection establishment (IBTA 12.11, optional): options that both ends' drivers
	 * agree on. */
	int (*query_ece)(V, struct ibv_qp *qp, struct ibv_ece *ece);
	int (*set_ece)(V, struct ibv_qp *qp, struct ibv_ece *ece);
#undef V
};

/* Put the default into every gap of a table. */
void ha_verbs_ops_fill(struct ha_verbs_ops *ops);

#ifdef __cplusplus
}
#endif

#endif
