/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - what the core offers to the layer that speaks to NCCL (and to the simulator)
 *
 * A context owns everything: devices, connections, the service thread. Nothing here is global, so
 * several contexts, that is several hosts, can live in one process. Functions return 0 or a
 * negative errno. A pointer that comes out as NULL together with 0 means "not yet, call again"
 * (connect, accept) or "not now, post again" (isend, irecv).
 *
 * Threads: different connections may be driven from different threads at once; one connection is
 * driven by one thread at a time. ha_ctx_create/destroy must not run beside other calls on the same
 * context.
 */
#ifndef HA_CORE_CORE_H
#define HA_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HA_HANDLE_MAX 128 /* bytes that NCCL carries from listener to connector */
#define HA_MAX_RECVS 8    /* buffers in one grouped receive */
#define HA_MAX_RAILS 8    /* paths in one bundle */

struct ha_config;
struct ha_clock;
struct ha_verbs_ops;
struct ha_oob_ops;
struct ha_hookup_ops;
struct mpib_hint_shm;

struct ha_ctx;
struct ha_listen;
struct ha_bundle; /* one connection; what a sending and a receiving side have in common */
struct ha_send;   /* starts with its bundle */
struct ha_recv;   /* starts with its bundle */
struct ha_mr;     /* one registered buffer, with keys for each rail of its connection */
struct ha_request;

/* What a context is built from. The pointers must outlive it. NULL = the live default. */
struct ha_ctx_params {
	const struct ha_config *config;
	const struct ha_verbs_ops *verbs; /* default: what HA_NCCL_VERBS names */
	const struct ha_clock *clock;     /* default: CLOCK_MONOTONIC */
	const struct ha_oob_ops
		*oob;  /* default: TCP over the interface NCCL_SOCKET_IFNAME chooses */
	void *oob_net; /* passed to oob's functions */
	const struct ha_hookup_ops *hookups; /* default: threads (hookup.h); without a service
						thread the calls themselves */
	void *hookups_arg;
	/* Labels of devices that were counted before: these are the reported ones, in this order.
	 */
	const char *const *known;
	int nknown;
	const struct mpib_hint_shm *hints; /* default: the file of HA_NCCL_AGENT_HINTS, and its
					      agent is told of connections */
};

/* Discover devices, open them, start the service thread (unless HA_NCCL_USE_PROGRESS_THREAD=0).
 * -ENODEV: no usable device. */
int ha_ctx_create(const struct ha_ctx_params *params, struct ha_ctx **ctx);
/* Close everything that is still open, join the thread, free. Connections must no longer be in use
 * by anybody. */
void ha_ctx_destroy(struct ha_ctx *ctx);
/* Drive what the service thread would drive; for contexts without one. Never blocks. */
void ha_ctx_progress(struct ha_ctx *ctx);

enum ha_mem_type { HA_MEM_HOST = 1, HA_MEM_CUDA = 2, HA_MEM_DMABUF = 4 }; /* values of NCCL_PTR_* */

struct ha_dev_props {
	const char *name;     /* "mlx5_0"; exists as long as the context */
	const char *pci_path; /* sysfs path, NULL when the device has none */
	uint64_t guid;
	int port;
	int speed_mbps;
	int ptr_support; /* bits of enum ha_mem_type */
	bool reg_is_global;
	bool force_flush;
	float latency_us;
	int max_comms;
	int max_recvs;
	size_t max_p2p_bytes;
	size_t max_coll_bytes;
	int rail_id, plane_id; /* of the fabric, as NCCL_IB_HCA names them; -1: not named, or
				  several rails */
	int nmembers;          /* 1, or of how many it was fused */
	int member[HA_MAX_RAILS];
};

/* Ports; what was fused of them is numbered behind them. */
int ha_ctx_ndevices(const struct ha_ctx *ctx);
/* The label of port `dev`, "mlx5_0:1"; NULL: there is none. Exists as long as the context. */
const char *ha_ctx_port(const struct ha_ctx *ctx, int dev);
/* -EINVAL: no such device. */
int ha_ctx_device(struct ha_ctx *ctx, int dev, struct ha_dev_props *props);
/* *dev: the device that stands for these ports together; a connection on it has a rail on each. The
 * same ports are the same device; one port is itself. -EINVAL: the log says why they cannot be
 * fused; -ENOSPC: too many fused ones. */
int ha_ctx_fuse(struct ha_ctx *ctx, const int *devs, int n, int *dev);

struct ha_comm_opts {
	int traffic_class; /* -1: as NCCL_IB_TC says */
	/* Devices of a bundle's further rails, rail 0 being on `dev`; both ends use as many as the
	 * poorer one names. 0 = one rail. */
	int nmore;
	int more[HA_MAX_RAILS - 1];
};

/* Fill `handle` (HA_HANDLE_MAX bytes) for the peer and wait for its connection. opts may be NULL.
 */
int ha_listen(struct ha_ctx *ctx, int dev, const struct ha_comm_opts *opts, void *handle,
	      struct ha_listen **out);
/*
 * Connect to the listener behind `handle`. Never blocks: *out stays NULL until the connection is
 * ready; the caller calls again with the same handle memory. -EPROTO: the handle is not ours, or
 * the peer refused; the log says which. -ETIMEDOUT / -ECONNREFUSED ...: the peer cannot be reached.
 * After an error nothing is left to clean up.
 */
int ha_connect(struct ha_ctx *ctx, int dev, const struct ha_comm_opts *opts, const void *handle,
	       struct ha_send **out);
/* The listener's side; never blocks, *out stays NULL until a connection is ready. A connection of
 * an unauthenticated peer is logged and ignored. */
int ha_accept(struct ha_listen *listen, struct ha_recv **out);

/* Close in any state. Requests still in flight are forgotten. Always frees. */
int ha_close_send(struct ha_send *comm);
int ha_close_recv(struct ha_recv *comm);
int ha_close_listen(struct ha_listen *listen);

/*
 * Register `size` bytes at `data` for one connection. type: one enum ha_mem_type. fd >= 0: a
 * dma-buf that holds the buffer at `offset`. flags: NCCL_NET_MR_FLAG_* bits. Registrations are
 * cached per protection domain and counted.
 */
int ha_reg_mr(struct ha_bundle *bundle, void *data, size_t size, int type, uint64_t offset, int fd,
	      unsigned flags, struct ha_mr **mr);
int ha_dereg_mr(struct ha_bundle *bundle, struct ha_mr *mr);

/* Send `size` bytes to the receive that has `tag`. *req = NULL: that receive is not posted yet, try
 * again. A receive that is smaller than `size` gets its own size, as NCCL's transport does. */
int ha_isend(struct ha_send *comm, void *data, size_t size, int tag, struct ha_mr *mr,
	     struct ha_request **req);
/* Receive into n <= HA_MAX_RECVS buffers at once. optional: the request is complete at once, the
 * data will tell. */
int ha_irecv(struct ha_recv *comm, int n, void *const *data, const size_t *sizes, const int *tags,
	     struct ha_mr *const *mrs, bool optional, struct ha_request **req);
/* Make received data visible to the GPU: a small RDMA read behind it. *req = NULL: nothing needs
 * flushing. */
int ha_iflush(struct ha_recv *comm, int n, void *const *data, const int *sizes,
	      struct ha_mr *const *mrs, struct ha_request **req);
/* *done = 1 frees the request; sizes (NULL, or one per buffer of a receive) get the bytes moved, at
 * most INT_MAX each. An error ends the request too, and every later call on its connection returns
 * the same error. */
int ha_test(struct ha_request *req, int *done, int *sizes);

#endif
