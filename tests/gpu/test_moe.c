/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_moe.c - the example of gpu/example: ranks are threads here, so that sanitizers see all of
 * them at once
 *
 * Every token that comes to an expert and every sum that comes back is compared bit by bit with a
 * reference (gpu/example/values.c).
 */
#include "base/check.h"
#include "gpu/example/combine.h"
#include "gpu/example/dispatch.h"
#include "gpu/example/memory.h"
#include "gpu/example/trial.h"
#include "gpu/host/stream.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#define MS UINT64_C(1000000)
#define LONG (100000 * MS)

/* ---- ranks as threads ---- */

struct job {
	struct ha_moe_rank_config config;
	struct ha_moe_plan plan;
	char root[80];
	void (*body)(struct job *j, struct ha_moe_rank *r); /* NULL: the trial */
	struct ha_moe_tally tally[HA_MOE_RANKS_MAX];
	pthread_barrier_t meet;
	uint64_t timeouts; /* of all ranks' kernels */
};

struct rank {
	struct job *job;
	int number;
	pthread_t thread;
};

static void job_make(struct job *j, uint32_t ranks, uint32_t hidden, enum ha_moe_format format)
{
	memset(j, 0, sizeof(*j));
	CHECK(!ha_gpu_stream_free_local(j->root));
	j->config.root = j->root;
	j->config.values.shape = (struct ha_moe_shape) { .ranks = ranks,
							 .experts = 3 * ranks,
							 .tokens_max = 6,
							 .topk = 3,
							 .hidden = hidden,
							 .format = format };
	j->config.values.seed = 7;
	j->config.warps = 2;
	j->config.lanes = 1;
	ha_gpu_settings_defaults(&j->config.settings);
	j->config.settings.qp_depth = 256;
	j->config.settings.rc_per_pe = 1;
	j->config.settings.chunk_log = 14; /* messages cross the ends of chunks */
	j->config.settings.check_ms = 2;
	j->config.settings.silent_checks = 50;
	j->config.settings.recovery_ms = 5;
	j->config.settings.qp_timeout = 8;
	j->plan = (struct ha_moe_plan) { .launches = 6,
					 .every = 1,
					 .kind = -1,
					 .down_ms = 20,
					 .failback = true,
					 .limit_ns = LONG };
}

static void *run_rank(void *arg)
{
	struct rank *k = arg;
	struct ha_moe_rank_config c = k->job->config;
	struct ha_moe_rank *r;

	c.rank = k->number;
	if (!k->job->body) {
		CHECK_INT(ha_moe_run_trial(&c, &k->job->plan, &k->job->tally[k->number]), 0);
		return NULL;
	}
	CHECK_INT(ha_moe_rank_open(&c, &r), 0);
	k->job->body(k->job, r);
	pthread_barrier_wait(&k->job->meet);
	ha_moe_rank_close(r, 500);
	return NULL;
}

static void job_run(struct job *j)
{
	uint32_t ranks = j->config.values.shape.ranks;
	struct rank rank[HA_MOE_RANKS_MAX];

	ha_moe_make_layout(&j->config.values.shape, &j->config.values.layout);
	j->config.fabric = soft_fabric_open(ranks * HA_MOE_NICS, ha_moe_fabric_bytes(&j->config));
	CHECK(j->config.fabric);
	pthread_barrier_init(&j->meet, NULL, ranks);
	for (uint32_t i = 0; i < ranks; i++) {
		rank[i] = (struct rank) { .job = j, .number = (int)i };
		CHECK(!pthread_create(&rank[i].thread, NULL, run_rank, &rank[i]));
	}
	for (uint32_t i = 0; i < ranks; i++)
		pthread_join(rank[i].thread, NULL);
	pthread_barrier_destroy(&j->meet);
	soft_fabric_close(j->config.fabric);
}

static void want_all_right(const struct job *j, uint64_t cuts_at_least)
{
	uint64_t cuts = 0, switches = 0;

	for (uint32_t i = 0; i < j->config.values.shape.ranks; i++) {
		const struct ha_moe_tally *t = &j->tally[i];

		CHECK_INT(t->result, HA_GPU_DONE);
		CHECK_INT(t->launches, j->plan.launches);
		CHECK_INT(t->wrong, 0);
		CHECK_INT(t->not_failed_back, 0);
		cuts += t->cuts;
		switches += t->switches;
	}
	CHECK(cuts >= cuts_at_least);
	CHECK(!cuts_at_least || switches >= cuts_at_least);
	CHECK(j->plan.cut_in || !cuts);
}

