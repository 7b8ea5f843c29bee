/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma LIBNCCL PLUGIN TEST: NCCL's own one-sided operations of the host (ncclPutSignal, ncclSignal,
 * ncclWaitSignal) drive the plugin's RMA table
 *
 * In each round every rank puts cells of 100,000 elements into every other rank's window, each with
 * a signal, sends one signal without data, and waits for as many from each of the others. Then it
 * compares every element, spoils what it compared, and sees that the cells of the round before are
 * as it left them: a put that is written again is found. At the end it waits for one signal more
 * than there were, and looks on as the wait is not over before the others send it: no signal has
 * come twice. One that is lost hangs. Meanwhile cables are cut.
 */
#include "tests/under_nccl/communicators/cables.h"
#include "tests/under_nccl/communicators/ranks.h"

#include "base/check.h"
#include "tools/job/fault.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 3
#define CELLS 2          /* to each rank and round */
#define ELEMENTS 100000u /* of a cell; 32 bits each */
#define SPOILED 0xeeeeeeeeu
/*
 * Places of a cell, used in turn. A rank that is in round k has the signals of round k - 1 of all
 * others, so they have compared round k - 2: its place may be written in round k + 1, and nobody
 * writes the place of round k - 1 before this rank has put round k + 1.
 */
#define PLACES 3

#define UINT32 3 /* ncclUint32 */
#define FIRST_WITH_RMA_TABLE 23007
#define LOOKS 10 /* at a wait that must not be over */

static unsigned rounds_wanted = 60;

struct wait_signal {
	int count, peer, signal, context;
};

struct calls {
	int (*put_signal)(const void *source, size_t count, int type, int peer, void *window,
			  size_t offset, int signal, int context, unsigned flags, nccl_comm comm,
			  cuda_stream stream);
	int (*signal)(int peer, int signal, int context, unsigned flags, nccl_comm comm,
		      cuda_stream stream);
	int (*wait_signal)(int count, struct wait_signal *waits, nccl_comm comm,
			   cuda_stream stream);
};

struct node {
	struct rank *me;
	nccl_comm comm;
	struct calls calls;
	cuda_stream stream;
	cuda_event done;
	void *window;
	uint32_t *memory;
	cuda_graph_exec graph[PLACES]; /* NULL: rounds are not captured */
};

/* ---- what is where ---- */

/* In each window: cells that others write, then those that this rank sends. */
static size_t cell_at(int from, unsigned round, int cell)
{
	return (((size_t)from * PLACES + round % PLACES) * CELLS + (size_t)cell) * ELEMENTS;
}

static size_t source_at(int to, unsigned round, int cell)
{
	return (size_t)RANKS * PLACES * CELLS * ELEMENTS + cell_at(to, round, cell);
}

#define WINDOW_BYTES (2 * (size_t)RANKS * PLACES * CELLS * ELEMENTS * sizeof(uint32_t))

static uint32_t element_of(int from, int to, unsigned round, int cell, uint32_t i)
{
	uint32_t seed = (((uint32_t)from * 16 + (uint32_t)to) * 16 + (uint32_t)cell) * 0x9e3779b1u;

	return (seed ^ round * 0x85ebca6bu) + i * 0xc2b2ae35u;
}

static void fill_cell(struct node *n, int to, unsigned round, int cell)
{
	uint32_t *source = n->memory + source_at(to, round, cell);

	for (uint32_t i = 0; i < ELEMENTS; i++)
		source[i] = element_of(n->me->rank, to, round, cell, i);
}

static void compare_cell(struct node *n, int from, unsigned round, int cell)
{
	uint32_t *found = n->memory + cell_at(from, round, cell);

	for (uint32_t i = 0; i < ELEMENTS; i++) {
		uint32_t wanted = element_of(from, n->me->rank, round, cell, i);

		if (found[i] == wanted)
			continue;
		fprintf(stderr,
			"rank %d: round %u of rank %d: cell %d, element %u is %08x, not %08x\n",
			n->me->rank, round, from, cell, i, found[i], wanted);
		exit(1);
	}
	memset(found, SPOILED & 0xff, ELEMENTS * sizeof(*found));
}

