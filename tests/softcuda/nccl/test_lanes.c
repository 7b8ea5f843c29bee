/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lanes.c - every collective on rings and trees, in every protocol, between ranks of one
 * process
 *
 * All elements are compared with a computation of their own.
 */
#include "base/check.h"
#include "softcuda/nccl/small_float.h"
#include "tests/softcuda/nccl/fake_ranks.h"

struct test_case {
	enum collective collective;
	enum algorithm algorithm;
	enum protocol protocol;
	enum element_type type;
	enum reduction_operator operator;
	uint64_t argument;
	int ranks;
	int channels;
	bool in_place;
	uint64_t first_step;
	size_t counts[3]; /* of the low channel, each in the middle, the high one */
};

static void store_element(char *array, enum element_type type, size_t index, int value)
{
	float as_float = (float)value;
	double as_double = value;
	int64_t as_integer = value;
	uint16_t half = float_to_half(as_float);
	uint16_t bfloat16 = float_to_bfloat16(as_float);
	uint8_t e4m3 = float_to_e4m3(as_float);
	uint8_t e5m2 = float_to_e5m2(as_float);
	const void *bits = &as_integer; /* little-endian: the low bytes come first */

	if (type == ELEMENT_FLOAT)
		bits = &as_float;
	if (type == ELEMENT_DOUBLE)
		bits = &as_double;
	if (type == ELEMENT_HALF)
		bits = &half;
	if (type == ELEMENT_BFLOAT16)
		bits = &bfloat16;
	if (type == ELEMENT_FLOAT8_E4M3)
		bits = &e4m3;
	if (type == ELEMENT_FLOAT8_E5M2)
		bits = &e5m2;
	memcpy(array + index * element_bytes(type), bits, element_bytes(type));
}

/* A small number that every type represents exactly, in sums of eight, too. */
static int input_value(int rank, size_t index)
{
	return (int)(((index * 2654435761u >> 7) + (size_t)rank * 5 + index / 97) % 3);
}

static int reduced_value(const struct test_case *test, size_t index)
{
	int result = input_value(0, index);

	for (int r = 1; r < test->ranks; r++) {
		int value = input_value(r, index);

		if (test->operator== REDUCE_PRODUCT)
			result *= value;
		else if (test->operator!= REDUCE_MIN_MAX)
			result += value;
		else if (test->argument ? value > result : value < result)
			result = value;
	}
	if (test->operator== REDUCE_SUM_DIVIDE)
		result /= 3;
	if (test->operator== REDUCE_PREMULTIPLY_SUM)
		result *= 2;
	return result;
}

static size_t total_count(const struct test_case *test)
{
	if (test->channels == 1)
		return test->counts[0];
	return test->counts[0] + test->counts[1] * (size_t)(test->channels - 2) + test->counts[2];
}

/* Elements of a rank's input and output. */
static size_t input_count(const struct test_case *test)
{
	size_t ranks = (size_t)test->ranks;

	return test->collective == COLLECTIVE_REDUCE_SCATTER ? total_count(test) * ranks
							     : total_count(test);
}

static size_t output_count(const struct test_case *test)
{
	size_t ranks = (size_t)test->ranks;

	return test->collective == COLLECTIVE_ALL_GATHER ? total_count(test) * ranks
							 : total_count(test);
}

#define ROOT 1

static int expected_value(const struct test_case *test, int rank, size_t index)
{
	size_t total = total_count(test);

	switch (test->collective) {
	case COLLECTIVE_ALL_GATHER:
		return input_value((int)(index / total), index % total);
	case COLLECTIVE_BROADCAST:
		return input_value(ROOT, index);
	case COLLECTIVE_REDUCE_SCATTER:
		return reduced_value(test, (size_t)rank * total + index);
	default:
		return reduced_value(test, index);
	}
}