/* ---- nothing is cut ---- */

static void run_without_faults(void)
{
	struct job j;

	job_make(&j, 3, 264, HA_MOE_BF16);
	j.config.lanes = 3;
	j.plan.launches = 4;
	job_run(&j);
	want_all_right(&j, 0);
}

static void one_rank_alone(void)
{
	struct job j;

	job_make(&j, 1, 64, HA_MOE_BF16);
	job_run(&j);
	want_all_right(&j, 0);
}

/* ---- cuts ---- */

static void run_with_cuts(unsigned kernels, enum ha_moe_format format, enum ha_moe_routing routing,
			  uint32_t hidden, uint64_t launches)
{
	struct job j;

	job_make(&j, 3, hidden, format);
	j.config.values.routing = routing;
	j.plan.cut_in = kernels;
	j.plan.launches = launches;
	job_run(&j);
	want_all_right(&j, launches / 2);
}

static void cut_in_dispatch(void)
{
	run_with_cuts(HA_MOE_CUT_DISPATCH, HA_MOE_BF16, HA_MOE_ROUTE_RANDOM, 512, 12);
}

static void cut_in_combine(void)
{
	run_with_cuts(HA_MOE_CUT_COMBINE, HA_MOE_BF16, HA_MOE_ROUTE_RANDOM, 512, 12);
}

static void cut_in_both(void)
{
	run_with_cuts(HA_MOE_CUT_DISPATCH | HA_MOE_CUT_COMBINE, HA_MOE_BF16, HA_MOE_ROUTE_RANDOM,
		      512, 8);
}

static void cuts_with_fp8(void)
{
	run_with_cuts(HA_MOE_CUT_DISPATCH | HA_MOE_CUT_COMBINE, HA_MOE_FP8, HA_MOE_ROUTE_RANDOM,
		      7168, 4);
}

static void cuts_with_bf16(void)
{
	run_with_cuts(HA_MOE_CUT_DISPATCH | HA_MOE_CUT_COMBINE, HA_MOE_BF16, HA_MOE_ROUTE_RANDOM,
		      7168, 4);
}

static void none_for_half(void)
{
	run_with_cuts(HA_MOE_CUT_DISPATCH | HA_MOE_CUT_COMBINE, HA_MOE_BF16, HA_MOE_ROUTE_HALF, 256,
		      6);
}

static void all_to_one(void)
{
	run_with_cuts(HA_MOE_CUT_DISPATCH | HA_MOE_CUT_COMBINE, HA_MOE_BF16, HA_MOE_ROUTE_ONE, 256,
		      6);
}

/* A kernel may end while its cut strikes: what has begun strikes, counts, and is put right. It once
 * stayed dead, or half done. */
static void withdraw_cut(struct soft_fabric *f)
{
	struct soft_nic *nic = &f->nic[0];
	struct ha_moe_nic n = { .state = HA_MOE_CUT_WITHDRAWN, .down_ns = MS };

	CHECK(!ha_moe_nic_start(&n, nic));
	ha_moe_nic_settle(&n);
	CHECK_INT(n.cuts, 1);
	CHECK_INT(nic->struck, 1);
	CHECK_INT(ha_gpu_load(&nic->power), SOFT_ON);
	CHECK(!nic->fault.armed);
	ha_moe_nic_stop(&n);
	soft_fabric_close(f);
}

static void withdrawn_too_late(void)
{
	struct soft_fabric *f = soft_fabric_open(1, 1 << 20);

	CHECK(f);
	f->nic[0].struck = 1;
	ha_gpu_store(&f->nic[0].power, SOFT_DEAD);
	withdraw_cut(f);
}

static void withdrawn_half_way(void)
{
	struct soft_fabric *f = soft_fabric_open(1, 1 << 20);
	struct soft_qp_attr attr = { .nwqes = 64 };

	CHECK(f && soft_qp_create(&f->nic[0], &attr));
	f->nic[0].fault = (struct soft_fault) {
		.armed = true, .n = 3, .act = SOFT_ACT_UNPLACED, .then = SOFT_THEN_DIE
	};
	f->nic[0].entries = 1; /* of the three */
	f->nic[0].begun_ns = ha_gpu_now();
	withdraw_cut(f);
}

