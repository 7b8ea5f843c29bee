/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/perf/onesided_round.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"

#define LOOK_NS 5000000
/* Whose filling takes longer than a barrier: ranks that have filled begin together then, so that
 * none waits for another's filling in its measured time. */
#define BARRIER_BYTES ((size_t)256 << 10)

/* Counters, by the rank at the other end: data came from it, it has taken ours, ours came back. */
enum { DATA, TAKEN, BACK, KINDS };
/* Parts of the window: what others write, what we send, what comes back. */
enum { IN, OUT, RETURNED, PARTS };

static int peers_of(enum ha_one_sided kind, int ranks)
{
	return kind == HA_ONE_SIDED_MOE ? ranks : 1;
}

size_t ha_round_window(enum ha_one_sided kind, int ranks, int steps, size_t bytes)
{
	size_t cells =
		(size_t)PARTS * HA_ROUND_SETS * (size_t)peers_of(kind, ranks) * (size_t)steps;

	return cells * bytes + 4096;
}

unsigned ha_round_counters(int ranks)
{
	return KINDS * (unsigned)ranks;
}

unsigned ha_round_messages(enum ha_one_sided kind, int ranks, int steps)
{
	unsigned messages = (unsigned)(peers_of(kind, ranks) * steps);

	return kind == HA_ONE_SIDED_MOE ? 2 * messages : messages;
}

static unsigned counter_of(const struct ha_round *r, int kind, int rank)
{
	return (unsigned)(kind * r->place->ranks + rank);
}

static int next_rank(const struct ha_round *r)
{
	return (r->place->rank + 1) % r->place->ranks;
}

static int previous_rank(const struct ha_round *r)
{
	return (r->place->rank + r->place->ranks - 1) % r->place->ranks;
}

/* Cell k of a part, in this iteration's set; `peer`: the rank at the other end. */
static uint64_t cell_at(const struct ha_round *r, int part, int peer, int k)
{
	int peers = peers_of(r->kind, r->place->ranks), steps = r->options->steps;
	uint64_t set = (uint64_t)part * HA_ROUND_SETS + r->side->iterations % HA_ROUND_SETS;

	return ((set * (uint64_t)peers + (uint64_t)(peers > 1 ? peer : 0)) * (uint64_t)steps +
		(uint64_t)k) *
	       r->bytes;
}

/* ---- data ---- */

/* Different for each put of a run; what gets read stays. */
static uint64_t seed_of(const struct ha_round *r, int from, int to, int k)
{
	uint64_t i = r->kind == HA_ONE_SIDED_GET ? 0 : r->side->iterations;

	return ha_mix64(r->options->run.seed + i * 1000003 +
			(((uint64_t)(unsigned)from * 4096 + (unsigned)to) * 4096 + (unsigned)k));
}

/* In an expert-parallel dispatch no two are alike: none to all of it. */
static size_t size_of(const struct ha_round *r, uint64_t seed)
{
	return r->kind == HA_ONE_SIDED_MOE ? (size_t)(ha_mix64(seed) % (r->bytes + 1)) : r->bytes;
}

static void fill_cell(char *cell, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = ha_mix64(seed + i);

		memcpy(cell + i, &word, size - i < 8 ? size - i : 8);
	}
}

static void compare_cell(struct ha_round *r, int part, int peer, int k, uint64_t seed)
{
	const char *cell = r->side->data + cell_at(r, part, peer, k);
	size_t size = size_of(r, seed);

	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = ha_mix64(seed + i);

		r->wrong += memcmp(cell + i, &word, size - i < 8 ? size - i : 8) != 0;
	}
}

void ha_round_prepare(struct ha_round *r)
{
	for (int set = 0; r->kind == HA_ONE_SIDED_GET && set < HA_ROUND_SETS; set++) {
		for (int k = 0; k < r->options->steps; k++)
			fill_cell(r->side->data + cell_at(r, OUT, 0, k), r->bytes,
				  seed_of(r, r->place->rank, 0, k));
		r->side->iterations++;
	}
}

/* ---- waiting ---- */

static int look_around(struct ha_round *r)
{
	int64_t now = ha_monotonic_ns();
	int timeout_s = r->options->run.launch.timeout_s, err = 0;

	sched_yield();
	if (now - r->looked < LOOK_NS)
		return 0;
	r->looked = now;
	err = ha_rendezvous_poll(r->rendezvous);
	if (!err && now - r->moved > (int64_t)timeout_s * 1000000000)
		err = ha_fault(-ETIMEDOUT, "nothing has moved for %d s", timeout_s);
	return err;
}

/* Until the counter is there and, when asked for, nothing is in flight. */
static int await_counter(struct ha_round *r, unsigned counter, uint64_t value, bool drained)
{
	int err = 0;

	while (!err &&
	       (ha_side_counter(r->side, counter) < value || (drained && r->side->inflight))) {
		uint64_t before = ha_side_counter(r->side, counter);
		bool moved = false;

		err = ha_side_step(r->side, &moved);
		if (moved || ha_side_counter(r->side, counter) != before)
			r->moved = ha_monotonic_ns();
		else if (!err)
			err = look_around(r);
	}
	return err;
}

