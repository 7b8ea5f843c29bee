/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC fails (DEVICE_FATAL) under one-sided traffic and comes back, by its old name or another:
 * every connection is protected by it again, with windows that were registered before, while it was
 * away and after, and goes on over it when the other NIC fails.
 */
#include "tests/plugin/rma/team.h"

#include "base/check.h"

#include <sys/mman.h>

#define RANKS 3
#define WINDOW 8192

/* A window more at every rank, into which each puts once. */
struct late {
	struct ha_rma_window *window[RANKS];
	uint8_t *data[RANKS];
};

static void late_register(struct team *t, struct late *l)
{
	for (int i = 0; i < RANKS; i++) {
		l->data[i] = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
		CHECK(l->data[i] != MAP_FAILED);
		CHECK_INT(ha_rma_register(t->rank[i].rma, l->data[i], WINDOW, HA_MEM_HOST, 0, -1, 0,
					  &l->window[i]),
			  0);
	}
}

/* From the first half of each to the second half of the next rank's. */
static void late_use(struct team *t, struct late *l, uint8_t byte)
{
	struct ha_rma_op *op[RANKS];
	int done = 0;

	for (int i = 0; i < RANKS; i++) {
		struct ha_rma_put put = { .rank = (i + 1) % RANKS,
					  .size = WINDOW / 2,
					  .source = l->window[i],
					  .target = l->window[i],
					  .target_offset = WINDOW / 2 };

		memset(l->data[i], byte + i, WINDOW / 2);
		CHECK_INT(ha_rma_put(t->rank[i].rma, &put, &op[i]), 0);
	}
	for (int i = 0; i < RANKS; i++, done = 0)
		while (!done) {
			CHECK_INT(ha_rma_test(t->rank[i].rma, op[i], &done), 0);
			team_step(t);
		}
	for (int i = 0; i < RANKS; i++)
		for (int k = 0; k < WINDOW / 2; k++)
			CHECK_INT(l->data[(i + 1) % RANKS][WINDOW / 2 + k], byte + i);
}

static void there_and_back(int memory, uint64_t seed, const char *const name[2][2])
{
	struct late away, back;
	struct team t;

	team_open(&t, RANKS, 20000, memory, seed);
	team_await_protection(&t, true);
	team_flow(&t, 200);
	for (int i = 0; i < 4; i++) {
		const char *nic = name[i % 2][i / 2 % 2], *next = name[i % 2][(i / 2 + 1) % 2];

		team_kill(nic);
		team_await_protection(&t, false);
		late_register(&t, &away);
		team_flow(&t, 100 + (unsigned)team_random(&t, 200));
		team_restore(nic, next);
		team_await_protection(&t, true);
		late_register(&t, &back);
		late_use(&t, &away, 0x20);
		late_use(&t, &back, 0x40);
		team_flow(&t, (unsigned)team_random(&t, 400));
	}
	late_use(&t, &away, 0x60);
	team_finish(&t);
	team_close(&t);
}

static const char *const same[2][2] = { { "soft0", "soft0" }, { "soft1", "soft1" } };
static const char *const other[2][2] = { { "soft0", "mlx5_4" }, { "soft1", "mlx5_5" } };

static void test_host(void)
{
	there_and_back(HA_MEM_HOST, 21, same);
}

static void test_gpu(void)
{
	there_and_back(HA_MEM_CUDA, 22, same);
}

static void test_renamed(void)
{
	there_and_back(HA_MEM_HOST, 23, other);
}

/* Its death comes with the cable of the other one: no path is left until one of the two is back. */
static void test_no_path(void)
{
	struct team t;

	team_open(&t, RANKS, 20000, HA_MEM_HOST, 24);
	team_await_protection(&t, true);
	team_flow(&t, 200);
	for (int i = 0; i < 3; i++) {
		team_cut(1, true);
		team_kill("soft0");
		for (int k = 0; k < 2000; k++)
			team_step(&t);
		team_restore("soft0", "soft0");
		team_flow(&t, 200);
		team_cut(1, false);
		team_await_protection(&t, true);
		team_flow(&t, 200);
	}
	team_finish(&t);
	team_close(&t);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "host", test_host },
	{ "gpu", test_gpu },
	{ "renamed", test_renamed },
	{ "no_path", test_no_path },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc < 2 || !strcmp(argv[1], tests[i].name))
			tests[i].run();
	return 0;
}
