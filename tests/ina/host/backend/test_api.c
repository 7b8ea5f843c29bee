/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs call (include/hawser/ina.h, libhawser-ina.so), over real backends, with the slot
 * core between them. One thread posts for all ranks. */
#include "base/clock.h"
#include "base/log.h"
#include "include/hawser/ina.h"
#include "tests/base/share.h"
#include "tests/ina/host/backend/rig.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#define RANKS 4u
#define SECOND 1000000000ull

struct world {
	struct rig rig;
	struct ha_ina *ina[RANKS];
	struct ha_ina_group *group[RANKS];
	struct ha_ina_op *op[RANKS];
	uint8_t *in[RANKS], *out[RANKS];
	size_t bytes;
};

static bool old;           /* frames */
static unsigned switch_ms; /* how long a silent switch is waited for; 0: as the rig has it */

static void groups_make(struct world *w)
{
	uint8_t ticket[HA_INA_TICKET];
	uint32_t member[RANKS];

	for (unsigned r = 0; r < RANKS; r++)
		member[r] = ha_ina_address(w->ina[r]);
	if (ha_ina_group_create(w->ina[0], member, RANKS, "api", ticket))
		fprintf(stderr, "%s\n", ha_ina_error(w->ina[0]));
	for (unsigned r = 0; r < RANKS; r++) {
		CHECK_INT(ha_ina_group_join(w->ina[r], ticket, r, &w->group[r]), 0);
		CHECK(ha_ina_group_rank(w->group[r]) == r &&
		      ha_ina_group_ranks(w->group[r]) == RANKS);
	}
}

static void world_open(struct world *w, size_t bytes)
{
	char why[256] = "";

	memset(w, 0, sizeof(*w));
	w->bytes = bytes;
	rig_open(&w->rig,
		 &(struct rig_options) {
			 .hosts = 2, .workers = 2, .old_frames = old, .switch_ms = switch_ms });
	for (unsigned r = 0; r < RANKS; r++) {
		struct ha_ina_options o = { .backend = w->rig.host[r % 2].path,
					    .buffer = 4 * HA_INA_SEGMENT };

		if (ha_ina_open(&w->ina[r], &o, why, sizeof(why)))
			fprintf(stderr, "%s\n", why);
		CHECK(w->ina[r] && ha_ina_address(w->ina[r]) == RIG_ADDR(r % 2));
		w->in[r] = malloc(bytes);
		w->out[r] = malloc(bytes);
		CHECK(w->in[r] && w->out[r]);
	}
	groups_make(w);
}

static void world_close(struct world *w)
{
	for (unsigned r = 0; r < RANKS; r++) {
		ha_ina_group_leave(w->group[r]);
		ha_ina_close(w->ina[r]);
		free(w->in[r]);
		free(w->out[r]);
	}
	rig_close(&w->rig);
}

static float value_of(unsigned rank, size_t i)
{
	/* sums of four are exact */
	return (float)((int)((i * 2654435761u ^ rank * 40503u) % 20001) - 10000) / 64;
}

static void fill_buffers(struct world *w)
{
	for (unsigned r = 0; r < RANKS; r++)
		for (size_t i = 0; i < w->bytes / 4; i++) {
			((float *)(void *)w->in[r])[i] = value_of(r, i);
			((float *)(void *)w->out[r])[i] = -1;
		}
}

static void post_on_all(struct world *w, struct ha_ina_request q, bool in_place)
{
	for (unsigned r = 0; r < RANKS; r++) {
		q.in = w->in[r];
		q.out = in_place ? w->in[r] : w->out[r];
		if (ha_ina_post(w->group[r], &q, &w->op[r]))
			fprintf(stderr, "%s\n", ha_ina_error(w->ina[r]));
		CHECK(w->op[r]);
	}
}

static void await_operations(struct world *w)
{
	for (unsigned r = 0; r < RANKS; r++) {
		CHECK_INT(ha_ina_wait(w->op[r], 60 * SECOND), 0);
		ha_ina_op_free(w->op[r]);
		w->op[r] = NULL;
	}
}

static float sum_of(size_t i)
{
	float s = 0;

	for (unsigned r = 0; r < RANKS; r++)
		s += value_of(r, i);
	return s;
}

static const float *out_of(const struct world *w, unsigned rank)
{
	return (const float *)(const void *)w->out[rank];
}

