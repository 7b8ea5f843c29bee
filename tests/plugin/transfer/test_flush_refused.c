/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rail whose device makes no queue pair for flushes brings nothing into GPU memory until it has
 * one. A standby that came up before GPU memory was registered is given it when it is needed, a
 * data rail with the first such memory; both carried without one when it was refused, and flushes
 * of what they had brought were done without a read.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/report/journal.h"
#include "rdma/verbs/dlopen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096
#define MESSAGES 200

static struct ha_verbs_ops below, *library;
static atomic_bool failed; /* the first path is, and its device makes no other */
static atomic_int refuse;  /* the next queue pair for flushes, with this errno; 0: none */

static int create_qp(const struct ha_verbs_ops *v, struct ibv_pd *pd, struct ibv_qp_init_attr *init,
		     struct ibv_qp **qp)
{
	bool flush = init->sq_sig_all != 0;

	if (atomic_load(&failed) && !strcmp(pd->context->device->name, "soft0"))
		return -ENOMEM;
	if (flush && atomic_load(&refuse))
		return atomic_exchange(&refuse, 0);
	return below.create_qp(v, pd, init, qp);
}

/* At both ends. */
static void await_standby(struct pair *p)
{
	for (int k = 0; ha_journal_count(p->ctx, HA_EVENT_PROTECTED) < 2; k++) {
		CHECK(k < PAIR_TRIES_MAX);
		pair_idle(p, k);
	}
}

static void fail_first_path(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	atomic_store(&failed, true);
	CHECK_INT(below.modify_qp(library, ((struct ha_bundle *)p->send)->rail[0].qp, &attr,
				  IBV_QP_STATE),
		  0);
}

static void register_buffers(struct pair *p, struct pair_side *from, struct pair_side *to)
{
	from->data = pair_alloc(SIZE);
	to->data = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p->send, from->data, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &from->mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p->recv, to->data, SIZE, HA_MEM_CUDA, 0, -1, 0,
			    &to->mr),
		  0);
}

static void transfer_and_flush(struct pair *p, struct pair_side *from, struct pair_side *to, int n)
{
	for (int i = 0; i < n; i++) {
		pair_messages(p, from, to, 1, SIZE);
		pair_flush(p, to, SIZE);
	}
}

static void refused_at_a_failover(void)
{
	struct pair_side from = { 0 }, to = { 0 };
	struct pair p;

	pair_open_over(&p, 0, library);
	await_standby(&p);
	register_buffers(&p, &from, &to);
	transfer_and_flush(&p, &from, &to, 1);
	atomic_store(&refuse, -ENOMEM);
	fail_first_path(&p);
	transfer_and_flush(&p, &from, &to, MESSAGES);
	CHECK_INT(atomic_load(&refuse), 0);
	pair_close(&p);
	atomic_store(&failed, false);
}

/* As by a device that is about to be lost: failover takes care of the buffer on that rail. */
static void refused_at_the_first_buffer(void)
{
	struct pair_side from = { 0 }, to = { 0 };
	struct pair p;

	pair_open_over(&p, 0, library);
	await_standby(&p);
	atomic_store(&refuse, -EIO);
	register_buffers(&p, &from, &to);
	CHECK_INT(atomic_load(&refuse), 0);
	CHECK(!to.mr->rkey[0] || ha_rail_flush_cq(&((struct ha_bundle *)p.recv)->rail[0]));
	transfer_and_flush(&p, &from, &to, MESSAGES);
	pair_close(&p);
}

int main(void)
{
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->create_qp = create_qp;
	refused_at_a_failover();
	refused_at_the_first_buffer();
	ha_verbs_close_library(library);
	return 0;
}
