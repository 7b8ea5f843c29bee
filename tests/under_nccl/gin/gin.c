/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin LIBNCCL PLUGIN TEST: NCCL's own GIN proxy drives the plugin, for CPU threads in the place of
 * kernels
 *
 * Each rank sends a stream of puts to each rank, as an expert-parallel dispatch does: into cells of
 * a window, some with a signal of their own, some covered by a later one, some as a value in the
 * queue entry. The receiver looks at its signals, compares every cell that they cover, and gives
 * the cells back by a signal in the other direction, as a combine does. No signal may be ahead of
 * its puts, come twice or be lost; a cell that was compared stays as it was left until it is given
 * back. Meanwhile cables are cut.
 */
#include "tests/under_nccl/communicators/cables.h"
#include "tests/under_nccl/communicators/ranks.h"
#include "tests/under_nccl/gin/kernel.h"

#include "base/check.h"
#include "base/rng.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 3
#define CELLS 48
#define CELL 12288
#define CONTEXTS 2
#define SPOILED 0xee
#define API_MAGIC 0xcafebeefu
#define VERSION 22907u

/* Signals of a context, by the rank at the other end. */
enum { DATA = 0, GIVEN_BACK = RANKS, SUM = 2 * RANKS, SIGNALS };
enum { SENT = 0, COUNTERS };

static unsigned puts_wanted = 1500;

struct calls {
	int (*register_window)(nccl_comm comm, void *memory, size_t size,
			       struct gin_window **window, int flags);
	int (*deregister_window)(nccl_comm comm, struct gin_window *window);
	int (*create)(nccl_comm comm, const struct gin_requirements *requirements,
		      struct gin_device_comm *device);
	int (*destroy)(nccl_comm comm, const struct gin_device_comm *device);
};

struct stream {
	uint64_t begun, signals; /* sent; puts before `shown` are covered by a signal */
	uint64_t given_back;     /* cells, by the receiver */
	uint64_t counted;        /* operations with a counter */
	uint64_t sum;
	uint64_t consumed, seen, looked; /* received */
};

struct node {
	struct rank *me;
	nccl_comm comm;
	struct calls calls;
	struct gin_kernel kernel;
	struct gin_window *window;
	struct stream to[RANKS], from[RANKS];
	uint64_t random;
};

/* What put k of a stream is, known at both ends. */
struct shape {
	bool is_inline, has_signal, is_sum;
	size_t size;
	uint64_t seed;
};

static struct shape shape_of(int from, int to, uint64_t k)
{
	uint64_t x = ha_mix64(k * 64 + (unsigned)from * 8 + (unsigned)to + 1);
	struct shape s = { .is_inline = x % 5 == 0,
			   .has_signal = x >> 8 & 1 || k % 8 == 7 || k + 1 == puts_wanted,
			   .seed = x };

	s.size = (x >> 16) % (x >> 60 ? 600 : CELL);
	if (s.is_inline)
		s.size = 1 + (x >> 16) % 8;
	return s;
}

static uint8_t byte_of(const struct shape *s, size_t i)
{
	if (s->is_inline)
		return (uint8_t)(ha_mix64(s->seed) >> 8 * i);
	return (uint8_t)ha_mix64(s->seed + i / 8 * 977 + i);
}

static int context_between(int from, int to)
{
	return (from + to) % CONTEXTS;
}

/* In each rank's window: cells that others write, then the places that this one sends from. */
static uint64_t cell_at(int from, uint64_t k)
{
	return ((uint64_t)from * CELLS + k % CELLS) * CELL;
}

static uint64_t source_at(int to, uint64_t k)
{
	return (uint64_t)RANKS * CELLS * CELL + cell_at(to, k);
}

#define WINDOW_BYTES ((size_t)2 * RANKS * CELLS * CELL + 4096)
#define WINDOW_SIGNALS ((uint64_t)2 * RANKS * CELLS * CELL)

/* ---- sending ---- */

