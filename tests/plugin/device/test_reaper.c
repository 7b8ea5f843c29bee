/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Destroying a failed path's queue pair takes the kernel for ever (rdma_rxe on a NIC without
 * carrier: seconds): the messages go on over another path meanwhile, a new incarnation comes up,
 * and both connections are served.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "rdma/verbs/dlopen.h"
#include "tests/rdma/verbs/filter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MESSAGES 50
#define SIZE 4096

static struct ha_verbs_ops below; /* the table's own functions */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiting, made;

static int destroy_slowly(const struct ha_verbs_ops *v, struct ibv_qp *qp)
{
	atomic_fetch_add(&waiting, 1);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	atomic_fetch_sub(&waiting, 1);
	return below.destroy_qp(v, qp);
}

static int create_counted(const struct ha_verbs_ops *v, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *init, struct ibv_qp **qp)
{
	atomic_fetch_add(&made, 1);
	return below.create_qp(v, pd, init, qp);
}

int main(void)
{
	struct ha_verbs_filter *filter;
	struct ha_verbs_ops *library;
	struct pair_side s = { .data = pair_alloc(SIZE) }, r = { .data = pair_alloc(SIZE) };
	struct pair p;
	int before, k = 0;

	/* the completion that is made to fail may be a receive whose data is there */
	setenv("HA_NCCL_ACK", "memory", 1);
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->destroy_qp = destroy_slowly;
	library->create_qp = create_counted;
	CHECK_INT(ha_verbs_filter_create(library, &filter), 0);
	pair_open_over(&p, 0, ha_verbs_filter_ops(filter));
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.send, s.data, SIZE, HA_MEM_HOST, 0, -1, 0, &s.mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, r.data, SIZE, HA_MEM_HOST, 0, -1, 0, &r.mr),
		  0);
	pair_messages(&p, &s, &r, MESSAGES, SIZE);

	pthread_mutex_lock(&gate);
	before = atomic_load(&made);
	CHECK_INT(ha_verbs_filter_completion_error(filter, 1, 1, IBV_WC_RETRY_EXC_ERR), 0);
	pair_messages(&p, &s, &r, MESSAGES, SIZE);
	for (k = 0; atomic_load(&waiting) < 1 && k < PAIR_TRIES_MAX; k++)
		pair_idle(&p, k);
	CHECK_INT(atomic_load(&waiting), 1); /* one thread, and it does not hold up the rest */
	for (k = 0; atomic_load(&made) < before + 2 && k < PAIR_TRIES_MAX; k++)
		pair_idle(&p, k);
	CHECK(atomic_load(&made) >= before + 2); /* both ends of a new incarnation */
	pair_messages(&p, &s, &r, MESSAGES, SIZE);
	pthread_mutex_unlock(&gate);

	ha_dereg_mr((struct ha_bundle *)p.send, s.mr);
	ha_dereg_mr((struct ha_bundle *)p.recv, r.mr);
	pair_close(&p);
	CHECK_INT(atomic_load(&waiting), 0);
	ha_verbs_filter_destroy(filter);
	ha_verbs_close_library(library);
	printf("paths fail over and come back while destroying blocks: ok\n");
	return 0;
}
