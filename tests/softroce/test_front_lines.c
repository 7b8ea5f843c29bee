/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer writes lines of 128 bytes whose last word is a flag, and a thread polls the flags, as
 * NCCL's LL128 protocol does: it looks at no completion. A line whose flag is there is there whole.
 * (test_engine_placing decides the same one instruction after the other; here it is two processes,
 * their NICs and as many processors as there are.)
 */
#include "tests/softroce/front_side.h"

#include <sched.h>

#define LINE_WORDS 16
#define FLAG 15
#define MESSAGE 16384u
#define LINES (MESSAGE / (LINE_WORDS * 8))
#define ROUNDS 10000
#define LOOKS 1000 /* at one flag, before the processor is given away */

static const struct side_options options = { .size = MESSAGE, .mtu = IBV_MTU_4096 };

static uint64_t word_of(uint64_t round, unsigned line, unsigned word)
{
	return round << 32 | line << 8 | word;
}

static void fill_lines(uint64_t *words, uint64_t round)
{
	for (unsigned line = 0; line < LINES; line++) {
		for (unsigned i = 0; i < FLAG; i++)
			words[line * LINE_WORDS + i] = word_of(round, line, i);
		words[line * LINE_WORDS + FLAG] = round;
	}
}

static void wait_for_flag(const uint64_t *flag, uint64_t round)
{
	for (unsigned looks = 1; __atomic_load_n(flag, __ATOMIC_ACQUIRE) != round; looks++)
		if (looks % LOOKS == 0)
			sched_yield();
}

/* Words of the line that are not there although its flag is. */
static unsigned count_torn_words(const uint64_t *line, uint64_t round, unsigned number)
{
	unsigned torn = 0;

	for (unsigned i = 0; i < FLAG; i++)
		torn += __atomic_load_n(&line[i], __ATOMIC_RELAXED) != word_of(round, number, i);
	return torn;
}

static void poll_lines(int fd)
{
	unsigned long torn = 0;
	struct side side;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		for (unsigned line = 0; line < LINES; line++) {
			const uint64_t *at = (const uint64_t *)(void *)side.buf + line * LINE_WORDS;

			wait_for_flag(&at[FLAG], round);
			torn += count_torn_words(at, round, line);
		}
		side_meet(&side);
	}
	if (torn)
		fprintf(stderr, "%lu words came after the flag of their line\n", torn);
	CHECK(!torn);
	side_meet(&side);
	side_close(&side);
}

static void write_lines(int fd)
{
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		fill_lines((uint64_t *)(void *)side.buf, round);
		side_post_send(&side, IBV_WR_RDMA_WRITE, round, 0, MESSAGE);
		CHECK(side_wait(&side, &wc, 60000) && wc.status == IBV_WC_SUCCESS);
		side_meet(&side);
	}
	side_meet(&side);
	side_close(&side);
}

int main(void)
{
	side_isolate("127.70.0.0/24");
	side_run(poll_lines, write_lines);
	return 0;
}
