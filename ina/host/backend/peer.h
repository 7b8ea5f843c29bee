/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - what the backend keeps of a client process: its requests in progress, its ranks */
#ifndef INA_BACKEND_PEER_H
#define INA_BACKEND_PEER_H

#include "ina/host/backend/mailbox.h"
#include "ina/host/backend/stream.h"
#include "ina/host/shm/server.h"

#include <sys/queue.h>

struct ha_question;

#define HA_PEER_QUESTIONS (2u * HA_INA_RANKS) /* of a client, that wait for the authority */

/*
 * One request, from the moment it is taken from the ring until its response. The balancer's, but
 * for what part[] says.
 */
struct ha_job {
	struct ha_peer *peer;
	struct ha_member *member;
	uint64_t sequence;
	unsigned left; /* parts without an end */
	int result;
	uint32_t met;
	STAILQ_ENTRY(ha_job) link; /* of its member, in order */
	SLIST_ENTRY(ha_job) free;  /* of its peer */
	struct ha_part part[];
};

struct ha_peer {
	struct ina_shm_peer *shm;
	struct ha_message came, gone, dropped;
	unsigned workers;

	/* The balancer's. */
	LIST_ENTRY(ha_peer) link;
	uint8_t *buffer;
	uint64_t buffer_bytes;
	const _Atomic bool *lost; /* the buffer is */
	bool mute;                /* nothing is taken from it any more */
	bool leaving;
	unsigned jobs, members;
	SLIST_HEAD(, ha_job) free;
	uint8_t *all; /* the memory of INA_SHM_ENTRIES jobs */

	/* Control's. */
	LIST_ENTRY(ha_peer) sibling;
	_Atomic bool is_gone; /* the registrar reads it */
	/* Questions that have no answer yet: one is the registrar's, the others wait here. */
	unsigned asked;
	STAILQ_HEAD(, ha_question) waiting;
	bool dropped_by_balancer;
};

/* NULL: no memory. workers: parts that a job may have. */
struct ha_peer *ha_peer_create(struct ina_shm_peer *shm, unsigned workers);
/* Releases the client's memory, too. */
void ha_peer_free(struct ha_peer *peer);

static inline struct ha_job *ha_peer_job(struct ha_peer *peer)
{
	struct ha_job *job = SLIST_FIRST(&peer->free);

	if (job) {
		SLIST_REMOVE_HEAD(&peer->free, free);
		peer->jobs++;
	}
	return job;
}

static inline void ha_peer_job_end(struct ha_peer *peer, struct ha_job *job)
{
	SLIST_INSERT_HEAD(&peer->free, job, free);
	peer->jobs--;
}

#endif
