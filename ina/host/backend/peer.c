/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/peer.h"

#include <stdlib.h>

struct ha_peer *ha_peer_create(struct ina_shm_peer *shm, unsigned workers)
{
	struct ha_peer *p = calloc(1, sizeof(*p));
	size_t each = sizeof(struct ha_job) + workers * sizeof(struct ha_part);

	if (p)
		p->all = calloc(INA_SHM_ENTRIES, each);
	if (!p || !p->all) {
		free(p);
		return NULL;
	}
	STAILQ_INIT(&p->waiting);
	p->shm = shm;
	p->workers = workers;
	p->buffer = ina_shm_peer_buffer(shm, &p->buffer_bytes);
	p->lost = ina_shm_peer_lost(shm);
	for (unsigned i = 0; i < INA_SHM_ENTRIES; i++) {
		struct ha_job *job = (struct ha_job *)(void *)(p->all + i * each);

		SLIST_INSERT_HEAD(&p->free, job, free);
	}
	return p;
}

void ha_peer_free(struct ha_peer *p)
{
	ina_shm_peer_release(p->shm);
	free(p->all);
	free(p);
}
