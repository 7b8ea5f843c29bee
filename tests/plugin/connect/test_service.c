/* SPDX-License-Identifier: BSD-3-Clause */
/* The service thread stays awake for a number of rounds after work, or for as long as they take on
 * a processor of its own, then sleeps; due times alone keep nobody awake. */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/connect/accept.h"
#include "plugin/ctx.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <unistd.h>

#define HANGS_NS                                                                                \
	(240 * UINT64_C(1000000000)) /* it does not come to rest, or too soon; a round may wait \
					for other programs */
#define ROUND_NS 2000                /* on a processor of its own: service.c */
/* rounds that fixed times may add while a test looks, and as many again in each */
#define PERIODIC 100
#define PERIOD (2 * UINT64_C(1000000000)) /* ns */

static struct dummy dummy;

static struct ha_ctx *start_service_by(int threshold, const struct ha_clock *clock)
{
	struct ha_config config;
	struct ha_ctx_params params = { .config = &config,
					.verbs = &dummy.fake.ops,
					.clock = clock };
	struct ha_ctx *ctx;

	lines_catch();
	dummy_init(&dummy);
	ha_config_defaults(&config);
	strcpy(config.socket_ifname, "=lo");
	strcpy(config.status_dir, "none");
	config.idle_spin_threshold = threshold;
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	return ctx;
}

static struct ha_ctx *start_service(int threshold)
{
	return start_service_by(threshold, NULL);
}

static void stop_service(struct ha_ctx *ctx)
{
	ha_ctx_destroy(ctx);
	dummy_done(&dummy);
}

static uint64_t read_rounds(struct ha_ctx *ctx)
{
	uint64_t n;

	pthread_mutex_lock(&ctx->drive);
	n = ctx->service.rounds;
	pthread_mutex_unlock(&ctx->drive);
	return n;
}

/* Rounds until the wake. Under the lock, so that its round is the next one. */
static uint64_t wake_service(struct ha_ctx *ctx, bool mute)
{
	uint64_t n;

	pthread_mutex_lock(&ctx->drive);
	if (mute)
		ha_listens_mute(ctx);
	ha_loop_wake(&ctx->loop);
	n = ctx->service.rounds;
	pthread_mutex_unlock(&ctx->drive);
	return n;
}

/* Wait until it has run `least` rounds more than `before`, or had the time for them, and sleeps: no
 * more than those and the periodic ones. */
static void await_sleep(struct ha_ctx *ctx, uint64_t before, uint64_t least)
{
	uint64_t begun = ha_clock_now(&ha_clock_live), now = read_rounds(ctx), last, took = 0,
		 looked;

	do {
		last = now;
		looked = took;
		usleep(20000);
		now = read_rounds(ctx);
		took = ha_clock_now(&ha_clock_live) - begun;
		CHECK(took < HANGS_NS);
	} while ((now - before < least && took < least * ROUND_NS) ||
		 now - last > 2 + (took - looked) * PERIODIC / PERIOD);
	CHECK(now - before <= least + PERIODIC + took / PERIOD * PERIODIC);
}

/* A wake is one round with work; then so many without. */
static void sleeps_after(int threshold)
{
	struct ha_ctx *ctx = start_service(threshold);

	for (int i = 0; i < 3; i++)
		await_sleep(ctx, wake_service(ctx, false), 1 + (uint64_t)threshold);
	stop_service(ctx);
}

static uint64_t muted_until(struct ha_ctx *ctx)
{
	uint64_t ns;

	pthread_mutex_lock(&ctx->drive);
	ns = ctx->service.muted_until;
	pthread_mutex_unlock(&ctx->drive);
	return ns;
}

/* The end of the listeners' rest is due at a fixed time. */
static void a_due_time_is_no_work(void)
{
	struct ha_ctx *ctx = start_service(200);
	uint64_t before = wake_service(ctx, true);

	while (muted_until(ctx))
		usleep(1000);
	await_sleep(ctx, before, 201);
	stop_service(ctx);
}

/* However long it would stay awake, the end of the context is not kept waiting. */
static void ends_while_awake(void)
{
	struct ha_ctx *ctx = start_service(1000000000);
	uint64_t before = read_rounds(ctx);

	ha_loop_wake(&ctx->loop);
	while (read_rounds(ctx) - before < 300)
		usleep(1000);
	stop_service(ctx);
}

#define SLOWER 50 /* times */

static uint64_t read_fast_clock(const struct ha_clock *clock)
{
	(void)clock;
	return ha_clock_now(&ha_clock_live) * SLOWER;
}

/* On a processor that others use a round takes long: as many of them are not run then. */
static void sleeps_when_rounds_take_long(void)
{
	static const struct ha_clock fast = { read_fast_clock };
	const int threshold = 100000;
	struct ha_ctx *ctx = start_service_by(threshold, &fast);
	uint64_t before = wake_service(ctx, false), begun = ha_clock_now(&ha_clock_live);

	while (ha_clock_now(&ha_clock_live) - begun < 500000000)
		usleep(10000);
	CHECK(read_rounds(ctx) - before < (uint64_t)threshold);
	stop_service(ctx);
}

int main(void)
{
	sleeps_after(0);
	sleeps_after(1);
	sleeps_after(200);
	a_due_time_is_no_work();
	sleeps_when_rounds_take_long();
	ends_while_awake();
	return 0;
}
