/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations among ranks, over the software NIC: all of them at once, with every oracle
 * of team.h, also while NICs lose their cables; and what is refused.
 */
#include "tests/plugin/rma/team.h"

#include "base/check.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static void test_alone(void)
{
	struct team t;

	team_open(&t, 1, 10000, HA_MEM_HOST, 1);
	team_flow(&t, 300);
	team_finish(&t);
	team_close(&t);
}

static void test_ranks(void)
{
	struct team t;

	team_open(&t, 4, 6000, HA_MEM_HOST, 2);
	team_flow(&t, 3000);
	team_finish(&t);
	team_close(&t);
}

static void test_large(void)
{
	struct team t;

	team_open(&t, 2, 1u << 20, HA_MEM_HOST, 3);
	team_flow(&t, 200);
	team_finish(&t);
	team_close(&t);
}

/* Signals wait for a read behind the data. */
static void test_gpu(void)
{
	struct team t;

	team_open(&t, 2, 6000, HA_MEM_CUDA, 4);
	team_flow(&t, 1000);
	team_finish(&t);
	team_close(&t);
}

/*
 * One NIC of the two at a time, for all ranks at once, sometimes again before everything has
 * recovered.
 */
static void cut_by_turns(int memory, uint64_t seed)
{
	struct team t;

	team_open(&t, 3, 20000, memory, seed);
	team_flow(&t, 200);
	for (int i = 0; i < 12; i++) {
		int nic = i % 2;

		team_cut(nic, true);
		team_flow(&t, 30 + (unsigned)team_random(&t, 300));
		team_cut(nic, false);
		team_flow(&t, (unsigned)team_random(&t, 600));
	}
	team_finish(&t);
	team_close(&t);
}

static void test_cuts(void)
{
	cut_by_turns(HA_MEM_HOST, 5);
}

/* A flush looked at a rail that the driver was closing (ThreadSanitizer sees it). */
static void test_flush_beside_a_closing_rail(void)
{
	cut_by_turns(HA_MEM_CUDA, 10);
}

/* Both NICs lose their cables, as all do that hang on one switch, and one gets it back. */
static void test_switch(void)
{
	struct team t;

	team_open(&t, 3, 20000, HA_MEM_HOST, 6);
	team_flow(&t, 500);
	for (int i = 0; i < 4; i++) {
		team_cut(0, true);
		team_cut(1, true);
		for (int k = 0; k < 2000; k++)
			team_step(&t);
		team_cut(i % 2, false);
		team_flow(&t, 200);
		team_cut(1 - i % 2, false);
		team_flow(&t, 300);
	}
	team_finish(&t);
	team_close(&t);
}

static void expect_put(struct team *t, struct ha_rma_put put, int err)
{
	struct ha_rma_op *op;

	CHECK_INT(ha_rma_put(t->rank[0].rma, &put, &op), err);
	CHECK(!op == !!err);
}

static void test_refused(void)
{
	struct team t;
	struct ha_rma_window *w;
	void *sealed;
	struct team_rank *r = &t.rank[0];
	const struct ha_rma_put good = { .rank = 1, .size = 8, .source = NULL, .target = NULL };
	struct ha_rma_put put;

	team_open(&t, 2, 4096, HA_MEM_HOST, 7);
	put = good;
	put.source = r->sources;
	put.target = r->cells;
	put.rank = 2;
	expect_put(&t, put, -EINVAL);
	put.rank = -1;
	expect_put(&t, put, -EINVAL);
	put.rank = 1;
	put.target = NULL;
	expect_put(&t, put, -EINVAL);
	put.target = r->cells;
	put.source_offset = (uint64_t)2 * TEAM_CELLS * 4096 - 7;
	expect_put(&t, put, -EINVAL);
	put.source_offset = UINT64_MAX - 3;
	expect_put(&t, put, -EINVAL);
	put.source_offset = 0;
	put.signal = HA_RMA_ADD;
	expect_put(&t, put, -EINVAL);
	put.signals = r->counters;
	put.signal_offset = 4;
	expect_put(&t, put, -EINVAL);
	/* Memory that this processor cannot write holds no signals; it may hold data. */
	sealed = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_INT(ha_rma_register(r->rma, sealed, 8192, HA_MEM_CUDA, 0, -1, 1, &w), -EOPNOTSUPP);
	CHECK(!w);
	team_flow(&t, 20); /* nothing of it did harm */
	team_finish(&t);
	team_close(&t);
}

