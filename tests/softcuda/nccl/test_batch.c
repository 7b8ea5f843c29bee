/* SPDX-License-Identifier: BSD-3-Clause */
/* test_batch.c - works out of a launch's arguments or a buffer that wraps, extensions, counters and
 * the abort flag */
#include "base/check.h"
#include "softcuda/nccl/launch.h"
#include "tests/softcuda/nccl/fake_ranks.h"

#define BUFFER_BYTES 512u

static void mark_work(char *to, int number)
{
	struct work_p2p *work = (struct work_p2p *)to;

	memset(work, 0, sizeof(*work));
	work->send_rank = number;
	work->recv_rank = ~number;
}

static void check_works(const struct batch *batch, const int *numbers, unsigned count)
{
	CHECK_INT(batch->work_count, count);
	for (unsigned i = 0; i < count; i++) {
		const struct work_p2p *work = work_of_batch(batch, i);

		CHECK_INT(work->send_rank, numbers[i]);
		CHECK_INT(work->recv_rank, ~numbers[i]);
	}
}

static void test_works_in_arguments(void)
{
	static struct fake_launch launch;
	static struct batch batch;

	launch.arguments.storage = STORAGE_ARGUMENTS;
	launch.batches[1] =
		(struct work_batch) { .work_type = WORK_P2P,
				      .function = 77,
				      .offset_base = offsetof(struct fake_launch, works),
				      .offset_bits = 0x15 };
	for (int i = 0; i < 8; i++)
		mark_work(launch.works + i * (int)sizeof(struct work_p2p), i);
	CHECK(!load_batch(&batch, &launch.arguments, 1, 0));
	check_works(&batch, (int[]) { 0, 2, 4 }, 3);
	CHECK_INT(batch.function, 77);
	CHECK_INT(batch.last, 1);
	CHECK_INT(batch.jump, 0);
}

/* The last work's first 16 bytes lie at the end of the buffer, the others at its start. */
static void test_buffer_that_wraps(void)
{
	static char buffer[BUFFER_BYTES];
	static struct fake_launch launch;
	static struct batch batch;
	uint32_t first = 3 * BUFFER_BYTES - 2 * (uint32_t)sizeof(struct work_p2p) - 16;
	char work[sizeof(struct work_p2p)];
#if LAYOUT_HAS_WORK_CONSUMED
	uint32_t consumed[2] = { 0, 0 };
	struct kernel_comm comm = { .work_consumed = consumed };

	launch.arguments.comm = &comm;
#endif
	launch.arguments.storage = STORAGE_FIFO;
	launch.arguments.work_buffer = buffer;
	launch.arguments.work_mask = BUFFER_BYTES - 1;
	for (int i = 0; i < 3; i++) {
		mark_work(work, 10 + i);
		for (uint32_t b = 0; b < sizeof(work); b++)
			buffer[(first + (uint32_t)i * sizeof(work) + b) & (BUFFER_BYTES - 1)] =
				work[b];
	}
	launch.batches[0] = (struct work_batch) { .work_type = WORK_P2P,
						  .offset_base = first,
						  .offset_bits = 7 };
	CHECK(!load_batch(&batch, &launch.arguments, 0, 1));
	check_works(&batch, (int[]) { 10, 11, 12 }, 3);
#if LAYOUT_HAS_WORK_CONSUMED
	CHECK_INT(consumed[0], 0);
	CHECK_INT(consumed[1], first + 3 * sizeof(work));
#endif
}

static void test_extensions(void)
{
	static struct fake_launch launch;
	static struct batch batch;
	uint32_t works = offsetof(struct fake_launch, works);

	launch.arguments.storage = STORAGE_ARGUMENTS;
	for (int i = 0; i < 8; i++)
		mark_work(launch.works + i * (int)sizeof(struct work_p2p), i);
	launch.batches[0] = (struct work_batch) { .work_type = WORK_P2P,
						  .next_extends = 1,
						  .next_jump = 2,
						  .offset_base = works,
						  .offset_bits = 1 };
	launch.batches[2] =
		(struct work_batch) { .work_type = WORK_P2P,
				      .next_jump = 1,
				      .offset_base = works + 5 * (uint32_t)sizeof(struct work_p2p),
				      .offset_bits = 3 };
	CHECK(!load_batch(&batch, &launch.arguments, 0, 0));
	check_works(&batch, (int[]) { 0, 5, 6 }, 3);
	CHECK_INT(batch.last, 2);
	CHECK_INT(batch.jump, 1);
}