/* ---- both paths down ---- */

static void both_down(void)
{
	uint64_t start = ha_gpu_now();
	struct job j;

	job_make(&j, 3, 256, HA_MOE_BF16);
	j.plan.down_at = 3;
	j.plan.limit_ns = 60000 * MS;
	j.config.settings.no_path_ms = 300;
	job_run(&j);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(j.tally[i].result, HA_GPU_BOTH_DOWN);
		/* others are one launch behind at most */
		CHECK(j.tally[i].ended_by >= 1 && j.tally[i].ended_by < j.plan.launches);
		CHECK_INT(j.tally[i].wrong, 0);
	}
	CHECK(ha_gpu_now() - start < j.plan.limit_ns);
}

/* Ranks 0 and 1 lose each other; rank 2 has a path to both, and must not wait for what never
 * comes. */
static void pair_down_body(struct job *j, struct ha_moe_rank *r)
{
	enum ha_gpu_result result = HA_GPU_DONE;

	if (r->moe->rank < 2)
		ha_moe_nic_cut(&r->nic[r->moe->rank], 0, 2, UINT64_MAX);
	for (uint64_t n = 0; n < 4 && result == HA_GPU_DONE; n++) {
		ha_moe_rank_input(r, n);
		result = ha_moe_rank_dispatch(r, HA_MOE_BOTH, 60000 * MS);
		if (result != HA_GPU_DONE)
			break;
		CHECK_INT(ha_moe_check_dispatch(&j->config.values, r->moe, &r->call), 0);
		ha_moe_rank_experts(r);
		result = ha_moe_rank_combine(r, HA_MOE_BOTH, 60000 * MS);
	}
	CHECK_INT(result, HA_GPU_BOTH_DOWN);
}

static void pair_down(void)
{
	struct job j;

	job_make(&j, 3, 256, HA_MOE_BF16);
	j.config.settings.no_path_ms = 300;
	j.body = pair_down_body;
	job_run(&j);
}

/* ---- launches: resumed, out of turn, two at once ---- */

static void finish_combine(struct job *j, struct ha_moe_rank *r, uint64_t limit, unsigned *timeouts)
{
	enum ha_gpu_result result;

	while ((result = ha_moe_rank_combine(r, HA_MOE_BOTH, limit)) == HA_GPU_TIMEOUT)
		(*timeouts)++;
	CHECK_INT(result, HA_GPU_DONE);
	CHECK_INT(ha_moe_check_combine(&j->config.values, r->moe, &r->call), 0);
}

/* Launches so short that most end in the middle: each goes on where the one before it was. */
static void resumed_body(struct job *j, struct ha_moe_rank *r)
{
	unsigned timeouts = 0;

	for (uint64_t n = 0; n < 4; n++) {
		enum ha_gpu_result result;
		uint64_t limit = 50000;

		ha_moe_rank_input(r, n);
		while ((result = ha_moe_rank_dispatch(r, HA_MOE_BOTH, limit)) == HA_GPU_TIMEOUT) {
			timeouts++;
			limit += limit / 4;
		}
		CHECK_INT(result, HA_GPU_DONE);
		CHECK_INT(ha_moe_check_dispatch(&j->config.values, r->moe, &r->call), 0);
		ha_moe_rank_experts(r);
		finish_combine(j, r, limit, &timeouts);
	}
	ha_gpu_add(&j->timeouts, timeouts);
}

static void timed_out_calls_resume(void)
{
	struct job j;

	job_make(&j, 3, 256, HA_MOE_BF16);
	j.body = resumed_body;
	job_run(&j);
	CHECK(j.timeouts); /* a rank that always comes last may have none */
}

static void check_refused(enum ha_gpu_result result)
{
	CHECK_INT(result, HA_GPU_REFUSED);
}

/* A launch that is not done keeps the next from beginning: the kernel says REFUSED and touches
 * nothing. */
