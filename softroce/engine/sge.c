/* SPDX-License-Identifier: BSD-3-Clause */
/* sge.c - walking a work request's buffers; see sge.h */
#include "softroce/engine/sge.h"

#include "softroce/engine/place.h"

#include <errno.h>

void sr_sge_seek(struct sr_sge_list list, struct sr_sge_pos *pos, uint64_t bytes)
{
	if (pos->bytes == bytes)
		return;
	*pos = (struct sr_sge_pos) { 0 };
	while (pos->index < list.n && bytes - pos->bytes >= list.sge[pos->index].length) {
		pos->bytes += list.sge[pos->index].length;
		pos->index++;
	}
	pos->offset = (uint32_t)(bytes - pos->bytes);
	pos->bytes = bytes;
}

/*
 * The next run of bytes within one entry, at most `length`; NULL when its key or bounds are wrong.
 */
static char *next_run(const struct sr_pd *pd, struct sr_sge_list list, struct sr_sge_pos *pos,
		      uint32_t *length, int access)
{
	const struct ibv_sge *sge;
	uint32_t left;
	char *p;

	for (; pos->index < list.n; pos->index++, pos->offset = 0)
		if (pos->offset < list.sge[pos->index].length)
			break;
	if (pos->index == list.n)
		return NULL;
	sge = &list.sge[pos->index];
	left = sge->length - pos->offset;
	if (*length > left)
		*length = left;
	p = sr_mr_translate(pd->nic, pd, sge->lkey, sge->addr + pos->offset, *length,
			    SR_ACCESS_LOCAL | access, 0);
	pos->offset += *length;
	pos->bytes += *length;
	return p;
}

int sr_sge_gather(const struct sr_pd *pd, struct sr_sge_list list, struct sr_sge_pos *pos,
		  uint32_t length, struct iovec iov[SR_MAX_SGE])
{
	int n = 0;

	/* Nearly always the packet lies within one entry. */
	if (pos->index < list.n && length && length <= list.sge[pos->index].length - pos->offset) {
		const struct ibv_sge *sge = &list.sge[pos->index];
		char *p = sr_mr_translate(pd->nic, pd, sge->lkey, sge->addr + pos->offset, length,
					  SR_ACCESS_LOCAL, 0);

		if (!p)
			return -EFAULT;
		iov[0] = (struct iovec) { p, length };
		pos->offset += length;
		pos->bytes += length;
		return 1;
	}
	while (length) {
		uint32_t run = length;
		char *p = next_run(pd, list, pos, &run, 0);

		if (!p)
			return -EFAULT;
		iov[n].iov_base = p;
		iov[n++].iov_len = run;
		length -= run;
	}
	return n;
}

int sr_sge_scatter(const struct sr_pd *pd, struct sr_sge_list list, struct sr_sge_pos *pos,
		   const void *from, uint32_t length)
{
	struct iovec iov[SR_MAX_SGE];
	int n = 0;

	while (length) {
		uint32_t run = length;
		char *p = next_run(pd, list, pos, &run, IBV_ACCESS_LOCAL_WRITE);

		if (!p)
			return -EFAULT;
		iov[n].iov_base = p;
		iov[n++].iov_len = run;
		length -= run;
	}
	for (int i = 0; i < n; i++) {
		sr_place(iov[i].iov_base, from, (uint32_t)iov[i].iov_len);
		from = (const char *)from + iov[i].iov_len;
	}
	return 0;
}

int sr_sge_check_writable(const struct sr_pd *pd, struct sr_sge_list list)
{
	for (uint32_t i = 0; i < list.n; i++) {
		const struct ibv_sge *sge = &list.sge[i];

		if (sge->length && !sr_mr_translate(pd->nic, pd, sge->lkey, sge->addr, sge->length,
						    SR_ACCESS_LOCAL | IBV_ACCESS_LOCAL_WRITE, 0))
			return -EFAULT;
	}
	return 0;
}
