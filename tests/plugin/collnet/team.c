/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/collnet/team.h"

#include "base/clock.h"
#include "base/config.h"

#include <errno.h>
#include <unistd.h>

static struct ha_ctx *core;
uint64_t team_silence_ns =
	100000000000ull; /* a group breaks when a test breaks it, not when the machine pauses */

double team_now(void)
{
	return ha_monotonic_s();
}

/* Quarters, small: every sum of them is exact in any order, but for what the words of `odd`
 * bring. */
static float value_of(unsigned op, int rank, size_t i)
{
	uint64_t x = (op * 31u + (unsigned)rank * 7u + 1) * 0x9e3779b97f4a7c15ull +
		     i * 0xd1342543de82ef95ull;

	return (float)(int)(x >> 54) / 4.0f + (i % 61 == 3 ? 1e-7f * (float)(rank + 1) : 0.0f);
}

/* What the ring makes of a word: its part's rank first, each next one's own after it. */
static float ring_sum(const struct team *t, unsigned op, size_t segment, size_t i)
{
	size_t at = segment * (HA_INA_SEGMENT / 4), words = t->words[op] - at, n = (size_t)t->ranks;
	int part = 0;
	float sum;

	if (words > HA_INA_SEGMENT / 4)
		words = HA_INA_SEGMENT / 4;
	while (i - at >= words * (size_t)(part + 1) / n)
		part++;
	sum = value_of(op, part, i);
	for (int k = 1; k < t->ranks; k++)
		sum += value_of(op, (part + k) % t->ranks, i);
	return sum;
}

static float hub_sum(const struct team *t, unsigned op, size_t i)
{
	double sum = HUB_MARK;

	for (int r = 0; r < t->ranks; r++)
		sum += value_of(op, r, i);
	return (float)sum;
}

static void verify_segment(struct team *t, unsigned op, int r, size_t segment)
{
	const struct team_op *o = &t->op[op][r];
	size_t from = segment * (HA_INA_SEGMENT / 4), to = from + HA_INA_SEGMENT / 4;
	bool ring, last;

	if (to > t->words[op])
		to = t->words[op];
	ring = o->out[from] == ring_sum(t, op, segment, from);
	for (size_t i = from; i < to; i++) {
		float want = ring ? ring_sum(t, op, segment, i) : hub_sum(t, op, i);

		if (memcmp(&want, &o->out[i], sizeof(want))) {
			fprintf(stderr,
				"operation %u, rank %d, word %zu of %zu: %.9g is not the %s's "
				"%.9g\n",
				op, r, i, t->words[op], (double)o->out[i], ring ? "ring" : "switch",
				(double)want);
			exit(1);
		}
	}
	last = true;
	for (int q = 0; q < t->ranks; q++)
		last &= q == r || t->op[op][q].done;
	for (int q = 0; q < t->ranks && last; q++) /* the same bits everywhere */
		CHECK(t->gone[q] ||
		      !memcmp(o->out + from, t->op[op][q].out + from, (to - from) * 4));
	if (last && ring)
		t->ringed++;
	else if (last)
		t->switched++;
}

static void release_buffers(struct team *t, unsigned op)
{
	for (int r = 0; r < t->ranks; r++)
		if (!t->op[op][r].done)
			return;
	for (int r = 0; r < t->ranks; r++) {
		if (t->op[op][r].in != t->op[op][r].out)
			free(t->op[op][r].in);
		free(t->op[op][r].out);
	}
}

static void core_end(void)
{
	ha_ctx_destroy(core);
}

void team_begin(struct team *t, int ranks, bool always)
{
	static struct ha_config config;
	struct ha_ctx_params params = { .config = &config };
	struct ha_collnet_params p = { .ina = &hub_ops,
				       .always = always,
				       .timeout_ns = 30000000000ull,
				       .opts.traffic_class = -1 };
	static uint8_t handle[HA_COLLNET_RANKS][HA_HANDLE_MAX];
	void *handles[HA_COLLNET_RANKS];

	memset(t, 0, sizeof(*t));
	p.silence_ns = team_silence_ns;
	t->ranks = ranks;
	if (!core) {
		ha_config_load_env(&config);
		CHECK_INT(ha_ctx_create(&params, &core), 0);
		atexit(core_end);
	}
	p.core = core;
	for (int r = 0; r < ranks; r++) {
		p.backend = hub_backend((unsigned)r);
		CHECK_INT(ha_collnet_listen(&p, 0, handle[r], &t->listen[r]), 0);
		handles[r] = handle[r];
	}
	for (int r = 0; r < ranks; r++) {
		CHECK_INT(ha_collnet_connect(t->listen[r], handles, ranks, r, &t->comm[r]), 0);
		t->error[r] = -EAGAIN;
	}
}

