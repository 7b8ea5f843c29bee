/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin.h - NCCL's one-sided operations, as far as the versions of its interface agree
 *
 * A collective comm is an ha_rma, a memory handle an ha_rma_window, a request an ha_rma_op.
 */
#ifndef HA_NCCL_GIN_H
#define HA_NCCL_GIN_H

#include "plugin/nccl/abi/gin_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/rma/rma.h"

/* *ctx: an ha_plugin_comm. Refused where NCCL's own transport is to serve (HA_NCCL_GIN). */
ncclResult_t ha_gin_init(void **ctx, uint64_t comm_id, ncclDebugLogger_t logger);
ncclResult_t ha_gin_finalize(void *ctx);
ncclResult_t ha_gin_properties_v11(int dev, ncclNetProperties_v11_t *props);
ncclResult_t ha_gin_properties_v12(int dev, ncclNetProperties_v12_t *props);

ncclResult_t ha_gin_listen(void *ctx, int dev, void *handle, void **listen_comm);
ncclResult_t ha_gin_connect(void *handles[], int nranks, int rank, void *listen_comm,
			    void **coll_comm);
/* The same from v13 on. ctx: NCCL may hand in another table's; the listener knows ours. */
ncclResult_t ha_gin_connect_ctx(void *ctx, void *handles[], int nranks, int rank, void *listen_comm,
				void **coll_comm);
/* From v13 on. A context is its communicator. traffic_class: or NCCL_NET_TRAFFIC_CLASS_UNDEF. */
ncclResult_t ha_gin_create_context(void *coll_comm, int traffic_class, void **context);
ncclResult_t ha_gin_destroy_context(void *context);
ncclResult_t ha_gin_close_listen(void *listen_comm);
ncclResult_t ha_gin_close(void *coll_comm);

/* gin_handle is what operations take, mhandle what deregistration takes: the same here. */
ncclResult_t ha_gin_reg_mr(void *coll_comm, void *data, size_t size, int type, uint64_t flags,
			   void **mhandle, void **gin_handle);
ncclResult_t ha_gin_reg_mr_dmabuf(void *coll_comm, void *data, size_t size, int type,
				  uint64_t offset, int fd, uint64_t flags, void **mhandle,
				  void **gin_handle);
ncclResult_t ha_gin_dereg_mr(void *coll_comm, void *mhandle);

/* An ha_rma_put without a signal, from what NCCL passes. */
#define HA_GIN_DATA(to, bytes, from, from_offset, into, into_offset)                              \
	{                                                                                         \
		.rank = (int)(to), .size = (bytes), .source = (from),                             \
		.source_offset = (from_offset), .target = (into), .target_offset = (into_offset), \
	}

/* op: NCCL_NET_SIGNAL_OP_*, or 0. */
ncclResult_t ha_gin_put(struct ha_rma *rma, const struct ha_rma_put *put, uint32_t op,
			void **request);
/* source is here, target there. */
ncclResult_t ha_gin_get(struct ha_rma *rma, const struct ha_rma_put *get, void **request);
/* *request = NULL: gets flush themselves. */
ncclResult_t ha_gin_flush(void *context, int number, void *mhandle, uint32_t rank, void **request);
ncclResult_t ha_gin_test(void *coll_comm, void *request, int *done);
ncclResult_t ha_gin_progress(void *coll_comm);
ncclResult_t ha_gin_query_error(void *context, bool *has_error);

#endif
