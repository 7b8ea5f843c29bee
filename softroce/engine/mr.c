/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.c - protection domains and memory regions: create, change, destroy */
#include "softroce/engine/mr.h"
#include <errno.h>
#include <stdlib.h>

#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define KNOWN_ACCESS                                                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
	 IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

struct sr_pd *sr_pd_create(struct sr_nic *nic, int *err)
{
	struct sr_pd *pd = NULL;

	*err = nic->dead ? -EIO : -ENOMEM;
	if (!nic->dead)
		pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->nic = nic;
	sr_list_add_tail(&nic->pds, &pd->link);
	nic->n_pd++;
	*err = 0;
	return pd;
}

int sr_pd_destroy(struct sr_pd *pd)
{
	if (pd->refs)
		return -EBUSY;
	sr_list_remove(&pd->link);
	pd->nic->n_pd--;
	free(pd);
	return 0;
}

/* IBTA vol. 1, 10.6.3.1: remote rights to change memory need the local one; ranges may not wrap. */
static int check_region(void *addr, size_t length, uint64_t iova, int access)
{
	if (!length || (uintptr_t)addr + length < (uintptr_t)addr || iova + length < iova)
		return -EINVAL;
	if (access & ~KNOWN_ACCESS)
		return access & IBV_ACCESS_ON_DEMAND ? -EOPNOTSUPP : -EINVAL;
	if ((access & REMOTE_CHANGES) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

struct sr_mr *sr_mr_create(struct sr_pd *pd, void *addr, size_t length, uint64_t iova, int access, int *err)
{
	struct sr_mr *mr;

	*err = pd->nic->dead ? -EIO : check_region(addr, length, iova, access);
	if (*err)
		return NULL;
	*err = -ENOMEM;
	mr = malloc(sizeof(*mr));
	if (!mr)
		return NULL;
	*mr = (struct sr_mr){ .pd = pd, .addr = addr, .length = length, .iova = iova, .access = access };
	*err = sr_table_add(&pd->nic->mrs, mr, &pd->nic->rng, &mr->key);
	if (*err) {
		free(mr);
		return NULL;
	}
	pd->refs++;
	return mr;
}

int sr_mr_destroy(struct sr_mr *mr)
{
	sr_table_remove(&mr->pd->nic->mrs, mr->key);
	mr->pd->refs--;
	free(mr);
	return 0;
}

int sr_mr_rereg(struct sr_mr *mr, int flags, struct sr_pd *pd, void *addr, size_t length, int access)
{
	struct sr_mr to = *mr;
	int err;

	if (mr->pd->nic->dead)
		return -EIO;
	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		to.addr = addr;
		to.length = length;
		to.iova = (uintptr_t)addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		to.access = access;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		if (!pd || pd->nic != mr->pd->nic)
			return -EINVAL;
		to.pd = pd;
	}
	err = check_region(to.addr, to.length, to.iova, to.access);
	if (err)
		return err;
	/* New keys, so that whoever holds the old ones can not reach the new memory. */
	sr_table_remove(&mr->pd->nic->mrs, mr->key);
	err = sr_table_add(&mr->pd->nic->mrs, mr, &mr->pd->nic->rng, &to.key);
	mr->pd->refs--;
	to.pd->refs++;
	*mr = to;
	return err;
}

uint32_t sr_mr_lkey(const struct sr_mr *mr)
{
	return mr->key;
}

uint32_t sr_mr_rkey(const struct sr_mr *mr)
{
	return mr->key;
}
