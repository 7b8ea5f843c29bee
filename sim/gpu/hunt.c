/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/gpu/hunt.h"
#include "sim/gpu/mutation.h"

#include "gpu/emu/fiber.h"

#include <stdio.h>
#include <string.h>

#define US UINT64_C(1000)
#define CHUNK_LOG 10
#define BUFFERS 2         /* of a stream, at each end */
#define BUFFER_BYTES 3072 /* three chunks */
#define STREAMS 2
#define WARP 3
#define LIMIT_NS (40000 * US)

/* Heap: source and destination buffers of each stream, the reader's region, the adder's word. */
#define SOURCE(s, b) (((s)*BUFFERS + (b)) * BUFFER_BYTES)
#define TARGET(s, b) (STREAMS * BUFFERS * BUFFER_BYTES + SOURCE(s, b))
#define REGION (2 * STREAMS * BUFFERS * BUFFER_BYTES)
#define REGION_BYTES 2048
#define WORD (REGION + REGION_BYTES)
#define FLOOD (WORD + 1024)
#define FLOOD_WORDS 200
#define HEAP (FLOOD + FLOOD_WORDS * 8)
enum { SLOT_READER = 10, SLOT_OWNER = 11 };

struct run {
	struct pair pair;
	struct hunt_result *result;
	unsigned messages[STREAMS];
	uint64_t sent[STREAMS]; /* signals begun: what a receiver may see at most */
	unsigned streams, lanes;
	uint64_t base;  /* of the patterns */
	bool both_down; /* some caller got BOTH_DOWN */
	uint64_t adds, added;
	uint32_t length[STREAMS][64];
};

struct actor {
	struct run *run;
	struct ha_gpu_self self;
	unsigned stream;
	bool last_quiet; /* false: it leaves when its last signal is posted */
};

static uint64_t draw_below(uint64_t n)
{
	return ha_gpu_fibers_random() % n;
}

static void record_corruption(struct run *r, const char *why)
{
	if (r->result->verdict != HUNT_CORRUPT)
		r->result->why = why;
	r->result->verdict = HUNT_CORRUPT;
}

/* A time limit may pass at any moment: mostly there is none, sometimes it is short. */
static uint64_t draw_limit(void)
{
	return draw_below(4) ? HA_GPU_FOREVER : 2 * US + draw_below(100 * US);
}

/* True: do it again. */
static bool note_result(struct run *r, enum ha_gpu_result got)
{
	r->result->timeouts += got == HA_GPU_TIMEOUT;
	if (got == HA_GPU_BOTH_DOWN)
		r->both_down = true;
	else if (got == HA_GPU_REFUSED)
		record_corruption(r, "an operation was refused");
	return got == HA_GPU_TIMEOUT;
}

#define UNTIL(r, call)                                     \
	do {                                               \
	} while (note_result(r, call) && !(r)->both_down); \
	if ((r)->both_down)                                \
	return

static uint8_t pattern_byte(const struct run *r, unsigned stream, uint64_t m, uint32_t i)
{
	return (uint8_t)(r->base + stream * 101 + m * 37 + i * 3 + (i >> 8) * 11);
}

static void fill_pattern(const struct run *r, uint8_t *p, unsigned stream, uint64_t m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = pattern_byte(r, stream, m, i);
}

static bool has_pattern(const struct run *r, const uint8_t *p, unsigned stream, uint64_t m,
			uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != pattern_byte(r, stream, m, i))
			return false;
	return true;
}

/*
 * ---- a stream: data, then its signal; the receiver checks, uses the memory for something of its
 * own, and answers ----
 */

/* The lane that acts for its warp: the data's memory is free, and filled. */
static void prepare_source(struct run *r, unsigned s, uint64_t m)
{
	struct ha_gpu_conn *c = r->pair.end[0].conn;

	if (m >= BUFFERS) {
		UNTIL(r, ha_gpu_wait(c, s, m - BUFFERS + 1, draw_limit()));
	}
	fill_pattern(r, r->pair.end[0].heap + SOURCE(s, m % BUFFERS), s, m, r->length[s][m]);
}

static void signal_message(struct run *r, unsigned s, uint64_t m)
{
	struct ha_gpu_conn *c = r->pair.end[0].conn;

	r->sent[s]++;
	UNTIL(r, ha_gpu_signal(c, s, 1, draw_below(3) || m + 1 == r->messages[s] ? 0 : HA_GPU_LATER,
			       draw_limit()));
	if (!draw_below(3)) {
		UNTIL(r, ha_gpu_quiet(c, draw_limit()));
		/* it is ours again */
		memset(r->pair.end[0].heap + SOURCE(s, m % BUFFERS), 0xbb, r->length[s][m]);
	}
}

