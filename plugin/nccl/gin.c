/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/nccl/gin.h"

#include "base/config.h"
#include "base/log.h"
#include "plugin/nccl/net.h"
#include "plugin/nccl/plugin.h"
#include "plugin/nccl/properties.h"
#include "plugin/nccl/result.h"

#include <errno.h>

#define GIN_TYPE_PROXY 2 /* of NCCL_GIN_TYPE */

/*
 * NCCL takes the first transport whose init succeeds. Its own may have the GPU post to the NIC
 * itself, which is faster than a proxy, and until 2.29 it alone serves the host's one-sided calls:
 * so ours comes only where somebody asks for it, or for a proxy.
 */
static bool is_wanted(void)
{
	const struct ha_config *config = ha_plugin_config();

	if (config->gin != HA_GIN_AUTO)
		return config->gin == HA_GIN_ALWAYS;
	return config->gin_type == GIN_TYPE_PROXY;
}

ncclResult_t ha_gin_init(void **ctx, uint64_t comm_id, ncclDebugLogger_t logger)
{
	struct ha_plugin_comm *comm;
	int err = ha_plugin_comm_init(logger, comm_id, NCCL_NET_TRAFFIC_CLASS_UNDEF, &comm);

	*ctx = NULL;
	if (err)
		return ha_result(err);
	if (!is_wanted()) {
		HA_INFO(NULL, "one-sided operations are left to NCCL's own transport; "
			      "HA_NCCL_GIN=1 or NCCL_GIN_TYPE=2 brings them here");
		(void)ha_plugin_comm_finalize(comm);
		return ncclInvalidUsage;
	}
	*ctx = comm;
	return ncclSuccess;
}

ncclResult_t ha_gin_finalize(void *ctx)
{
	return ha_result(ha_plugin_comm_finalize(ctx));
}

ncclResult_t ha_gin_properties_v11(int dev, ncclNetProperties_v11_t *props)
{
	ncclResult_t result = ha_net_properties_v11(dev, props);

	if (result == ncclSuccess)
		props->netDeviceType = NCCL_NET_DEVICE_GIN_PROXY;
	return result;
}

ncclResult_t ha_gin_properties_v12(int dev, ncclNetProperties_v12_t *props)
{
	ncclResult_t result = ha_net_properties_v12(dev, props);

	if (result == ncclSuccess)
		props->netDeviceType = NCCL_NET_DEVICE_GIN_PROXY;
	return result;
}

/* ---- comms ---- */

ncclResult_t ha_gin_listen(void *ctx, int dev, void *handle, void **listen_comm)
{
	struct ha_plugin_comm *comm = ctx;
	struct ha_rma_listen *listen;
	int err = ha_rma_listen(comm->core, dev, &comm->opts, handle, &listen);

	*listen_comm = listen;
	if (!err)
		ha_plugin_count_comm(1);
	return ha_result(err);
}

ncclResult_t ha_gin_connect(void *handles[], int nranks, int rank, void *listen_comm,
			    void **coll_comm)
{
	struct ha_rma *rma;
	int err = ha_rma_connect(listen_comm, (const void *const *)handles, nranks, rank, &rma);

	*coll_comm = rma;
	if (!err)
		ha_plugin_count_comm(1);
	return ha_result(err);
}

ncclResult_t ha_gin_connect_ctx(void *ctx, void *handles[], int nranks, int rank, void *listen_comm,
				void **coll_comm)
{
	(void)ctx;
	return ha_gin_connect(handles, nranks, rank, listen_comm, coll_comm);
}

ncclResult_t ha_gin_create_context(void *coll_comm, int traffic_class, void **context)
{
	if (traffic_class != NCCL_NET_TRAFFIC_CLASS_UNDEF)
		ha_rma_set_traffic_class(coll_comm, traffic_class);
	*context = coll_comm;
	return ncclSuccess;
}

ncclResult_t ha_gin_destroy_context(void *context)
{
	(void)context; /* it goes with its communicator */
	return ncclSuccess;
}

ncclResult_t ha_gin_close_listen(void *listen_comm)
{
	ha_rma_close_listen(listen_comm);
	ha_plugin_count_comm(-1);
	return ncclSuccess;
}

ncclResult_t ha_gin_close(void *coll_comm)
{
	ha_rma_close(coll_comm);
	ha_plugin_count_comm(-1);
	return ncclSuccess;
}

/* ---- memory ---- */

ncclResult_t ha_gin_reg_mr_dmabuf(void *coll_comm, void *data, size_t size, int type,
				  uint64_t offset, int fd, uint64_t flags, void **mhandle,
				  void **gin_handle)
{
	struct ha_rma_window *window;
	int err =
		ha_rma_register(coll_comm, data, size, type, offset, fd, (unsigned)flags, &window);

	*mhandle = window;
	*gin_handle = window;
	return ha_result(err);
}

ncclResult_t ha_gin_reg_mr(void *coll_comm, void *data, size_t size, int type, uint64_t flags,
			   void **mhandle, void **gin_handle)
{
	return ha_gin_reg_mr_dmabuf(coll_comm, data, size, type, 0, -1, flags, mhandle, gin_handle);
}

ncclResult_t ha_gin_dereg_mr(void *coll_comm, void *mhandle)
{
	return ha_result(ha_rma_deregister(coll_comm, mhandle));
}

/* ---- operations ---- */

ncclResult_t ha_gin_put(struct ha_rma *rma, const struct ha_rma_put *put, uint32_t op,
			void **request)
{
	struct ha_rma_put all = *put;

	if (op == NCCL_NET_SIGNAL_OP_INC)
		all.signal = HA_RMA_INC;
	else if (op == NCCL_NET_SIGNAL_OP_ADD)
		all.signal = HA_RMA_ADD;
	else if (op)
		return ha_result(-EINVAL);
	return ha_result(ha_rma_put(rma, &all, (struct ha_rma_op **)request));
}

ncclResult_t ha_gin_get(struct ha_rma *rma, const struct ha_rma_put *get, void **request)
{
	return ha_result(ha_rma_get(rma, get, (struct ha_rma_op **)request));
}

ncclResult_t ha_gin_flush(void *context, int number, void *mhandle, uint32_t rank, void **request)
{
	*request = NULL;
	return ha_result(ha_rma_error(context));
}

ncclResult_t ha_gin_test(void *coll_comm, void *request, int *done)
{
	return ha_result(ha_rma_test(coll_comm, request, done));
}

ncclResult_t ha_gin_progress(void *coll_comm)
{
	return ha_result(ha_rma_progress(coll_comm));
}

ncclResult_t ha_gin_query_error(void *context, bool *has_error)
{
	*has_error = ha_rma_error(context) != 0;
	return ncclSuccess;
}
