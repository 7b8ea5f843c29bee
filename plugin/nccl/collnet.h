/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet.h - the calls of NCCL's collnet interface that mean the same in every version
 *
 * Signatures are NCCL's; collnet_v6.c to collnet_v12.c hold what differs. What happens to data is
 * plugin/collnet's business.
 */
#ifndef HA_NCCL_COLLNET_H
#define HA_NCCL_COLLNET_H

#include "plugin/nccl/abi/types.h"

#define HA_COLLNET_BYTES (1ul << 30) /* maxCollBytes */

/*
 * From v11 on: one for each communicator. NCCL does not finalize those of a table whose devices()
 * said 0, so that call gives their references to the core back.
 */
struct ha_collnet_context;
int ha_collnet_context_new(ncclDebugLogger_t logger, uint64_t comm_id,
			   struct ha_collnet_context **context);
void ha_collnet_context_end(struct ha_collnet_context *context);

ncclResult_t ha_nccl_collnet_devices(int *ndev);
ncclResult_t ha_nccl_collnet_listen(int dev, void *handle, void **listen_comm);
/* Waits for all ranks: NCCL calls it from a thread that may, and takes NULL for "no". */
ncclResult_t ha_nccl_collnet_connect(void *handles[], int nranks, int rank, void *listen_comm,
				     void **coll_comm);
ncclResult_t ha_nccl_collnet_reduce_support(ncclDataType_t type, ncclRedOp_t op, int *supported);
ncclResult_t ha_nccl_collnet_reg_mr(void *coll_comm, void *data, size_t size, int type,
				    void **mhandle);
ncclResult_t ha_nccl_collnet_reg_mr_dmabuf(void *coll_comm, void *data, size_t size, int type,
					   uint64_t offset, int fd, void **mhandle);
ncclResult_t ha_nccl_collnet_dereg_mr(void *coll_comm, void *mhandle);
ncclResult_t ha_nccl_collnet_iallreduce(void *coll_comm, void *send, void *recv, size_t count,
					ncclDataType_t type, ncclRedOp_t op, void *send_mhandle,
					void *recv_mhandle, void **request);
ncclResult_t ha_nccl_collnet_iflush(void *coll_comm, void *data, int size, void *mhandle,
				    void **request);
ncclResult_t ha_nccl_collnet_test(void *request, int *done, int *size);
ncclResult_t ha_nccl_collnet_close(void *coll_comm);
ncclResult_t ha_nccl_collnet_close_listen(void *listen_comm);

#endif
