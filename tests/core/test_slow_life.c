/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address behind the first device does not answer, and each try to connect a queue pair to it takes a second (the kernel
 * asks for the peer's link address; three with rdma_rxe). The driver of all connections stands still meanwhile, so it leaves
 * itself twice as long for everything else between two tries. Messages go on; when the address answers again the path is back.
 */
#include "tests/base/check.h"
#include "tests/core/pair.h"

#include "verbs/dlopen.h"
#include "verbs/filter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES 20
#define SIZE 4096
#define TRY_MS 1000
#define TRIES 3
#define LIMIT_S 100

static struct ha_verbs_ops below; /* the table's own functions */
static atomic_bool dead;	  /* the first device's path */
static atomic_int tries;
static uint64_t last_end, shortest = UINT64_MAX; /* the driver's: ns between two tries */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int modify_slowly(const struct ha_verbs_ops *v, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	uint64_t now = now_ns();

	if (!(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RTR || !atomic_load(&dead) ||
	    strcmp(qp->context->device->name, "soft0") != 0)
		return below.modify_qp(v, qp, attr, mask);
	if (last_end && now - last_end < shortest)
		shortest = now - last_end;
	usleep(TRY_MS * 1000);
	last_end = now_ns();
	atomic_fetch_add(&tries, 1);
	return -ETIMEDOUT;
}

/* The path that carries is lost; what follows goes over another. */
static void lose(struct pair *p, struct ha_verbs_filter *filter, struct pair_side *s, struct pair_side *r)
{
	CHECK_INT(ha_verbs_filter_completion_error(filter, 1, 1, IBV_WC_RETRY_EXC_ERR), 0);
	pair_messages(p, s, r, MESSAGES, SIZE);
}

int main(void)
{
	struct ha_verbs_filter *filter;
	struct ha_verbs_ops *library;
	struct pair_side s = { .data = pair_alloc(SIZE) }, r = { .data = pair_alloc(SIZE) };
	struct pair p;

	setenv("HA_NCCL_ACK", "memory", 1); /* the completion that is made to fail may be a receive whose data is there */
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->modify_qp = modify_slowly;
	CHECK_INT(ha_verbs_filter_create(library, &filter), 0);
	pair_open_over(&p, 0, ha_verbs_filter_ops(filter));
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.send, s.data, SIZE, HA_MEM_HOST, 0, -1, 0, &s.mr), 0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, r.data, SIZE, HA_MEM_HOST, 0, -1, 0, &r.mr), 0);
	pair_messages(&p, &s, &r, MESSAGES, SIZE);

	atomic_store(&dead, true);
	lose(&p, filter, &s, &r);
	for (time_t end = time(NULL) + LIMIT_S; atomic_load(&tries) < TRIES && time(NULL) < end;)
		pair_messages(&p, &s, &r, MESSAGES, SIZE);
	CHECK(atomic_load(&tries) >= TRIES);
	atomic_store(&dead, false);
	lose(&p, filter, &s, &r); /* the first device's path is all there is */
	CHECK(shortest >= 2ull * TRY_MS * 1000000);

	ha_dereg_mr((struct ha_bundle *)p.send, s.mr);
	ha_dereg_mr((struct ha_bundle *)p.recv, r.mr);
	pair_close(&p);
	ha_verbs_filter_destroy(filter);
	ha_verbs_close_library(library);
	printf("%d tries of %d ms, %.3f s apart at least: ok\n", atomic_load(&tries), TRY_MS, (double)shortest / 1e9);
	return 0;
}
