/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/example/rank.h"

#include "base/log.h"
#include "gpu/example/combine.h"
#include "gpu/example/dispatch.h"
#include "gpu/example/expert.h"
#include "gpu/example/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JOB 0x6d6f65 /* what the processes of one job send each other when they connect */

/* ---- time from a cut to traffic, seen by the thread of the NIC that was cut ---- */

static struct ha_gpu_conn *conn_at(const struct ha_moe_rank *r, unsigned i)
{
	return ha_gpu_world_conn(r->moe->world, i / r->moe->shape.ranks, i % r->moe->shape.ranks);
}

static bool carries_traffic(void *self, bool struck)
{
	const struct ha_moe_nic *n = self;
	struct ha_moe_rank *r =
		(struct ha_moe_rank *)((char *)(uintptr_t)n - offsetof(struct ha_moe_rank, nic) -
				       sizeof(*n) * (n->nic->number % HA_MOE_NICS));
	unsigned conns = r->moe->rows * r->moe->shape.ranks, which = n->nic->number % HA_MOE_NICS;

	for (unsigned i = 0; i < conns && i < HA_MOE_CONNS_MAX; i++) {
		struct ha_gpu_conn *c = conn_at(r, i);
		uint64_t cons = c ? ha_gpu_load(&c->cons) : 0;

		if (struck) {
			r->seen[which][i].epoch = cons & HA_GPU_EPOCH;
			r->seen[which][i].switched = false;
		} else if (c && (cons & HA_GPU_EPOCH) != r->seen[which][i].epoch) {
			if (!r->seen[which][i].switched)
				r->seen[which][i].first = cons & HA_GPU_INDEX;
			r->seen[which][i].switched = true;
			if ((cons & HA_GPU_INDEX) > r->seen[which][i].first ||
			    (cons & HA_GPU_INDEX) == ha_gpu_load(&c->ready))
				return true;
		}
	}
	return false;
}

/* ---- set-up ---- */

size_t ha_moe_fabric_bytes(const struct ha_moe_rank_config *c)
{
	const struct ha_moe_shape *s = &c->values.shape;
	size_t queues =
		c->settings.qp_depth * 128 * 2 * c->settings.rc_per_pe * HA_MOE_NICS * s->ranks;

	return s->ranks * (ha_moe_heap_bytes(s) + ha_moe_words_bytes(s) + queues + (1 << 20));
}

static int start_nics(struct ha_moe_rank *r)
{
	int result = 0;

	for (; r->running < HA_MOE_NICS && !result; r->running += !result) {
		struct ha_moe_nic *n = &r->nic[r->running];

		n->traffic = carries_traffic;
		n->self = n;
		result = ha_moe_nic_start(
			n, &r->config.fabric
				    ->nic[(unsigned)r->config.rank * HA_MOE_NICS + r->running]);
	}
	return result;
}

/* Ranks that were started with different shapes would write into each other's memory. */
static int agree_on_shape(struct ha_moe_rank *r)
{
	struct ha_moe_values all[HA_MOE_RANKS_MAX];
	int result =
		ha_gpu_bootstrap_allgather(&r->bootstrap, &r->config.values, all, sizeof(all[0]));

	for (unsigned i = 0; i < r->config.values.shape.ranks && !result; i++)
		if (memcmp(&all[i].shape, &r->config.values.shape, sizeof(all[i].shape))) {
			HA_WARN("gpu-moe",
				"rank %u was started with another shape: give all ranks the same "
				"options",
				i);
			result = -EINVAL;
		}
	return ha_gpu_bootstrap_agree(&r->bootstrap, result);
}

static int open_host(struct ha_moe_rank *r, void *heap)
{
	struct ha_gpu_host_config c = { .ops = &ha_gpu_soft_ops,
					.hw = &r->soft,
					.bootstrap = &r->bootstrap,
					.settings = r->config.settings };
	int result;

	c.heap = heap;
	c.heap_bytes = ha_moe_heap_bytes(&r->config.values.shape);
	result = ha_gpu_host_open(&c, &r->host);
	return result ? result : ha_gpu_host_connect(r->host, 0, 0);
}

