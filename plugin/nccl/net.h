/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - the calls of NCCL's network interface that mean the same in every version
 *
 * Signatures are NCCL's, so a table takes them as they are where its version agrees; net_v6.c to
 * net_v12.c hold what differs. Pointers that NCCL carries for us (comms, memory handles, requests)
 * are the core's own objects.
 */
#ifndef HA_NCCL_NET_H
#define HA_NCCL_NET_H

#include "plugin/core.h"
#include "plugin/nccl/abi/types.h"
#include "plugin/nccl/result.h"
#include "plugin/nccl/vdevice.h"

/* Ports, and what makeVDevice has made of them. */
ncclResult_t ha_net_devices(int *ndev);
/* A device's facts, as the core has them. */
ncclResult_t ha_net_props(int dev, struct ha_dev_props *props);
/* From v9 on: the devices that a device consists of, into devs[max]; returns how many. */
int ha_net_members(const struct ha_dev_props *props, int *devs, int max);
/* From v9 on: n of devs[max] as one device. */
ncclResult_t ha_net_make_vdevice(enum ha_vdevice_table table, int *dev, int n, int max,
				 const int *devs);

ncclResult_t ha_net_listen(struct ha_ctx *core, const struct ha_comm_opts *opts, int dev,
			   void *handle, void **listen_comm);
ncclResult_t ha_net_connect(struct ha_ctx *core, const struct ha_comm_opts *opts, int dev,
			    const void *handle, void **send_comm);
ncclResult_t ha_net_accept(void *listen_comm, void **recv_comm);
/* The same for v7 and later, whose dev_comm we leave as it is: nothing of ours runs on the GPU. */
ncclResult_t ha_net_accept_host(void *listen_comm, void **recv_comm,
				ncclNetDeviceHandle_v7_t **dev_comm);

ncclResult_t ha_net_reg_mr(void *comm, void *data, size_t size, int type, void **mhandle);
ncclResult_t ha_net_reg_mr_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset,
				  int fd, void **mhandle);
ncclResult_t ha_net_dereg_mr(void *comm, void *mhandle);

/* Inline: a message should not pay for a conversion that converts nothing. *request is always
 * written, by the core: it is NULL unless a request was made. */
static inline ncclResult_t ha_net_isend(void *send_comm, void *data, size_t size, int tag,
					void *mhandle, void **request)
{
	return ha_result(
		ha_isend(send_comm, data, size, tag, mhandle, (struct ha_request **)request));
}

/* `optional`: NCCL does not care when it completes. */
static inline ncclResult_t ha_net_irecv(void *recv_comm, int n, void **data, const size_t *sizes,
					const int *tags, void **mhandles, bool optional,
					void **request)
{
	return ha_result(ha_irecv(recv_comm, n, data, sizes, tags, (struct ha_mr *const *)mhandles,
				  optional, (struct ha_request **)request));
}

ncclResult_t ha_net_iflush(void *recv_comm, int n, void **data, int *sizes, void **mhandles,
			   void **request);
ncclResult_t ha_net_test(void *request, int *done, int *sizes);

ncclResult_t ha_net_close_send(void *send_comm);
ncclResult_t ha_net_close_recv(void *recv_comm);
ncclResult_t ha_net_close_listen(void *listen_comm);

/* From v9 on NCCL marks a receive whose completion it does not wait for by this in *request. */
static inline bool ha_net_is_optional(void *const *request)
{
	return *request == (void *)NCCL_NET_OPTIONAL_RECV_COMPLETION;
}

/* The int sizes of v6 to v8 as sizes of the core; false: one is negative, or n is out of range. */
static inline bool ha_net_widen(int n, const int *sizes, size_t *wide)
{
	if (__builtin_expect(n == 1, 1)) {
		wide[0] = (size_t)sizes[0];
		return sizes[0] >= 0;
	}
	if (n < 1 || n > HA_MAX_RECVS)
		return false;
	for (int i = 0; i < n; i++) {
		if (sizes[i] < 0)
			return false;
		wide[i] = (size_t)sizes[i];
	}
	return true;
}

#endif
