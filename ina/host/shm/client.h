/* SPDX-License-Identifier: BSD-3-Clause */
/* client.h - a client's end: attached to its host's backend */
#ifndef INA_SHM_CLIENT_H
#define INA_SHM_CLIENT_H

#include "ina/host/shm/memory.h"
#include "ina/host/shm/message.h"

struct ina_shm_client {
	int fd;           /* the socket, for poll(); ina_shm_message_send() and _receive() */
	uint32_t address; /* the card's IPv4, host order */
	struct ina_shm_memory memory;
};

/* for a backend's answer while attaching; on a busy host it may come seconds late */
#define INA_SHM_TIME_LIMIT_MS 20000

#define INA_SHM_LOOK_MS 50 /* how often one that waits looks at give_up */

/* Whether another thread wants the one that waits back. */
static inline bool ina_shm_given_up(const int *give_up)
{
	/* acquire: what was done before is seen */
	return give_up && __atomic_load_n(give_up, __ATOMIC_ACQUIRE);
}

/*
 * 0; -ENOTCONN: nobody there; -ECANCELED: *give_up (which may be NULL) has become true; or another
 * errno; why[size] says it in one line.
 */
int ina_shm_client_open(struct ina_shm_client *client, const char *path, uint32_t segments,
			const int *give_up, char *why, size_t size);
void ina_shm_client_close(struct ina_shm_client *client);

/*
 * After ina_shm_ring_push() into client->memory.requests: wakes the backend when it sleeps. 0, or
 * -ENOTCONN.
 */
int ina_shm_client_bell(struct ina_shm_client *client);

#endif
