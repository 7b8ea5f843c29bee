/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.h - protection domains, memory regions, and the one check that every access to user memory goes through
 */
#ifndef SOFTROCE_ENGINE_MR_H
#define SOFTROCE_ENGINE_MR_H

#include "softroce/engine/nic.h"

struct sr_pd {
	struct sr_nic *nic;
	struct sr_link link;
	uint32_t refs; /* memory regions, queue pairs and shared receive queues in it */
};

struct sr_mr {
	struct sr_pd *pd;
	char *addr;
	size_t length;
	uint64_t iova;
	int access; /* enum ibv_access_flags */
	uint32_t key;
};

/*
 * Where `length` bytes at remote or local address `va` under `key` lie, or NULL: unknown key, other protection domain,
 * missing right (every bit of `access` must be granted) or any byte outside. length must not be 0: an access of
 * nothing needs no key (IBTA vol. 1, 9.4.3).
 */
static inline char *sr_mr_translate(const struct sr_nic *nic, const struct sr_pd *pd, uint32_t key, uint64_t va,
				    uint64_t length, int access)
{
	const struct sr_mr *mr = sr_table_find(&nic->mrs, key);
	uint64_t offset;

	if (!mr || mr->pd != pd || (mr->access & access) != access)
		return NULL;
	offset = va - mr->iova; /* wraps to something huge when va lies below */
	if (offset >= mr->length || length > mr->length - offset)
		return NULL;
	return mr->addr + offset;
}

#endif