static void compare_left(struct node *n, int from, unsigned round, int cell)
{
	const uint32_t *found = n->memory + cell_at(from, round, cell);

	for (uint32_t i = 0; i < ELEMENTS; i++) {
		if (found[i] == SPOILED)
			continue;
		fprintf(stderr, "rank %d: round %u of rank %d was written after it was compared\n",
			n->me->rank, round, from);
		exit(1);
	}
}

/* ---- a round ---- */

static int next_other(const struct node *n, int i)
{
	return (n->me->rank + i) % n->me->count;
}

/* The signal without data comes first: one too many lets the wait end before the last cell. */
static void enqueue_puts(struct node *n, unsigned round, int to)
{
	CHECK_INT(n->calls.signal(to, 0, 0, 0, n->comm, n->stream), 0);
	for (int c = 0; c < CELLS; c++)
		CHECK_INT(n->calls.put_signal(n->memory + source_at(to, round, c), ELEMENTS, UINT32,
					      to, n->window,
					      cell_at(n->me->rank, round, c) * sizeof(uint32_t), 0,
					      0, 0, n->comm, n->stream),
			  0);
}

static void enqueue_wait(struct node *n)
{
	struct wait_signal waits[RANKS];
	int others = n->me->count - 1;

	for (int i = 0; i < others; i++)
		waits[i] =
			(struct wait_signal) { .count = CELLS + 1, .peer = next_other(n, i + 1) };
	CHECK_INT(n->calls.wait_signal(others, waits, n->comm, n->stream), 0);
}

static void enqueue_round(struct node *n, unsigned round)
{
	CHECK_INT(n->me->library.nccl.group_start(), 0);
	for (int i = 1; i < n->me->count; i++)
		enqueue_puts(n, round, next_other(n, i));
	CHECK_INT(n->me->library.nccl.group_end(), 0);
	enqueue_wait(n);
}

static void check_error(struct node *n)
{
	int error = 0;

	CHECK_INT(n->me->library.nccl.comm_async_error(n->comm, &error), 0);
	CHECK_INT(error, 0);
}

static void await_stream(struct node *n)
{
	CHECK_INT(n->me->library.cuda.event_record(n->done, n->stream), 0);
	while (n->me->library.cuda.event_query(n->done)) {
		check_error(n);
		ranks_sleep();
	}
}

static void do_round(struct node *n, unsigned round)
{
	int count = n->me->count;

	for (int i = 1; i < count; i++)
		for (int c = 0; c < CELLS; c++)
			fill_cell(n, next_other(n, i), round, c);
	if (n->graph[round % PLACES])
		CHECK_INT(n->me->library.cuda.graph_launch(n->graph[round % PLACES], n->stream), 0);
	else
		enqueue_round(n, round);
	await_stream(n);
	for (int i = 1; i < count; i++)
		for (int c = 0; c < CELLS; c++) {
			compare_cell(n, next_other(n, i), round, c);
			if (round > 0)
				compare_left(n, next_other(n, i), round - 1, c);
		}
	atomic_fetch_add(&n->me->shared->rounds[n->me->rank], 1);
}

/* ---- every signal once ---- */

/* One rank waits for a signal that another has not sent; then it sends it. */
static void check_exact(struct node *n, int waits, int sends)
{
	struct wait_signal wait = { .count = 1, .peer = sends };
	struct rank *me = n->me;

	rank_note(me, "one signal more from rank %d to rank %d", sends, waits);
	if (me->rank == waits) {
		CHECK_INT(n->calls.wait_signal(1, &wait, n->comm, n->stream), 0);
		CHECK_INT(me->library.cuda.event_record(n->done, n->stream), 0);
	}
	for (int i = 0; i < LOOKS; i++) {
		rank_barrier(me);
		if (me->rank == waits && !me->library.cuda.event_query(n->done)) {
			fprintf(stderr, "rank %d has more signals of rank %d than were sent\n",
				waits, sends);
			exit(1);
		}
	}
	rank_barrier(me);
	if (me->rank == sends)
		CHECK_INT(n->calls.signal(waits, 0, 0, 0, n->comm, n->stream), 0);
	await_stream(n);
}

