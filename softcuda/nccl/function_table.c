/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/function_table.h"

#include <pthread.h>
#include <stdio.h>

/*
 * NCCL's own, in the same shared object. The table has a row for each combination, -1 where there
 * is no function.
 */
extern const int ncclDevFuncRowToId[];
extern const int ncclDevFuncIdCount;
int ncclGetVersion(int *version);

static struct device_function functions[LAYOUT_FUNCTION_COUNT];
static bool present[LAYOUT_FUNCTION_COUNT];
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Algorithms of a collective in the order of the rows. */
static const enum algorithm ring_only[] = { ALGORITHM_RING };
static const enum algorithm all_reduce_algorithms[] = {
	ALGORITHM_TREE,          ALGORITHM_RING, ALGORITHM_COLLNET_DIRECT,
	ALGORITHM_COLLNET_CHAIN, ALGORITHM_NVLS, ALGORITHM_NVLS_TREE
};
static const enum algorithm gather_algorithms[] = { ALGORITHM_RING, ALGORITHM_COLLNET_DIRECT,
						    ALGORITHM_NVLS, ALGORITHM_PAT };

struct reader {
	unsigned row;
	bool valid; /* every number read so far is in range */
};

static void read_row(struct reader *reader, struct device_function function)
{
	int number = ncclDevFuncRowToId[reader->row++];

	if (number == -1)
		return;
	if (number < 0 || number >= LAYOUT_FUNCTION_COUNT) {
		reader->valid = false;
		return;
	}
	/* Signed and unsigned integers share their functions; the last row stays. */
	functions[number] = function;
	present[number] = true;
}

static void read_protocols(struct reader *reader, struct device_function function,
			   const enum algorithm *algorithms, unsigned count)
{
	for (unsigned a = 0; a < count; a++) {
		function.algorithm = algorithms[a];
		for (unsigned p = 0; p < PROTOCOL_COUNT; p++) {
			function.protocol = (enum protocol)p;
			read_row(reader, function);
		}
	}
}

static void read_reductions(struct reader *reader, enum collective collective,
			    const enum algorithm *algorithms, unsigned count)
{
	for (unsigned o = 0; o < REDUCE_OPERATOR_COUNT; o++) {
		for (unsigned t = 0; t < LAYOUT_TYPE_COUNT; t++) {
			struct device_function function = {
				.collective = collective,
				.operator=(enum reduction_operator) o,
				.type = (enum element_type)t,
			};

			read_protocols(reader, function, algorithms, count);
		}
	}
}

/* A function that only moves bytes. */
static struct device_function make_move_function(enum collective collective)
{
	return (struct device_function) {
		.collective = collective,
		.algorithm = ALGORITHM_RING,
		.protocol = PROTOCOL_SIMPLE,
		.type = ELEMENT_INT8,
		.operator= REDUCE_SUM,
	};
}

static bool read_table(void)
{
	struct reader reader = { .row = 0, .valid = true };

	read_row(&reader, make_move_function(COLLECTIVE_SEND_RECV));
	read_protocols(&reader, make_move_function(COLLECTIVE_ALL_GATHER), gather_algorithms,
		       LAYOUT_ALL_GATHER_ALGORITHMS);
	read_protocols(&reader, make_move_function(COLLECTIVE_BROADCAST), ring_only, 1);
#if LAYOUT_HAS_BROADCASTS
	read_protocols(&reader, make_move_function(COLLECTIVE_BROADCASTS), ring_only, 1);
#endif
	read_reductions(&reader, COLLECTIVE_ALL_REDUCE, all_reduce_algorithms, 6);
	read_reductions(&reader, COLLECTIVE_REDUCE, ring_only, 1);
	read_reductions(&reader, COLLECTIVE_REDUCE_SCATTER, gather_algorithms,
			LAYOUT_REDUCE_SCATTER_ALGORITHMS);
	return reader.valid;
}

static bool every_function_has_a_row(void)
{
	for (unsigned i = 0; i < LAYOUT_FUNCTION_COUNT; i++) {
		if (!present[i])
			return false;
	}
	return true;
}

static void load_once(void)
{
	int version = 0;

	ncclGetVersion(&version);
	if (version != LAYOUT_VERSION_CODE) {
		fprintf(stderr,
			"softcuda: this libnccl.so.2 is NCCL version code %d, its device side is "
			"for %s (%d); known versions: " NCCL_KNOWN_VERSIONS
			". Build the library of that version with softcuda/libnccl.\n",
			version, LAYOUT_VERSION, LAYOUT_VERSION_CODE);
		return;
	}
	if (ncclDevFuncIdCount != LAYOUT_FUNCTION_COUNT || !read_table() ||
	    !every_function_has_a_row()) {
		fprintf(stderr,
			"softcuda: NCCL " LAYOUT_VERSION
			" has %d device functions in an order that is not the release's "
			"(%d): it was built with a choice of functions (ONLY_FUNCS) or changed; "
			"its kernels are refused\n",
			ncclDevFuncIdCount, LAYOUT_FUNCTION_COUNT);
		return;
	}
	loaded = true;
}

bool load_function_table(void)
{
	pthread_once(&once, load_once);
	return loaded;
}

const struct device_function *find_function(unsigned number)
{
	if (number >= LAYOUT_FUNCTION_COUNT || !present[number])
		return NULL;
	return &functions[number];
}