static void fill_work(const struct test_case *test, struct work_collective *work, char *input,
		      char *output)
{
	/* As the host chooses chunks: as many steps as an operation takes. */
	static const unsigned chunk_grains[PROTOCOL_COUNT] = { 2048 / 2 / 16, 2, 4096 / 512 };
	bool single_steps = test->algorithm != ALGORITHM_RING ||
			    test->collective == COLLECTIVE_BROADCAST ||
			    test->collective == COLLECTIVE_REDUCE;
	unsigned grains = chunk_grains[test->protocol];

	if (test->protocol == PROTOCOL_SIMPLE && !single_steps)
		grains *= 4;
	memset(work, 0, sizeof(*work));
	work->channel_high = (unsigned)test->channels - 1;
	work->root = ROOT;
	work->send_buffer = input;
	work->recv_buffer = output;
	work->division.count_low = test->counts[0];
	work->division.count_middle = test->channels > 2 ? test->counts[1] : 0;
	work->division.count_high = test->channels > 1 ? test->counts[2] : 0;
	work->division.grains_low = grains;
	work->division.grains_middle = grains;
	work->division.grains_high = grains;
	work->argument = test->argument;
}

struct buffers {
	char *input;
	char *output;
	char *allocated;
};

static void make_buffers(const struct test_case *test, struct buffers *buffers, int rank)
{
	size_t bytes = element_bytes(test->type);
	size_t larger = input_count(test) + output_count(test);

	/* An odd element in front: nothing may rely on alignment beyond an element's. */
	buffers->allocated = calloc(2 * larger + 4, bytes);
	CHECK(buffers->allocated != NULL);
	buffers->input = buffers->allocated + bytes;
	buffers->output = buffers->input + (larger + 1) * bytes;
	if (test->in_place && test->collective == COLLECTIVE_ALL_GATHER)
		buffers->input = buffers->output + (size_t)rank * total_count(test) * bytes;
	else if (test->in_place && test->collective == COLLECTIVE_REDUCE_SCATTER)
		buffers->output = buffers->input + (size_t)rank * total_count(test) * bytes;
	else if (test->in_place)
		buffers->output = buffers->input;
	for (size_t i = 0; i < input_count(test); i++)
		store_element(buffers->input, test->type, i, input_value(rank, i));
}

static void check_output(const struct test_case *test, const struct buffers *buffers, int rank)
{
	size_t bytes = element_bytes(test->type);
	char expected[8];

	if (test->collective == COLLECTIVE_REDUCE && rank != ROOT)
		return;
	for (size_t i = 0; i < output_count(test); i++) {
		store_element(expected, test->type, 0, expected_value(test, rank, i));
		if (memcmp(expected, buffers->output + i * bytes, bytes) == 0)
			continue;
		fprintf(stderr,
			"collective %d algorithm %d protocol %d type %d operator %d, %d ranks, %d "
			"channels, counts %zu %zu "
			"%zu, in place %d: rank %d, element %zu of %zu is wrong, expected %d\n",
			test->collective, test->algorithm, test->protocol, test->type,
			test->operator, test->ranks, test->channels, test->counts[0],
			test->counts[1], test->counts[2], test->in_place, rank, i,
			output_count(test), expected_value(test, rank, i));
		exit(1);
	}
}

static void run_case(const struct test_case *test)
{
	struct buffers buffers[FAKE_RANKS_MAX];
	static struct fake_ranks ranks;
	struct work_collective work;

	make_fake_ranks(&ranks, test->ranks, test->channels, test->first_step, 17);
	ranks.function = (struct device_function) { test->collective, test->algorithm,
						    test->protocol, test->operator, test->type };
	for (int r = 0; r < test->ranks; r++) {
		make_buffers(test, &buffers[r], r);
		fill_work(test, &work, buffers[r].input, buffers[r].output);
		set_fake_works(&ranks, r, WORK_COLLECTIVE, &work, 1, sizeof(work));
	}
	run_fake_ranks(&ranks);
	for (int r = 0; r < test->ranks; r++) {
		check_output(test, &buffers[r], r);
		free(buffers[r].allocated);
	}
	free_fake_ranks(&ranks);
}