/* Beyond the other rank's window, which is smaller than ours: an error that stays. */
static void test_beyond(void)
{
	struct team t;
	struct ha_rma_window *w[2];
	struct ha_rma_put put = { .rank = 1, .size = 4096 };
	struct ha_rma_op *op;
	int err = 0;

	team_open(&t, 2, 4096, HA_MEM_HOST, 8);
	for (int i = 0; i < 2; i++)
		CHECK_INT(ha_rma_register(t.rank[i].rma, t.rank[i].source_memory,
					  8192 - 4096 * (size_t)i, HA_MEM_HOST, 0, -1, 0, &w[i]),
			  0);
	put.source = put.target = w[0];
	put.target_offset = 1;
	CHECK_INT(ha_rma_put(t.rank[0].rma, &put, &op), 0);
	for (int k = 0; !err && k < 1000000; k++) {
		err = ha_rma_progress(t.rank[0].rma);
		CHECK_INT(ha_rma_progress(t.rank[1].rma), 0);
		usleep(k > 1000 ? 100 : 1);
	}
	CHECK_INT(err, -ERANGE);
	CHECK_INT(ha_rma_error(t.rank[0].rma), -ERANGE);
	CHECK_INT(ha_rma_put(t.rank[0].rma, &put, &op), -ERANGE);
	team_close(&t);
}

/* Ranks go while others have connections to them, or are making some. */
static void test_closing(void)
{
	struct team t;

	for (int i = 0; i < 20; i++) {
		team_open(&t, 3, 4096, HA_MEM_HOST, (uint64_t)(9 + i));
		for (int k = 0; k < i * 10; k++) {
			team_begin(&t);
			team_step(&t);
		}
		team_close(&t);
	}
}

static void await_by_tests(struct ha_rma *rma, struct ha_rma_op *op)
{
	int done = 0;

	for (int k = 0; !done && k < 200000; k++) {
		CHECK_INT(ha_rma_test(rma, op, &done), 0);
		usleep(k > 1000 ? 100 : 1);
	}
	CHECK(done);
}

/* Nobody calls progress. */
static void get_from_oneself(struct team *t)
{
	struct team_rank *r = &t->rank[0];
	struct ha_rma_put get = {
		.size = 64, .source = r->gotten, .target = r->counters, .target_offset = 4096
	};
	struct ha_rma_op *op;

	for (int i = 0; i < 10; i++) {
		memset(r->gotten_memory, 0, 64);
		CHECK_INT(ha_rma_get(r->rma, &get, &op), 0);
		await_by_tests(r->rma, op);
		CHECK(!memcmp(r->gotten_memory, (uint8_t *)r->counter_memory + 4096, 64));
	}
}

/* Two at once, of which the caller tests only the second until that one is done. */
static void signal_oneself_twice(struct team *t)
{
	struct team_rank *r = &t->rank[0];
	struct ha_rma_put put = { .signal = HA_RMA_INC, .signals = r->counters };
	struct ha_rma_op *op[2];

	for (int i = 0; i < 10; i++) {
		CHECK_INT(ha_rma_put(r->rma, &put, &op[0]), 0);
		CHECK_INT(ha_rma_put(r->rma, &put, &op[1]), 0);
		await_by_tests(r->rma, op[1]);
		await_by_tests(r->rma, op[0]);
	}
}

/* What goes to oneself is moved by test alone, from the first operation on, the connection too. */
static void test_by_tests_alone(void)
{
	for (int i = 0; i < 4; i++) {
		struct team t;

		team_open(&t, 1, 4096, i / 2 ? HA_MEM_CUDA : HA_MEM_HOST, 30);
		if (i % 2)
			get_from_oneself(&t);
		signal_oneself_twice(&t);
		get_from_oneself(&t);
		team_close(&t);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "alone", test_alone },
	{ "ranks", test_ranks },
	{ "large", test_large },
	{ "gpu", test_gpu },
	{ "cuts", test_cuts },
	{ "flush_beside_a_closing_rail", test_flush_beside_a_closing_rail },
	{ "switch", test_switch },
	{ "refused", test_refused },
	{ "beyond", test_beyond },
	{ "closing", test_closing },
	{ "by_tests_alone", test_by_tests_alone },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc < 2 || !strcmp(argv[1], tests[i].name))
			tests[i].run();
	return 0;
}