static void one_message(struct run *r, unsigned s, uint64_t m)
{
	struct ha_gpu_conn *c = r->pair.end[0].conn;
	uint8_t *from = r->pair.end[0].heap + SOURCE(s, m % BUFFERS);
	uint64_t to = pair_remote(&r->pair, 0, TARGET(s, m % BUFFERS));
	uint32_t n = r->length[s][m];

	if (r->lanes == 1) {
		UNTIL(r, ha_gpu_put_nbi(c, to, from, n, draw_below(2) ? HA_GPU_LATER : 0,
					draw_limit()));
	} else {
		note_result(r, ha_gpu_put_nbi_warp(c, to, from, n, m & 1 ? HA_GPU_LATER : 0,
						   HA_GPU_FOREVER));
	}
}

/* Lanes go on together, or none does. */
static bool both_down(struct run *r)
{
	return ha_gpu_shfl(r->both_down, 0);
}

static void run_sender(void *arg)
{
	struct actor *a = arg;
	struct run *r = a->run;

	for (uint64_t m = 0; m < r->messages[a->stream] && !both_down(r); m++) {
		if (!ha_gpu_lane())
			prepare_source(r, a->stream, m);
		if (both_down(r))
			return;
		one_message(r, a->stream, m);
		if (!both_down(r) && !ha_gpu_lane())
			signal_message(r, a->stream, m);
	}
	if (!ha_gpu_lane() && a->last_quiet) {
		UNTIL(r, ha_gpu_quiet(r->pair.end[0].conn, draw_limit()));
	}
}

static void run_receiver(void *arg)
{
	struct actor *a = arg;
	struct run *r = a->run;
	struct ha_gpu_conn *c = r->pair.end[1].conn;
	uint64_t seen = 0, value;
	unsigned s = a->stream;

	for (uint64_t m = 0; m < r->messages[s]; m++) {
		uint8_t *to = r->pair.end[1].heap + TARGET(s, m % BUFFERS);
		uint32_t n = r->length[s][m];

		UNTIL(r, ha_gpu_wait(c, s, m + 1, draw_limit()));
		value = ha_gpu_signal_value(c, s);
		if (value > r->sent[s])
			record_corruption(r, "a signal counts more than was sent");
		if (value < seen)
			record_corruption(r, "a signal ran backwards");
		seen = value;
		if (!has_pattern(r, to, s, m, n))
			record_corruption(r, "a signal came, and its data is not there");
		memset(to, 0xcc, n);
		for (uint64_t i = draw_below(60) * draw_below(8); i; i--)
			ha_gpu_pause();
		for (uint32_t i = 0; i < n; i++)
			if (to[i] != 0xcc)
				record_corruption(
					r, "something landed in memory that its owner uses again");
		UNTIL(r, ha_gpu_signal(c, s, 1, 0, draw_limit()));
	}
	if (a->last_quiet) {
		UNTIL(r, ha_gpu_quiet(c, draw_limit()));
	}
}

/*
 * ---- a reader says with a fence and a signal that it has read; the owner then writes the next
 * version ----
 */

static void run_reader(void *arg)
{
	struct actor *a = arg;
	struct run *r = a->run;
	struct ha_gpu_conn *c = r->pair.end[0].conn;
	uint8_t *to = r->pair.end[0].heap + REGION;

	for (uint64_t m = 0; m < 6; m++) {
		memset(to, 0xdd, REGION_BYTES);
		UNTIL(r, ha_gpu_get_nbi(c, to, pair_remote(&r->pair, 0, REGION), REGION_BYTES, 0,
					draw_limit()));
		UNTIL(r, ha_gpu_fence(c, draw_limit()));
		UNTIL(r, ha_gpu_signal(c, SLOT_READER, 1, 0, draw_limit()));
		UNTIL(r, ha_gpu_quiet(c, draw_limit()));
		if (!has_pattern(r, to, 9, m, REGION_BYTES))
			record_corruption(
				r, "a read that was fenced returned what was written after it");
		UNTIL(r, ha_gpu_wait(c, SLOT_OWNER, m + 1, draw_limit()));
	}
}

static void run_owner(void *arg)
{
	struct actor *a = arg;
	struct run *r = a->run;
	struct ha_gpu_conn *c = r->pair.end[1].conn;

	for (uint64_t m = 0; m < 6; m++) {
		UNTIL(r, ha_gpu_wait(c, SLOT_READER, m + 1, draw_limit()));
		fill_pattern(r, r->pair.end[1].heap + REGION, 9, m + 1, REGION_BYTES);
		UNTIL(r, ha_gpu_signal(c, SLOT_OWNER, 1, 0, draw_limit()));
	}
	UNTIL(r, ha_gpu_quiet(c, draw_limit()));
}

/* ---- fetch-adds: every old value once ---- */