/* Sizes around everything that rounds: none, single elements, lines, groups of lines, slices, many
 * rounds. */
static const size_t sizes[] = { 0, 1, 2, 13, 120, 121, 480, 1023, 4096, 30011 };

static void run_sizes(struct test_case test)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		test.channels = 1 + (int)(i % 3);
		test.counts[0] = sizes[i];
		test.counts[1] = sizes[i] ? sizes[(i + 1) % 10] + 1 : 1;
		test.counts[2] = sizes[i] ? sizes[i] / 2 + 1 : 3;
		test.in_place = i & 1;
		run_case(&test);
	}
}

static void test_rings(void)
{
	static const enum collective collectives[] = { COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_GATHER,
						       COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_REDUCE,
						       COLLECTIVE_BROADCAST };

	for (int c = 0; c < 5; c++) {
		for (int p = 0; p < PROTOCOL_COUNT; p++) {
			for (int n = 2; n <= 5; n++)
				run_sizes((struct test_case) {
					.collective = collectives[c],
					.algorithm = ALGORITHM_RING,
					.protocol = (enum protocol)p,
					.type = c == 1 || c == 4 ? ELEMENT_INT8 : ELEMENT_FLOAT,
					.ranks = n,
					.first_step = 6 });
		}
	}
}

static void test_trees(void)
{
	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		for (int n = 2; n <= 7; n++)
			run_sizes((struct test_case) { .collective = COLLECTIVE_ALL_REDUCE,
						       .algorithm = ALGORITHM_TREE,
						       .protocol = (enum protocol)p,
						       .type = ELEMENT_FLOAT,
						       .ranks = n });
	}
}

#if LAYOUT_HAS_PAT
static void test_pat(void)
{
	for (int n = 2; n <= FAKE_RANKS_MAX; n++) {
		struct test_case test = {
			.collective = COLLECTIVE_ALL_GATHER,
			.algorithm = ALGORITHM_PAT,
			.protocol = PROTOCOL_SIMPLE,
			.type = ELEMENT_INT8,
			.ranks = n,
			.first_step = 5,
		};

		run_sizes(test);
		test.collective = COLLECTIVE_REDUCE_SCATTER;
		test.type = ELEMENT_FLOAT;
		run_sizes(test);
	}
}
#else
static void test_pat(void)
{
}
#endif

static uint64_t argument_of(enum reduction_operator operator, enum element_type type, bool maximum)
{
	char factor[8] = { 0 };
	uint64_t argument = 0;
	bool is_signed = type == ELEMENT_INT8 || type == ELEMENT_INT32 || type == ELEMENT_INT64;

	if (operator== REDUCE_PREMULTIPLY_SUM) {
		store_element(factor, type, 0, 2);
		memcpy(&argument, factor, sizeof(factor));
	}
	if (operator== REDUCE_SUM_DIVIDE)
		argument = AVERAGE_IS_PLAIN_DIVISOR ? 3 : 3 << 1 | is_signed;
	if (operator== REDUCE_MIN_MAX && maximum)
		argument = ~0ull;
	return argument;
}

/* All types and operations, in each protocol: what they compute is test_reduce's, that they are
 * applied once is ours. */
static void test_types_and_operators(void)
{
	for (int t = 0; t < LAYOUT_TYPE_COUNT; t++) {
		for (int o = 0; o < REDUCE_OPERATOR_COUNT + 1; o++) {
			bool maximum = o == REDUCE_OPERATOR_COUNT;
			enum reduction_operator operator= maximum ? REDUCE_MIN_MAX
								  : (enum reduction_operator)o;
			struct test_case test = {
				.collective =
					o % 2 ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER,
				.algorithm = ALGORITHM_RING,
				.type = (enum element_type)t,
				.operator= operator,
				.argument = argument_of(operator,(enum element_type) t, maximum),
				.ranks = 3,
				.channels = 1,
				.counts = { 2501 },
			};
			struct reduction reduction;

			if (!find_reduction(&reduction, test.type, operator, 0))
				continue;
			for (int p = 0; p < PROTOCOL_COUNT; p++) {
				test.protocol = (enum protocol)p;
				run_case(&test);
				test.algorithm = test.collective == COLLECTIVE_ALL_REDUCE
							 ? ALGORITHM_TREE
							 : ALGORITHM_RING;
			}
		}
	}
}

