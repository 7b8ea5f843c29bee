/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - the items one after the other, both ranks together, and what is printed of them */
#include "gpu/check/check.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

struct said {
	int32_t verdict;
	char text[HA_GPU_CHECK_TEXT];
};

/* The worse of both; of two that are alike rank 0's words. */
static int run_item(struct ha_gpu_check *k, const struct ha_gpu_check_item *item)
{
	static const char *const words[] = { "ok", "not here", "FAILED" };
	struct said mine = { 0 }, all[2];
	int r, worse;

	k->text[0] = 0;
	if (item->unconnected || k->conn)
		mine.verdict = item->run(k);
	else
		mine.verdict = ha_gpu_check_report(k, HA_GPU_CHECK_NOT_HERE,
						   "there is no connection to try it on");
	memcpy(mine.text, k->text, sizeof(mine.text));
	r = ha_gpu_bootstrap_allgather(k->config.bootstrap, &mine, all, sizeof(mine));
	if (r)
		return r;
	worse = all[1].verdict > all[0].verdict;
	k->count[all[worse].verdict]++;
	if (k->out && !k->rank) {
		fprintf(k->out, "%-9s %-12s %s: %s%s\n", words[all[worse].verdict], item->name,
			item->what, worse ? "rank 1: " : "", all[worse].text);
		fflush(k->out);
	}
	return 0;
}

int ha_gpu_check_run(struct ha_gpu_check *k)
{
	int r = k->config.bootstrap->size == 2 ? 0 : -EINVAL;

	k->rank = k->config.bootstrap->rank;
	k->heap = k->config.heap;
	memset(k->count, 0, sizeof(k->count));
	for (unsigned i = 0; i < ha_gpu_check_nitems && !r; i++)
		if (!k->only || ha_gpu_check_items[i].unconnected ||
		    !strcmp(k->only, ha_gpu_check_items[i].name))
			r = run_item(k, &ha_gpu_check_items[i]);
	if (k->host && ha_gpu_host_finalize(k->host, 2000) && !r)
		k->count[HA_GPU_CHECK_FAILED]++;
	k->host = NULL;
	k->conn = NULL;
	if (r)
		return r;
	return k->count[HA_GPU_CHECK_FAILED] != 0;
}
