/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory is registered while no rail has a device: the NIC of the data rail is lost, the
 * standby is not there yet. It comes up, carries, and is flushed. Every flush of such a connection
 * was an error (-ENOTCONN), for ever.
 */
#include "base/check.h"
#include "tests/plugin/kill_nic.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "rdma/verbs/dlopen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 4096
#define MESSAGES 20

static struct ha_verbs_ops below, *library;
static atomic_bool refuse; /* queue pairs on soft1 */

static int create_qp(const struct ha_verbs_ops *v, struct ibv_pd *pd, struct ibv_qp_init_attr *init,
		     struct ibv_qp **qp)
{
	if (atomic_load(&refuse) && !strcmp(pd->context->device->name, "soft1"))
		return -ENOMEM;
	return below.create_qp(v, pd, init, qp);
}

static void await_no_rail(struct pair *p)
{
	for (int k = 0; atomic_load(&((struct ha_bundle *)p->recv)->registered.rails); k++) {
		CHECK(k < PAIR_TRIES_MAX);
		pair_idle(p, k);
	}
}

int main(void)
{
	struct pair_side from = { .data = pair_alloc(SIZE) }, to = { .data = pair_alloc(SIZE) };
	struct pair p;

	setenv("SOFTROCE_DEVICES", "127.193.44.0/24,127.193.45.0/24", 1);
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->create_qp = create_qp;
	atomic_store(&refuse, true);
	pair_open_over(&p, 0, library);
	kill_first_nic();
	await_no_rail(&p);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, to.data, SIZE, HA_MEM_CUDA, 0, -1, 0,
			    &to.mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.send, from.data, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &from.mr),
		  0);
	CHECK_INT(atomic_load(&((struct ha_bundle *)p.recv)->registered.rails), 0);
	atomic_store(&refuse, false);
	for (int i = 0; i < MESSAGES; i++) {
		pair_messages(&p, &from, &to, 1, SIZE);
		pair_flush(&p, &to, SIZE);
	}
	pair_close(&p);
	ha_verbs_close_library(library);
	return 0;
}
