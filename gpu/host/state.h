/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what host.c, device.c, endpoint.c, connect.c and agents.c share: one process's state */
#ifndef HA_GPU_HOST_STATE_H
#define HA_GPU_HOST_STATE_H

#include "gpu/host/host.h"
#include "gpu/host/messages.h"

#include <pthread.h>
#include <sys/queue.h>

/*
 * Control memory of a growth's queues on one device: three buffers, mapped once, carved per queue.
 */
struct ha_gpu_pool {
	LIST_ENTRY(ha_gpu_pool) link; /* in its device's list */
	struct ha_gpu_device *device;
	unsigned n, used; /* queue pairs */
	bool dc;          /* they are initiators: twice the blocks */
	struct ha_gpu_pool_part {
		void *memory, *buf;
		size_t each, bytes;
	} wq, cq, dbr;
};

struct ha_gpu_ep {
	struct ha_gpu_device *device;
	void *cq;
	struct ha_gpu_hw_qp qp;
	/* qp is an initiator; dct the target for its peer, a new one in each incarnation */
	bool dc;
	struct ha_gpu_hw_dct dct;
	uint64_t av[6]; /* of the peer's target */
	uint8_t *wqe, *cqe;
	uint32_t *dbrec, *cq_dbrec;
	struct ha_gpu_rc_link link;
	bool connected; /* the peer has its end */
	/* how far it is; of this incarnation */
	enum ha_gpu_ep_fence { HA_GPU_EP_OPEN, HA_GPU_EP_STOPPED, HA_GPU_EP_FENCED } fence;
};

/*
 * Queue pairs of one role: [i * pes + pe]. Primaries and backups have one each: own arrays, own
 * counts.
 */
struct ha_gpu_rc {
	struct ha_gpu_ep **eps;
	unsigned num_eps_per_pe;
};

struct ha_gpu_device {
	struct ha_gpu_host *host;
	int port; /* of the list */
	const char *name;
	void *own, *pd;
	struct ha_gpu_mr *mr;
	unsigned nmr;
	uint32_t *lkey;                 /* per chunk of the heap; device memory */
	LIST_HEAD(, ha_gpu_pool) pools; /* the newest first */
};

/* Of a slot and role: the peers' keys, [pe * stride + chunk]. */
struct ha_gpu_keys {
	uint32_t *rkey; /* device memory */
	unsigned stride;
};

enum { HA_GPU_PRIMARY, HA_GPU_BACKUP, HA_GPU_ROLES };

/*
 * The s-th primary device and what belongs to it. A process with fewer devices than others uses
 * some for several slots.
 */
struct ha_gpu_slot_state {
	struct ha_gpu_device *device[HA_GPU_ROLES]; /* [HA_GPU_BACKUP] NULL: it has none */
	struct ha_gpu_rc rc[HA_GPU_ROLES];
	struct ha_gpu_keys keys[HA_GPU_ROLES];
	pthread_t thread; /* steps the agents of its rows */
	bool running;
	uint64_t switches, replayed, suspicions; /* of its agents; the thread writes */
};

struct ha_gpu_row {
	struct ha_gpu_slot_state *slot;
	unsigned i[HA_GPU_ROLES]; /* which of rc[role]; backups: UINT_MAX where there is none */
	void *memory;             /* conns, mailboxes, scratches */
	size_t bytes;
	struct ha_gpu_conn *conn; /* [pes], in it */
	struct ha_gpu_mr mr[HA_GPU_ROLES];
	bool registered[HA_GPU_ROLES];
	struct ha_gpu_agent *agent; /* [pes] */
	bool *has_agent;
};

struct ha_gpu_peer_heap {
	uint64_t address, bytes, chunks;
	int32_t status, nslots;
	uint32_t chunk_log, backup; /* settings that must be the same everywhere */
	uint32_t apart, unused;     /* conn.h */
};

struct ha_gpu_host {
	struct ha_gpu_host_config config;
	const struct ha_gpu_hw_ops *ops;
	int pe, pes;
	struct ha_gpu_port_info port[HA_GPU_PORTS_MAX];
	int nports;
	struct ha_gpu_backup_map map;
	struct ha_gpu_device *device[HA_GPU_PORTS_MAX]; /* by port; NULL: not used */
	struct ha_gpu_slot_state *slot;
	int nslots;
	struct ha_gpu_peer_heap *heap; /* [pes] */
	unsigned chunks;               /* of ours */
	struct ha_gpu_messages *messages;
	struct ha_gpu_world *world;
	struct ha_gpu_row row[HA_GPU_ROWS_MAX];
	uint64_t nrows;            /* agents look at rows below it */
	uint64_t stop;             /* agents end */
	uint64_t repair, repaired; /* rounds wanted; slot threads that have done theirs */
	uint64_t filled;
	uint64_t copied;
};

/* device.c */
int ha_gpu_device_open(struct ha_gpu_host *h, int port, struct ha_gpu_device **device);
void ha_gpu_device_close(struct ha_gpu_device *d);
int ha_gpu_device_register(struct ha_gpu_device *d);
void ha_gpu_device_deregister(struct ha_gpu_device *d);
int ha_gpu_pool_make(struct ha_gpu_device *d, unsigned n, bool dc, struct ha_gpu_pool **pool);
void ha_gpu_pool_free(struct ha_gpu_pool *pool); /* the device's newest */

/* endpoint.c */
/* path: struct ha_gpu_ep */
extern const struct ha_gpu_path_ops ha_gpu_ep_path_ops, ha_gpu_dc_path_ops;
int ha_gpu_ep_make(struct ha_gpu_pool *pool, struct ha_gpu_ep **ep);
void ha_gpu_ep_free(struct ha_gpu_ep *ep);
int ha_gpu_ep_connect(struct ha_gpu_ep *ep, uint64_t incarnation); /* RST to RTS */
/* nothing lands through it any more */
void ha_gpu_ep_fence(struct ha_gpu_ep *ep, uint64_t deadline);
/* what is to end may take so long to drain, all together */
#define HA_GPU_DRAIN_NS UINT64_C(1000000000)
void ha_gpu_ep_describe(const struct ha_gpu_ep *ep, struct ha_gpu_path *path);

/* agents.c */
int ha_gpu_agents_make(struct ha_gpu_host *h, unsigned row);
void ha_gpu_agents_free(struct ha_gpu_host *h, unsigned row);
int ha_gpu_agents_start(struct ha_gpu_host *h);
void ha_gpu_agents_stop(struct ha_gpu_host *h);

/* connect.c */
void ha_gpu_rows_free(struct ha_gpu_host *h, unsigned from);

#endif
