/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often progress looks at the connections, and at which: many calls in a row, as NCCL's proxy
 * makes them, cost one look; of many sources each has its turn.
 */
#include "plugin/rma/comm.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RANKS 20 /* more sources than one look takes */
#define SIGNALS 3
#define ROUNDS 1000000 /* fruitless, after which a test gives up */

static struct ha_ctx *ctx;
static struct ha_rma *rma[RANKS];
static struct ha_rma_window *counters[RANKS];
static uint64_t counter[RANKS];

static void open_ranks(void)
{
	static struct ha_config config;
	static uint8_t handle[RANKS][HA_HANDLE_MAX];
	struct ha_ctx_params params = { .config = &config };
	struct ha_rma_listen *listen[RANKS];
	const void *handles[RANKS];

	ha_config_load_env(&config);
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	for (int i = 0; i < RANKS; i++) {
		CHECK_INT(ha_rma_listen(ctx, 0, NULL, handle[i], &listen[i]), 0);
		handles[i] = handle[i];
	}
	for (int i = 0; i < RANKS; i++) {
		CHECK_INT(ha_rma_connect(listen[i], handles, RANKS, i, &rma[i]), 0);
		ha_rma_close_listen(listen[i]);
		CHECK_INT(ha_rma_register(rma[i], &counter[i], sizeof(counter[i]), HA_MEM_HOST, 0,
					  -1, 1, &counters[i]),
			  0);
	}
}

static void close_ranks(void)
{
	for (int i = 0; i < RANKS; i++)
		ha_rma_close(rma[i]);
	ha_ctx_destroy(ctx);
}

static void progress_all(unsigned round)
{
	for (int i = 0; i < RANKS; i++)
		CHECK_INT(ha_rma_progress(rma[i]), 0);
	if (round > 1000)
		usleep(100);
}

static uint64_t read_counter(void)
{
	return __atomic_load_n(&counter[0], __ATOMIC_ACQUIRE);
}

static void signal_first(int from)
{
	struct ha_rma_put put = { .rank = 0, .signal = HA_RMA_INC, .signals = counters[from] };
	struct ha_rma_op *op;

	CHECK_INT(ha_rma_put(rma[from], &put, &op), 0);
}

/* Every rank signals rank 0, again and again, none before all of the last turn have come. */
static void test_sources(void)
{
	open_ranks();
	for (uint64_t turn = 1; turn <= SIGNALS; turn++) {
		unsigned round = 0;

		for (int i = 1; i < RANKS; i++)
			signal_first(i);
		while (read_counter() < turn * (RANKS - 1) && round++ < ROUNDS)
			progress_all(round);
		CHECK_INT(read_counter(), turn * (RANKS - 1));
	}
	CHECK_INT(rma[0]->nsources, RANKS - 1);
	close_ranks();
}

/* Two calls, and whether they were so close that the second had no reason to look. */
static bool look_twice(void)
{
	uint64_t looked;

	CHECK_INT(ha_rma_progress(rma[0]), 0);
	looked = rma[0]->looked;
	CHECK_INT(ha_rma_progress(rma[0]), 0);
	if (ha_clock_now(&ha_clock_live) - looked >= HA_RMA_LOOK_NS)
		return false; /* the processor was away between the two */
	CHECK(rma[0]->looked == looked);
	return true;
}

static void test_rounds(void)
{
	unsigned close = 0;

	open_ranks();
	for (unsigned i = 0; i < ROUNDS && close < 100; i++)
		close += look_twice();
	printf("%u pairs of calls within %d ns, of which the second did not look\n", close,
	       HA_RMA_LOOK_NS);
	CHECK(close);
	close_ranks();
}

int main(int argc, char **argv)
{
	CHECK_INT(argc, 2);
	if (!strcmp(argv[1], "sources"))
		test_sources();
	else
		test_rounds();
	return 0;
}
