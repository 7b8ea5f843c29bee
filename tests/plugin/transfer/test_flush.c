/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A standby that comes up after GPU memory was registered has a queue pair for flushes and, until a
 * failover, no key of that memory: flushes leave it alone. Found on the kernel's rdma_rxe, whose
 * standby comes up late: the read with key 0 ended the connection.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "rdma/verbs/dlopen.h"
#include "rdma/verbs/ops.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SIZE 4096

static struct ha_verbs_ops below; /* the table's own functions */
static atomic_int made;
static atomic_bool refuse;

/* The two queue pairs of the first rail, no more while `refuse` is set. */
static int create_counted(const struct ha_verbs_ops *v, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *init, struct ibv_qp **qp)
{
	bool flush = init->sq_sig_all != 0;

	if (!flush && atomic_load(&refuse) && atomic_load(&made) >= 2)
		return -ENOMEM;
	atomic_fetch_add(&made, 1);
	return below.create_qp(v, pd, init, qp);
}

static void wait_for(struct pair *p, struct ha_request *req)
{
	int done = 0;

	for (int k = 0; req && !done && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_test(req, &done, NULL), 0);
		pair_idle(p, k);
	}
	CHECK(!req || done);
}

static void transfer_message(struct pair *p, char *from, struct ha_mr *from_mr, void *to,
			     struct ha_mr *to_mr)
{
	struct ha_request *recv = NULL, *send = NULL, *flush;
	size_t size = SIZE;
	int tag = 0, bytes = SIZE;

	for (int k = 0; !recv && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_irecv(p->recv, 1, &to, &size, &tag, &to_mr, false, &recv), 0);
		pair_idle(p, k);
	}
	for (int k = 0; !send && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_isend(p->send, from, SIZE, 0, from_mr, &send), 0);
		pair_idle(p, k);
	}
	wait_for(p, send);
	wait_for(p, recv);
	CHECK_INT(ha_iflush(p->recv, 1, &to, &bytes, &to_mr, &flush), 0);
	wait_for(p, flush);
}

int main(void)
{
	char *from = pair_alloc(SIZE), *to = pair_alloc(SIZE);
	struct ha_mr *from_mr, *to_mr;
	struct ha_verbs_ops *library;
	struct pair p;

	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path either */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->create_qp = create_counted;
	atomic_store(&refuse, true);
	pair_open_over(&p, 0, library);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.send, from, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &from_mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, to, SIZE, HA_MEM_CUDA, 0, -1, 0, &to_mr),
		  0);
	transfer_message(&p, from, from_mr, to, to_mr);
	CHECK_INT(atomic_load(&made), 3);
	atomic_store(&refuse, false);
	/* Both ends of the standby, and its queue pair for flushes. */
	for (int k = 0; atomic_load(&made) < 6 && k < PAIR_TRIES_MAX; k++)
		pair_idle(&p, k);
	CHECK(atomic_load(&made) >= 6);
	for (int i = 0; i < 2000; i++)
		transfer_message(&p, from, from_mr, to, to_mr);
	CHECK_INT(atomic_load(&made), 6); /* no path broke */
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)p.send, from_mr), 0);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)p.recv, to_mr), 0);
	pair_close(&p);
	ha_verbs_close_library(library);
	printf("a late standby is not flushed: ok\n");
	return 0;
}