static void run_adder(void *arg)
{
	struct actor *a = arg;
	struct run *r = a->run;
	struct ha_gpu_conn *c = r->pair.end[0].conn;
	enum ha_gpu_result got;
	uint64_t old = 0;
	bool posted;

	for (uint64_t i = 0; i < r->adds; i++) {
		do
			got = ha_gpu_fetch_add(c, pair_remote(&r->pair, 0, WORD), 5, &old, &posted,
					       draw_limit());
		while (note_result(r, got) && !posted && !r->both_down);
		if (posted) {
			while (got == HA_GPU_TIMEOUT && !r->both_down) {
				got = ha_gpu_fetch_add_wait(c, &old, draw_limit());
				note_result(r, got);
			}
		}
		if (r->both_down)
			return;
		if (old != 5 * i)
			record_corruption(r, "a fetch-add returned a wrong old value");
		r->added++;
	}
}

/*
 * ---- more entries than the ring has, and nobody at the other end: after quiet() they are there
 * ----
 */

static void flood_ring(void *arg)
{
	struct actor *a = arg;
	struct run *r = a->run;
	struct ha_gpu_conn *c = r->pair.end[0].conn;
	uint64_t word;

	for (uint64_t i = 0; i < FLOOD_WORDS; i++) {
		word = r->base + i;
		UNTIL(r, ha_gpu_put_inline(c, pair_remote(&r->pair, 0, FLOOD + 8 * i), &word, 8,
					   draw_below(8) ? HA_GPU_LATER : 0, draw_limit()));
	}
	UNTIL(r, ha_gpu_quiet(c, draw_limit()));
	for (uint64_t i = 0; i < FLOOD_WORDS; i++) {
		memcpy(&word, r->pair.end[1].heap + FLOOD + 8 * i, 8);
		if (word != r->base + i)
			record_corruption(r, "quiet was done, and a put is not there");
	}
}

static void run_server(void *arg)
{
	struct actor *a = arg;

	for (;;)
		if (!ha_gpu_serve(a->run->pair.end[1].conn))
			ha_gpu_pause();
}

/* ---- the machinery ---- */

static void add_actor(struct run *r, struct actor *actors, unsigned *n, void (*run)(void *),
		      unsigned stream, struct ha_gpu_warp *warp, bool helper)
{
	struct actor *a = &actors[(*n)++];

	*a = (struct actor) { .run = r, .stream = stream, .last_quiet = draw_below(2) };
	for (unsigned lane = 0; lane < (warp ? warp->lanes : 1); lane++) {
		struct actor *l = lane ? &actors[(*n)++] : a;

		*l = *a;
		l->self = (struct ha_gpu_self) { warp, lane };
		ha_gpu_fiber_add(run, l, &l->self, helper);
	}
}

static void configure_pair(struct pair_config *c, bool dc)
{
	hunt_configure(c);
	c->dc = dc;
	c->chunk = CHUNK_LOG;
	c->heap_bytes = (HEAP + 1023) & ~1023u;
}

static void add_actors(struct run *r, struct actor *actors, unsigned *n, struct ha_gpu_warp *warps)
{
	hunt_populate(&r->pair);
	for (unsigned s = 0; s < r->streams; s++) {
		r->messages[s] = 4 + (unsigned)draw_below(12);
		for (unsigned m = 0; m < r->messages[s]; m++)
			r->length[s][m] =
				1 + (uint32_t)draw_below(draw_below(3) ? 64 : BUFFER_BYTES);
		warps[s].lanes = r->lanes;
		add_actor(r, actors, n, run_sender, s, r->lanes > 1 ? &warps[s] : NULL, false);
		add_actor(r, actors, n, run_receiver, s, NULL, false);
	}
	if (!draw_below(3)) {
		fill_pattern(r, r->pair.end[1].heap + REGION, 9, 0, REGION_BYTES);
		add_actor(r, actors, n, run_reader, 0, NULL, false);
		add_actor(r, actors, n, run_owner, 0, NULL, false);
	}
	if (!draw_below(4))
		add_actor(r, actors, n, flood_ring, 0, NULL, false);
	if (!draw_below(3) && !HA_GPU_MUTATION(PLAIN_ADD)) {
		r->adds = 6;
		add_actor(r, actors, n, run_adder, 0, NULL, false);
		add_actor(r, actors, n, run_server, 0, NULL, true);
	}
}

static void judge_run(struct run *r, bool finished)
{
	struct hunt_result *res = r->result;
	uint64_t word;

	if (res->verdict == HUNT_CORRUPT)
		return;
	if (!finished) {
		res->verdict = HUNT_HANG;
		res->why = "somebody still waits";
		return;
	}
	memcpy(&word, r->pair.end[1].heap + WORD, 8);
	if (!r->both_down && word != 5 * r->added)
		record_corruption(r, "the sum of the fetch-adds is wrong");
	for (unsigned s = 0; s < r->streams && !r->both_down; s++)
		if (ha_gpu_signal_value(r->pair.end[1].conn, s) != r->messages[s])
			record_corruption(r, "signals were lost");
	if (r->both_down && !(hunt_struck(&r->pair, 0) && hunt_struck(&r->pair, 1)))
		record_corruption(r, "a path that nothing happened to was given up");
	if (r->both_down && res->verdict == HUNT_GOOD)
		res->verdict = HUNT_GAVE_UP;
}