static void unfinished_body(struct job *j, struct ha_moe_rank *r)
{
	unsigned timeouts = 0;

	for (int i = 0; i < HA_MOE_NICS && !r->moe->rank; i++)
		soft_nic_starve(r->nic[i].nic);
	pthread_barrier_wait(&j->meet);
	ha_moe_rank_input(r, 0);
	check_refused(ha_moe_rank_combine(r, HA_MOE_BOTH, LONG));     /* nothing to return */
	check_refused(ha_moe_rank_dispatch(r, HA_MOE_RECEIVE, LONG)); /* not sent */
	check_refused(ha_moe_rank_dispatch(r, 0, LONG));
	if (r->moe->rank) {
		/* rank 0's counts do not come */
		CHECK_INT(ha_moe_rank_dispatch(r, HA_MOE_BOTH, 50 * MS), HA_GPU_TIMEOUT);
		r->call.number = 1;
		check_refused(ha_moe_rank_dispatch(r, HA_MOE_BOTH, LONG));
		r->call.number = 0;
		check_refused(ha_moe_rank_combine(r, HA_MOE_BOTH, LONG));
	}
	pthread_barrier_wait(&j->meet);
	for (int i = 0; i < HA_MOE_NICS && !r->moe->rank; i++)
		ha_gpu_store(&r->nic[i].nic->pace, 0);
	CHECK_INT(ha_moe_rank_dispatch(r, HA_MOE_BOTH, LONG), HA_GPU_DONE);
	CHECK_INT(ha_moe_check_dispatch(&j->config.values, r->moe, &r->call), 0);
	check_refused(ha_moe_rank_dispatch(r, HA_MOE_BOTH, LONG)); /* done already */
	ha_moe_rank_experts(r);
	finish_combine(j, r, LONG, &timeouts);
	CHECK_INT(timeouts, 0);
	r->call.number = 2;
	check_refused(ha_moe_rank_dispatch(r, HA_MOE_BOTH, LONG)); /* 1 comes first */
	/* Nor does one begin while the one before is still on the device. */
	r->call.number = 1;
	ha_gpu_world_enter(r->moe->world);
	check_refused(ha_moe_rank_dispatch(r, HA_MOE_BOTH, LONG));
	ha_gpu_world_leave(r->moe->world);
}

static void unfinished_blocks_next(void)
{
	struct job j;

	job_make(&j, 3, 256, HA_MOE_BF16);
	j.body = unfinished_body;
	job_run(&j);
}

/* The order of two micro-batches whose communication overlaps: the second is sent before the first
 * has come back. What the call holds (input and where it packs) belongs to one of them at a
 * time. */
static void two_at_once_body(struct job *j, struct ha_moe_rank *r)
{
	const struct ha_moe_values *v = &j->config.values;
	unsigned launches = 8;

	ha_moe_rank_input(r, 0);
	CHECK_INT(ha_moe_rank_dispatch(r, HA_MOE_SEND, LONG), HA_GPU_DONE);
	for (uint64_t n = 0; n < launches; n++) {
		ha_moe_rank_input(r, n);
		CHECK_INT(ha_moe_rank_dispatch(r, HA_MOE_RECEIVE, LONG), HA_GPU_DONE);
		CHECK_INT(ha_moe_check_dispatch(v, r->moe, &r->call), 0);
		ha_moe_rank_experts(r);
		CHECK_INT(ha_moe_rank_combine(r, HA_MOE_SEND, LONG), HA_GPU_DONE);
		ha_moe_rank_input(r, n + 1);
		CHECK_INT(ha_moe_rank_dispatch(r, HA_MOE_SEND, LONG), HA_GPU_DONE);
		r->call.number = n + 2;
		check_refused(ha_moe_rank_dispatch(r, HA_MOE_SEND, LONG)); /* a third has no area */
		ha_moe_rank_input(r, n);
		CHECK_INT(ha_moe_rank_combine(r, HA_MOE_RECEIVE, LONG), HA_GPU_DONE);
		CHECK_INT(ha_moe_check_combine(v, r->moe, &r->call), 0);
	}
}

static void two_at_once(void)
{
	struct job j;

	job_make(&j, 3, 256, HA_MOE_BF16);
	j.body = two_at_once_body;
	job_run(&j);
}

/* ---- what is refused ---- */