/* ---- a rank ---- */

static void find_calls(struct node *n)
{
	void *library = dlopen(ranks_libnccl(), RTLD_NOW | RTLD_NOLOAD);

	CHECK(library);
	ranks_find_call(library, &n->calls.put_signal, "ncclPutSignal");
	ranks_find_call(library, &n->calls.signal, "ncclSignal");
	ranks_find_call(library, &n->calls.wait_signal, "ncclWaitSignal");
	CHECK(!dlclose(library));
}

static void open_node(struct node *n, struct rank *me)
{
	struct nccl_config config = { .size = sizeof(config),
				      .magic = NCCL_CONFIG_MAGIC,
				      .version = NCCL_CONFIG_VERSION,
				      .blocking = NCCL_UNDEFINED,
				      .cga_cluster_size = NCCL_UNDEFINED,
				      .min_ctas = NCCL_UNDEFINED,
				      .max_ctas = NCCL_UNDEFINED,
				      .net_name = getenv("TEST_NET"),
				      .split_share = NCCL_UNDEFINED };
	struct nccl_unique_id id;

	memset(n, 0, sizeof(*n));
	n->me = me;
	rank_open_library(me);
	find_calls(n);
	id = rank_next_id(me);
	rank_note(me, "ncclCommInitRankConfig");
	CHECK_INT(me->library.nccl.comm_init(&n->comm, me->count, id, me->rank, &config), 0);
	CHECK_INT(me->library.cuda.stream_create(&n->stream, CUDA_STREAM_NON_BLOCKING), 0);
	CHECK_INT(me->library.cuda.event_create(&n->done), 0);
	CHECK_INT(me->library.nccl.mem_alloc((void **)&n->memory, WINDOW_BYTES), 0);
	memset(n->memory, SPOILED & 0xff, WINDOW_BYTES);
	rank_note(me, "ncclCommWindowRegister");
	CHECK_INT(me->library.nccl.window_register(n->comm, n->memory, WINDOW_BYTES, &n->window,
						   NCCL_WIN_SYMMETRIC),
		  0);
	rank_barrier(me); /* nobody is written to before its cells are spoiled */
}

static void close_node(struct node *n)
{
	const struct cuda_api *cuda = &n->me->library.cuda;
	const struct nccl_api *nccl = &n->me->library.nccl;

	for (int i = 0; i < PLACES; i++)
		if (n->graph[i])
			CHECK_INT(cuda->graph_exec_destroy(n->graph[i]), 0);
	rank_note(n->me, "ncclCommWindowDeregister");
	CHECK_INT(nccl->window_deregister(n->comm, n->window), 0);
	rank_note(n->me, "ncclCommDestroy");
	CHECK_INT(nccl->comm_destroy(n->comm), 0);
	CHECK_INT(nccl->mem_free(n->memory), 0);
	CHECK_INT(cuda->event_destroy(n->done), 0);
	CHECK_INT(cuda->stream_destroy(n->stream), 0);
}

static void run_rounds(struct node *n)
{
	for (unsigned k = 0; k < rounds_wanted; k++) {
		rank_note(n->me, "round %u", k);
		do_round(n, k);
	}
	for (int i = 0; i < n->me->count * n->me->count; i++)
		if (i / n->me->count != i % n->me->count)
			check_exact(n, i / n->me->count, i % n->me->count);
	rank_barrier(n->me); /* what a rank sends is taken by the other's threads */
}

static void run_rank(struct rank *me)
{
	static struct node n;

	open_node(&n, me);
	run_rounds(&n);
	close_node(&n);
}

/*
 * Rounds from graphs: NCCL has other signals for those, in the host's memory, and a put of a rank
 * to itself behind each wait.
 */