/* ---- puts ---- */

static int signal_to(struct ha_round *r, int to, int kind, uint64_t value)
{
	struct ha_gin_put put = { .rank = to,
				  .signal_op = HA_GIN_ADD,
				  .value = value,
				  .signal_offset = counter_of(r, kind, r->place->rank) * 8 };

	return ha_side_put(r->side, &put);
}

/* `steps` puts to one rank: each with a signal, or the last with all of them. */
static int send_cells(struct ha_round *r, int to, bool each)
{
	int me = r->place->rank, steps = r->options->steps, err = 0;

	for (int k = 0; k < steps && !err; k++) {
		uint64_t seed = seed_of(r, me, to, k), at = cell_at(r, OUT, to, k);
		bool last = k == steps - 1;
		struct ha_gin_put put = { .rank = to,
					  .source_offset = at,
					  .target_offset = cell_at(r, IN, me, k),
					  .size = size_of(r, seed),
					  .signal_offset = counter_of(r, DATA, me) * 8,
					  .value = each ? 1 : (uint64_t)steps };

		if (each)
			put.signal_op = HA_GIN_INC;
		else if (last)
			put.signal_op = HA_GIN_ADD;
		r->sent += put.size;
		err = ha_side_put(r->side, &put);
	}
	return err;
}

/* A counter that is ahead of what was sent: rounds `ahead` may have come since. */
static void check_count(struct ha_round *r, unsigned counter, uint64_t each, uint64_t ahead)
{
	uint64_t most = (r->side->iterations + 1 + ahead) * each;

	r->wrong += ha_side_counter(r->side, counter) > most;
}

static int run_put(struct ha_round *r, bool each)
{
	uint64_t i = r->side->iterations, steps = (uint64_t)r->options->steps;
	int from = previous_rank(r), to = next_rank(r), err = 0;

	if (i >= HA_ROUND_SETS)
		err = await_counter(r, counter_of(r, TAKEN, to), i + 1 - HA_ROUND_SETS, false);
	if (!err)
		err = send_cells(r, to, each);
	if (!err)
		err = await_counter(r, counter_of(r, DATA, from), (i + 1) * steps, true);
	check_count(r, counter_of(r, DATA, from), steps, HA_ROUND_SETS - 1);
	return err;
}

static int run_get(struct ha_round *r)
{
	int from = next_rank(r), err = 0;

	for (int k = 0; k < r->options->steps && !err; k++) {
		struct ha_gin_put get = { .rank = from,
					  .source_offset = cell_at(r, IN, from, k),
					  .target_offset = cell_at(r, OUT, r->place->rank, k),
					  .size = r->bytes };

		r->sent += get.size;
		err = ha_side_get(r->side, &get);
	}
	return err ? err : await_counter(r, counter_of(r, BACK, from), 0, true);
}

/* Everything that came from one rank goes back to it. */
static int send_back(struct ha_round *r, int to)
{
	int me = r->place->rank, steps = r->options->steps, err = 0;

	for (int k = 0; k < steps && !err; k++) {
		uint64_t seed = seed_of(r, to, me, k);
		struct ha_gin_put put = { .rank = to,
					  .source_offset = cell_at(r, IN, to, k),
					  .target_offset = cell_at(r, RETURNED, me, k),
					  .size = size_of(r, seed) };

		if (k == steps - 1) {
			put.signal_op = HA_GIN_INC;
			put.signal_offset = counter_of(r, BACK, me) * 8;
		}
		r->sent += put.size;
		err = ha_side_put(r->side, &put);
	}
	return err;
}

static int run_moe(struct ha_round *r)
{
	uint64_t i = r->side->iterations, steps = (uint64_t)r->options->steps;
	int ranks = r->place->ranks, me = r->place->rank, err = 0;

	for (int d = 0; d < ranks && !err; d++)
		err = send_cells(r, (me + d) % ranks, d % 2);
	for (int d = 0; d < ranks && !err; d++) {
		int from = (me + ranks - d) % ranks;

		err = await_counter(r, counter_of(r, DATA, from), (i + 1) * steps, false);
		if (!err)
			err = send_back(r, from);
	}
	for (int from = 0; from < ranks && !err; from++) {
		err = await_counter(r, counter_of(r, BACK, from), i + 1, true);
		check_count(r, counter_of(r, DATA, from), steps, 1);
		check_count(r, counter_of(r, BACK, from), 1, 0);
	}
	return err;
}

/* ---- what is checked: before and behind what is measured ---- */

/* What goes to one rank. */
static void fill_puts(struct ha_round *r, int to)
{
	for (int k = 0; k < r->options->steps; k++) {
		uint64_t seed = seed_of(r, r->place->rank, to, k);

		fill_cell(r->side->data + cell_at(r, OUT, to, k), size_of(r, seed), seed);
	}
}

/* What a get is to replace. */
static void wipe_gets(struct ha_round *r)
{
	for (int k = 0; k < r->options->steps; k++)
		memset(r->side->data + cell_at(r, IN, next_rank(r), k), 0x5a, r->bytes);
}

