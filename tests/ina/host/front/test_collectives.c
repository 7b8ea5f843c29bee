/* SPDX-License-Identifier: BSD-3-Clause */
/* test_collectives.c - every collective, by several processes through a backend that adds; and
 * alone, in loopback */
#include "tests/ina/host/front/rig.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

/* What rank r has in place i; an exact sum in every order. */
static int32_t integer_of(unsigned r, size_t i)
{
	return (int32_t)((i * 7 + r * 1001) % 20011) - 10000;
}

/* Blocks of one exponent whose words have all bits that the numbers need: exact, too. */
static float float_of(unsigned r, size_t i)
{
	return (float)integer_of(r, i) / 64;
}

static void put_value(void *at, enum ha_ina_type type, unsigned r, size_t i)
{
	int32_t n = integer_of(r, i);
	float x = float_of(r, i);

	if (type == HA_INA_BYTES)
		((uint8_t *)at)[i] = (uint8_t)n;
	else
		memcpy((uint8_t *)at + 4 * i, type == HA_INA_INT32 ? (void *)&n : (void *)&x, 4);
}

static double get_value(const void *at, enum ha_ina_type type, size_t i)
{
	int32_t n;
	float x;

	if (type == HA_INA_BYTES)
		return ((const uint8_t *)at)[i];
	memcpy(&n, (const uint8_t *)at + 4 * i, 4);
	memcpy(&x, (const uint8_t *)at + 4 * i, 4);
	return type == HA_INA_INT32 ? n : x;
}

static double value_of(enum ha_ina_type type, unsigned r, size_t i)
{
	if (type == HA_INA_BYTES)
		return (uint8_t)integer_of(r, i);
	return type == HA_INA_INT32 ? integer_of(r, i) : float_of(r, i);
}

static double sum_of(enum ha_ina_type type, unsigned ranks, size_t i)
{
	double s = 0;

	for (unsigned r = 0; r < ranks; r++)
		s += value_of(type, r, i);
	return s;
}

struct shape {
	enum ha_ina_coll coll;
	enum ha_ina_type type;
	size_t n; /* elements of the whole */
	unsigned root;
	bool in_place;
};

/* The rank's `in`, filled, and `out`; in parts of one memory or apart. Elements before and behind
 * must stay as they are. */
static void check_result(struct rank *r, const struct shape *s, const void *out)
{
	size_t part = s->n / r->ranks;

	if (s->coll == HA_INA_REDUCE && r->rank != s->root)
		return;
	for (size_t i = 0; i < (s->coll == HA_INA_REDUCE_SCATTER ? part : s->n); i++) {
		double want;

		if (s->coll == HA_INA_ALL_GATHER)
			want = value_of(s->type, (unsigned)(i / part), i % part);
		else if (s->coll == HA_INA_BROADCAST)
			want = value_of(s->type, s->root, i);
		else
			want = sum_of(s->type, r->ranks,
				      s->coll == HA_INA_REDUCE_SCATTER ? r->rank * part + i : i);
		if (get_value(out, s->type, i) != want) {
			fprintf(stderr,
				"coll %d type %d n %zu rank %u root %u: [%zu] is %g, expected %g\n",
				s->coll, s->type, s->n, r->rank, s->root, i,
				get_value(out, s->type, i), want);
			exit(1);
		}
	}
}

static void one_shape(struct rank *r, const struct shape *s)
{
	size_t unit = s->type == HA_INA_BYTES ? 1 : 4, part = s->n / r->ranks, bytes = s->n * unit;
	uint8_t *a = malloc(bytes + 1), *b = malloc(bytes + 1);
	uint8_t *in = a, *out = b;
	size_t brought = s->coll == HA_INA_ALL_GATHER ? part : s->n;
	struct ha_ina_request q = {
		.coll = s->coll, .type = s->type, .root = s->root, .bytes = bytes
	};
	struct ha_ina_op *op;

	if (s->in_place && s->coll == HA_INA_ALL_GATHER)
		in = b + r->rank * part * unit;
	else if (s->in_place && s->coll == HA_INA_REDUCE_SCATTER)
		out = a + r->rank * part * unit;
	else if (s->in_place)
		out = a;
	memset(a, 0x55, bytes + 1);
	memset(b, 0x55, bytes + 1);
	if (s->coll != HA_INA_BROADCAST || r->rank == s->root)
		for (size_t i = 0; i < brought; i++)
			put_value(in, s->type, r->rank, i);
	q.in = in;
	q.out = out;
	op = post_or_die(r->ina, r->group, &q);
	CHECK_INT(ha_ina_wait(op, TIME_LIMIT), 0);
	for (size_t i = 0; i < ha_ina_op_segments(op); i++)
		CHECK(ha_ina_op_done(op, i));
	CHECK_INT(ha_ina_op_met(op), 0);
	ha_ina_op_free(op);
	check_result(r, s, out);
	CHECK(a[bytes] == 0x55 && b[bytes] == 0x55);
	free(a);
	free(b);
}

