/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moe_hunt.c - one run of the hunt with the example's kernels as the traffic: two ranks of one
 * connection, a launch after the other
 *
 * A rank is a fiber that launches and looks, and one for each lane of its warps. Limits are drawn:
 * many launches end in the middle and are called again. What was looked at is overwritten, and must
 * stay so.
 */
#include "gpu/emu/fiber.h"
#include "gpu/example/combine.h"
#include "gpu/example/dispatch.h"
#include "gpu/example/expert.h"
#include "gpu/example/memory.h"
#include "gpu/example/values.h"
#include "sim/gpu/hunt.h"

#include <string.h>

#define US UINT64_C(1000)
#define RANKS 2
#define TOKENS 4
#define TOPK 3
#define EXPERTS 4
#define HIDDEN 328 /* messages cross the ends of chunks */
#define LAUNCHES 4
#define LANES 6 /* of a rank, at most */
#define CHUNK_LOG 11
#define LIMIT_NS (60000 * US)

struct rank;

struct lane {
	struct rank *rank;
	struct ha_gpu_self self;
	uint32_t warp;
};

struct rank {
	struct run *run;
	struct ha_gpu_world world;
	struct ha_moe moe;
	struct ha_moe_call call;
	struct lane lane[LANES];
	struct ha_gpu_warp warp[LANES];
	unsigned lanes, warps;
	void (*kernel)(struct ha_moe *m, const struct ha_moe_call *call, uint32_t warp,
		       uint32_t warps);
	uint64_t launched, ended; /* launches; lanes that ended, in all of them */
	uint64_t result;
	int32_t topk[TOKENS * TOPK];
	float weights[TOKENS * TOPK];
	uint8_t x[TOKENS * HIDDEN * 2] __attribute__((aligned(16)));
	uint16_t combined[TOKENS * HIDDEN];
	uint8_t packed[EXPERTS / RANKS * RANKS * TOKENS * HIDDEN * 2] __attribute__((aligned(16)));
	uint64_t words[4096];
};

struct run {
	struct pair pair;
	struct hunt_result *result;
	struct ha_moe_values values;
	struct rank rank[RANKS];
	bool both_down;
};

static uint64_t draw_below(uint64_t n)
{
	return ha_gpu_fibers_random() % n;
}

static void record_corruption(struct run *r, const char *why)
{
	if (r->result->verdict != HUNT_CORRUPT)
		r->result->why = why;
	r->result->verdict = HUNT_CORRUPT;
}

/* ---- a rank ---- */

static void run_lane(void *arg)
{
	struct lane *l = arg;
	uint64_t launched = 0;

	for (;;) {
		while (ha_gpu_load(&l->rank->launched) == launched)
			ha_gpu_pause();
		launched++;
		l->rank->kernel(&l->rank->moe, &l->rank->call, l->warp, l->rank->warps);
		ha_gpu_add(&l->rank->ended, 1);
	}
}

static enum ha_gpu_result launch_kernel(struct rank *k,
					void (*kernel)(struct ha_moe *, const struct ha_moe_call *,
						       uint32_t, uint32_t),
					uint32_t phases, uint64_t limit)
{
	uint64_t ended = ha_gpu_load(&k->ended) + k->lanes * k->warps;

	k->kernel = kernel;
	k->call.phases = phases;
	k->call.limit = limit;
	ha_gpu_store(&k->result, HA_GPU_DONE);
	ha_gpu_add(&k->launched, 1);
	while (ha_gpu_load(&k->ended) != ended)
		ha_gpu_pause();
	return (enum ha_gpu_result)ha_gpu_load(&k->result);
}

/* Until it is done, or never will be. False: the latter. */
static bool finish_kernel(struct rank *k,
			  void (*kernel)(struct ha_moe *, const struct ha_moe_call *, uint32_t,
					 uint32_t),
			  uint32_t phases)
{
	enum ha_gpu_result result;

	while ((result = launch_kernel(k, kernel, phases,
				       draw_below(3) ? HA_GPU_FOREVER
						     : 5 * US + draw_below(300 * US))) ==
	       HA_GPU_TIMEOUT)
		k->run->result->timeouts++;
	if (result == HA_GPU_REFUSED)
		record_corruption(k->run, "a launch was refused");
	k->run->both_down |= result == HA_GPU_BOTH_DOWN;
	return result == HA_GPU_DONE;
}

/* In one launch, or sending first. */
static bool finish_both_phases(struct rank *k,
			       void (*kernel)(struct ha_moe *, const struct ha_moe_call *, uint32_t,
					      uint32_t),
			       void (*done)(struct ha_moe *, uint32_t))
{
	bool split = !draw_below(3);

	if (split && !finish_kernel(k, kernel, HA_MOE_SEND))
		return false;
	if (split)
		done(&k->moe, HA_MOE_SEND);
	if (!finish_kernel(k, kernel, split ? HA_MOE_RECEIVE : HA_MOE_BOTH))
		return false;
	done(&k->moe, split ? HA_MOE_RECEIVE : HA_MOE_BOTH);
	return true;
}

