/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door.h - who dials a listener: many at once, and each has to show a card
 *
 * One that says nothing (a port scanner, a health check) keeps nobody waiting: all that have
 * dialled are listened to at the same time.
 */
#ifndef HA_GPU_HOST_DOOR_H
#define HA_GPU_HOST_DOOR_H

#include <stdbool.h>
#include <stddef.h>

#define HA_GPU_CARD_MAX 64 /* bytes */

/* True: `fd` is its owner's from now on. False: an unauthenticated peer, which is disconnected. */
typedef bool (*ha_gpu_door_card)(void *self, int fd, const void *card);

/* True: who is missing will not come. Asked now and then; may be NULL. */
typedef bool (*ha_gpu_door_in_vain)(void *self);

/*
 * Until `wanted` have been let in; -ETIMEDOUT: nobody was for limit_ms; -ECONNRESET: in vain.
 * *missing: so many have not come.
 */
int ha_gpu_door_open(int listener, size_t card_bytes, int wanted, unsigned limit_ms,
		     ha_gpu_door_card look, ha_gpu_door_in_vain in_vain, void *self, int *missing);

#endif
