/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops_list.h - the functions of struct ha_verbs_ops that return a status, for code that treats them
 * all alike
 *
 * Included with X(function, (parameters), (arguments behind a table called `inner`)) defined; no
 * include guard. A function that is added to ops.h is added here; the compiler checks that the two
 * agree.
 */
#define V const struct ha_verbs_ops *v
X(device_list, (V, struct ibv_device ***list, int *n), (inner, list, n))
X(open, (V, struct ibv_device *device, struct ibv_context **context), (inner, device, context))
X(close, (V, struct ibv_context *context), (inner, context))
X(hot, (V, struct ibv_context *context, struct ha_verbs_hot *hot), (inner, context, hot))
X(fork_init, (V), (inner))
X(query_device, (V, struct ibv_context *context, struct ibv_device_attr *attr),
  (inner, context, attr))
X(query_port, (V, struct ibv_context *context, uint8_t port, struct ha_port_attr *attr),
  (inner, context, port, attr))
X(query_port_speed, (V, struct ibv_context *context, uint8_t port, uint64_t *mbps),
  (inner, context, port, mbps))
X(query_gid, (V, struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid),
  (inner, context, port, index, gid))
X(query_gid_ex,
  (V, struct ibv_context *context, uint8_t port, int index, struct ibv_gid_entry *entry),
  (inner, context, port, index, entry))
X(query_gid_table, (V, struct ibv_context *context, struct ibv_gid_entry *entries, int max, int *n),
  (inner, context, entries, max, n))
X(get_async_event, (V, struct ibv_context *context, struct ibv_async_event *event),
  (inner, context, event))
X(alloc_pd, (V, struct ibv_context *context, struct ibv_pd **pd), (inner, context, pd))
X(dealloc_pd, (V, struct ibv_pd *pd), (inner, pd))
X(reg_mr,
  (V, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access,
   struct ibv_mr **mr),
  (inner, pd, addr, length, iova, access, mr))
X(reg_dmabuf_mr,
  (V, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access,
   struct ibv_mr **mr),
  (inner, pd, offset, length, iova, fd, access, mr))
X(data_direct_path, (V, struct ibv_context *context, char *path, size_t len),
  (inner, context, path, len))
X(reg_data_direct_mr,
  (V, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access,
   struct ibv_mr **mr),
  (inner, pd, offset, length, iova, fd, access, mr))
X(dereg_mr, (V, struct ibv_mr *mr), (inner, mr))
X(create_comp_channel, (V, struct ibv_context *context, struct ibv_comp_channel **channel),
  (inner, context, channel))
X(destroy_comp_channel, (V, struct ibv_comp_channel *channel), (inner, channel))
X(create_cq,
  (V, struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
   int comp_vector, struct ibv_cq **cq),
  (inner, context, cqe, cq_context, channel, comp_vector, cq))
X(destroy_cq, (V, struct ibv_cq *cq), (inner, cq))
X(get_cq_event, (V, struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context),
  (inner, channel, cq, cq_context))
X(create_srq, (V, struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq),
  (inner, pd, attr, srq))
X(modify_srq, (V, struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),
  (inner, srq, attr, mask))
X(query_srq, (V, struct ibv_srq *srq, struct ibv_srq_attr *attr), (inner, srq, attr))
X(destroy_srq, (V, struct ibv_srq *srq), (inner, srq))
X(create_qp, (V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp),
  (inner, pd, attr, qp))
X(modify_qp, (V, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (inner, qp, attr, mask))
X(query_qp,
  (V, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),
  (inner, qp, attr, mask, init))
X(destroy_qp, (V, struct ibv_qp *qp), (inner, qp))
X(query_unordered, (V, struct ibv_context *context), (inner, context))
X(create_unordered_qp, (V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp),
  (inner, pd, attr, qp))
X(query_ece, (V, struct ibv_qp *qp, struct ibv_ece *ece), (inner, qp, ece))
X(set_ece, (V, struct ibv_qp *qp, struct ibv_ece *ece), (inner, qp, ece))
#undef V