static void collectives_are_exact(void)
{
	static struct world w;
	size_t n, part;

	world_open(&w, 3u << 20);
	n = w.bytes / 4;
	part = n / RANKS;
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_REDUCE, .type = HA_INA_FLOAT32, .bytes = w.bytes },
		    false);
	await_operations(&w);
	for (unsigned r = 0; r < RANKS; r++)
		for (size_t i = 0; i < n; i++)
			CHECK(out_of(&w, r)[i] == sum_of(i));
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) { .coll = HA_INA_REDUCE_SCATTER,
					      .type = HA_INA_FLOAT32,
					      .bytes = w.bytes },
		    false);
	await_operations(&w);
	for (unsigned r = 0; r < RANKS; r++)
		for (size_t i = 0; i < part; i++)
			CHECK(out_of(&w, r)[i] == sum_of(r * part + i));
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_GATHER, .type = HA_INA_FLOAT32, .bytes = w.bytes },
		    false);
	await_operations(&w);
	for (unsigned r = 0; r < RANKS; r++)
		for (size_t i = 0; i < n; i++)
			CHECK(out_of(&w, r)[i] == value_of((unsigned)(i / part), i % part));
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) { .coll = HA_INA_BROADCAST,
					      .type = HA_INA_BYTES,
					      .root = 2,
					      .bytes = 1000003 },
		    true);
	await_operations(&w);
	for (unsigned r = 0; r < RANKS; r++)
		CHECK(!memcmp(w.in[r], w.in[2], 1000003));
	post_on_all(&w, (struct ha_ina_request) { .coll = HA_INA_BARRIER }, false);
	await_operations(&w);
	world_close(&w);
}

/* The switch falls silent in the middle: every rank has a result, or its own contribution, of each
 * segment; and knows which. */
static void segments_are_whole(void)
{
	static struct world w;
	size_t n, each = HA_INA_SEGMENT / 4, done = 0, kept = 0;

	switch_ms = RIG_SILENT_MS;
	world_open(&w, 12u << 20);
	n = w.bytes / 4;
	fill_buffers(&w);
	fabric_switch_down_after(
		w.rig.fabric,
		5 * (HA_INA_SEGMENT /
		     256)); /* of six segments; four at most are under way at a time */
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_REDUCE, .type = HA_INA_FLOAT32, .bytes = w.bytes },
		    true);
	for (unsigned r = 0; r < RANKS; r++) {
		CHECK_INT(ha_ina_wait(w.op[r], 60 * SECOND), -ETIMEDOUT);
		CHECK_INT(ha_ina_op_segments(w.op[r]), w.bytes / HA_INA_SEGMENT);
		for (size_t i = 0; i < n; i++) {
			float is = ((const float *)(const void *)w.in[r])[i];
			bool has = ha_ina_op_done(w.op[r], i / each);

			CHECK(is == (has ? sum_of(i) : value_of(r, i)));
			done += has;
			kept += !has;
		}
		ha_ina_op_free(w.op[r]);
		CHECK_INT(ha_ina_group_state(w.group[r]), -ETIMEDOUT);
		ha_ina_group_leave(w.group[r]);
	}
	CHECK(done >= RANKS * each && kept >= RANKS * each);
	fabric_switch_down(w.rig.fabric, false);
	groups_make(&w);
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_REDUCE, .type = HA_INA_FLOAT32, .bytes = 100000 },
		    false);
	await_operations(&w);
	for (unsigned r = 0; r < RANKS; r++)
		CHECK(out_of(&w, r)[24999] == sum_of(24999));
	world_close(&w);
	switch_ms = 0;
}

/* The backend is started again: what was open says so, and what is opened then works. */
static void backend_restarts(void)
{
	static struct world w;

	world_open(&w, 1u << 20);
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_REDUCE, .type = HA_INA_FLOAT32, .bytes = w.bytes },
		    false);
	await_operations(&w);
	for (unsigned r = 0; r < 3; r++) /* rank 3 brings nothing: they wait */
		CHECK_INT(ha_ina_post(w.group[r],
				      &(struct ha_ina_request) { .coll = HA_INA_BARRIER },
				      &w.op[r]),
			  0);
	rig_host_stop(&w.rig, 1);
	for (unsigned r = 0; r < 3; r++) {
		CHECK_INT(ha_ina_wait(w.op[r], 60 * SECOND), r % 2 ? -ENOTCONN : -ECANCELED);
		ha_ina_op_free(w.op[r]);
	}
	for (unsigned r = 0; r < RANKS; r++)
		ha_ina_group_leave(w.group[r]);
	rig_host_start(&w.rig, 1);
	for (unsigned r = 1; r < RANKS; r += 2) {
		struct ha_ina_options o = { .backend = w.rig.host[1].path,
					    .buffer = 4 * HA_INA_SEGMENT };
		char why[256];

		ha_ina_close(w.ina[r]);
		CHECK_INT(ha_ina_open(&w.ina[r], &o, why, sizeof(why)), 0);
	}
	groups_make(&w);
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_REDUCE, .type = HA_INA_FLOAT32, .bytes = w.bytes },
		    false);
	await_operations(&w);
	for (unsigned r = 0; r < RANKS; r++)
		CHECK(out_of(&w, r)[1000] == sum_of(1000));
	world_close(&w);
}

