/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expert.h - what stands here for an expert's matrix products: y = gain(e) x + bias(e), element by
 * element
 *
 * It reads `packed` and writes `outputs`, a row for each token in the same order, as the real thing
 * would between dispatch and combine. Every expert has numbers of its own, so that a token that
 * went to another comes back as another.
 */
#ifndef HA_GPU_EXAMPLE_EXPERT_H
#define HA_GPU_EXAMPLE_EXPERT_H

#include "gpu/example/number.h"
#include "gpu/example/run.h"

/* Element j of a token as it travels. */
HA_GPU_FN float ha_moe_read_element(const struct ha_moe_shape *s, const uint8_t *token, uint32_t j)
{
	if (s->format == HA_MOE_BF16)
		return ha_moe_from_bf16(((const uint16_t *)(const void *)token)[j]);
	return ha_moe_times(ha_moe_from_e4m3(token[j]),
			    ((const float *)(const void *)(token + s->hidden))[j / HA_MOE_SCALED]);
}

HA_GPU_FN uint16_t ha_moe_apply_expert(uint32_t e, float x)
{
	float gain = 0.5f + (float)(e % 61) * 0.03125f, bias = (float)(e % 7) - 3.0f;

	return ha_moe_to_bf16(ha_moe_plus(ha_moe_times(gain, x), bias));
}

/* The kernel, by each of its warps: a warp per token. After a dispatch that is done. */
HA_GPU_FN void ha_moe_run_experts(struct ha_moe *m, const struct ha_moe_call *call, uint32_t warp,
				  uint32_t warps)
{
	const struct ha_moe_layout *l = &m->layout;
	uint64_t all = (uint64_t)m->shape.ranks * m->shape.tokens_max;
	struct ha_moe_run r;

	ha_moe_run_begin(&r, m, call, warp, warps);
	for (uint32_t local = 0; local < l->local; local++)
		for (uint64_t i = warp; i < ha_moe_read_word(&r, &r.w->packed[local]); i += warps) {
			const uint8_t *token = call->packed + (local * all + i) * l->token;
			uint16_t *row = (uint16_t *)(void *)(r.area + l->outputs +
							     (local * all + i) * l->row);

			for (uint32_t j = ha_gpu_lane(); j < m->shape.hidden; j += ha_gpu_lanes())
				row[j] = ha_moe_apply_expert(m->rank * l->local + local,
							     ha_moe_read_element(&m->shape, token,
										 j));
		}
	ha_moe_run_end(&r, HA_GPU_DONE);
}

#endif
