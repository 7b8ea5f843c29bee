/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/example/trial.h"

#include "gpu/example/run.h"

#include <errno.h>
#include <string.h>

#define FAILBACK_MS 30000
#define END_MS 2000

struct trial {
	struct ha_moe_rank *rank;
	const struct ha_moe_plan *plan;
	struct ha_moe_tally *tally;
};

/* ---- cuts ---- */

static uint64_t draw_random(const struct trial *t, uint64_t n, unsigned kernel)
{
	uint64_t z = t->rank->config.values.seed * 0x9e3779b97f4a7c15 + n * 4 + kernel;

	z = (z ^ z >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 29) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 32;
}

/* Messages that this rank sends to others in the dispatch. */
static uint64_t count_dispatched(const struct ha_moe_rank *r)
{
	const struct ha_moe *m = r->moe;
	uint64_t count = 0;

	for (uint64_t i = 0; i < (uint64_t)r->call.tokens * m->shape.topk; i++)
		count += r->call.topk[i] >= 0 &&
			 (uint32_t)r->call.topk[i] / m->layout.local != m->rank;
	return count;
}

/* Rows that it sends back. */
static uint64_t count_returned(const struct ha_moe_rank *r)
{
	const struct ha_moe *m = r->moe;
	uint64_t count = 0;

	for (uint32_t pair = 0; pair < m->layout.local * m->shape.ranks; pair++)
		if (pair % m->shape.ranks != m->rank)
			count += (ha_gpu_load(&m->words[r->call.number & 1].arrivals[pair]) &
				  HA_MOE_LOW) -
				 1;
	return count;
}

/*
 * One rank's turn in each kernel, at one of its entries of that kernel: tokens, counts and proofs
 * alike.
 */
static void order_cut(struct trial *t, unsigned kernel)
{
	uint64_t n = t->rank->call.number, h = draw_random(t, n, kernel), messages;
	struct ha_moe_rank *r = t->rank;
	int kind = t->plan->kind;

	if (t->plan->down_at == n + 1 && kernel == HA_MOE_CUT_DISPATCH && r->moe->rank == 1)
		for (int i = 0; i < HA_MOE_NICS; i++)
			/* the second with what the first one leaves, be it one entry */
			ha_moe_nic_cut(&r->nic[i], 0, 0, UINT64_MAX);
	if (!(t->plan->cut_in & kernel) || n % t->plan->every ||
	    h % r->moe->shape.ranks != r->moe->rank)
		return;
	messages = (kernel == HA_MOE_CUT_DISPATCH ? count_dispatched(r) : count_returned(r)) /
			   HA_MOE_NICS +
		   1;
	if (kind < 0)
		kind = (int)(n + (kernel == HA_MOE_CUT_COMBINE) * 3) % ha_moe_ncut_kinds;
	h /= r->moe->shape.ranks;
	ha_moe_nic_cut(&r->nic[h % HA_MOE_NICS], kind, h / HA_MOE_NICS % messages,
		       t->plan->down_ms ? t->plan->down_ms * UINT64_C(1000000) : UINT64_MAX);
}

static void after_kernel(struct trial *t)
{
	uint64_t cuts = 0;

	for (int i = 0; i < HA_MOE_NICS; i++) {
		ha_moe_nic_settle(&t->rank->nic[i]);
		cuts += t->rank->nic[i].cuts;
	}
	if (cuts != t->tally->cuts && t->plan->failback && t->plan->down_ms && !t->plan->down_at)
		t->tally->not_failed_back += !ha_moe_rank_failed_back(t->rank, FAILBACK_MS);
	t->tally->cuts = cuts;
}

/* ---- a launch ---- */

static enum ha_gpu_result run_launch(struct trial *t, uint64_t n)
{
	struct ha_moe_rank *r = t->rank;
	const struct ha_moe_values *v = &r->config.values;
	enum ha_gpu_result result;

	ha_moe_rank_input(r, n);
	order_cut(t, HA_MOE_CUT_DISPATCH);
	result = ha_moe_rank_dispatch(r, HA_MOE_BOTH, t->plan->limit_ns);
	after_kernel(t);
	if (result != HA_GPU_DONE)
		return result;
	t->tally->wrong += ha_moe_check_dispatch(v, r->moe, &r->call);
	ha_moe_rank_experts(r);
	ha_moe_scribble_arrived(r->moe, n);
	if (n)
		t->tally->wrong += ha_moe_check_scribbled(r->moe, n - 1);
	order_cut(t, HA_MOE_CUT_COMBINE);
	result = ha_moe_rank_combine(r, HA_MOE_BOTH, t->plan->limit_ns);
	after_kernel(t);
	if (result != HA_GPU_DONE)
		return result;
	t->tally->wrong += ha_moe_check_combine(v, r->moe, &r->call);
	ha_moe_scribble_returned(r->moe, n);
	t->tally->tokens += r->call.tokens;
	for (uint64_t i = 0; i < (uint64_t)r->call.tokens * v->shape.topk; i++)
		t->tally->rows += r->call.topk[i] >= 0;
	return HA_GPU_DONE;
}

static void run_launches(struct trial *t)
{
	enum ha_gpu_result result = HA_GPU_DONE;
	uint64_t start, took;

	for (uint64_t n = 0; n < t->plan->launches && result == HA_GPU_DONE; n++) {
		start = ha_gpu_now();
		result = run_launch(t, n);
		took = ha_gpu_now() - start;
		t->tally->slowest_ns = took > t->tally->slowest_ns ? took : t->tally->slowest_ns;
		t->tally->ended_by = n;
		ha_gpu_add(&t->tally->launches, result == HA_GPU_DONE);
	}
	t->tally->result = result;
}

static void collect_stats(struct trial *t)
{
	struct ha_gpu_host_stats stats;

	ha_gpu_host_stats(t->rank->host, &stats);
	t->tally->switches = stats.switches;
	t->tally->replayed = stats.replayed;
	for (int i = 0; i < HA_MOE_NICS; i++) {
		const struct ha_moe_nic *n = &t->rank->nic[i];
		uint64_t worst = ha_gpu_load(&n->max_ns);

		t->tally->resumed += ha_gpu_load(&n->resumed);
		t->tally->resumed_sum_ns += ha_gpu_load(&n->sum_ns);
		t->tally->resumed_max_ns =
			worst > t->tally->resumed_max_ns ? worst : t->tally->resumed_max_ns;
	}
}

int ha_moe_run_trial(const struct ha_moe_rank_config *c, const struct ha_moe_plan *plan,
		     struct ha_moe_tally *tally)
{
	struct trial t = { .plan = plan, .tally = tally };
	int result;

	memset(tally, 0, sizeof(*tally));
	result = ha_moe_rank_open(c, &t.rank);
	if (result)
		return result;
	run_launches(&t);
	collect_stats(&t);
	result = ha_moe_rank_close(t.rank, END_MS);
	if (result == -ETIMEDOUT && tally->result == HA_GPU_BOTH_DOWN)
		result = 0; /* what was outstanding was given up, as it must be */
	ha_gpu_store(&tally->finished, 1);
	return result;
}
