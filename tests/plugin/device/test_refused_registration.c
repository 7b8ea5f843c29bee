/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rail's device takes a buffer and the next one refuses it: what the first had is given back
 * before the connection is anybody else's again. Later, the driver may have moved that rail to
 * another device, whose cache knows nothing of the entry.
 */
#include "base/check.h"
#include "base/log.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"
#include "rdma/verbs/dlopen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096

static struct ha_verbs_ops below, *library;
static atomic_bool refuse; /* what is registered on soft1 */
static struct ha_bundle *bundle;
static unsigned refusals, held; /* lines about it; entries of soft0 with the last */

static int reg_mr(const struct ha_verbs_ops *v, struct ibv_pd *pd, void *addr, size_t length,
		  uint64_t iova, unsigned access, struct ibv_mr **mr)
{
	if (atomic_load(&refuse) && !strcmp(pd->context->device->name, "soft1"))
		return -ENOMEM;
	return below.reg_mr(v, pd, addr, length, iova, access, mr);
}

static unsigned count_entries(void)
{
	unsigned used, kept;

	ha_mr_cache_count(bundle->rail[0].dev->now->mr_cache, &used, &kept);
	return used;
}

/* The line comes when the registration has let go of the connection. */
static void catch_refusal(int level, unsigned long flags, const char *file, int line,
			  const char *fmt, ...)
{
	if (level != HA_LOG_WARN || !strstr(file, "device/mr.c"))
		return;
	refusals++;
	held = count_entries();
	(void)flags;
	(void)line;
	(void)fmt;
}

int main(void)
{
	unsigned before;
	struct ha_mr *mr;
	struct pair p;

	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->reg_mr = reg_mr;
	pair_open_over(&p, 1, library);
	bundle = (struct ha_bundle *)p.send;
	CHECK_INT(bundle->balance.ndata, 2);
	before = count_entries();
	ha_log_set_sink(catch_refusal);
	atomic_store(&refuse, true);
	CHECK_INT(ha_reg_mr(bundle, pair_alloc(SIZE), SIZE, HA_MEM_HOST, 0, -1, 0, &mr), -ENOMEM);
	atomic_store(&refuse, false);
	ha_log_set_sink(NULL);
	CHECK_INT(refusals, 1);
	CHECK_INT(held, before);
	pair_close(&p);
	ha_verbs_close_library(library);
	return 0;
}