static void twice_the_same_expert_body(struct job *j, struct ha_moe_rank *r)
{
	int32_t *topk = (int32_t *)(uintptr_t)r->call.topk;

	ha_moe_rank_input(r, 0);
	r->call.tokens = r->moe->shape.tokens_max;
	for (uint32_t i = 0; i < r->call.tokens * r->moe->shape.topk; i++)
		topk[i] = 1;
	check_refused(ha_moe_rank_dispatch(r, HA_MOE_SEND, LONG));
	topk[0] = (int32_t)r->moe->shape.experts;
	check_refused(ha_moe_rank_dispatch(r, HA_MOE_SEND, LONG));
	r->call.tokens = r->moe->shape.tokens_max + 1;
	check_refused(ha_moe_rank_dispatch(r, HA_MOE_SEND, LONG));
}

static void bad_input(void)
{
	struct job j;

	job_make(&j, 2, 64, HA_MOE_BF16);
	j.config.warps = 1;
	j.body = twice_the_same_expert_body;
	job_run(&j);
}

static void shapes_are_checked(void)
{
	const struct ha_moe_shape good = { .ranks = 4,
					   .experts = 64,
					   .tokens_max = 8,
					   .topk = 4,
					   .hidden = 1024,
					   .format = HA_MOE_FP8 };
	struct ha_moe_shape s = good;

	CHECK(!ha_moe_shape_wrong(&good, 2));
	CHECK(ha_moe_shape_wrong(&good, 1)); /* 16 experts' signals on one connection */
	s.experts = 63;
	CHECK(ha_moe_shape_wrong(&s, 4));
	s = good;
	s.topk = 17;
	CHECK(ha_moe_shape_wrong(&s, 4));
	s = good;
	s.topk = 0;
	CHECK(ha_moe_shape_wrong(&s, 4));
	s = good;
	s.hidden = 1032;
	CHECK(ha_moe_shape_wrong(&s, 4));
	s.format = HA_MOE_BF16;
	CHECK(!ha_moe_shape_wrong(&s, 4));
	s = good;
	s.tokens_max = 0;
	CHECK(ha_moe_shape_wrong(&s, 4));
}

/* ---- numbers ---- */

static void number_conversions(void)
{
	for (unsigned b = 0; b < 256; b++) {
		unsigned exponent = b >> 3 & 15, mantissa = b & 7;
		double want = exponent ? ldexp(1 + mantissa / 8.0, (int)exponent - 7)
				       : ldexp(mantissa / 8.0, -6);
		float is = ha_moe_from_e4m3((uint8_t)b);

		if ((b & 0x7f) == 0x7f)
			CHECK(isnan(is));
		else
			CHECK((double)is == (b & 0x80 ? -want : want) &&
			      !signbit(is) == !(b & 0x80));
	}
	for (unsigned b = 0; b < 65536; b++) {
		float f = ha_moe_from_bf16((uint16_t)b);

		CHECK_INT(ha_moe_to_bf16(f), isnan(f) ? 0x7fff : b);
		if (isnan(f) || isinf(f))
			continue;
		/* Ties go to the even one; beyond the middle to the next. */
		CHECK_INT(ha_moe_to_bf16(ha_moe_from_bits(b << 16 | 0x8000)), b + (b & 1));
		CHECK_INT(ha_moe_to_bf16(ha_moe_from_bits(b << 16 | 0x8001)), b + 1);
		CHECK_INT(ha_moe_to_bf16(ha_moe_from_bits(b << 16 | 0x7fff)), b);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "quiet", run_without_faults },
	{ "alone", one_rank_alone },
	{ "cut_in_dispatch", cut_in_dispatch },
	{ "cut_in_combine", cut_in_combine },
	{ "cut_in_both", cut_in_both },
	{ "fp8", cuts_with_fp8 },
	{ "bf16", cuts_with_bf16 },
	{ "none_for_half", none_for_half },
	{ "all_to_one", all_to_one },
	{ "withdrawn_too_late", withdrawn_too_late },
	{ "withdrawn_half_way", withdrawn_half_way },
	{ "both_down", both_down },
	{ "pair_down", pair_down },
	{ "resumed", timed_out_calls_resume },
	{ "unfinished", unfinished_blocks_next },
	{ "two_at_once", two_at_once },
	{ "bad_input", bad_input },
	{ "shapes", shapes_are_checked },
	{ "numbers", number_conversions },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc < 2 || !strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			if (argc > 1)
				return 0;
		}
	return argc > 1; /* no such test */
}
