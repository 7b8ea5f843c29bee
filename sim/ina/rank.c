/* SPDX-License-Identifier: BSD-3-Clause */
/* rank.c - one rank: its thread and operations, what it brings, and what it must get */
#include "base/clamp.h"
#include "ina/frame/bytes.h"
#include "sim/ina/world.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct ina_sim_op *spec_of(const struct ina_sim_job *j)
{
	return &j->rank->world->sc.op[j->number];
}

/* ---- what the ranks bring, and what that makes ---- */

static uint64_t draw_value(const struct ina_sim_world *w, unsigned op, unsigned rank,
			   uint32_t index, unsigned word)
{
	struct sr_rng rng = { (w->sc.seed ^ (uint64_t)op << 56 ^ (uint64_t)rank << 48 ^
			       (uint64_t)index << 16 ^ word) *
			      0xd1342543de82ef95ull };

	return sr_rng_next(&rng);
}

static int32_t word_of(const struct ina_sim_world *w, unsigned op, unsigned rank, uint32_t index,
		       unsigned word)
{
	int32_t v = (int32_t)draw_value(w, op, rank, index, word);

	if (w->sc.op[op].kind == INA_SIM_LARGE)
		return word % 4 ? v >> 4 : v; /* some words of a block never pass the ends */
	return v >> 8;
}

static uint8_t exponent_of(const struct ina_sim_world *w, unsigned op, unsigned rank,
			   uint32_t index)
{
	return w->sc.op[op].kind == INA_SIM_EXPONENTS
		       ? (uint8_t)(140 + draw_value(w, op, rank, index, 999) % 9)
		       : 0;
}

static bool is_summing(uint8_t coll)
{
	return coll != INA_BROADCAST && coll != INA_ALL_GATHER;
}

/* What saturating sums of one word can be, over all orders of its terms. */
struct range {
	int64_t exact;     /* without any end */
	int64_t low, high; /* both are reached; equal when no order passes an end */
};

static int64_t clamp_sum(int64_t v)
{
	return ha_clamp(v, INT32_MIN, INT32_MAX);
}

/*
 * Each time that a sum is held at the lower end it gains, and what comes after can add no more than
 * all positive terms: no order gives more than all negative terms first, then the positive ones.
 * For the least it is the other way round.
 */
static struct range range_of(const struct ina_sim_world *w, unsigned op, uint32_t index,
			     unsigned word)
{
	int64_t up = 0, down = 0;

	for (unsigned r = 0; r < w->sc.ranks; r++) {
		int32_t v = word_of(w, op, r, index, word);

		*(v > 0 ? &up : &down) += v;
	}
	return (struct range) { up + down, clamp_sum(clamp_sum(up) + down),
				clamp_sum(clamp_sum(down) + up) };
}

/* Words of different exponents: half a unit for every block that is aligned. */
static bool aligned_right(const struct ina_sim_world *w, unsigned op, uint32_t index, unsigned word,
			  int32_t is, uint8_t exponent)
{
	double sum = 0;

	for (unsigned r = 0; r < w->sc.ranks; r++)
		sum += ldexp(word_of(w, op, r, index, word),
			     exponent_of(w, op, r, index) - exponent);
	return fabs(sum - is) <= 0.5 * w->sc.ranks;
}

/*
 * One word of an answer, against all ranks' contributions. Beside a word that was saturated all
 * others are as exact as ever.
 */
static bool word_right(const struct ina_sim_world *w, unsigned op, uint32_t index, unsigned word,
		       int32_t is, struct ina_block b)
{
	const struct ina_sim_op *spec = &w->sc.op[op];
	struct range range;

	if (!is_summing(spec->coll))
		return is == word_of(w, op, spec->root, index, word);
	if (spec->kind == INA_SIM_EXPONENTS)
		return aligned_right(w, op, index, word, is, b.exponent);
	range = range_of(w, op, index, word);
	return b.flags & INA_F_OVERFLOW ? is >= range.low && is <= range.high : is == range.exact;
}

/* Can the sum of some word of this block pass an end, in some order? */
static bool may_pass(const struct ina_sim_world *w, unsigned op, uint32_t index)
{
	for (unsigned word = 0; word < INA_WORDS; word++) {
		struct range range = range_of(w, op, index, word);

		if (range.low != range.exact || range.high != range.exact)
			return true;
	}
	return false;
}

/* Must the exponent and the flags be so? */
static bool block_right(const struct ina_sim_world *w, unsigned op, uint32_t index,
			struct ina_block b)
{
	const struct ina_sim_op *spec = &w->sc.op[op];
	uint8_t most = exponent_of(w, op, spec->root, index);

	for (unsigned r = 0; is_summing(spec->coll) && r < w->sc.ranks; r++)
		if (exponent_of(w, op, r, index) > most)
			most = exponent_of(w, op, r, index);
	if (b.exponent != most || b.flags & ~INA_F_OVERFLOW)
		return false;
	return !b.flags ||
	       (spec->kind == INA_SIM_LARGE && is_summing(spec->coll) && may_pass(w, op, index));
}

