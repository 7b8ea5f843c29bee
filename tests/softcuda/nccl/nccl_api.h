/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_api.h - NCCL's and CUDA's public functions, as far as sweep_nccl calls them; found at run
 * time */
#ifndef SOFTCUDA_TESTS_NCCL_API_H
#define SOFTCUDA_TESTS_NCCL_API_H

#include <stddef.h>

typedef void *nccl_comm;
typedef void *cuda_stream;

struct nccl_id {
	char internal[128];
};

/* Results are 0 where all went well. Types and operators have the values of ncclDataType_t and
 * ncclRedOp_t. */
#define NCCL_FUNCTIONS(F)                                                                          \
	F(get_version, ncclGetVersion, (int *version))                                             \
	F(get_id, ncclGetUniqueId, (struct nccl_id * id))                                          \
	F(comm_init, ncclCommInitRank, (nccl_comm * comm, int ranks, struct nccl_id id, int rank)) \
	F(comm_destroy, ncclCommDestroy, (nccl_comm comm))                                         \
	F(comm_finalize, ncclCommFinalize, (nccl_comm comm))                                       \
	F(comm_abort, ncclCommAbort, (nccl_comm comm))                                             \
	F(group_start, ncclGroupStart, (void))                                                     \
	F(group_end, ncclGroupEnd, (void))                                                         \
	F(all_reduce, ncclAllReduce,                                                               \
	  (const void *, void *, size_t, int type, int op, nccl_comm, cuda_stream))                \
	F(all_gather, ncclAllGather,                                                               \
	  (const void *, void *, size_t, int type, nccl_comm, cuda_stream))                        \
	F(reduce_scatter, ncclReduceScatter,                                                       \
	  (const void *, void *, size_t, int type, int op, nccl_comm, cuda_stream))                \
	F(broadcast, ncclBroadcast,                                                                \
	  (const void *, void *, size_t, int type, int root, nccl_comm, cuda_stream))              \
	F(reduce, ncclReduce,                                                                      \
	  (const void *, void *, size_t, int type, int op, int root, nccl_comm, cuda_stream))      \
	F(send, ncclSend, (const void *, size_t, int type, int peer, nccl_comm, cuda_stream))      \
	F(recv, ncclRecv, (void *, size_t, int type, int peer, nccl_comm, cuda_stream))            \
	F(create_premultiply, ncclRedOpCreatePreMulSum,                                            \
	  (int *op, void *scalar, int type, int residence, nccl_comm))                             \
	F(destroy_operator, ncclRedOpDestroy, (int op, nccl_comm))                                 \
	F(mem_alloc, ncclMemAlloc, (void **, size_t))                                              \
	F(mem_free, ncclMemFree, (void *))                                                         \
	F(comm_register, ncclCommRegister, (nccl_comm, void *, size_t, void **handle))             \
	F(comm_deregister, ncclCommDeregister, (nccl_comm, void *handle))

#define CUDA_FUNCTIONS(F)                                             \
	F(set_device, cudaSetDevice, (int device))                    \
	F(allocate, cudaMalloc, (void **, size_t))                    \
	F(release, cudaFree, (void *))                                \
	F(copy, cudaMemcpy, (void *, const void *, size_t, int kind)) \
	F(stream_create, cudaStreamCreate, (cuda_stream *))           \
	F(stream_destroy, cudaStreamDestroy, (cuda_stream))           \
	F(stream_synchronize, cudaStreamSynchronize, (cuda_stream))

#define CUDA_COPY_ANY 4 /* cudaMemcpyDefault */
#define NCCL_SCALAR_ON_DEVICE 0
#define NCCL_SCALAR_ON_HOST 1

struct nccl_api {
#define DECLARE(name, symbol, parameters) int(*name) parameters;
	NCCL_FUNCTIONS(DECLARE)
	CUDA_FUNCTIONS(DECLARE)
#undef DECLARE
	const char *(*error_string)(int result);
	const char *(*last_error)(nccl_comm);
};

/* Load libnccl.so.2 at `path`, and with it the CUDA runtime that it was linked with. Ends the
 * program on failure. */
void load_nccl(struct nccl_api *api, const char *path);

/* End the program where `result` is an error. */
void check_nccl(const struct nccl_api *api, int result, const char *what);
void check_cuda(int result, const char *what);

#endif
