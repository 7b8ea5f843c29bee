/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_ABI_H
#define HAWSER_TOOL_NCCL_ABI_H

#include <limits.h>
#include <stddef.h>

/*
 * abi - NCCL's and the CUDA runtime's public interfaces, as far as `ha nccl` calls them
 *
 * Our own declarations of public, documented functions: the program is built without NCCL's and
 * CUDA's headers, and one binary runs with every NCCL since 2.18 and every CUDA runtime since 11.4.
 * Results and enumerations are plain ints.
 */

typedef void *nccl_comm;
typedef void *cuda_stream;
typedef void *cuda_event;
typedef void *cuda_graph;
typedef void *cuda_graph_exec;

#define NCCL_OK 0
#define NCCL_IN_PROGRESS 7
#define NCCL_OP_SUM 0 /* sum, prod, max, min, avg: the order of enum ha_redop */
#define NCCL_SCALAR_ON_HOST 1
#define NCCL_WIN_SYMMETRIC 1

struct nccl_unique_id {
	char internal[128];
};

/* ncclConfig_t as of 2.18: NCCL reads the size and takes defaults for what came later. */
struct nccl_config {
	size_t size;
	unsigned magic, version;
	int blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net_name;
	int split_share;
};
#define NCCL_CONFIG_MAGIC 0xcafebeefu
#define NCCL_CONFIG_VERSION 21800u
#define NCCL_UNDEFINED INT_MIN

struct nccl_api {
	int (*get_version)(int *version);
	int (*get_unique_id)(struct nccl_unique_id *id);
	int (*comm_init)(nccl_comm *comm, int ranks, struct nccl_unique_id id, int rank,
			 struct nccl_config *config);
	int (*comm_destroy)(nccl_comm comm);
	int (*comm_abort)(nccl_comm comm);
	int (*comm_async_error)(nccl_comm comm, int *error);
	const char *(*error_string)(int result);
	const char *(*last_error)(nccl_comm comm);
	int (*group_start)(void);
	int (*group_end)(void);
	int (*all_reduce)(const void *, void *, size_t, int type, int op, nccl_comm, cuda_stream);
	int (*all_gather)(const void *, void *, size_t, int type, nccl_comm, cuda_stream);
	int (*reduce_scatter)(const void *, void *, size_t, int type, int op, nccl_comm,
			      cuda_stream);
	int (*broadcast)(const void *, void *, size_t, int type, int root, nccl_comm, cuda_stream);
	int (*reduce)(const void *, void *, size_t, int type, int op, int root, nccl_comm,
		      cuda_stream);
	int (*send)(const void *, size_t, int type, int peer, nccl_comm, cuda_stream);
	int (*recv)(void *, size_t, int type, int peer, nccl_comm, cuda_stream);
	int (*create_mulsum)(int *op, void *scalar, int type, int residence, nccl_comm);
	int (*destroy_op)(int op, nccl_comm);
	/* NULL where NCCL is older */
	int (*mem_alloc)(void **, size_t);
	int (*mem_free)(void *);
	int (*comm_register)(nccl_comm, void *, size_t, void **handle);
	int (*comm_deregister)(nccl_comm, void *handle);
	int (*window_register)(nccl_comm, void *, size_t, void **window, int flags);
	int (*window_deregister)(nccl_comm, void *window);
};

#define CUDA_OK 0
#define CUDA_STREAM_NON_BLOCKING 1u
#define CUDA_CAPTURE_THREAD 1 /* cudaStreamCaptureModeThreadLocal */
#define CUDA_TO_DEVICE 1
#define CUDA_TO_HOST 2

struct cuda_api {
	int (*get_device_count)(int *count);
	int (*set_device)(int device);
	int (*malloc)(void **, size_t);
	int (*free)(void *);
	int (*memcpy)(void *, const void *, size_t, int kind);
	int (*memset)(void *, int, size_t);
	int (*stream_create)(cuda_stream *, unsigned flags);
	int (*stream_destroy)(cuda_stream);
	int (*stream_synchronize)(cuda_stream);
	int (*event_create)(cuda_event *);
	int (*event_destroy)(cuda_event);
	int (*event_record)(cuda_event, cuda_stream);
	int (*event_query)(cuda_event);
	int (*event_elapsed)(float *ms, cuda_event, cuda_event);
	const char *(*error_string)(int error);
	int (*runtime_version)(int *version);
	int (*pci_bus_id)(char *text, int size, int device);
	/* NULL where the runtime has no graphs */
	int (*begin_capture)(cuda_stream, int mode);
	int (*end_capture)(cuda_stream, cuda_graph *);
	int (*graph_instantiate)(cuda_graph_exec *, cuda_graph, unsigned long long flags);
	int (*graph_launch)(cuda_graph_exec, cuda_stream);
	int (*graph_destroy)(cuda_graph);
	int (*graph_exec_destroy)(cuda_graph_exec);
};

#endif