/* Sizes in elements for each rank: nothing, one, a block more or less, a segment more or less. */
static const size_t sizes[] = {
	0, 1, 63, 64, 65, 1000, (HA_INA_SEGMENT / 4) - 1, HA_INA_SEGMENT / 4, HA_INA_SEGMENT / 4 + 3
};

static void all_of(struct rank *r, enum ha_ina_coll coll)
{
	for (size_t z = 0; z < sizeof(sizes) / sizeof(sizes[0]); z++)
		for (int type = HA_INA_BYTES; type <= HA_INA_FLOAT32; type++)
			for (int in_place = 0; in_place < 2; in_place++) {
				struct shape s = {
					coll, type,
					sizes[z] * (coll >= HA_INA_REDUCE_SCATTER ? r->ranks : 1),
					(unsigned)(z + (unsigned)type) % r->ranks, in_place
				};

				if (type != HA_INA_BYTES || coll == HA_INA_BROADCAST ||
				    coll == HA_INA_ALL_GATHER)
					one_shape(r, &s);
			}
}

static void all_reduces(struct rank *r)
{
	all_of(r, HA_INA_ALL_REDUCE);
}

static void run_reduces(struct rank *r)
{
	all_of(r, HA_INA_REDUCE);
}

static void run_broadcasts(struct rank *r)
{
	all_of(r, HA_INA_BROADCAST);
}

static void reduce_scatters(struct rank *r)
{
	all_of(r, HA_INA_REDUCE_SCATTER);
}

static void all_gathers(struct rank *r)
{
	all_of(r, HA_INA_ALL_GATHER);
}

static void with_backend(unsigned ranks, void (*fn)(struct rank *r), const char *const *options)
{
	backend_start(options);
	ranks_run(ranks, fn, NULL);
	backend_stop();
}

static void all_reduce(void)
{
	with_backend(3, all_reduces, NULL);
}

static void reduce_is_exact(void)
{
	with_backend(3, run_reduces, NULL);
}

static void broadcast_is_exact(void)
{
	with_backend(3, run_broadcasts, NULL);
}

static void reduce_scatter(void)
{
	with_backend(3, reduce_scatters, NULL);
}

static void all_gather(void)
{
	with_backend(3, all_gathers, NULL);
}

/* A tensor larger than the copy buffer, with the segments' answers out of order; 2 segments of
 * buffer. */
static void run_larger_tensor(struct rank *r)
{
	struct shape s = { HA_INA_ALL_REDUCE, HA_INA_INT32, 5 * HA_INA_SEGMENT + 17, 0, false };

	one_shape(r, &s);
	s.coll = HA_INA_ALL_GATHER;
	s.n = 3 * HA_INA_SEGMENT / 2 * r->ranks;
	one_shape(r, &s);
}

static void buffer_small(void)
{
	static const char *const reverse[] = { "--reverse", NULL };

	setenv("NETCCL_COPY_BUFFER", "4M", 1);
	with_backend(2, run_larger_tensor, NULL);
	setenv("NETCCL_COPY_BUFFER", "16M", 1);
	with_backend(2, run_larger_tensor, reverse);
	unsetenv("NETCCL_COPY_BUFFER");
}

static void many_ranks(struct rank *r)
{
	struct shape s = { HA_INA_ALL_REDUCE, HA_INA_FLOAT32, 5000, 0, true };

	one_shape(r, &s);
	s = (struct shape) { HA_INA_REDUCE_SCATTER, HA_INA_INT32, 32 * 100, 0, true };
	one_shape(r, &s);
	CHECK_INT(run_request(r->ina, r->group,
			      &(struct ha_ina_request) { .coll = HA_INA_BARRIER }),
		  0);
}

/* As many as there may be. */
static void ranks_32(void)
{
	setenv("NETCCL_COPY_BUFFER", "2M", 1);
	with_backend(32, many_ranks, NULL);
	unsetenv("NETCCL_COPY_BUFFER");
}

/* A barrier ends nowhere before all have posted it. */
static void run_barriers(struct rank *r)
{
	struct ha_ina_request q = { .coll = HA_INA_BARRIER };

	for (unsigned late = 0; late < r->ranks; late++) {
		struct ha_ina_op *op = NULL;

		if (r->rank != late) {
			op = post_or_die(r->ina, r->group, &q);
			CHECK_INT(ha_ina_wait(op, SECOND / 20), -ETIME);
			CHECK_INT(ha_ina_op_segments(op), 0);
		}
		ranks_meet(r);
		if (r->rank == late)
			op = post_or_die(r->ina, r->group, &q);
		CHECK_INT(ha_ina_wait(op, TIME_LIMIT), 0);
		ha_ina_op_free(op);
	}
}