static void test_too_many_works(void)
{
	static struct fake_launch launch;
	static char buffer[1 << 16];
	static struct batch batch;

	launch.arguments.storage = STORAGE_PERSISTENT;
	launch.arguments.work_buffer = buffer;
	launch.arguments.work_mask = ~0u;
	for (int i = 0; i < 4; i++)
		launch.batches[i] = (struct work_batch) { .work_type = WORK_COLLECTIVE_REGISTERED,
							  .next_extends = i < 3,
							  .next_jump = 1,
							  .offset_bits = ~0ull };
	CHECK_TEXT(load_batch(&batch, &launch.arguments, 0, 0), "too many works in one batch");
}

/* A rank whose peer never comes ends when the communicator is aborted. */
static void test_abort(void)
{
	static char buffer[4096];
	static struct fake_ranks ranks;
	struct softcuda_launch launch = { .parameters = &ranks.launches[0].arguments };
	struct work_collective work;

	make_fake_ranks(&ranks, 2, 1, 0, 1);
	memset(&work, 0, sizeof(work));
	work.send_buffer = buffer;
	work.recv_buffer = buffer;
	work.division.count_low = sizeof(buffer);
	work.division.grains_low = 8;
	set_fake_works(&ranks, 0, WORK_COLLECTIVE, &work, 1, sizeof(work));
	use_fake_function(&(struct device_function) { COLLECTIVE_ALL_REDUCE, ALGORITHM_RING,
						      PROTOCOL_SIMPLE, REDUCE_SUM, ELEMENT_INT8 });
	ranks.abort_flag = 1;
	run_batches(&launch);
	/* it had begun: one chunk was sent */
	CHECK_INT(*ranks.comms[0]->channels[0].peers[1]->send[0].tail, 4);
	free_fake_ranks(&ranks);
}

#if LAYOUT_HAS_WORK_COUNTER
/* A channel's counter grows by one for each work; those that are profiled leave their number and
 * the time. */
static void test_profiler(void)
{
	static struct profiler_channel started[2], completed[2];
	static struct fake_ranks ranks;
	struct softcuda_launch launch = { .parameters = &ranks.launches[0].arguments };
	struct work_p2p works[3];
	static char buffer[6000];

	make_fake_ranks(&ranks, 2, 2, 0, 1);
	ranks.comms[0]->comm.work_started = started;
	ranks.comms[0]->comm.work_completed = completed;
	ranks.comms[0]->channels[0].work_counter = 62;
	memset(works, 0, sizeof(works));
	for (int i = 0; i < 3; i++) { /* copies to oneself: nobody else is needed */
		works[i].channels = 2;
		works[i].send_channels = 2;
		works[i].recv_channels = 2;
		works[i].send_bytes = 1000;
		works[i].recv_bytes = 1000;
		works[i].send_address = buffer + i * 1000;
		works[i].recv_address = buffer + 3000 + i * 1000;
		works[i].profiled = i != 1;
	}
	set_fake_works(&ranks, 0, WORK_P2P, works, 3, sizeof(works[0]));
	use_fake_function(&(struct device_function) { .collective = COLLECTIVE_SEND_RECV });
	run_batches(&launch);
	CHECK_INT(ranks.comms[0]->channels[0].work_counter, 65);
	CHECK_INT(ranks.comms[0]->channels[1].work_counter, 3);
	CHECK_INT(started[0].events[63].counter, 63);
	CHECK_INT(started[0].events[0].counter, 0); /* number 64 is not profiled */
	CHECK_INT(completed[0].events[1].counter, 65);
	CHECK(started[0].events[63].timestamp > 0);
	CHECK(completed[0].events[63].timestamp >= started[0].events[63].timestamp);
	CHECK_INT(completed[1].events[3].counter, 3);
	free_fake_ranks(&ranks);
}
#else
static void test_profiler(void)
{
}
#endif

int main(void)
{
	test_works_in_arguments();
	test_buffer_that_wraps();
	test_extensions();
	test_too_many_works();
	test_abort();
	test_profiler();
	return 0;
}