static void run_rank_captured(struct rank *me)
{
	static struct node n;

	open_node(&n, me);
	for (unsigned i = 0; i < PLACES; i++) {
		cuda_graph graph;

		CHECK_INT(me->library.cuda.begin_capture(n.stream, CUDA_CAPTURE_THREAD), 0);
		enqueue_round(&n, i);
		CHECK_INT(me->library.cuda.end_capture(n.stream, &graph), 0);
		CHECK_INT(me->library.cuda.graph_instantiate(&n.graph[i], graph, 0), 0);
		CHECK_INT(me->library.cuda.graph_destroy(graph), 0);
	}
	run_rounds(&n);
	close_node(&n);
}

/* ---- cables ---- */

/* Before the folder goes: the plugin served. */
static void expect_served(struct ranks *ranks)
{
	for (int r = 0; r < ranks->count; r++)
		ranks_await_rounds(ranks, r, 1);
	if (!strcmp(getenv("TEST_NET"), "HA") &&
	    !ranks_log_has("RMA/Plugin: Assigned plugin HA to comm")) {
		fprintf(stderr, "NCCL's one-sided operations did not take the plugin\n");
		exit(1);
	}
}

static void look_cuts(struct ranks *ranks)
{
	const struct cables_pace pace = { .least = 1, .before = 30, .during = 20 };

	expect_served(ranks);
	cables_cut_one(ranks, &pace);
	CHECK(ranks_events("\"failed_over\"") > 0);
}

static void look_switch(struct ranks *ranks)
{
	const struct cables_pace pace = { .least = 10, .before = 30, .during = 10 };

	expect_served(ranks);
	cables_cut_switch(ranks, &pace);
	CHECK(ranks_events("\"failed_over\"") > 0);
}

/* ---- tests ---- */

static const struct test {
	const char *name;
	unsigned rounds;
	void (*live)(struct rank *me);
	void (*look)(struct ranks *ranks);
} tests[] = {
	{ "plain", 60, run_rank, expect_served },
	{ "cuts", 420, run_rank, look_cuts },
	{ "switch", 260, run_rank, look_switch },
	{ "captured", 60, run_rank_captured, expect_served },
	{ "captured_cuts", 420, run_rank_captured, look_cuts },
};

static const struct test *find_test(const char *name)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(tests[i].name, name))
			return &tests[i];
	return NULL;
}

/* 0; or the exit status, when it has said why. */
static int refuse_library(const char *path)
{
	struct ha_probe probe;
	char text[32];

	if (ha_library_probe(&probe, path)) {
		fprintf(stderr, "rma: %s\n", ha_fault_text());
		return 2;
	}
	if (probe.nccl_version >= FIRST_WITH_RMA_TABLE)
		return 0;
	fprintf(stderr,
		"rma: NCCL %s takes no RMA table, the host's one-sided operations are its own; "
		"give "
		"the libnccl.so.2 of 2.30.7 or later\n",
		ha_nccl_version_text(probe.nccl_version, text));
	return 2;
}

int main(int argc, char **argv)
{
	const struct test *test = argc == 4 ? find_test(argv[3]) : NULL;
	int refused;

	if (!test) {
		fprintf(stderr,
			"usage: rma LIBNCCL PLUGIN plain|cuts|switch|captured|captured_cuts\n");
		return 2;
	}
	if (access(argv[1], R_OK)) {
		printf("skipped: %s is not there: no Debian suite has NCCL 2.30.7 or later yet; "
		       "softcuda/libnccl/from-checkout builds it\n",
		       argv[1]);
		return 77;
	}
	refused = refuse_library(argv[1]);
	if (refused)
		return refused;
	ranks_prepare(argv[1], argv[2]);
	setenv("NCCL_GIN_TYPE", "2", 1);
	setenv("NCCL_CUMEM_ENABLE", "1", 1);
	if (!getenv("TEST_NET"))
		setenv("TEST_NET", "HA", 1);
	rounds_wanted = test->rounds;
	ranks_run(RANKS, test->live, test->look);
	return 0;
}