static void give_back(struct node *n, int to, uint64_t cells)
{
	struct gin_operation o = { .context = context_between(to, n->me->rank),
				   .peer = to,
				   .signal_op = GIN_SIGNAL_ADD,
				   .signal = GIVEN_BACK + (unsigned)n->me->rank,
				   .add = cells,
				   .counter = -1 };

	if (gin_enqueue(&n->kernel, &o))
		n->from[to].given_back += cells;
}

/* A sum that all ranks add to, in the window itself. */
static void add_to_sum(struct node *n, int to, uint64_t value)
{
	struct gin_operation o = { .context = context_between(n->me->rank, to),
				   .peer = to,
				   .signal_op = GIN_SIGNAL_ADD,
				   .add = value,
				   .in_window = true,
				   .signal_offset = WINDOW_SIGNALS,
				   .counter = -1 };

	if (gin_enqueue(&n->kernel, &o))
		n->to[to].sum += value;
}

static void send_one(struct node *n, int to)
{
	struct stream *s = &n->to[to];
	int me = n->me->rank, context = context_between(me, to);
	uint64_t k = s->begun,
		 returned = gin_signal(&n->kernel, context, GIVEN_BACK + (unsigned)to);
	struct shape shape = shape_of(me, to, k);
	struct gin_operation o = { .context = context,
				   .peer = to,
				   .source = source_at(to, k),
				   .target = cell_at(me, k),
				   .size = shape.size,
				   .is_inline = shape.is_inline,
				   .value = ha_mix64(shape.seed),
				   .signal = DATA + (unsigned)me,
				   .counter = k % 3 ? -1 : SENT };

	CHECK(returned <= k);
	if (k == puts_wanted || k >= returned + CELLS)
		return;
	/* A cell that was given back was sent from its source, which may be written again. */
	for (size_t i = 0; i < shape.size && !shape.is_inline; i++)
		n->kernel.memory[o.source + i] = (char)byte_of(&shape, i);
	if (shape.has_signal)
		o.signal_op = GIN_SIGNAL_INC;
	if (!gin_enqueue(&n->kernel, &o))
		return;
	s->begun++;
	s->signals += shape.has_signal;
	s->counted += o.counter >= 0;
	if (k % 4 == 1)
		add_to_sum(n, to, k * 3 + (unsigned)me);
}

/* ---- receiving ---- */

static void compare_cell(struct node *n, int from, uint64_t k)
{
	struct shape shape = shape_of(from, n->me->rank, k);
	uint8_t *cell = (uint8_t *)n->kernel.memory + cell_at(from, k);

	for (size_t i = 0; i < CELL; i++) {
		uint8_t want = i < shape.size ? byte_of(&shape, i) : SPOILED;

		if (cell[i] == want)
			continue;
		fprintf(stderr, "rank %d: put %llu of rank %d: byte %zu of %zu is %02x, not %02x\n",
			n->me->rank, (unsigned long long)k, from, i, shape.size, cell[i], want);
		exit(1);
	}
	memset(cell, SPOILED, CELL);
}

static void compare_left(struct node *n, int from, uint64_t k)
{
	const uint8_t *cell = (const uint8_t *)n->kernel.memory + cell_at(from, k);

	for (size_t i = 0; i < CELL; i++)
		if (cell[i] != SPOILED) {
			fprintf(stderr,
				"rank %d: put %llu of rank %d was written after its signal\n",
				n->me->rank, (unsigned long long)k, from);
			exit(1);
		}
}

/* Cells that this many signals cover. */
static void receive_cells(struct node *n, int from)
{
	struct stream *s = &n->from[from];
	int me = n->me->rank;
	uint64_t signals = gin_signal(&n->kernel, context_between(from, me), DATA + (unsigned)from);

	CHECK(signals >= s->seen);
	while (s->seen < signals) {
		CHECK(s->consumed < puts_wanted); /* else a signal came twice */
		compare_cell(n, from, s->consumed);
		s->seen += shape_of(from, me, s->consumed++).has_signal;
		atomic_fetch_add(&n->me->shared->rounds[me], 1);
	}
	while (s->looked + CELLS / 3 < s->consumed ||
	       (s->consumed == puts_wanted && s->looked < s->consumed))
		compare_left(n, from, s->looked++);
	if (s->looked > s->given_back)
		give_back(n, from, s->looked - s->given_back);
}