static void fill_round(struct ha_round *r)
{
	int me = r->place->rank, ranks = r->place->ranks;

	if (r->kind == HA_ONE_SIDED_GET)
		wipe_gets(r);
	else if (r->kind != HA_ONE_SIDED_MOE)
		fill_puts(r, next_rank(r));
	for (int d = 0; d < ranks && r->kind == HA_ONE_SIDED_MOE; d++)
		fill_puts(r, (me + d) % ranks);
}

/* What came from one rank and, moe, has come back from it: nobody writes there before the next
 * iteration but one, which needs what this rank sends in the next. */
static void compare_rank(struct ha_round *r, int from)
{
	int me = r->place->rank, to = r->kind == HA_ONE_SIDED_GET ? 0 : me;

	for (int k = 0; k < r->options->steps; k++)
		compare_cell(r, IN, from, k, seed_of(r, from, to, k));
	for (int k = 0; k < r->options->steps && r->kind == HA_ONE_SIDED_MOE; k++)
		compare_cell(r, RETURNED, from, k, seed_of(r, me, from, k));
}

static void compare_round(struct ha_round *r)
{
	int ranks = r->place->ranks;

	if (r->kind == HA_ONE_SIDED_GET)
		compare_rank(r, next_rank(r));
	else if (r->kind != HA_ONE_SIDED_MOE)
		compare_rank(r, previous_rank(r));
	for (int from = 0; from < ranks && r->kind == HA_ONE_SIDED_MOE; from++)
		compare_rank(r, from);
}

static bool is_large(const struct ha_round *r)
{
	size_t cells = (size_t)peers_of(r->kind, r->place->ranks) * (size_t)r->options->steps;

	return cells * r->bytes >= BARRIER_BYTES;
}

/* `part` of the checking; others wait for this rank's progress where it takes long. */
static int check_round(struct ha_round *r, void (*part)(struct ha_round *r), bool together)
{
	int64_t begin = ha_monotonic_ns();
	int err = 0;

	if (is_large(r))
		ha_side_leave(r->side);
	part(r);
	r->check_ns += (uint64_t)(ha_monotonic_ns() - begin);
	if (is_large(r) && together)
		err = ha_rendezvous_barrier(r->rendezvous);
	if (is_large(r) && !err)
		err = ha_side_return(r->side);
	return err;
}

/* ---- an iteration ---- */

static int run_exchange(struct ha_round *r)
{
	switch (r->kind) {
	case HA_ONE_SIDED_PUT:
	case HA_ONE_SIDED_PUTSIGNAL:
		return run_put(r, r->kind == HA_ONE_SIDED_PUTSIGNAL);
	case HA_ONE_SIDED_GET:
		return run_get(r);
	case HA_ONE_SIDED_MOE:
		return run_moe(r);
	case HA_TWO_SIDED:
		break;
	}
	return ha_fault(-EINVAL, "not a one-sided operation");
}

/* The previous rank may write there again. */
static int give_back(struct ha_round *r)
{
	if (r->kind == HA_ONE_SIDED_PUT || r->kind == HA_ONE_SIDED_PUTSIGNAL)
		return signal_to(r, previous_rank(r), TAKEN, 1);
	return 0;
}

int ha_round_run(struct ha_round *r)
{
	int err = r->check ? check_round(r, fill_round, true) : 0;
	int64_t begin = ha_monotonic_ns();

	r->moved = begin;
	if (!err)
		err = run_exchange(r);
	r->took = (uint64_t)(ha_monotonic_ns() - begin);
	if (!err && r->check)
		err = check_round(r, compare_round, false);
	begin = ha_monotonic_ns();
	if (!err)
		err = give_back(r);
	r->took += (uint64_t)(ha_monotonic_ns() - begin);
	r->side->iterations++;
	r->verified += r->check;
	return err;
}

int ha_round_settle(struct ha_round *r)
{
	bool put = r->kind == HA_ONE_SIDED_PUT || r->kind == HA_ONE_SIDED_PUTSIGNAL;
	uint64_t rounds = put ? r->side->iterations : 0;

	r->moved = ha_monotonic_ns();
	return await_counter(r, counter_of(r, TAKEN, next_rank(r)), rounds, true);
}

uint64_t ha_round_miscounted(struct ha_round *r)
{
	uint64_t rounds = r->side->iterations, wrong = 0;

	for (int from = 0; from < r->place->ranks; from++) {
		bool put = r->kind == HA_ONE_SIDED_PUT || r->kind == HA_ONE_SIDED_PUTSIGNAL,
		     moe = r->kind == HA_ONE_SIDED_MOE;
		uint64_t data = moe || (put && from == previous_rank(r))
					? rounds * (uint64_t)r->options->steps
					: 0;

		wrong += ha_side_counter(r->side, counter_of(r, DATA, from)) != data;
		wrong += ha_side_counter(r->side, counter_of(r, BACK, from)) != (moe ? rounds : 0);
		wrong += ha_side_counter(r->side, counter_of(r, TAKEN, from)) !=
			 (put && from == next_rank(r) ? rounds : 0);
	}
	return wrong;
}