/* Steps from just before the flags of LL come round again. */
static void test_flags_come_round(void)
{
	struct test_case test = {
		.collective = COLLECTIVE_ALL_REDUCE,
		.algorithm = ALGORITHM_RING,
		.type = ELEMENT_FLOAT,
		.ranks = 3,
		.channels = 1,
		.counts = { 30011 },
	};

	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		test.protocol = (enum protocol)p;
		test.first_step = 0x7ffffff0;
		run_case(&test);
		test.first_step = 0xfffffff0;
		run_case(&test);
	}
}

/* Every line of every slot looks as if it had been written 2^32 steps before it will be. */
static void age_lines(struct connection_info *info, uint64_t next_round)
{
	uint32_t *words = (uint32_t *)info->buffers[PROTOCOL_LL];
	int lines_of_slot = 2048 / 16;

	for (int line = 0; line < 8 * lines_of_slot; line++) {
		uint32_t flag = (uint32_t)(next_round + (uint64_t)(line / lines_of_slot) + 1);

		words[4 * line] = 0x7f000000; /* 1.7e38 */
		words[4 * line + 1] = flag;
		words[4 * line + 2] = 0x7f000000; /* 1.7e38 */
		words[4 * line + 3] = flag;
	}
}

/* Lines of old data whose flags fit again are not taken for new ones, because whole slots were
 * cleaned in between. */
static void run_with_old_lines(uint64_t seed)
{
	struct test_case small = {
		.collective = COLLECTIVE_ALL_REDUCE,
		.algorithm = ALGORITHM_RING,
		.protocol = PROTOCOL_LL,
		.type = ELEMENT_FLOAT,
		.ranks = 2,
		.channels = 1,
		.first_step = 0x7ffffff0,
		.counts = { 4 }, /* one chunk, and one without a line */
	};
	struct test_case large = small;
	struct buffers of_small[2], of_large[2];
	static struct fake_ranks ranks;
	struct work_collective works[11];

	large.counts[0] = 5000;
	make_fake_ranks(&ranks, 2, 1, small.first_step, seed);
	ranks.function = (struct device_function) { small.collective, small.algorithm,
						    small.protocol, 0, small.type };
	for (int r = 0; r < 2; r++) {
		age_lines(&ranks.comms[r]->channels[0].peers[!r]->send[0], 0x80000000);
		make_buffers(&small, &of_small[r], r);
		make_buffers(&large, &of_large[r], r);
		/* Two steps each, through those in which slots are cleaned. */
		for (int i = 0; i < 10; i++)
			fill_work(&small, &works[i], of_small[r].input, of_small[r].output);
		fill_work(&large, &works[10], of_large[r].input, of_large[r].output);
		set_fake_works(&ranks, r, WORK_COLLECTIVE, works, 11, sizeof(works[0]));
	}
	run_fake_ranks(&ranks);
	for (int r = 0; r < 2; r++) {
		check_output(&small, &of_small[r], r);
		check_output(&large, &of_large[r], r);
		free(of_small[r].allocated);
		free(of_large[r].allocated);
	}
	free_fake_ranks(&ranks);
}

/* The order in which ranks come decides whether a receiver looks before its sender has written. */
static void test_old_lines_are_cleaned(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_with_old_lines(seed);
}