static int make_call(struct ha_moe_rank *r)
{
	const struct ha_moe_shape *s = &r->config.values.shape;
	size_t entries = (size_t)s->tokens_max * s->topk;
	void *packed = NULL;

	r->call.x =
		aligned_alloc(64, ha_moe_round_up(s->tokens_max * r->config.values.layout.token));
	r->call.topk = malloc(entries * sizeof(int32_t));
	r->call.weights = malloc(entries * sizeof(float));
	r->call.combined = malloc(ha_moe_combined_bytes(s));
	r->call.result = calloc(1, sizeof(uint64_t));
	packed = aligned_alloc(64, ha_moe_round_up(ha_moe_packed_bytes(s)));
	r->call.packed = packed;
	return r->call.x && r->call.topk && r->call.weights && r->call.combined && r->call.result &&
			       packed
		       ? 0
		       : -ENOMEM;
}

static void free_call(struct ha_moe_call *c)
{
	free((void *)(uintptr_t)c->x);
	free((void *)(uintptr_t)c->topk);
	free((void *)(uintptr_t)c->weights);
	free(c->combined);
	free(c->result);
	free(c->packed);
}

static int prepare_rank(struct ha_moe_rank *r)
{
	const struct ha_moe_shape *s = &r->config.values.shape;
	void *heap = soft_alloc(r->config.fabric, ha_moe_heap_bytes(s)),
	     *words = soft_alloc(r->config.fabric, ha_moe_words_bytes(s));
	int result = heap && words && r->moe ? make_call(r) : -ENOMEM;
	const char *wrong;

	result = ha_gpu_bootstrap_agree(&r->bootstrap, result);
	if (!result)
		result = agree_on_shape(r);
	if (!result)
		result = open_host(r, heap);
	if (result)
		return result;
	ha_moe_init(r->moe, s, ha_gpu_host_world(r->host),
		    (uint32_t)ha_gpu_load(&ha_gpu_host_world(r->host)->nrows), heap, words);
	wrong = ha_moe_shape_wrong(s, r->moe->rows);
	if (wrong)
		HA_WARN("gpu-moe", "%s", wrong);
	return wrong ? -EINVAL : 0;
}

static void release_rank(struct ha_moe_rank *r)
{
	while (r->running)
		ha_moe_nic_stop(&r->nic[--r->running]);
	if (r->bootstrap.close)
		ha_gpu_bootstrap_close(&r->bootstrap);
	free_call(&r->call);
	free(r->moe);
	free(r);
}

int ha_moe_rank_open(const struct ha_moe_rank_config *c, struct ha_moe_rank **out)
{
	struct ha_moe_rank *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return -ENOMEM;
	r->config = *c;
	r->soft = (struct ha_gpu_soft) { .fabric = c->fabric,
					 .first = (unsigned)c->rank * HA_MOE_NICS,
					 .n = HA_MOE_NICS };
	r->moe = aligned_alloc(64, ha_moe_round_up(sizeof(*r->moe)));
	result = start_nics(r);
	if (!result)
		result = ha_gpu_bootstrap_tcp(&r->bootstrap, c->root, c->rank,
					      (int)c->values.shape.ranks, JOB,
					      (unsigned)c->settings.connect_timeout_ms);
	if (!result)
		result = prepare_rank(r);
	if (result) {
		if (r->host)
			ha_gpu_host_finalize(r->host, 0);
		release_rank(r);
		return result;
	}
	*out = r;
	return 0;
}

int ha_moe_rank_close(struct ha_moe_rank *r, unsigned limit_ms)
{
	int result = ha_gpu_host_finalize(r->host, limit_ms);

	if (result == -EBUSY)
		return result;
	/* nobody's NICs go while another's still send to them */
	ha_gpu_bootstrap_agree(&r->bootstrap, 0);
	release_rank(r);
	return result;
}

/* ---- launches ---- */

struct lane {
	pthread_t thread;
	struct ha_moe_rank *rank;
	ha_moe_kernel kernel;
	struct ha_gpu_self self;
	uint32_t warp;
};

