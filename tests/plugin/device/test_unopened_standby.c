/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buffer is registered by dma-buf while no descriptor is left to keep it, so that the standby's
 * device has to know it at once; and that device is chosen and not open: opening it failed, or has
 * not begun.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/device/mr.h"
#include "rdma/verbs/dlopen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIZE 4096
#define ALWAYS 1000000

static struct ha_verbs_ops below, *library;
static atomic_int refuse, refused; /* of the standby's protection domains: to come, so far */

static int alloc_pd(const struct ha_verbs_ops *v, struct ibv_context *context, struct ibv_pd **pd)
{
	if (strcmp(context->device->name, "soft0") != 0 && atomic_load(&refuse) > 0) {
		atomic_fetch_sub(&refuse, 1);
		atomic_fetch_add(&refused, 1);
		return -ENOMEM;
	}
	return below.alloc_pd(v, context, pd);
}

static void register_without_descriptors(struct ha_bundle *b, void *data, int file,
					 struct ha_mr **mr)
{
	struct rlimit before, none;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit) { 0, before.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
	CHECK_INT(ha_reg_mr(b, data, SIZE, HA_MEM_CUDA, 0, file, 0, mr), 0);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static bool standby_chosen(struct ha_bundle *b)
{
	bool chosen;

	pthread_mutex_lock(&b->registered.lock);
	chosen = b->rail[1].dev;
	pthread_mutex_unlock(&b->registered.lock);
	return chosen;
}

/* So many attempts to open the standby's device fail. With fewer than ALWAYS it knows the buffer.
 */
static void check_registration(int times)
{
	int file = memfd_create("gpu", MFD_CLOEXEC);
	char *data = pair_alloc(SIZE);
	struct ha_bundle *b;
	struct ha_mr *mr;
	struct pair p;

	CHECK(file >= 0);
	CHECK_INT(ftruncate(file, SIZE), 0);
	atomic_store(&refused, 0);
	atomic_store(&refuse, times);
	pair_open_over(&p, 0, library);
	b = (struct ha_bundle *)p.recv;
	for (int k = 0; !(atomic_load(&refused) && standby_chosen(b)) && k < PAIR_TRIES_MAX; k++)
		pair_idle(&p, k);
	CHECK(standby_chosen(b));
	register_without_descriptors(b, data, file, &mr);
	CHECK(mr->entry[1] || times == ALWAYS);
	CHECK_INT(ha_dereg_mr(b, mr), 0);
	pair_close(&p);
	close(file);
}

int main(void)
{
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->alloc_pd = alloc_pd;
	check_registration(1);
	check_registration(ALWAYS);
	ha_verbs_close_library(library);
	return 0;
}