static void describe_nic(const struct soft_nic *n, unsigned i)
{
	const struct soft_fault *f = &n->fault;

	if (n->struck || f->armed)
		printf("NIC %u: act %d n %u complete %d then %d announced %d at %llu struck %llu\n",
		       i, f->act, f->n, f->complete, f->then, f->announced,
		       (unsigned long long)f->at, (unsigned long long)n->struck);
}

/* Signal s from end e. */
static void describe_signal(const struct run *r, unsigned s, unsigned e)
{
	uint64_t seen = ha_gpu_signal_value(r->pair.end[!e].conn, s);
	uint64_t sent = r->pair.end[e].conn->sent[s];

	if (seen || sent)
		printf("signal %u from %u: sent %llu seen %llu of %u\n", s, e,
		       (unsigned long long)sent, (unsigned long long)seen,
		       s < STREAMS ? r->messages[s] : 0);
}

static void describe_path(const struct ha_gpu_agent_path *path, const struct soft_qp *q, unsigned p)
{
	printf("  path %u: state %d cause %d incarnation %llu fenced %llu joined %llu proved %llu "
	       "posted %llu answered %llu failures %u late %llu"
	       " | nic power %d link %d | qp state %d ci %u pi %u accepts %d expected %llu psn "
	       "%llu\n",
	       p, path->state, path->cause, (unsigned long long)path->incarnation,
	       (unsigned long long)path->peer_fenced, (unsigned long long)path->peer_joined,
	       (unsigned long long)path->peer_proved, (unsigned long long)path->posted,
	       (unsigned long long)path->answered, path->failures,
	       (unsigned long long)path->probe_late, (int)q->nic->power, (int)q->nic->link,
	       q->state, q->ci, q->pi, q->rx.accepts, (unsigned long long)q->rx.expected,
	       (unsigned long long)q->psn);
}

static void describe_end(const struct run *r, unsigned e)
{
	const struct ha_gpu_conn *c = r->pair.end[e].conn;
	const struct ha_gpu_agent *a = &r->pair.end[e].agent;

	printf("end %u: resv %llx ready %llx rung %llx cons %llx tail %llx bell %d error %llx "
	       "producer %llx active %d carrying %d taken %d\n",
	       e, (unsigned long long)c->resv, (unsigned long long)c->ready,
	       (unsigned long long)c->rung, (unsigned long long)c->cons,
	       (unsigned long long)c->tail, (int)c->bell, (unsigned long long)c->error,
	       (unsigned long long)c->producer, (int)c->active, a->carrying, a->taken);
	for (unsigned p = 0; p < 2; p++)
		describe_path(&a->path[p], r->pair.end[e].path[p].qp, p);
}

/* For whoever looks into a seed. */
static void describe_run(const struct run *r)
{
	for (unsigned i = 0; i < 4; i++)
		describe_nic(&r->pair.fabric->nic[i], i);
	for (unsigned s = 0; s < HA_GPU_SIGNALS; s++)
		for (unsigned e = 0; e < 2; e++)
			describe_signal(r, s, e);
	for (unsigned e = 0; e < 2; e++)
		describe_end(r, e);
}

void hunt_run(struct soft_fabric *fabric, uint64_t seed, const struct hunt_options *o,
	      struct hunt_result *res)
{
	static struct run run;
	struct actor actors[4 * STREAMS + 16];
	struct ha_gpu_warp warps[STREAMS] = { 0 };
	struct pair_config c;
	unsigned n = 0;
	bool finished;

	memset(res, 0, sizeof(*res));
	memset(&run, 0, sizeof(run));
	run.result = res;
	hunt_begin(fabric, seed);
	fabric->moves = o->moves;
	configure_pair(&c, o->dc);
	if (o->apart)
		hunt_set_apart(&c);
	pair_make(&run.pair, fabric, &c);
	run.base = ha_gpu_fibers_random();
	run.streams = 1 + (unsigned)draw_below(STREAMS);
	run.lanes = draw_below(3) ? 1 : WARP;
	hunt_script(fabric, o, !c.proof_every);
	add_actors(&run, actors, &n, warps);
	finished = ha_gpu_fibers_run(LIMIT_NS);
	judge_run(&run, finished);
	if (o->verbose && res->verdict >= HUNT_CORRUPT)
		describe_run(&run);
	hunt_end(&run.pair, res);
}