static void *run_lane(void *arg)
{
	struct lane *l = arg;

	ha_gpu_emu_become(&l->self);
	l->kernel(l->rank->moe, &l->rank->call, l->warp, l->rank->config.warps);
	return NULL;
}

static enum ha_gpu_result launch_kernel(struct ha_moe_rank *r, ha_moe_kernel kernel,
					uint32_t phases, uint64_t limit)
{
	struct ha_gpu_warp warp[HA_MOE_SLOTS_MAX] = { 0 };
	struct lane lane[HA_MOE_SLOTS_MAX];
	unsigned lanes = r->config.lanes, all = r->config.warps * lanes;

	if (ha_gpu_host_launch(r->host, 0))
		return HA_GPU_REFUSED;
	r->call.phases = phases;
	r->call.limit = limit;
	ha_gpu_store(r->call.result, HA_GPU_DONE);
	for (unsigned i = 0; i < all; i++) {
		warp[i / lanes].lanes = lanes;
		lane[i] = (struct lane) { .rank = r,
					  .kernel = kernel,
					  .self = { &warp[i / lanes], i % lanes },
					  .warp = i / lanes };
	}
	for (unsigned i = 0; i < all; i++)
		if (pthread_create(&lane[i].thread, NULL, run_lane, &lane[i])) {
			HA_WARN("gpu-moe",
				"cannot start thread %u of %u of a kernel: ask for fewer warps or "
				"lanes",
				i, all);
			abort(); /* lanes that run wait for those that do not */
		}
	for (unsigned i = 0; i < all; i++)
		pthread_join(lane[i].thread, NULL);
	return (enum ha_gpu_result)ha_gpu_load(r->call.result);
}

void ha_moe_rank_input(struct ha_moe_rank *r, uint64_t n)
{
	const struct ha_moe_values *v = &r->config.values;
	uint32_t k = v->shape.topk;

	r->call.number = n;
	r->call.tokens = ha_moe_token_count(v, r->moe->rank, n);
	for (uint32_t t = 0; t < r->call.tokens; t++) {
		ha_moe_make_token(v, r->moe->rank, n, t,
				  (uint8_t *)(uintptr_t)r->call.x + t * v->layout.token);
		ha_moe_make_route(v, r->moe->rank, n, t,
				  (int32_t *)(uintptr_t)r->call.topk + (size_t)t * k,
				  (float *)(uintptr_t)r->call.weights + (size_t)t * k);
	}
}

enum ha_gpu_result ha_moe_rank_dispatch(struct ha_moe_rank *r, uint32_t phases, uint64_t limit)
{
	enum ha_gpu_result result = launch_kernel(r, ha_moe_dispatch, phases, limit);

	if (result == HA_GPU_DONE)
		ha_moe_count_dispatch(r->moe, phases);
	return result;
}

enum ha_gpu_result ha_moe_rank_combine(struct ha_moe_rank *r, uint32_t phases, uint64_t limit)
{
	enum ha_gpu_result result = launch_kernel(r, ha_moe_combine, phases, limit);

	if (result == HA_GPU_DONE)
		ha_moe_count_combine(r->moe, phases);
	return result;
}

void ha_moe_rank_experts(struct ha_moe_rank *r)
{
	launch_kernel(r, ha_moe_run_experts, 0, HA_GPU_FOREVER);
}

/* ---- after a cut ---- */

static bool on_first_paths(struct ha_moe_rank *r)
{
	bool all = true;

	for (unsigned i = 0; i < r->moe->rows * r->moe->shape.ranks; i++) {
		struct ha_gpu_conn *c = conn_at(r, i);

		if (c)
			all &= !ha_gpu_load(&c->active) &&
			       ha_gpu_load(&c->health[1]) == HA_GPU_GOOD;
	}
	return all;
}

bool ha_moe_rank_failed_back(struct ha_moe_rank *r, unsigned limit_ms)
{
	const struct timespec nap = { 0, 1000000 };
	uint64_t end = ha_gpu_now() + limit_ms * UINT64_C(1000000);

	while (!on_first_paths(r)) {
		if (ha_gpu_now() > end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}