static bool is_over(const struct node *n)
{
	for (int i = 0; i < n->me->count; i++) {
		int me = n->me->rank;

		if (n->from[i].given_back < puts_wanted || n->to[i].begun < puts_wanted ||
		    gin_signal(&n->kernel, context_between(me, i), GIVEN_BACK + (unsigned)i) <
			    puts_wanted ||
		    !gin_is_flushed(&n->kernel, context_between(me, i), i) ||
		    !gin_is_flushed(&n->kernel, context_between(i, me), i))
			return false;
	}
	return true;
}

static void check_error(struct node *n)
{
	int error = 0;

	CHECK_INT(n->me->library.nccl.comm_async_error(n->comm, &error), 0);
	CHECK_INT(error, 0);
}

static void run_puts(struct node *n)
{
	unsigned idle = 0;

	rank_note(n->me, "puts");
	while (!is_over(n)) {
		uint64_t before = atomic_load(&n->me->shared->rounds[n->me->rank]);

		for (int i = 0; i < n->me->count; i++) {
			send_one(n, i);
			receive_cells(n, i);
		}
		idle = atomic_load(&n->me->shared->rounds[n->me->rank]) == before ? idle + 1 : 0;
		if (idle > 50)
			ranks_sleep();
		if (idle % 512 == 511)
			check_error(n);
	}
}

/* ---- NCCL ---- */

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
	struct gin_requirements want = { .size = sizeof(want),
					 .magic = API_MAGIC,
					 .version = VERSION,
					 .contexts = CONTEXTS,
					 .signals = SIGNALS,
					 .counters = COUNTERS,
					 .connection_type = 1 };
	void *library;
	int err;

	memset(n, 0, sizeof(*n));
	n->me = me;
	rank_open_library(me);
	library = dlopen(ranks_libnccl(), RTLD_NOW | RTLD_NOLOAD);
	CHECK(library);
	ranks_find_call(library, &n->calls.register_window, "ncclCommWindowRegister");
	ranks_find_call(library, &n->calls.deregister_window, "ncclCommWindowDeregister");
	ranks_find_call(library, &n->calls.create, "ncclDevCommCreate");
	ranks_find_call(library, &n->calls.destroy, "ncclDevCommDestroy");
	rank_note(me, "ncclCommInitRankConfig");
	err = me->library.nccl.comm_init(&n->comm, me->count, rank_next_id(me), me->rank, &config);
	CHECK_INT(err, 0);
	rank_note(me, "ncclDevCommCreate");
	CHECK_INT(n->calls.create(n->comm, &want, &n->kernel.comm), 0);
	CHECK_INT(n->kernel.comm.types[0], GIN_BY_PROXY);
	CHECK_INT(me->library.nccl.mem_alloc((void **)&n->kernel.memory, WINDOW_BYTES), 0);
	memset(n->kernel.memory, SPOILED, WINDOW_SIGNALS);
	memset(n->kernel.memory + WINDOW_SIGNALS, 0, 4096);
	rank_note(me, "ncclCommWindowRegister");
	CHECK_INT(n->calls.register_window(n->comm, n->kernel.memory, WINDOW_BYTES, &n->window,
					   NCCL_WIN_SYMMETRIC),
		  0);
	n->kernel.window = n->window;
	rank_barrier(me); /* as the first kernels do: nobody is written to before it is ready */
}

static void close_node(struct node *n)
{
	rank_note(n->me, "ncclDevCommDestroy");
	CHECK_INT(n->calls.deregister_window(n->comm, n->window), 0);
	CHECK_INT(n->calls.destroy(n->comm, &n->kernel.comm), 0);
	CHECK_INT(n->me->library.nccl.mem_free(n->kernel.memory), 0);
	rank_note(n->me, "ncclCommDestroy");
	CHECK_INT(n->me->library.nccl.comm_destroy(n->comm), 0);
}