static void barrier_waits_for_all(void)
{
	with_backend(3, run_barriers, NULL);
}

/* Sums that saturate, blocks without a value: said to all ranks, and only where they are. */
static void check_met(struct rank *r)
{
	int32_t n[128] = { INT32_MAX, 5 };
	float x[128] = { 1, 2 };
	struct ha_ina_request q = { .coll = HA_INA_ALL_REDUCE,
				    .type = HA_INA_INT32,
				    .bytes = sizeof(n),
				    .in = n,
				    .out = n };
	struct ha_ina_op *op = post_or_die(r->ina, r->group, &q);

	CHECK_INT(ha_ina_wait(op, TIME_LIMIT), 0);
	CHECK_INT(ha_ina_op_met(op), HA_INA_SATURATED);
	CHECK(n[0] == INT32_MAX && n[1] == 5 * (int)r->ranks);
	ha_ina_op_free(op);
	x[64] = r->rank == 1 ? (float)INFINITY : 0;
	q = (struct ha_ina_request) { .coll = HA_INA_ALL_REDUCE,
				      .type = HA_INA_FLOAT32,
				      .bytes = sizeof(x),
				      .in = x,
				      .out = x };
	op = post_or_die(r->ina, r->group, &q);
	CHECK_INT(ha_ina_wait(op, TIME_LIMIT), 0);
	CHECK_INT(ha_ina_op_met(op), HA_INA_NONFINITE);
	CHECK(x[0] == (float)r->ranks && x[1] == 2 * (float)r->ranks && isnan(x[64]) &&
	      isnan(x[127]));
	ha_ina_op_free(op);
}

static void met_is_reported(void)
{
	with_backend(3, check_met, NULL);
}

/* ---- alone ---- */

static void run_floats(struct ha_ina *ina, struct ha_ina_group *g, enum ha_ina_coll coll,
		       size_t bytes, const float *in, float *out)
{
	CHECK_INT(run_request(ina, g,
			      &(struct ha_ina_request) { .coll = coll,
							 .type = HA_INA_FLOAT32,
							 .bytes = bytes,
							 .root = coll == HA_INA_BROADCAST,
							 .in = in,
							 .out = out }),
		  0);
}

static void loopback_acts_as_all_ranks(void)
{
	struct ha_ina_options options = { .loopback = true, .buffer = 4u << 20 };
	struct ha_ina *ina;
	struct ha_ina_group *g;
	size_t n = 3 * HA_INA_SEGMENT / 4 + 5, bytes = 4 * n;
	float *x = malloc(bytes), *y = malloc(4 * bytes);
	char why[200];

	CHECK_INT(ha_ina_open(&ina, &options, why, sizeof(why)), 0);
	g = group_or_die(ina, 4, 2);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)i;
	run_floats(ina, g, HA_INA_ALL_REDUCE, bytes, x, y);
	for (size_t i = 0; i < n; i++)
		CHECK(y[i] == 4 * (float)i);
	run_floats(ina, g, HA_INA_ALL_GATHER, 4 * bytes, x, y);
	for (size_t i = 0; i < 4 * n; i++)
		CHECK(y[i] == (float)(i % n));
	run_floats(ina, g, HA_INA_BROADCAST, bytes, x, x);
	for (size_t i = 0; i < n; i++)
		CHECK(x[i] == (float)i);
	run_floats(ina, g, HA_INA_REDUCE_SCATTER, 16, x, y);
	CHECK(y[0] == 8);
	CHECK_INT(run_request(ina, g, &(struct ha_ina_request) { .coll = HA_INA_BARRIER }), 0);
	ha_ina_group_leave(g);
	ha_ina_close(ina);
	setenv("NETCCL_FRONTEND_LOOPBACK", "1", 1);
	ina = open_or_die();
	ha_ina_close(ina);
	free(x);
	free(y);
}

static const struct named_test tests[] = {
	{ "all_reduce", all_reduce },
	{ "reduce", reduce_is_exact },
	{ "broadcast", broadcast_is_exact },
	{ "reduce_scatter", reduce_scatter },
	{ "all_gather", all_gather },
	{ "barrier", barrier_waits_for_all },
	{ "met", met_is_reported },
	{ "buffer_small", buffer_small },
	{ "ranks_32", ranks_32 },
	{ "loopback", loopback_acts_as_all_ranks },
};

int main(int argc, char **argv)
{
	alarm(850);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
