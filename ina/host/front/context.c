/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.c - what every call does with its context: the sentence that goes with an error, waking
 * the daemon, the last reference
 */
#include "ina/host/front/front.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * What this thread's last call had to say: another thread's call, which may wait for a controller,
 * says its own.
 */
static _Thread_local struct {
	const struct ha_ina *ctx;
	char text[INA_SHM_TEXT + 64];
} said;

int ina_front_fail(struct ha_ina *ctx, int err, const char *fmt, ...)
{
	va_list args;

	said.ctx = ctx;
	va_start(args, fmt);
	vsnprintf(said.text, sizeof(said.text), fmt, args);
	va_end(args);
	return err;
}

void ina_front_begin(struct ha_ina *ctx)
{
	said.ctx = ctx;
	*said.text = 0;
}

void ina_front_kick(struct ha_ina *ctx)
{
	uint64_t one = 1;

	if (!ctx->thread.sleeping || ctx->forked)
		return;
	ctx->thread.sleeping = false;
	while (write(ctx->thread.kick, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void ina_front_free(struct ha_ina *ctx)
{
	struct ha_ina_group *g;

	while ((g = LIST_FIRST(&ctx->groups.leaving))) {
		LIST_REMOVE(g, link);
		free(g);
	}
	pthread_mutex_destroy(&ctx->lock);
	pthread_cond_destroy(&ctx->changed);
	free(ctx->segment);
	free(ctx);
}

void ina_front_put(struct ha_ina *ctx)
{
	bool last = --ctx->refs == 0;

	pthread_mutex_unlock(&ctx->lock);
	if (last)
		ina_front_free(ctx);
}

const char *ha_ina_error(const struct ha_ina *ctx)
{
	return said.ctx == ctx ? said.text : "";
}