static void make_input(struct rank *k, uint64_t n)
{
	const struct ha_moe_values *v = &k->run->values;

	k->call.number = n;
	k->call.tokens = ha_moe_token_count(v, k->moe.rank, n);
	for (uint32_t t = 0; t < k->call.tokens; t++) {
		ha_moe_make_token(v, k->moe.rank, n, t, k->x + t * v->layout.token);
		ha_moe_make_route(v, k->moe.rank, n, t, k->topk + t * TOPK, k->weights + t * TOPK);
	}
}

static void run_round(struct rank *k, uint64_t n, bool *go_on)
{
	struct run *r = k->run;

	make_input(k, n);
	*go_on = finish_both_phases(k, ha_moe_dispatch, ha_moe_count_dispatch);
	if (!*go_on)
		return;
	if (ha_moe_check_dispatch(&r->values, &k->moe, &k->call))
		record_corruption(r, "an expert has not the tokens that it should have");
	ha_moe_scribble_arrived(&k->moe, n);
	launch_kernel(k, ha_moe_run_experts, 0, HA_GPU_FOREVER);
	if (n && ha_moe_check_scribbled(&k->moe, n - 1))
		record_corruption(r, "something landed in memory that its owner uses again");
	*go_on = finish_both_phases(k, ha_moe_combine, ha_moe_count_combine);
	if (!*go_on)
		return;
	if (ha_moe_check_combine(&r->values, &k->moe, &k->call))
		record_corruption(r, "a sum is wrong");
	ha_moe_scribble_returned(&k->moe, n);
}

static void run_host(void *arg)
{
	struct rank *k = arg;
	bool go_on = true;

	for (uint64_t n = 0; n < LAUNCHES && go_on; n++)
		run_round(k, n, &go_on);
}

/* ---- the machinery ---- */

static void configure_run(struct run *r, struct pair_config *c)
{
	struct ha_moe_shape *s = &r->values.shape;

	*s = (struct ha_moe_shape) { .ranks = RANKS,
				     .experts = EXPERTS,
				     .tokens_max = TOKENS,
				     .topk = TOPK,
				     .hidden = HIDDEN,
				     .format = HA_MOE_BF16 };
	ha_moe_make_layout(s, &r->values.layout);
	r->values.seed = ha_gpu_fibers_random();
	r->values.routing = (enum ha_moe_routing)draw_below(3);
	hunt_configure(c);
	c->chunk = CHUNK_LOG;
	c->heap_bytes = (uint32_t)((ha_moe_heap_bytes(s) + (1 << CHUNK_LOG) - 1) &
				   ~((UINT64_C(1) << CHUNK_LOG) - 1));
}

static void make_rank(struct run *r, uint32_t pe)
{
	struct rank *k = &r->rank[pe];

	k->run = r;
	k->world.pe = pe;
	k->world.pes = RANKS;
	/* its entry for the other; its own is never asked for */
	k->world.row[0] = (uint64_t)(uintptr_t)(r->pair.end[pe].conn - !pe);
	k->world.nrows = 1;
	ha_moe_init(&k->moe, &r->values.shape, &k->world, 1, r->pair.end[pe].heap, k->words);
	k->call = (struct ha_moe_call) { .result = &k->result,
					 .x = k->x,
					 .topk = k->topk,
					 .weights = k->weights,
					 .packed = k->packed,
					 .combined = k->combined };
	k->warps = 1 + (unsigned)draw_below(2);
	k->lanes = draw_below(2) ? 1 : 1 + (unsigned)draw_below(3);
	for (unsigned i = 0; i < k->warps * k->lanes; i++) {
		struct lane *l = &k->lane[i];

		l->rank = k;
		l->warp = i / k->lanes;
		k->warp[l->warp].lanes = k->lanes;
		l->self = (struct ha_gpu_self) { &k->warp[l->warp], i % k->lanes };
		ha_gpu_fiber_add(run_lane, l, &l->self, true);
	}
	ha_gpu_fiber_add(run_host, k, NULL, false);
}

static void judge_run(struct run *r, bool finished)
{
	struct hunt_result *res = r->result;

	if (res->verdict == HUNT_CORRUPT)
		return;
	if (!finished) {
		res->verdict = HUNT_HANG;
		res->why = "a launch does not end";
	} else if (r->both_down && !(hunt_struck(&r->pair, 0) && hunt_struck(&r->pair, 1))) {
		record_corruption(r, "a path that nothing happened to was given up");
	} else if (r->both_down) {
		res->verdict = HUNT_GAVE_UP;
	}
}

void hunt_run(struct soft_fabric *fabric, uint64_t seed, const struct hunt_options *o,
	      struct hunt_result *res)
{
	static struct run run;
	struct pair_config c;

	memset(res, 0, sizeof(*res));
	memset(&run, 0, sizeof(run));
	run.result = res;
	hunt_begin(fabric, seed);
	fabric->moves = o->moves;
	configure_run(&run, &c);
	if (o->apart)
		hunt_set_apart(&c);
	pair_make(&run.pair, fabric, &c);
	hunt_script(fabric, o, !c.proof_every);
	hunt_populate(&run.pair);
	for (uint32_t pe = 0; pe < RANKS; pe++)
		make_rank(&run, pe);
	judge_run(&run, ha_gpu_fibers_run(LIMIT_NS));
	hunt_end(&run.pair, res);
}
