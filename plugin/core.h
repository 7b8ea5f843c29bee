/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - what the core offers to the layer that NCCL calls (and to the simulator)
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
#ifndef HA_PLUGIN_CORE_H
#define HA_PLUGIN_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HA_HANDLE_MAX 128 /* bytes that NCCL carries from listener to connector */
#define HA_MAX_RECVS 8    /* buffers in one grouped receive */
#define HA_MAX_RAILS 8    /* paths in one bundle */
#define HA_RECORD_SIZE 64 /* bytes that a put may bring beside its data */

struct ha_config;
struct ha_clock;
struct ha_verbs_ops;
struct ha_oob_ops;
struct ha_hookup_ops;
struct ha_topo_known;
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
	/* default: TCP over the interface NCCL_SOCKET_IFNAME chooses */
	const struct ha_oob_ops *oob;
	void *oob_net; /* passed to oob's functions */
	/* default: threads (hookup.h); without a service thread the calls themselves */
	const struct ha_hookup_ops *hookups;
	void *hookups_arg;
	/* Devices that were counted before: these are the reported ones, in this
	 * order. */
	const struct ha_topo_known *known;
	int nknown;
	/* default: the file of HA_NCCL_AGENT_HINTS, and connections are registered with its agent
	 */
	const struct mpib_hint_shm *hints;
};

/* Discover devices, open them, start the service thread (unless HA_NCCL_USE_PROGRESS_THREAD=0).
 * -ENODEV: no usable device. */
int ha_ctx_create(const struct ha_ctx_params *params, struct ha_ctx **ctx);
/* Close everything that is still open, join the thread, free. Connections must no longer be in use
 * by anybody. */
void ha_ctx_destroy(struct ha_ctx *ctx);
/* The process ends, or whoever uses the context does, and connections may be open. Waits until
 * every send that was complete when it was posted (HA_NCCL_COPY_MAX) is acknowledged, while the
 * service thread fails over if need be; not longer than that takes, and a line says what is left
 * then. Other calls may run beside it. */
void ha_ctx_drain(struct ha_ctx *ctx);
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
	/* of the fabric, as NCCL_IB_HCA names them; -1: not named, or several rails */
	int rail_id, plane_id;
	int nmembers; /* 1, or of how many it was fused */
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
	bool one_sided; /* for ha_put and ha_take, instead of ha_isend and ha_irecv; both ends must
			   say so */
	bool ordered;   /* the peer's queue pairs take messages in order alone */
};

/* Fill `handle` (HA_HANDLE_MAX bytes) for the peer and wait for its connection. opts may be
 * NULL. */
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
/* Nobody will ask for it any more, if it is in the making. */
void ha_connect_abandon(struct ha_ctx *ctx, const void *handle);
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
/* The same with a device, or with each member of a fused one, before there is a connection: those
 * that come find it registered. */
struct ha_held;
int ha_hold_mr(struct ha_ctx *ctx, int dev, void *data, size_t size, int type, uint64_t offset,
	       int fd, unsigned flags, struct ha_held **held);
void ha_unhold_mr(struct ha_held *held);

/* Send `size` bytes to the receive that has `tag`. *req = NULL: that receive is not posted yet, try
 * again. A receive that is smaller than `size` gets its own size, as NCCL's transport does. */
int ha_isend(struct ha_send *comm, void *data, size_t size, int tag, struct ha_mr *mr,
	     struct ha_request **req);
/* Receive into n <= HA_MAX_RECVS buffers at once. optional: the request is complete at once, the
 * data will show when it is. */
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

/* What carries a stripe of a send, or a receive, for whoever profiles. */
struct ha_carried {
	int dev; /* port of this host */
	int opcode;
	uint32_t qp_num;
	uint32_t epoch; /* of the rail's incarnation */
	uint64_t wr_id; /* the last work request of it, or near it */
	uint64_t bytes;
	uint8_t rail;
	bool over; /* nothing more will come of it */
	bool lost; /* its path has failed, and no other carries it yet */
};
/*
 * One entry for each stripe of a send, always in the same order, or one for a buffer of a receive,
 * into list[HA_MAX_RAILS]. How many; -EAGAIN: it is not posted yet, or cannot be looked at now. By
 * the connection's owner, before ha_test has said that the request is done.
 */
int ha_carried(struct ha_request *req, unsigned buffer, struct ha_carried *list);

/* ---- one-sided connections (ha_comm_opts.one_sided): the sender says where its data goes ---- */

/*
 * The peer may write into this buffer of the connection, and calls it `window` (below 65536). A
 * number is offered once. It is withdrawn before ha_dereg_mr; a put that comes after that is
 * refused by the NIC, which ends the connection. Any thread.
 */
int ha_offer(struct ha_recv *comm, uint32_t window, struct ha_mr *mr);
void ha_withdraw(struct ha_recv *comm, uint32_t window);

/* Write `size` bytes, which may be 0, at `offset` of the peer's window. */
struct ha_put {
	void *data;
	size_t size;
	struct ha_mr *mr; /* of the data; may be NULL with size 0 */
	uint32_t window;
	uint64_t offset;
	const void *record; /* HA_RECORD_SIZE bytes, copied, the first of which is not 0; or NULL */
};
/*
 * *req = NULL: not now, post again: the window is not known yet, too much is in flight, no rail is
 * up. ha_test says when the data may be overwritten here. -ERANGE: the window is smaller.
 */
int ha_put(struct ha_send *comm, const struct ha_put *put, struct ha_request **req);
/*
 * The next record that came with a put, exactly once each, in the order of the puts. *got: its data
 * is in memory, and so is that of every put before it. An error comes after the last record that
 * came.
 */
int ha_take(struct ha_recv *comm, void *record, bool *got);

#endif
