/* SPDX-License-Identifier: BSD-3-Clause */
/* mr.c - protection domains, memory regions and windows: create, change, destroy */
#include "softroce/engine/mr.h"
#include <errno.h>
#include <stdlib.h>

#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define REMOTE_RIGHTS (REMOTE_CHANGES | IBV_ACCESS_REMOTE_READ)
#define KNOWN_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |     \
	 IBV_ACCESS_MW_BIND | IBV_ACCESS_OPTIONAL_RANGE)

struct sr_pd *sr_pd_create(struct sr_nic *nic, int *err)
{
	struct sr_pd *pd = NULL;

	*err = nic->dead ? -EIO : -ENOMEM;
	if (!nic->dead)
		pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->nic = nic;
	TAILQ_INSERT_TAIL(&nic->pds, pd, link);
	nic->n_pd++;
	*err = 0;
	return pd;
}

int sr_pd_destroy(struct sr_pd *pd)
{
	if (pd->refs)
		return -EBUSY;
	TAILQ_REMOVE(&pd->nic->pds, pd, link);
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

struct sr_mr *sr_mr_create(struct sr_pd *pd, void *addr, size_t length, uint64_t iova, int access,
			   int *err)
{
	struct sr_mr *mr;
	uint32_t id;

	*err = pd->nic->dead ? -EIO : check_region(addr, length, iova, access);
	if (*err)
		return NULL;
	*err = -ENOMEM;
	mr = malloc(sizeof(*mr));
	if (!mr)
		return NULL;
	*mr = (struct sr_mr) {
		.pd = pd,
		.addr = addr,
		.length = length,
		.iova = iova,
		.access = access | SR_ACCESS_LOCAL,
	};
	*err = sr_table_add(&pd->nic->mrs, mr, &pd->nic->rng, &id);
	if (*err) {
		free(mr);
		return NULL;
	}
	mr->key = sr_key_of(id);
	pd->refs++;
	return mr;
}

int sr_mr_destroy(struct sr_mr *mr)
{
	if (mr->bound)
		return -EBUSY;
	sr_table_remove(&mr->pd->nic->mrs, sr_id_of(mr->key));
	mr->pd->refs--;
	free(mr);
	return 0;
}

int sr_mr_rereg(struct sr_mr *mr, int flags, struct sr_pd *pd, void *addr, size_t length,
		int access)
{
	struct sr_mr to = *mr;
	uint32_t id;
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
		to.access = access | SR_ACCESS_LOCAL;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		if (!pd || pd->nic != mr->pd->nic)
			return -EINVAL;
		to.pd = pd;
	}
	err = check_region(to.addr, to.length, to.iova, to.access & ~SR_ACCESS_LOCAL);
	if (err)
		return err;
	if (mr->bound)
		return -EBUSY;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		/* New keys, so that whoever holds the old ones can not reach the new memory. */
		sr_table_remove(&mr->pd->nic->mrs, sr_id_of(mr->key));
		err = sr_table_add(&mr->pd->nic->mrs, mr, &mr->pd->nic->rng, &id);
		to.key = sr_key_of(id);
	}
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

/* ---- windows ---- */

struct sr_mr *sr_mw_create(struct sr_pd *pd, enum ibv_mw_type type, int *err)
{
	struct sr_mr *mw;
	uint32_t id;

	*err = -EIO;
	if (pd->nic->dead)
		return NULL;
	*err = -EINVAL;
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return NULL;
	*err = -ENOMEM;
	mw = malloc(sizeof(*mw));
	if (!mw)
		return NULL;
	*mw = (struct sr_mr) { .pd = pd, .window = (uint8_t)type };
	*err = sr_table_add(&pd->nic->mrs, mw, &pd->nic->rng, &id);
	if (*err) {
		free(mw);
		return NULL;
	}
	mw->key = sr_key_of(id);
	pd->refs++;
	return mw;
}

static void unbind_window(struct sr_mr *mw)
{
	if (mw->parent)
		mw->parent->bound--;
	mw->parent = NULL;
	mw->addr = NULL;
	mw->length = 0;
	mw->access = 0;
	mw->qpn = 0;
}

int sr_mw_destroy(struct sr_mr *mw)
{
	unbind_window(mw);
	return sr_mr_destroy(mw);
}

/* The window with this key, whatever the key's low byte. */
static struct sr_mr *find_window(struct sr_nic *nic, const struct sr_pd *pd, uint32_t key)
{
	struct sr_mr *mw = sr_table_find_index(&nic->mrs, sr_id_of(key));

	return mw && mw->window && mw->pd == pd && (mw->key ^ key) <= 0xff ? mw : NULL;
}

/* IBTA vol. 1, 10.6.7.2.2: a window grants nothing its region could not grant. */
static int check_bind(const struct sr_mr *mw, const struct sr_mr *mr, const struct sr_mw_bind *bind)
{
	uint64_t offset;

	if (!mr || mr->window || mr->pd != mw->pd || !(mr->access & IBV_ACCESS_MW_BIND))
		return -EACCES;
	/* The local right says nothing about a window, but programs name it. */
	if (bind->access & ~(REMOTE_RIGHTS | IBV_ACCESS_LOCAL_WRITE |
			     (mw->window == IBV_MW_TYPE_2 ? IBV_ACCESS_ZERO_BASED : 0)))
		return -EACCES;
	if ((bind->access & REMOTE_CHANGES) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return -EACCES;
	offset = bind->addr - mr->iova;
	if (offset >= mr->length || bind->length > mr->length - offset)
		return -EACCES;
	return 0;
}

int sr_mw_bind(struct sr_nic *nic, const struct sr_pd *pd, uint32_t qpn,
	       const struct sr_mw_bind *bind)
{
	struct sr_mr *mw = find_window(nic, pd, bind->rkey);
	struct sr_mr *mr = sr_table_find(&nic->mrs, sr_id_of(bind->lkey));
	bool two = mw && mw->window == IBV_MW_TYPE_2;

	if (!mw || (two && (mw->parent || !bind->length)))
		return -EACCES;
	if (bind->length && check_bind(mw, mr, bind))
		return -EACCES;
	unbind_window(mw);
	mw->key = bind->rkey;
	sr_table_rename(&nic->mrs, sr_id_of(bind->rkey));
	if (!bind->length)
		return 0;
	mw->parent = mr;
	mr->bound++;
	mw->addr = mr->addr + (bind->addr - mr->iova);
	mw->length = bind->length;
	mw->iova = bind->access & IBV_ACCESS_ZERO_BASED ? 0 : bind->addr;
	mw->access = bind->access & REMOTE_RIGHTS;
	mw->qpn = two ? qpn : 0;
	return 0;
}

int sr_mw_invalidate(struct sr_nic *nic, const struct sr_pd *pd, uint32_t qpn, uint32_t key)
{
	struct sr_mr *mw = sr_table_find(&nic->mrs, sr_id_of(key));

	if (!mw || mw->pd != pd || mw->window != IBV_MW_TYPE_2 || !mw->parent || mw->qpn != qpn)
		return -EACCES;
	unbind_window(mw);
	return 0;
}
