/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5_objects.h - what the files of the table over ConnectX NICs share: its objects, and the calls
 * on them
 *
 * mlx5.c makes devices, domains and buffers, mlx5_port.c knows how a port is and where it is
 * reached, mlx5_queue.c completion queues and queue pairs, mlx5_dct.c targets. The calls of the
 * table (hw.h) that stand here are described there.
 */
#ifndef HA_GPU_HOST_MLX5_OBJECTS_H
#define HA_GPU_HOST_MLX5_OBJECTS_H

#include "gpu/host/mlx5.h"

#include <pthread.h>

struct ha_mlx5_device {
	struct ha_gpu_mlx5 *m;
	struct ibv_context *context;
	struct mlx5dv_devx_uar *uar; /* of completion queues, which nobody arms */
	uint32_t eqn;
	uint8_t port;
	bool ethernet;
	int gid_index;
	struct ha_mlx5_watch {
		pthread_mutex_t lock; /* no_events, ask_at, fatal */
		/* enum ha_gpu_port, as last received; agents read it without the lock */
		uint64_t state;
		uint64_t look_at; /* when events are looked for again; the same */
		/* when the port is queried again, in case that no event said it */
		uint64_t ask_at;
		bool no_events; /* there are no events to be had */
		bool fatal;     /* the device said that it is gone, which is for good */
	} watch;
	char name[64];
};

struct ha_mlx5_pd {
	struct ha_mlx5_device *d;
	struct ibv_pd *pd;
	uint32_t pdn;
	pthread_mutex_t lock; /* srq */
	/* targets of dynamic connections want one, though nothing is received; NULL: not yet */
	struct ibv_srq *srq;
	uint32_t srqn;
};

struct ha_mlx5_buf {
	struct ha_mlx5_device *d;
	struct mlx5dv_devx_umem *umem;
};

struct ha_mlx5_cq {
	struct ha_mlx5_device *d;
	struct mlx5dv_devx_obj *obj;
	uint32_t cqn;
	struct ha_gpu_cq_attr attr;
};

struct ha_mlx5_qp {
	struct ha_mlx5_pd *pd;
	struct ha_mlx5_cq *cq;
	struct mlx5dv_devx_obj *obj;
	struct mlx5dv_devx_uar *uar;
	uint32_t qpn, psn;
	uint32_t *dbrec;
	bool dci, mapped; /* the doorbell is in the device's address space */
	unsigned tries;   /* to drain */
};

/* mlx5_port.c */
void ha_mlx5_watch_begin(struct ha_mlx5_device *d);
void ha_mlx5_watch_end(struct ha_mlx5_device *d);
enum ha_gpu_port ha_mlx5_port_state(void *device);
bool ha_mlx5_gone(struct ha_mlx5_device *d); /* by a query: it costs a command */
int ha_mlx5_address(void *device, struct ha_gpu_rc_handle *h);

int ha_mlx5_cq_create(void *device, const struct ha_gpu_cq_attr *attr, void **out);
int ha_mlx5_cq_destroy(void *cq);
int ha_mlx5_qp_create(void *pd, const struct ha_gpu_qp_attr *attr, struct ha_gpu_hw_qp *out);
int ha_mlx5_qp_destroy(struct ha_gpu_hw_qp *qp);
void ha_mlx5_qp_handle(const struct ha_gpu_hw_qp *qp, struct ha_gpu_rc_handle *h);
int ha_mlx5_qp_modify(struct ha_gpu_hw_qp *qp, enum ha_gpu_qp_state to,
		      const struct ha_gpu_rc_link *link);
int ha_mlx5_qp_drained(struct ha_gpu_hw_qp *qp);

int ha_mlx5_dct_create(void *pd, void *cq, const struct ha_gpu_rc_link *link, uint64_t key,
		       struct ha_gpu_hw_dct *out);
int ha_mlx5_dct_destroy(struct ha_gpu_hw_dct *dct);
int ha_mlx5_dct_av(const struct ha_gpu_hw_qp *dci, const struct ha_gpu_rc_link *link,
		   uint64_t out[6]);

/* A line about a command that was not done: `what` it should do, and the firmware's answer. The
 * negative errno; -EIO, which stands for a fence, only where the device is gone: else the kernel's
 * EIO becomes -EREMOTEIO. */
int ha_mlx5_refused(struct ha_mlx5_device *d, const char *what, const uint8_t *answer);
/* The GID of 16 bytes as the destination of `attr`. */
void ha_mlx5_global(const struct ha_mlx5_device *d, struct ibv_ah_attr *attr, const void *gid);
/* How entries name what `attr` does. The kernel resolves the next hop for an address handle; the
 * device's part of it holds the MAC. A line, and a negative errno, where it knows no way. */
int ha_mlx5_resolve(struct ha_mlx5_qp *q, struct ibv_ah_attr *attr, struct mlx5_wqe_av *av);

#endif
