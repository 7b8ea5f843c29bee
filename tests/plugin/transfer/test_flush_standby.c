/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A standby that knows GPU memory is read from by each flush, and polled only after many polls that
 * found nothing (HA_NCCL_POLL_STANDBY_INTERVAL). A flush waited for that: seconds on a software NIC
 * whose processor is busy, for each batch of signals into GPU memory.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"

#include <stdlib.h>

#define SIZE 4096
#define FLUSHES 20
#define INTERVAL "60000"
#define TESTS 50000 /* fewer than INTERVAL */

static void await_keys(struct pair *p)
{
	struct ha_bundle *b = (struct ha_bundle *)p->recv;

	for (int k = 0; !(atomic_load(&b->registered.rails) & 2) && k < PAIR_TRIES_MAX; k++)
		pair_idle(p, k);
	CHECK(atomic_load(&b->registered.rails) & 2);
}

/* Whether the standby was among the rails that were asked. */
static bool flush_receive(struct pair *p, void *data, struct ha_mr *mr)
{
	struct ha_request *req;
	int done = 0, size = SIZE, tests = 0;
	bool standby;

	CHECK_INT(ha_iflush(p->recv, 1, &data, &size, &mr, &req), 0);
	standby = req->pending & 2;
	while (!done && tests < TESTS) {
		CHECK_INT(ha_test(req, &done, NULL), 0);
		pair_idle(p, tests++);
	}
	CHECK(done);
	return standby;
}

int main(void)
{
	char *data = pair_alloc(SIZE);
	struct ha_mr *mr;
	struct pair p;
	int standby = 0;

	setenv("HA_NCCL_MR_MODE", "eager", 1);
	setenv("HA_NCCL_POLL_STANDBY_INTERVAL", INTERVAL, 1);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path either */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	pair_open(&p, 0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, data, SIZE, HA_MEM_CUDA, 0, -1, 0, &mr), 0);
	await_keys(&p);
	for (int i = 0; i < PAIR_TRIES_MAX && standby < FLUSHES; i++)
		standby += flush_receive(&p, data, mr);
	CHECK_INT(standby, FLUSHES);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)p.recv, mr), 0);
	pair_close(&p);
	return 0;
}
