/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dmabuf.h - descriptors of dma-bufs, kept for devices that a buffer is registered on later
 *
 * The caller of regMrDmaBuf may close its descriptor at once, and a standby's device needs it when
 * the path fails. One is kept for each buffer, however many connections register it, and never so
 * many that the process runs out.
 */
#ifndef HA_DEVICE_DMABUF_H
#define HA_DEVICE_DMABUF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct ha_mr_want;

/* One buffer's. */
struct ha_dmabuf {
	uintptr_t addr;
	size_t size;
	uint64_t offset;
	int fd;
	unsigned users;
	LIST_ENTRY(ha_dmabuf) entry;
};

/* All of a context; zeroed = none. */
struct ha_dmabufs {
	pthread_mutex_t lock;
	LIST_HEAD(, ha_dmabuf) list;
	unsigned count; /* descriptors kept */
	bool logged;    /* said once that there are no more */
};

/* Keeps a copy of want->fd, or counts one more user of the one that is kept for this buffer. NULL
 * with errno: no descriptor or no memory is left, or half of the process's limit is used for
 * this. */
struct ha_dmabuf *ha_dmabuf_keep(struct ha_dmabufs *all, const struct ha_mr_want *want);
void ha_dmabuf_drop(struct ha_dmabufs *all, struct ha_dmabuf *one);
/* The first call of a context is true: somebody shall say that there are no more than *count. */
bool ha_dmabuf_report_once(struct ha_dmabufs *all, unsigned *count);

#endif
