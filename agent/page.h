/* SPDX-License-Identifier: BSD-3-Clause */
/* page.h - the file of hints: made, or taken over from a former agent */
#ifndef HA_AGENT_PAGE_H
#define HA_AGENT_PAGE_H

#include "agent/folder.h"
#include "include/mpib_agent_iface.h"

struct ha_page {
	struct mpib_hint_shm *shm; /* NULL: none */
	char name[64];
	ino_t inode;
	bool inherited; /* taken over as it was */
};

/*
 * A file that is ours and whole is taken over, so that whoever has mapped it goes on; anything else
 * of that name is replaced, never changed: it may be mapped. 0 or negative errno.
 */
int ha_page_open(struct ha_page *p, const struct ha_folder *folder, const char *name);
/* A new file with the same content in place of one that was removed; readers find it by its
 * name. */
int ha_page_again(struct ha_page *p, const struct ha_folder *folder);
/* The file stays, for the next agent. */
void ha_page_close(struct ha_page *p);

static inline void ha_page_heartbeat(struct ha_page *p)
{
	uint32_t *heartbeat = &p->shm->header.beat;
	uint32_t next = __atomic_load_n(heartbeat, __ATOMIC_RELAXED) + 1;

	/* Relaxed: it stands alone. 0 is for agents without a heartbeat. */
	__atomic_store_n(heartbeat, next ? next : 1, __ATOMIC_RELAXED);
}

#endif