static uint64_t hash_words(const uint8_t *words, struct ina_block b)
{
	uint64_t h = 0xcbf29ce484222325ull ^ b.exponent ^ (uint64_t)b.flags << 8;

	for (unsigned i = 0; i < INA_WORDS; i++)
		h = (h ^ ina_get32(words + 4 * i)) * 0x100000001b3ull;
	return h | 1;
}

static void check_words(struct ina_sim_job *j, uint32_t index, const uint8_t *words,
			struct ina_block b)
{
	struct ina_sim_world *w = j->rank->world;
	uint64_t h = hash_words(words, b), *first = &w->bytes[j->number][index];

	if (!block_right(w, j->number, index, b))
		ina_sim_report_finding(w, INA_SIM_WRONG,
				       "rank %u, operation %u, packet %u: exponent %u, flags %02x",
				       j->rank->index, j->number, index, b.exponent, b.flags);
	for (unsigned i = 0; i < INA_WORDS && !ina_sim_has_finding(w); i++)
		if (!word_right(w, j->number, index, i, (int32_t)ina_get32(words + 4 * i), b))
			ina_sim_report_finding(w, INA_SIM_WRONG,
					       "rank %u, operation %u, packet %u, word %u is %d",
					       j->rank->index, j->number, index, i,
					       (int32_t)ina_get32(words + 4 * i));
	if (*first && *first != h)
		ina_sim_report_finding(
			w, INA_SIM_DIFFERS,
			"rank %u, operation %u, packet %u is not what another rank got",
			j->rank->index, j->number, index);
	*first = h;
}

/* ---- the operations' table ---- */

static void bring(void *arg, uint32_t index, uint8_t *words, struct ina_block *block)
{
	struct ina_sim_job *j = arg;
	const struct ina_sim_world *w = j->rank->world;

	/* In place: the answer lies where the words were. */
	if (j->taken[index])
		ina_sim_report_finding(
			j->rank->world, INA_SIM_TWICE,
			"rank %u sends packet %u of operation %u, whose answer it has",
			j->rank->index, index, j->number);
	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, (uint32_t)word_of(w, j->number, j->rank->index, index, i));
	block->exponent = exponent_of(w, j->number, j->rank->index, index);
}

static void take(void *arg, uint32_t index, const uint8_t *words, struct ina_block block)
{
	struct ina_sim_job *j = arg;
	struct ina_sim_world *w = j->rank->world;

	w->moved_at = ina_sim_now(w);
	if (index >= spec_of(j)->packets || j->taken[index]) {
		ina_sim_report_finding(w, INA_SIM_TWICE,
				       "rank %u gets packet %u of operation %u twice",
				       j->rank->index, index, j->number);
		return;
	}
	j->taken[index] = true;
	if (!words != !ina_coll_gets(spec_of(j)->coll, spec_of(j)->root, (uint8_t)j->rank->index))
		ina_sim_report_finding(
			w, INA_SIM_WRONG,
			"rank %u, operation %u, packet %u: words where there are none, or none",
			j->rank->index, j->number, index);
	else if (words)
		check_words(j, index, words, block);
}

static void take_turn(void *arg);

static void ask_turn(struct ina_sim_rank *r, uint64_t when)
{
	if (when >= r->turn_at)
		return;
	r->turn_at = when;
	sr_memwire_at(r->world->wire, when, take_turn, r);
}

/* Excused by the last fault, and in time? */
static void check_error(struct ina_sim_rank *r, int err)
{
	struct ina_sim_world *w = r->world;
	uint64_t limit = w->fault_at + w->excused_ns + w->sc.skew_ns + w->sc.nops * w->sc.think_ns +
			 50000000;

	ina_sim_trace_line(w, "rank %u: %s", r->index, r->worker.why);
	w->result.errors++;
	if (w->fault_at < w->incarnation_at)
		ina_sim_report_finding(w, INA_SIM_ERROR,
				       "rank %u fails with %d, and nothing excuses it: %s",
				       r->index, err, r->worker.why);
	else if (ina_sim_now(w) > limit)
		ina_sim_report_finding(w, INA_SIM_LATE, "rank %u fails only now: %s", r->index,
				       r->worker.why);
	else if (!*r->worker.why)
		ina_sim_report_finding(w, INA_SIM_ERROR, "rank %u fails without a reason",
				       r->index);
}

static void rank_fail(struct ina_sim_rank *r, int err)
{
	if (r->failed)
		return;
	check_error(r, err);
	r->failed = true;
	r->failed_at = ina_sim_now(r->world);
}

static void done(void *arg, int err)
{
	struct ina_sim_job *j = arg;
	struct ina_sim_rank *r = j->rank;
	struct ina_sim_world *w = r->world;

	w->moved_at = ina_sim_now(w);
	if (err) {
		rank_fail(r, err);
		return;
	}
	if (j->number != r->finished)
		ina_sim_report_finding(w, INA_SIM_WRONG, "rank %u finishes operation %u before %u",
				       r->index, j->number, r->finished);
	for (uint32_t i = 0; i < spec_of(j)->packets; i++)
		if (!j->taken[i])
			ina_sim_report_finding(w, INA_SIM_WRONG,
					       "rank %u finishes operation %u without packet %u",
					       r->index, j->number, i);
	r->finished++;
}

