/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loopback.c - no backend: the daemon answers its own requests, as if every rank had brought what
 * this one did (NETCCL_FRONTEND_LOOPBACK)
 */
#include "ina/host/front/front.h"

#include <math.h>

static unsigned add_int32(int32_t *x, size_t n, unsigned ranks)
{
	unsigned met = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t sum = (int64_t)x[i] * ranks;

		if (sum != (int32_t)sum) {
			sum = sum < 0 ? INT32_MIN : INT32_MAX;
			met = HA_INA_SATURATED;
		}
		x[i] = (int32_t)sum;
	}
	return met;
}

static unsigned add_float32(float *x, size_t n, unsigned ranks)
{
	unsigned met = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(x[i]))
			met = HA_INA_NONFINITE;
		x[i] *= (float)ranks;
	}
	return met;
}

static unsigned ranks_of(const struct ha_ina *ctx, uint32_t handle)
{
	const struct ha_ina_group *g;

	LIST_FOREACH(g, &ctx->groups.list, link)
		if (g->handle == handle)
			return g->ranks;
	return 0; /* it has been left; nobody looks at the result */
}

static unsigned answer_request(struct ha_ina *ctx, const struct ina_shm_request *q)
{
	void *data = ctx->other.buffer + q->offset;
	unsigned ranks = ranks_of(ctx, q->group);

	if (q->coll == HA_INA_BROADCAST || q->coll == HA_INA_ALL_GATHER || !ranks)
		return 0;
	return q->type == HA_INA_INT32 ? add_int32(data, q->bytes / 4, ranks)
				       : add_float32(data, q->bytes / 4, ranks);
}

bool ina_front_loopback(struct ha_ina *ctx)
{
	struct ina_shm_request q;
	bool any = false;

	while (ina_shm_ring_pop(&ctx->other.requests, &q) > 0) {
		struct ina_shm_response r = { q.sequence, 0, answer_request(ctx, &q) };

		if (ina_shm_ring_push(&ctx->other.responses, &r))
			return any;
		any = true;
	}
	return any;
}