/* What every rank has added to every other's sum is added up by the one that reads it. */
static uint64_t expected_sum(int count, int at)
{
	uint64_t sum = 0;

	for (int from = 0; from < count; from++)
		for (uint64_t k = 1; k < puts_wanted; k += 4)
			sum += k * 3 + (unsigned)from;
	(void)at;
	return sum;
}

static void check_ends(struct node *n)
{
	uint64_t counted[CONTEXTS] = { 0 };
	int me = n->me->rank;

	for (int i = 0; i < n->me->count; i++) {
		struct stream *s = &n->from[i];

		CHECK_INT(gin_signal(&n->kernel, context_between(i, me), DATA + (unsigned)i),
			  s->seen);
		CHECK_INT(gin_signal(&n->kernel, context_between(me, i), GIVEN_BACK + (unsigned)i),
			  puts_wanted);
		CHECK_INT(s->looked, puts_wanted);
		counted[context_between(me, i)] += n->to[i].counted;
	}
	for (int c = 0; c < CONTEXTS; c++)
		CHECK_INT(gin_counter(&n->kernel, c, SENT), counted[c]);
	CHECK_INT(*(uint64_t *)(n->kernel.memory + WINDOW_SIGNALS), expected_sum(n->me->count, me));
}

static void run_rank(struct rank *me)
{
	static struct node n;

	open_node(&n, me);
	run_puts(&n);
	rank_barrier(me); /* everything of everybody is flushed: every sum is whole soon */
	while (*(volatile uint64_t *)(n.kernel.memory + WINDOW_SIGNALS) <
	       expected_sum(me->count, me->rank))
		ranks_sleep();
	rank_barrier(me);
	check_ends(&n);
	close_node(&n);
}

/* ---- cables ---- */

/* Before the folder goes: the plugin served, and, where cables were cut, paths were left. */
static void expect_served(struct ranks *ranks)
{
	for (int r = 0; r < ranks->count; r++)
		ranks_await_rounds(ranks, r, 1);
	if (!ranks_log_has("Assigned GIN plugin HA to comm")) {
		fprintf(stderr, "NCCL's GIN did not take the plugin\n");
		exit(1);
	}
}

static void look_plain(struct ranks *ranks)
{
	expect_served(ranks);
}

static void look_cuts(struct ranks *ranks)
{
	const struct cables_pace pace = { .least = 20, .before = 200, .during = 100 };

	expect_served(ranks);
	cables_cut_one(ranks, &pace);
	CHECK(ranks_events("\"failed_over\"") > 0);
}

static void look_switch(struct ranks *ranks)
{
	const struct cables_pace pace = { .least = 100, .before = 200, .during = 50 };

	expect_served(ranks);
	cables_cut_switch(ranks, &pace);
	CHECK(ranks_events("\"failed_over\"") > 0);
}

int main(int argc, char **argv)
{
	const char *test = argc == 4 ? argv[3] : "";

	if (argc == 4 && access(argv[1], R_OK)) {
		printf("skipped: %s is not there; `scripts/install-deps nccl-all` fetches it\n",
		       argv[1]);
		return 77;
	}
	if (argc != 4) {
		fprintf(stderr, "usage: gin LIBNCCL PLUGIN plain|cuts|switch\n");
		return 2;
	}
	ranks_prepare(argv[1], argv[2]);
	setenv("NCCL_GIN_TYPE", "2", 1);
	setenv("NCCL_CUMEM_ENABLE", "1", 1);
	setenv("NCCL_DEBUG_SUBSYS", "INIT,NET,ENV", 1);
	if (!getenv("TEST_NET"))
		setenv("TEST_NET", "HA", 1);
	if (!strcmp(test, "plain")) {
		ranks_run(RANKS, run_rank, look_plain);
		return 0;
	}
	puts_wanted = 6000;
	ranks_run(RANKS, run_rank, strcmp(test, "cuts") ? look_switch : look_cuts);
	return 0;
}
