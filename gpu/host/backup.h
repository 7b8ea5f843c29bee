/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backup.h - which port carries on for which: a pure function of the list
 *
 * - A card of two ports and more backs itself up: port 1 <-> 2, 3 <-> 4 of the same card.
 * - Cards of one port pair up in the order of the list: the i-th of them with the (i xor 1)-th.
 * - The partner is down, missing or there is none (an odd count): another port that is up, of
 *   another card rather than the same, and of these the one that has been given out least, with a
 *   warning; or none at all, with a warning.
 * - Never a port that is down, never the port itself, nor another function of the same port: a
 *   physical function and its virtual ones share a cable.
 * - Where a port has several functions, its backup's take turns: the first for the first.
 * - Where the caller has chosen (`order`), the first of that order that is up.
 *
 * A port that is down has no backup: it carries nothing.
 */
#ifndef HA_GPU_HOST_BACKUP_H
#define HA_GPU_HOST_BACKUP_H

#include "gpu/host/hw.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HA_GPU_NO_BACKUP (-1)

enum ha_gpu_backup_how {
	HA_GPU_BACKUP_NONE,
	HA_GPU_BACKUP_PORT,   /* other port of the card */
	HA_GPU_BACKUP_PAIR,   /* i xor 1 */
	HA_GPU_BACKUP_CHOSEN, /* by `order` */
	HA_GPU_BACKUP_OTHER   /* the usual partner cannot; warned of */
};

struct ha_gpu_backup_map {
	int n;
	int of[HA_GPU_PORTS_MAX]; /* index of the backup, or HA_GPU_NO_BACKUP */
	enum ha_gpu_backup_how how[HA_GPU_PORTS_MAX];
	int warnings;
};

/*
 * Somebody's order: candidates for `port`, best first, into order[]; how many. NULL: the rules
 * above.
 */
typedef int (*ha_gpu_backup_order)(const void *self, int port, int order[], int max);

/* 0 <= n <= HA_GPU_PORTS_MAX; else -EINVAL. Warnings go to the log and are counted. */
int ha_gpu_backup_map(const struct ha_gpu_port_info *ports, int n, ha_gpu_backup_order order,
		      const void *self, struct ha_gpu_backup_map *map);

#ifdef __cplusplus
}
#endif

#endif
