/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that connect queue pairs: another one is started when all are held up by the kernel, and
 * not because a free one has not got a processor yet. On a loaded machine a process once kept a
 * hundred of them.
 */
#include "base/check.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "tests/plugin/dummy.h"

#include <pthread.h>
#include <stdlib.h>

#define TIMES 300
#define HELD 4
#define TRIES_MAX 10000000 /* looks, with a yield each */

static struct dummy dummy;
static struct ha_verbs_ops verbs;
static struct ha_clock_virtual clock_of_test = HA_CLOCK_VIRTUAL_INIT(HA_NS_PER_S);
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held, completed;

static int modify_behind_the_gate(const struct ha_verbs_ops *v, struct ibv_qp *qp,
				  struct ibv_qp_attr *attr, int mask)
{
	if (attr->qp_state != IBV_QPS_RTR)
		return 0;
	atomic_fetch_add(&held, 1);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	atomic_fetch_sub(&held, 1);
	return 0;
}

static void count_done(void *arg)
{
	ha_hookup_free(arg);
	atomic_fetch_add(&completed, 1);
}

static unsigned count_workers(struct ha_ctx *ctx)
{
	unsigned n;

	pthread_mutex_lock(&ctx->hookups.lock);
	n = ctx->hookups.nworkers;
	pthread_mutex_unlock(&ctx->hookups.lock);
	return n;
}

static void start_hookup(struct ha_ctx *ctx, struct ha_device *dev)
{
	static struct ibv_qp qp;
	static struct ibv_cq cq;
	struct ha_hookup *h = calloc(1, sizeof(*h));

	CHECK(h);
	h->dev = dev;
	h->qp = &qp;
	h->cq = &cq;
	h->rtr.qp_state = IBV_QPS_RTR;
	h->rts.qp_state = IBV_QPS_RTS;
	h->done = count_done;
	h->arg = h;
	ha_hookup_start(ctx, h);
}

/* The next round comes so late that whatever has no thread yet counts as held up. */
static void late_round(struct ha_ctx *ctx)
{
	clock_of_test.now += 10 * HA_NS_PER_MS;
	(void)ha_hookups_round(ctx);
}

static void await_done(struct ha_ctx *ctx, int n)
{
	for (int k = 0; atomic_load(&completed) < n && k < TRIES_MAX; k++) {
		(void)ha_hookups_round(ctx);
		sched_yield();
	}
	CHECK_INT(atomic_load(&completed), n);
}

static void one_is_enough(struct ha_ctx *ctx, struct ha_device *dev)
{
	for (int i = 0; i < TIMES; i++) {
		start_hookup(ctx, dev);
		late_round(ctx);
		await_done(ctx, i + 1);
	}
	CHECK_INT(count_workers(ctx), 1);
}

static void another_for_each_that_is_held(struct ha_ctx *ctx, struct ha_device *dev)
{
	int before = atomic_load(&completed);

	pthread_mutex_lock(&gate);
	for (int i = 0; i < HELD; i++)
		start_hookup(ctx, dev);
	for (int k = 0; atomic_load(&held) < HELD && k < TRIES_MAX; k++) {
		late_round(ctx);
		sched_yield();
	}
	CHECK_INT(atomic_load(&held), HELD);
	CHECK_INT(count_workers(ctx), HELD);
	pthread_mutex_unlock(&gate);
	await_done(ctx, before + HELD);
}

int main(void)
{
	static struct ha_ctx ctx;
	static struct ha_device dev;

	dummy_init(&dummy);
	verbs = dummy.fake.ops;
	verbs.modify_qp = modify_behind_the_gate;
	ctx.verbs = &verbs;
	ctx.clock = &clock_of_test.clock;
	CHECK_INT(ha_loop_open(&ctx.loop), 0);
	CHECK_INT(ha_loop_open_wake(&ctx.loop), 0);
	ctx.loop.threaded = true;
	ha_hookups_open(&ctx, NULL, NULL);
	one_is_enough(&ctx, &dev);
	another_for_each_that_is_held(&ctx, &dev);
	ha_hookups_close(&ctx);
	ha_loop_close(&ctx.loop);
	return 0;
}
