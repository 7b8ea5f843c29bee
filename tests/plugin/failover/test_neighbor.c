/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver reports to a connection what another one or a device has found out, while the owner of
 * that connection is inside and gives a rail up: nothing that the owner may be changing is read.
 * Seen by ThreadSanitizer; elsewhere only that the word arrives.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/ctx.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_bool given_up;

static struct ha_control *first_control(struct ha_bundle *b)
{
	return &b->failover->ctl[0];
}

/* With ctx->drive held at the end: the driver has looked at both, and leaves them alone. */
static void await_watched(struct ha_ctx *ctx, struct ha_bundle *a, struct ha_bundle *b)
{
	for (int k = 0; k < PAIR_TRIES_MAX; k++) {
		pthread_mutex_lock(&ctx->drive);
		if (first_control(a)->heartbeat.watched && first_control(b)->heartbeat.watched)
			return;
		pthread_mutex_unlock(&ctx->drive);
		usleep(100);
	}
	CHECK(!"watched");
}

/* The owner of a connection, inside. */
static void *give_up(void *arg)
{
	struct ha_bundle *b = arg;

	CHECK(ha_bundle_enter(b) != HA_NOT_NOW);
	ha_rail_suspect(b, &b->rail[0], HA_CAUSE_QUEUE_ERROR, "for this test");
	/* Relaxed: nothing that this thread did becomes visible by it. */
	atomic_store_explicit(&given_up, true, memory_order_relaxed);
	return NULL;
}

static void *leave_bundle(void *arg)
{
	ha_bundle_leave(arg);
	return NULL;
}

static void run_thread(void *(*function)(void *), struct ha_bundle *b)
{
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, function, b), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
}

int main(void)
{
	struct pair first, second;
	struct ha_bundle *owned, *other;
	pthread_t owner;

	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	pair_open(&first, 0);
	pair_connect(&second, first.ctx, 0);
	owned = (struct ha_bundle *)first.send;
	other = (struct ha_bundle *)second.send;
	await_watched(first.ctx, owned, other);

	CHECK_INT(pthread_create(&owner, NULL, give_up, owned), 0);
	while (!atomic_load_explicit(&given_up, memory_order_relaxed))
		usleep(100);
	ha_heartbeat_silence(other, &other->rail[0]);
	ha_failover_device_back(other->rail[0].dev);
	CHECK(first_control(owned)->heartbeat.doubted);
	CHECK(first_control(owned)->port_back);
	CHECK_INT(pthread_join(owner, NULL), 0);
	run_thread(leave_bundle, owned);
	pthread_mutex_unlock(&first.ctx->drive);

	pair_disconnect(&second);
	pair_close(&first);
	return 0;
}