void team_open(struct team *t, int ranks, bool always)
{
	double end = team_now() + TEAM_WAIT_S;
	int going = ranks;

	team_begin(t, ranks, always);
	while (going) {
		for (int r = 0; r < ranks; r++) {
			if (t->error[r] != -EAGAIN)
				continue;
			t->error[r] = ha_collnet_connect_step(t->comm[r]);
			going -= t->error[r] != -EAGAIN;
		}
		CHECK(team_now() < end);
		usleep(20);
	}
}

void team_close(struct team *t)
{
	for (int r = 0; r < t->ranks; r++) {
		if (!t->gone[r])
			ha_collnet_close(t->comm[r]);
		ha_collnet_close_listen(t->listen[r]);
	}
	CHECK_INT(hub.opened, 0);
	CHECK_INT(hub.joined, 0);
	CHECK_INT(hub.ops, 0);
}

void team_plan(struct team *t, unsigned first, unsigned n, size_t words)
{
	for (unsigned i = first; i < first + n; i++)
		t->words[i] = words;
}

bool team_post(struct team *t, int r)
{
	unsigned n = t->posted[r];
	struct team_op *o = &t->op[n][r];
	size_t bytes = t->words[n] * 4;

	if (!o->in) {
		o->in = malloc(bytes + 4);
		o->out = t->in_place ? o->in : malloc(bytes + 4);
		for (size_t i = 0; i < t->words[n]; i++)
			o->in[i] = value_of(n, r, i);
	}
	CHECK_INT(ha_collnet_iallreduce(t->comm[r], o->in, o->out, bytes, &o->op), 0);
	o->posted = o->op != NULL;
	t->posted[r] += o->posted;
	return o->posted;
}

void team_test(struct team *t, int r)
{
	unsigned n = t->tested[r];
	struct team_op *o = &t->op[n][r];
	size_t bytes = 1;
	int done = 0;

	if (n >= t->posted[r])
		return;
	CHECK_INT(ha_collnet_test(o->op, &done, &bytes), 0);
	if (!done)
		return;
	CHECK_INT(bytes, t->words[n] * 4);
	o->done = true;
	t->tested[r]++;
	for (size_t s = 0; s * (HA_INA_SEGMENT / 4) < t->words[n]; s++)
		verify_segment(t, n, r, s);
	release_buffers(t, n);
}

void team_run(struct team *t, unsigned n, unsigned window)
{
	double end = team_now() + TEAM_WAIT_S;
	bool over = false;

	while (!over) {
		over = true;
		for (int r = 0; r < t->ranks; r++) {
			if (t->posted[r] < n && t->posted[r] - t->tested[r] < window)
				team_post(t, r);
			team_test(t, r);
			over &= t->tested[r] >= n;
		}
		if (team_now() >= end) {
			for (int r = 0; r < t->ranks; r++)
				fprintf(stderr, "rank %d: posted %u, done %u of %u\n", r,
					t->posted[r], t->tested[r], n);
			CHECK(!"a standstill");
		}
	}
}

struct ha_collnet_stats team_stats(const struct team *t, int r)
{
	struct ha_collnet_stats s;

	ha_collnet_stats(t->comm[r], &s);
	return s;
}

unsigned team_until_on_switch(struct team *t, unsigned next)
{
	double end = team_now() + TEAM_WAIT_S;
	uint64_t before = team_stats(t, 0).switched;

	while (team_stats(t, 0).switched == before) {
		CHECK(team_now() < end && next < TEAM_OPS);
		team_plan(t, next, 1, 16);
		team_run(t, ++next, 1);
		usleep(team_stats(t, 0).on_switch ? 100 : 20000); /* attempts are seconds apart */
	}
	return next;
}