/* What a proxy thread is given of a message of 5 bytes. */
static void check_announcement(enum protocol protocol, int64_t bytes, uint64_t tail)
{
	struct test_case test = {
		.collective = COLLECTIVE_BROADCAST,
		.algorithm = ALGORITHM_RING,
		.protocol = protocol,
		.type = ELEMENT_INT8,
		.ranks = 2,
		.channels = 1,
		.counts = { 5 },
	};
	struct fifo_slot fifo[FIFO_STEPS];
	static struct fake_ranks ranks;
	struct connection_info *sender;
	struct work_collective work;
	struct buffers buffers[2];

	make_fake_ranks(&ranks, 2, 1, 0, 3);
	ranks.function = (struct device_function) { test.collective, test.algorithm, protocol, 0,
						    test.type };
	sender = &ranks.comms[ROOT]->channels[0].peers[!ROOT]->send[0];
	memset(fifo, 0, sizeof(fifo));
	sender->fifo = fifo;
	for (int r = 0; r < 2; r++) {
		make_buffers(&test, &buffers[r], r);
		fill_work(&test, &work, buffers[r].input, buffers[r].output);
		set_fake_works(&ranks, r, WORK_COLLECTIVE, &work, 1, sizeof(work));
	}
	run_fake_ranks(&ranks);
	CHECK_INT(fifo[0].size, bytes);
	CHECK_INT(*sender->tail, tail);
	if (protocol == PROTOCOL_LL128) { /* all lines of the group carry the flag */
		for (int line = 0; line < 16; line++)
			CHECK_INT(((uint64_t *)sender->buffers[protocol])[line * 16 + 15], 1);
	}
	for (int r = 0; r < 2; r++) {
		check_output(&test, &buffers[r], r);
		free(buffers[r].allocated);
	}
	free_fake_ranks(&ranks);
}

static void test_announcements(void)
{
	check_announcement(PROTOCOL_SIMPLE, 5, 1);
	check_announcement(PROTOCOL_LL, 16, 0); /* one line; its flags signal, not the tail */
	check_announcement(PROTOCOL_LL128, 16 * 128, 1);
}

#define P2P_MAX 40000

static char p2p_byte(int from, int to, size_t index)
{
	return (char)(index * 31 + (size_t)from * 7 + (size_t)to * 3 + (index >> 8));
}

/* The bytes that `from` sends to `to`; some send nothing, and take part all the same. */
static size_t p2p_bytes(int from, int to)
{
	static const size_t bytes[] = { 0, 1, 4095, 4097, 9000, 20000, 40000 };

	return bytes[(from * 3 + to * 5) % 7];
}

static void fill_p2p_work(struct work_p2p *work, int rank, int ranks, int round, int channels,
			  bool is_ll, char *input, char *output)
{
	int to = (rank + round) % ranks;
	int from = (rank + ranks - round) % ranks;

	memset(work, 0, sizeof(*work));
	work->channels = (uint8_t)channels;
	work->channel_base = (uint8_t)(round % channels);
	work->send_channels = (uint8_t)(p2p_bytes(rank, to) > 8192 ? channels : 1);
	work->recv_channels = (uint8_t)(p2p_bytes(from, rank) > 8192 ? channels : 1);
	work->send_chunk = is_ll ? 0x40 : 0x50; /* 1024 and 4096 bytes */
	work->recv_chunk = work->send_chunk;
	work->send_ll = is_ll;
	work->recv_ll = is_ll;
	work->send_rank = to;
	work->recv_rank = from;
	work->send_bytes = p2p_bytes(rank, to);
	work->recv_bytes = p2p_bytes(from, rank);
	work->send_address = input + (size_t)to * P2P_MAX;
	work->recv_address = output + (size_t)from * P2P_MAX;
	for (size_t i = 0; i < work->send_bytes; i++)
		work->send_address[i] = p2p_byte(rank, to, i);
}