static atomic_bool awake, go_on;

static void hold_callback(void *arg, int result)
{
	atomic_store(&awake, true);
	while (!atomic_load(&go_on))
		rig_pause(1000);
}

static void *give_up(void *op)
{
	ha_ina_op_free(op);
	return NULL;
}

/*
 * A rank gives up an operation of which its backend has nothing in its hands: not asked yet, or
 * between two segments. The others get it at once all the same, and do not wait for as long as they
 * would for one that is slow.
 */
static void given_up_unasked(void)
{
	const struct ha_ina_request barrier = { .coll = HA_INA_BARRIER };
	static struct world w;
	struct ha_ina_op *first;
	pthread_t thread;
	struct share before;
	uint64_t begun;

	world_open(&w, 4096);
	for (unsigned r = 0; r < RANKS; r++)
		CHECK_INT(ha_ina_post(w.group[r], &barrier, &w.op[r]), 0);
	CHECK_INT(ha_ina_notify(w.op[0], hold_callback, NULL), 0);
	while (!atomic_load(&awake)) /* rank 0's library does nothing from here on */
		rig_pause(1000);
	for (unsigned r = 1; r < RANKS; r++) {
		CHECK_INT(ha_ina_wait(w.op[r], 60 * SECOND), 0);
		ha_ina_op_free(w.op[r]);
	}
	for (unsigned r = 1; r < RANKS; r++)
		CHECK_INT(ha_ina_post(w.group[r], &barrier, &w.op[r]), 0);
	first = w.op[0];
	CHECK_INT(ha_ina_post(w.group[0], &barrier, &w.op[0]), 0);
	CHECK_INT(pthread_create(&thread, NULL, give_up, w.op[0]), 0);
	while (!ha_ina_group_state(w.group[0]))
		rig_pause(1000);
	atomic_store(&go_on, true);
	pthread_join(thread, NULL);
	ha_ina_op_free(first);
	before = share_read();
	begun = ha_clock_now(&ha_clock_live);
	for (unsigned r = 1; r < RANKS; r++) {
		CHECK_INT(ha_ina_wait(w.op[r], 60 * SECOND), -ECANCELED);
		ha_ina_op_free(w.op[r]);
	}
	/* a peer is waited for for 10 s */
	share_check_limit(&before, "the end of all operations",
			  (double)(ha_clock_now(&ha_clock_live) - begun) / (double)SECOND, 5);
	world_close(&w);
}

/* Old frames have no room for an exponent: who asks for float32 learns that, and what to do; whole
 * numbers are summed. */
static void old_frames_are_reported(void)
{
	static struct world w;

	old = true;
	world_open(&w, 4096);
	fill_buffers(&w);
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_REDUCE, .type = HA_INA_INT32, .bytes = w.bytes },
		    false);
	await_operations(&w);
	post_on_all(&w,
		    (struct ha_ina_request) {
			    .coll = HA_INA_ALL_REDUCE, .type = HA_INA_FLOAT32, .bytes = w.bytes },
		    false);
	for (unsigned r = 0; r < RANKS; r++) {
		CHECK_INT(ha_ina_wait(w.op[r], 60 * SECOND), -EOPNOTSUPP);
		if (!strstr(ha_ina_error(w.ina[r]), "without --old-frames"))
			fprintf(stderr, "said: %s\n", ha_ina_error(w.ina[r]));
		CHECK(strstr(ha_ina_error(w.ina[r]), "without --old-frames"));
		ha_ina_op_free(w.op[r]);
	}
	world_close(&w);
	old = false;
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "collectives", collectives_are_exact },
		{ "segments_are_whole", segments_are_whole },
		{ "backend_restarts", backend_restarts },
		{ "old_frames_are_reported", old_frames_are_reported },
		{ "given_up_unasked", given_up_unasked },
	};

	ha_log_configure(NULL, NULL, 1);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
