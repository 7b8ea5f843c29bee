/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hw.h - what the host library needs of the hardware, as a table: mlx5 through DEVX (mlx5.h), the
 * software NIC (soft.h)
 *
 * A port of the list is a device of its own, as everywhere in hawser. Objects are the table's
 * owner's; whoever makes one gives it back with the call beside it, before the object that it was
 * made in. Calls return 0 or a negative errno; a call that fails has made nothing.
 */
#ifndef HA_GPU_HOST_HW_H
#define HA_GPU_HOST_HW_H

#include "gpu/failover/agent.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HA_GPU_PORTS_MAX 64

struct ha_gpu_port_info {
	char name[64]; /* "mlx5_0:1", for logs */
	uint64_t card; /* the same for all ports of a card */
	unsigned port; /* from 1; one port's functions, which share a cable, have the same */
	bool up;
};

/* How peers reach a queue pair, and what it may write at our end. Travels between processes. */
struct ha_gpu_rc_handle {
	uint32_t qpn;      /* 0: there is none */
	uint16_t lid;      /* InfiniBand */
	uint8_t mtu;       /* enum ibv_mtu */
	uint8_t ethernet;  /* 1: RoCE */
	uint64_t spn, iid; /* GID: subnet prefix, interface id; as they lie in a GID */
	/* dynamically connected: qpn is the target's number, and this its access key; else 0 */
	uint64_t dc_key;
	uint32_t psn;         /* of the first packet; 24 bit */
	uint32_t mailbox_key; /* big-endian, on this device */
	uint64_t mailbox;     /* address of the struct ha_gpu_mailbox for this peer */
};
static_assert(sizeof(struct ha_gpu_rc_handle) == 48, "it travels");

struct ha_gpu_mr {
	void *own;
	uint32_t lkey, rkey; /* big-endian, as queue entries want them */
};

struct ha_gpu_cq_attr {
	void *buf, *dbr_buf; /* of buf_map */
	uint8_t *cqe;        /* within buf; the queue */
	uint32_t *dbrec;     /* within dbr_buf */
	size_t offset, dbr_offset;
	uint32_t log; /* entries as a power of two; 0: collapsed */
};

struct ha_gpu_qp_attr {
	void *buf, *dbr_buf, *cq;
	uint8_t *wqe;
	uint32_t *dbrec;
	size_t offset, dbr_offset;
	uint32_t nwqes; /* blocks of 64 bytes, a power of two */
	bool dci;       /* an initiator of dynamic connections: no peer, nothing lands through it */
	bool proxied;   /* the host rings: no device thread needs the doorbell register */
};

struct ha_gpu_hw_dct {
	void *own; /* NULL: there is none */
	uint32_t number;
};

struct ha_gpu_hw_qp {
	void *own;
	uint32_t qpn;
	/* doorbell register, as device threads and as the host's reach it */
	uint64_t *bf, *host_bf;
};

enum ha_gpu_qp_state { HA_GPU_QP_RST, HA_GPU_QP_INIT, HA_GPU_QP_RTR, HA_GPU_QP_RTS, HA_GPU_QP_ERR };

/* Where the packets of an incarnation begin, from where those of incarnation 0 did: as far as can
 * be from those of the incarnations before it (the golden section of 2^24), so that a packet that
 * has lingered in the network is taken for none of this incarnation. */
static inline uint32_t ha_gpu_psn(uint32_t first, uint64_t incarnation)
{
	return (uint32_t)(first + incarnation * 0x9e3779) & 0xffffff;
}

/* Of a connection; constant over its incarnations but for both psn. */
struct ha_gpu_rc_link {
	struct ha_gpu_rc_handle local, peer;
	unsigned timeout, retry_cnt; /* as in ibv_qp_attr */
	unsigned traffic_class, service_level;
};

struct ha_gpu_hw_ops {
	const char *name;
	/* How many were listed (up to max), in a stable order; negative errno. */
	int (*ports)(void *hw, struct ha_gpu_port_info *list, int max);
	int (*open)(void *hw, int port, void **device);
	int (*close)(void *device);
	int (*pd_alloc)(void *device, void **pd);
	int (*pd_free)(void *pd);

	/* Zeroed memory that device threads, the host and every NIC reach under one address. */
	int (*mem_alloc)(void *hw, size_t bytes, void **memory);
	void (*mem_free)(void *hw, void *memory, size_t bytes);
	/*
	 * The memory lies behind another bridge than what mem_alloc gives (conn.h): it is a GPU's.
	 * NULL: none does.
	 */
	bool (*is_apart)(void *hw, const void *memory);
	/*
	 * Such memory (page-aligned, as mem_alloc gives it) for queues and doorbell records of a
	 * device.
	 */
	int (*buf_map)(void *device, void *memory, size_t bytes, void **buf);
	int (*buf_unmap)(void *buf);

	int (*mr_reg)(void *pd, void *address, size_t bytes, bool remote, struct ha_gpu_mr *mr);
	int (*mr_dereg)(struct ha_gpu_mr *mr);

	int (*cq_create)(void *device, const struct ha_gpu_cq_attr *attr, void **cq);
	int (*cq_destroy)(void *cq);
	int (*qp_create)(void *pd, const struct ha_gpu_qp_attr *attr, struct ha_gpu_hw_qp *qp);
	int (*qp_destroy)(struct ha_gpu_hw_qp *qp);
	/* Fills in its numbers, of itself and of its first packet. */
	void (*qp_handle)(const struct ha_gpu_hw_qp *qp, struct ha_gpu_rc_handle *handle);
	/*
	 * Fills in how peers reach the port, read anew: it may have come back as another. Of a
	 * connection that is made again both ends' are.
	 */
	int (*address)(void *device, struct ha_gpu_rc_handle *handle);
	/*
	 * `link` for RTR and RTS. To RST also empties the completion queue. -EIO: the device is
	 * gone.
	 */
	int (*qp_modify)(struct ha_gpu_hw_qp *qp, enum ha_gpu_qp_state to,
			 const struct ha_gpu_rc_link *link);
	/* After ERR. 0: nothing is under way any more; -EAGAIN; -EIO. */
	int (*qp_drained)(struct ha_gpu_hw_qp *qp);
	/*
	 * Asked at each step of every connection: what the device has reported, and a command to it
	 * seldom.
	 */
	enum ha_gpu_port (*port)(void *device);

	/* Dynamic connections. A target is ready when it is made; when its end returns nothing
	 * lands through it any more, also with -EIO: the device is gone. `cq` is its initiator's;
	 * of `link` traffic class, service level and the local MTU count. */
	int (*dct_create)(void *pd, void *cq, const struct ha_gpu_rc_link *link, uint64_t key,
			  struct ha_gpu_hw_dct *dct);
	int (*dct_destroy)(struct ha_gpu_hw_dct *dct);
	/* How link->peer, a target, is named in entries of the initiator: 48 bytes. */
	int (*dct_av)(const struct ha_gpu_hw_qp *dci, const struct ha_gpu_rc_link *link,
		      uint64_t av[6]);
};

#ifdef __cplusplus
}
#endif

#endif