static void run_p2p(int count, int channels, bool is_ll)
{
	static char inputs[FAKE_RANKS_MAX][FAKE_RANKS_MAX * P2P_MAX],
		outputs[FAKE_RANKS_MAX][FAKE_RANKS_MAX * P2P_MAX];
	static struct fake_ranks ranks;
	struct work_p2p works[FAKE_RANKS_MAX];

	make_fake_ranks(&ranks, count, channels, 3, 5);
	ranks.function = (struct device_function) { .collective = COLLECTIVE_SEND_RECV,
						    .protocol = PROTOCOL_SIMPLE };
	memset(outputs, 0x55, sizeof(outputs));
	for (int r = 0; r < count; r++) {
		for (int round = 0; round < count; round++)
			fill_p2p_work(&works[round], r, count, round, channels, is_ll, inputs[r],
				      outputs[r]);
		set_fake_works(&ranks, r, WORK_P2P, works, (unsigned)count, sizeof(works[0]));
	}
	run_fake_ranks(&ranks);
	for (int i = 0; i < count * count; i++) {
		int from = i / count;
		int to = i % count;
		const char *got = outputs[to] + (size_t)from * P2P_MAX;

		for (size_t b = 0; b < p2p_bytes(from, to); b++)
			CHECK_INT(got[b], p2p_byte(from, to, b));
		if (p2p_bytes(from, to) < P2P_MAX)
			CHECK_INT(got[p2p_bytes(from, to)], 0x55);
	}
	free_fake_ranks(&ranks);
}

static void test_p2p(void)
{
	run_p2p(2, 1, false);
	run_p2p(5, 1, false);
	run_p2p(8, 4, false);
	run_p2p(3, 2, true);
	run_p2p(8, 4, true);
}

#if LAYOUT_HAS_BROADCASTS
static void run_broadcasts(enum protocol protocol, int count)
{
	static char outputs[FAKE_RANKS_MAX][FAKE_RANKS_MAX * P2P_MAX];
	static const int32_t chunks[PROTOCOL_COUNT] = { 1024, 3840, 4096 };
	static struct fake_ranks ranks;
	struct work_broadcast works[FAKE_RANKS_MAX];

	make_fake_ranks(&ranks, count, 1, 5, 9);
	ranks.function = (struct device_function) { .collective = COLLECTIVE_BROADCASTS,
						    .protocol = protocol };
	memset(outputs, 0x55, sizeof(outputs));
	for (int r = 0; r < count; r++) {
		for (int root = 0; root < count; root++) {
			char *own = outputs[r] + (size_t)root * P2P_MAX;

			works[root] =
				(struct work_broadcast) { .ring_depth = (r + count - root) % count,
							  .chunk_bytes = chunks[protocol],
							  .send_buffer = own,
							  .recv_buffer = own,
							  .bytes = p2p_bytes(root, 1) };
			for (size_t i = 0; r == root && i < p2p_bytes(root, 1); i++)
				own[i] = p2p_byte(root, 0, i);
		}
		set_fake_works(&ranks, r, WORK_BROADCASTS, works, (unsigned)count,
			       sizeof(works[0]));
	}
	run_fake_ranks(&ranks);
	for (int i = 0; i < count * count; i++) {
		const char *got = outputs[i / count] + (size_t)(i % count) * P2P_MAX;

		for (size_t b = 0; b < p2p_bytes(i % count, 1); b++)
			CHECK_INT(got[b], p2p_byte(i % count, 0, b));
	}
	free_fake_ranks(&ranks);
}

static void test_broadcasts(void)
{
	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		run_broadcasts((enum protocol)p, 2);
		run_broadcasts((enum protocol)p, 7);
	}
}
#else
static void test_broadcasts(void)
{
}
#endif

int main(void)
{
	test_rings();
	test_trees();
	test_pat();
	test_types_and_operators();
	test_flags_come_round();
	test_old_lines_are_cleaned();
	test_announcements();
	test_p2p();
	test_broadcasts();
	return 0;
}
