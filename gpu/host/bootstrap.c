/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/bootstrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ha_gpu_bootstrap_allgather(struct ha_gpu_bootstrap *b, const void *mine, void *receive,
			       size_t bytes)
{
	char *all = malloc(bytes * (size_t)b->size + 1);
	int r;

	if (!all)
		return -ENOMEM;
	for (int i = 0; i < b->size; i++)
		memcpy(all + (size_t)i * bytes, mine, bytes);
	r = b->alltoall(b->self, all, receive, bytes);
	free(all);
	return r;
}

int ha_gpu_bootstrap_agree(struct ha_gpu_bootstrap *b, int status)
{
	int32_t mine = status, *all = malloc((size_t)b->size * sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	r = ha_gpu_bootstrap_allgather(b, &mine, all, sizeof(mine));
	for (int i = 0; i < b->size && !r; i++)
		r = all[i];
	free(all);
	return status ? status : r;
}

int ha_gpu_bootstrap_gone(const struct ha_gpu_bootstrap *b)
{
	return b->ended_rank ? b->ended_rank(b->self) : -1;
}

void ha_gpu_bootstrap_close(struct ha_gpu_bootstrap *b)
{
	if (b->close)
		b->close(b->self);
	memset(b, 0, sizeof(*b));
}
