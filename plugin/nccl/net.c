/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/nccl/net.h"

#include "plugin/nccl/plugin.h"
#include "plugin/nccl/result.h"

#include <errno.h>

ncclResult_t ha_net_devices(int *ndev)
{
	struct ha_ctx *core = ha_plugin_core();

	*ndev = core ? ha_vdevice_count(core, HA_VDEVICE_NET) : 0;
	return ncclSuccess;
}

ncclResult_t ha_net_props(int dev, struct ha_dev_props *props)
{
	struct ha_ctx *core = ha_plugin_core();
	int err = core ? ha_vdevice_props(core, dev, props) : -ENODEV;

	if (!err && props->max_p2p_bytes > NCCL_MAX_NET_SIZE_BYTES)
		/* NCCL refuses a device that claims more */
		props->max_p2p_bytes = NCCL_MAX_NET_SIZE_BYTES;
	if (!err && props->max_coll_bytes > NCCL_MAX_NET_SIZE_BYTES)
		props->max_coll_bytes = NCCL_MAX_NET_SIZE_BYTES;
	return ha_result(err);
}

int ha_net_members(const struct ha_dev_props *props, int *devs, int max)
{
	int n = props->nmembers < max ? props->nmembers : max;

	for (int i = 0; i < n; i++)
		devs[i] = props->member[i];
	return n;
}

ncclResult_t ha_net_make_vdevice(enum ha_vdevice_table table, int *dev, int n, int max,
				 const int *devs)
{
	struct ha_ctx *core = ha_plugin_core();

	if (n > max)
		return ha_result(-EINVAL);
	return ha_result(core ? ha_vdevice_make(core, table, devs, n, dev) : -ENODEV);
}

/* A comm that comes into being is counted; NULL with success is none yet. */
static ncclResult_t handed_out(int err, void *comm)
{
	if (!err && comm)
		ha_plugin_count_comm(1);
	return ha_result(err);
}

static ncclResult_t given_back(int err)
{
	ha_plugin_count_comm(-1);
	return ha_result(err);
}

ncclResult_t ha_net_listen(struct ha_ctx *core, const struct ha_comm_opts *opts, int dev,
			   void *handle, void **listen_comm)
{
	struct ha_listen *listen = NULL;
	int err = core ? ha_listen(core, dev, opts, handle, &listen) : -ENODEV;

	*listen_comm = listen;
	return handed_out(err, listen);
}

ncclResult_t ha_net_connect(struct ha_ctx *core, const struct ha_comm_opts *opts, int dev,
			    const void *handle, void **send_comm)
{
	struct ha_send *send = NULL;
	int err = core ? ha_connect(core, dev, opts, handle, &send) : -ENODEV;

	*send_comm = send;
	return handed_out(err, send);
}

ncclResult_t ha_net_accept(void *listen_comm, void **recv_comm)
{
	struct ha_recv *recv = NULL;
	int err = ha_accept(listen_comm, &recv);

	*recv_comm = recv;
	return handed_out(err, recv);
}

ncclResult_t ha_net_accept_host(void *listen_comm, void **recv_comm,
				ncclNetDeviceHandle_v7_t **dev_comm)
{
	(void)dev_comm;
	return ha_net_accept(listen_comm, recv_comm);
}

ncclResult_t ha_net_reg_mr(void *comm, void *data, size_t size, int type, void **mhandle)
{
	struct ha_mr *mr = NULL;
	int err = ha_reg_mr(comm, data, size, type, 0, -1, 0, &mr);

	*mhandle = mr;
	return ha_result(err);
}

ncclResult_t ha_net_reg_mr_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset,
				  int fd, void **mhandle)
{
	struct ha_mr *mr = NULL;
	int err = fd < 0 ? -EBADF : ha_reg_mr(comm, data, size, type, offset, fd, 0, &mr);

	*mhandle = mr;
	return ha_result(err);
}

ncclResult_t ha_net_dereg_mr(void *comm, void *mhandle)
{
	return mhandle ? ha_result(ha_dereg_mr(comm, mhandle)) : ncclSuccess;
}

ncclResult_t ha_net_iflush(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
			   void **request)
{
	return ha_result(ha_iflush(recv_comm, n, data, sizes, (struct ha_mr *const *)mhandles,
				   (struct ha_request **)request));
}

ncclResult_t ha_net_test(void *request, int *done, int *sizes)
{
	return ha_result(ha_test(request, done, sizes));
}

ncclResult_t ha_net_close_send(void *send_comm)
{
	return send_comm ? given_back(ha_close_send(send_comm)) : ncclSuccess;
}

ncclResult_t ha_net_close_recv(void *recv_comm)
{
	return recv_comm ? given_back(ha_close_recv(recv_comm)) : ncclSuccess;
}

ncclResult_t ha_net_close_listen(void *listen_comm)
{
	return listen_comm ? given_back(ha_close_listen(listen_comm)) : ncclSuccess;
}