static const struct ina_op_ops job_ops = { .bring = bring, .take = take, .done = done };

/* ---- its thread ---- */

static void post_next(struct ina_sim_rank *r)
{
	struct ina_sim_world *w = r->world;
	struct ina_sim_job *j = &r->job[r->posted];
	int err;

	*j = (struct ina_sim_job) { .rank = r, .number = r->posted };
	j->op = (struct ina_op) { .ops = &job_ops,
				  .arg = j,
				  .coll = spec_of(j)->coll,
				  .root = spec_of(j)->root,
				  .packets = spec_of(j)->packets };
	r->posted++;
	err = ina_worker_post(&r->worker, &j->op);
	if (err) /* it was aborted while it had nothing to do */
		rank_fail(r, err);
	if (w->sc.think_ns)
		r->begins = ina_sim_now(w) +
			    draw_value(w, r->posted, r->index, 0, 777) % (w->sc.think_ns + 1);
}

void ina_sim_rank_leave(struct ina_sim_rank *r)
{
	if (r->dead || !r->open || r->failed)
		return;
	ina_worker_abort(&r->worker, -ECANCELED, "the rank gives up");
	rank_fail(r, -ECANCELED); /* its operations have said so, if there was one */
	ask_turn(r, ina_sim_now(r->world));
}

/* When there is something to do again. */
static uint64_t run_worker(struct ina_sim_rank *r, uint64_t now)
{
	const struct ina_sim_world *w = r->world;
	uint64_t due;

	while (!r->failed && r->posted < w->sc.nops && now >= r->begins)
		post_next(r);
	ina_worker_poll(&r->worker);
	due = ina_worker_due(&r->worker);
	return !r->failed && r->posted < w->sc.nops && r->begins < due ? r->begins : due;
}

static void take_turn(void *arg)
{
	struct ina_sim_rank *r = arg;
	struct ina_sim_world *w = r->world;
	uint64_t now = ina_sim_now(w), due;

	if (now < r->turn_at)
		return; /* an earlier turn has replaced this one */
	r->turn_at = UINT64_MAX;
	if (r->dead || !r->open || ina_sim_has_finding(w))
		return;
	due = run_worker(r, now);
	if (due != UINT64_MAX)
		ask_turn(r, due > now ? due : now + 100);
}

static void on_send(void *arg, const struct ina_frame *f)
{
	struct ina_sim_rank *r = arg;

	if (!r->dead)
		ina_sim_send_up(r, f);
}

static void add_counters(struct ina_sim_rank *r)
{
	struct ina_counters *to = &r->world->result.count;

#define X(name, help) to->name += r->worker.count.name;
	INA_COUNTER_LIST(X)
#undef X
}

/*
 * An incarnation of the group begins: a new worker, which goes on at operation `resume`. With
 * resume = the number of operations: the last one ends.
 */
void ina_sim_rank_open(struct ina_sim_rank *r, unsigned resume)
{
	struct ina_sim_world *w = r->world;
	struct ina_worker_config c = {
		.addr = INA_SIM_RANK_ADDR + r->index,
		.switch_addr = INA_SIM_SWITCH_ADDR,
		.group = INA_SIM_GROUP,
		.rank = (uint8_t)r->index,
		.ranks = (uint8_t)w->sc.ranks,
		.workers = 1,
		.extended = w->sc.extended,
		.base = INA_SIM_BASE,
		.len = w->sc.len,
		.epoch = w->epoch,
		.first_psn = w->sc.first_psn,
	};
	struct ina_worker_ops ops = { on_send, r };
	const char *why;

	if (r->open)
		add_counters(r);
	r->open = r->failed = false;
	if (resume == w->sc.nops)
		return;
	ina_worker_defaults(&c);
	c.rto_min_ns = 50000;
	c.rto_max_ns = 5000000;
	c.peer_ns = INA_SIM_PEER_NS;
	c.switch_ns = INA_SIM_SWITCH_NS;
	if (ina_worker_init(&r->worker, &c, &w->clock, &ops, r->entry, INA_SIM_SLOTS, &why)) {
		ina_sim_report_finding(w, INA_SIM_ERROR, "the worker cannot begin: %s", why);
		return;
	}
	r->open = true;
	r->posted = r->finished = resume;
	r->begins =
		ina_sim_now(w) + draw_value(w, 0, r->index, w->epoch, 555) % (w->sc.skew_ns + 1);
	ask_turn(r, r->begins);
}

void ina_sim_rank_receive(struct ina_sim_rank *r, const struct ina_frame *f)
{
	if (r->dead || !r->open)
		return;
	ina_worker_receive(&r->worker, f);
	if (r->world->watch)
		r->world->watch->window(r->world->watch->arg, r->index,
					ina_sim_now(r->world) - INA_SIM_START_NS, &r->worker);
	ask_turn(r, ina_sim_now(r->world));
}

bool ina_sim_rank_ended(const struct ina_sim_rank *r)
{
	return r->dead || r->failed || r->finished == r->world->sc.nops;
}
