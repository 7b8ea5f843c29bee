/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda.c - memory of a GPU, with a stand-in for the CUDA runtime (fake_cudart.c) whose copies
 * come late */
#include "tests/ina/host/front/fake_cudart.h"
#include "tests/ina/host/front/rig.h"
#include "tests/ina/switch/named.h"

#include <dlfcn.h>
#include <unistd.h>

#define N (5 * (size_t)HA_INA_SEGMENT / 4 + 100) /* elements: 5 segments and a bit */
#define BYTES (4 * N)

static struct fake_counts *count;
static fake_launch_fn launch;
static int (*stream_create)(void **stream, unsigned flags);
static int (*stream_destroy)(void *stream);
static int (*set_device)(int device);
static int32_t *a, *b;

static void *find_call(void *library, const char *name)
{
	void *found = dlsym(library, name);

	CHECK(found);
	return found;
}

static void load_runtime(void)
{
	void *library = dlopen("libcudart.so", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	count = ((fake_counts_fn)find_call(library, "fake_counts"))();
	launch = (fake_launch_fn)find_call(library, "fake_launch");
	stream_create = (int (*)(void **, unsigned))find_call(library, "cudaStreamCreateWithFlags");
	stream_destroy = (int (*)(void *))find_call(library, "cudaStreamDestroy");
	set_device = (int (*)(int))find_call(library, "cudaSetDevice");
	a = calloc(2, BYTES);
	b = calloc(2, BYTES);
}

static void *new_stream(void)
{
	void *stream;

	CHECK_INT(stream_create(&stream, 1), 0);
	return stream;
}

static struct ha_ina *open_loopback(void)
{
	struct ha_ina_options options = { .loopback = true, .buffer = 6u << 20 };
	struct ha_ina *ina;
	char why[200];

	CHECK_INT(ha_ina_open(&ina, &options, why, sizeof(why)), 0);
	return ina;
}

/* Everything that was made is gone, everything asked was done, nothing was wrong. */
static void check_balanced(void)
{
	CHECK_INT(atomic_load(&count->wrong), 0);
	CHECK_INT(atomic_load(&count->registered), atomic_load(&count->unregistered));
	CHECK_INT(atomic_load(&count->streams_made), atomic_load(&count->streams_gone));
	CHECK_INT(atomic_load(&count->events_made), atomic_load(&count->events_gone));
	CHECK_INT(atomic_load(&count->copies_asked), atomic_load(&count->copies_done));
}

static void slow_fill(void *arg)
{
	usleep(50000);
	for (size_t i = 0; i < N; i++)
		a[i] = (int32_t)i;
}

static int32_t seen;

static void slow_look(void *arg)
{
	usleep(50000);
	seen = b[N - 1];
}

static struct ha_ina_request make_request(void *in, void *out, void *stream)
{
	return (struct ha_ina_request) { .coll = HA_INA_ALL_REDUCE,
					 .type = HA_INA_INT32,
					 .bytes = BYTES,
					 .in = in,
					 .out = out,
					 .memory = HA_INA_CUDA,
					 .stream = stream };
}

/* What the stream still writes is waited for; what it still reads of `out` is not overwritten; the
 * end comes after the last byte. */
static void stream_order_is_kept(void)
{
	struct ha_ina *ina;
	struct ha_ina_group *g;
	struct ha_ina_request q;
	struct ha_ina_op *op;
	void *stream;

	load_runtime();
	atomic_store(&count->delay_us, 3000);
	ina = open_loopback();
	g = group_or_die(ina, 3, 1);
	stream = new_stream();
	q = make_request(a, b, stream);
	for (unsigned round = 0; round < 3; round++) {
		memset(a, 0xff, BYTES);
		b[N - 1] = 4711;
		seen = 0;
		launch(stream, slow_fill, NULL);
		launch(stream, slow_look, NULL);
		op = post_or_die(ina, g, &q);
		CHECK_INT(ha_ina_wait(op, TIME_LIMIT), 0);
		CHECK_INT(seen, 4711);
		for (size_t i = 0; i < N; i++)
			CHECK_INT(b[i], 3 * i);
		ha_ina_op_free(op);
	}
	CHECK_INT(atomic_load(&count->copies_done), 3 * 2 * 6);
	ha_ina_group_leave(g);
	ha_ina_close(ina);
	stream_destroy(stream);
	CHECK_INT(atomic_load(&count->registered), 1);
	check_balanced();
}

/* Operation i of mixed_memory_in_flight(): element k of its result comes from element (k % wrap +
 * shift) of its input, `times` as large. */
static void check_mixed(unsigned i)
{
	static const struct {
		unsigned elements, wrap, shift, times;
	} want[] = {
		[HA_INA_ALL_REDUCE] = { 2000, 2000, 0, 2 },
		[HA_INA_REDUCE] = { 2000, 2000, 0, 2 },
		[HA_INA_BROADCAST] = { 2000, 2000, 0, 1 },
		[HA_INA_REDUCE_SCATTER] = { 1000, 1000, 1000, 2 },
		[HA_INA_ALL_GATHER] = { 2000, 1000, 0, 1 },
		[HA_INA_BARRIER] = { 0 },
	};
	enum ha_ina_coll coll = HA_INA_ALL_REDUCE + i % 6;

	for (unsigned k = 0; k < want[coll].elements; k++) {
		unsigned from = k % want[coll].wrap + want[coll].shift;

		CHECK_INT(b[i * 2000 + k], want[coll].times * (i + from));
	}
}

/* All collectives, two devices, host and device memory in turn, many in flight. */
static void mixed_memory_in_flight(void)
{
	struct ha_ina *ina;
	struct ha_ina_group *g;
	struct ha_ina_op *op[60];
	void *stream[2];

	load_runtime();
	atomic_store(&count->delay_us, 200);
	ina = open_loopback();
	g = group_or_die(ina, 2, 1);
	for (int d = 0; d < 2; d++) {
		set_device(d);
		stream[d] = new_stream();
	}
	for (unsigned i = 0; i < 60; i++) {
		enum ha_ina_coll coll = HA_INA_ALL_REDUCE + i % 6;
		struct ha_ina_request q = { .coll = coll,
					    .type = HA_INA_INT32,
					    .bytes = 8000,
					    .root = 1,
					    .in = a + i * 2000,
					    .out = b + i * 2000 };

		if (i % 4 != 3) {
			q.memory = HA_INA_CUDA;
			q.stream = stream[i & 1];
			set_device(i & 1);
		}
		for (unsigned k = 0; k < 2000; k++)
			a[i * 2000 + k] = (int32_t)(i + k);
		op[i] = post_or_die(ina, g, &q);
	}
	for (unsigned i = 0; i < 60; i++) {
		CHECK_INT(ha_ina_wait(op[i], TIME_LIMIT), 0);
		ha_ina_op_free(op[i]);
		check_mixed(i);
	}
	ha_ina_group_leave(g);
	ha_ina_close(ina);
	set_device(0);
	stream_destroy(stream[0]);
	stream_destroy(stream[1]);
	check_balanced();
}

/* A copy that CUDA refuses ends the operation with its words, and the group; copies before it that
 * are still under way end first. */
static void copy_fails(void)
{
	load_runtime();
	atomic_store(&count->delay_us, 20000);
	for (unsigned at = 1; at <= 12; at++) {
		struct ha_ina *ina = open_loopback();
		struct ha_ina_group *g = group_or_die(ina, 2, 0);
		void *stream = new_stream();
		struct ha_ina_request q = make_request(a, b, stream);
		struct ha_ina_op *op;

		atomic_store(&count->fail_at, atomic_load(&count->copies_asked) + at);
		memset(b, 0x11, BYTES);
		op = post_or_die(ina, g, &q);
		CHECK_INT(ha_ina_wait(op, TIME_LIMIT), -EIO);
		CHECK(strstr(ha_ina_error(ina), "illegal memory access"));
		CHECK_INT(atomic_load(&count->copies_asked), atomic_load(&count->copies_done));
		CHECK_INT(ha_ina_group_state(g), -EIO);
		ha_ina_op_free(op);
		atomic_store(&count->fail_at, 0);
		ha_ina_group_leave(g);
		ha_ina_close(ina);
		stream_destroy(stream);
	}
	check_balanced();
}

/* A copy is queued, and then CUDA does not say where its end is, once or for good: the memory is
 * the copy's until it has ended. */
static void record_fails(void)
{
	int err;

	load_runtime();
	atomic_store(&count->delay_us, 20000);
	slow_fill(NULL);
	for (unsigned at = 0; at < 24; at++) {
		struct ha_ina *ina = open_loopback();
		struct ha_ina_group *g = group_or_die(ina, 2, 0);
		void *stream = new_stream();
		struct ha_ina_request q = make_request(a, b, stream);
		struct ha_ina_op *op;

		atomic_store(&count->fail_records, at % 2 ? 1 : UINT32_MAX);
		/* the first is on the caller's stream */
		atomic_store(&count->fail_record_at, atomic_load(&count->records) + at / 2 + 2);
		op = post_or_die(ina, g, &q);
		err = ha_ina_wait(op, TIME_LIMIT);
		/* when all six pieces are asked and copies out end, so does the operation */
		CHECK(err == -EIO || (!err && at / 2 >= 6));
		CHECK_INT(ha_ina_group_state(g), -EIO);
		for (size_t i = 0; !err && i < N; i++)
			CHECK_INT(b[i], 2 * a[i]);
		CHECK(strstr(ha_ina_error(ina), "event_record") &&
		      strstr(ha_ina_error(ina), "illegal memory access"));
		CHECK_INT(atomic_load(&count->copies_asked), atomic_load(&count->copies_done));
		ha_ina_op_free(op);
		atomic_store(&count->fail_record_at, 0);
		ha_ina_group_leave(g);
		ha_ina_close(ina);
		stream_destroy(stream);
	}
	check_balanced();
}

/* An operation that is freed in the middle: its memory is not touched from then on. */
static void operation_is_freed_early(void)
{
	struct ha_ina *ina;
	struct ha_ina_group *g;
	void *stream;

	load_runtime();
	atomic_store(&count->delay_us, 10000);
	for (unsigned n = 0; n < 8; n++) {
		struct ha_ina_request q;
		struct ha_ina_op *op;

		ina = open_loopback();
		g = group_or_die(ina, 2, 0);
		stream = new_stream();
		q = make_request(a, b, stream);
		op = post_or_die(ina, g, &q);
		usleep(n * 9000);
		ha_ina_op_free(op);
		memset(b, 0x22, BYTES);
		usleep(30000);
		for (size_t i = 0; i < N; i++)
			CHECK_INT(b[i], 0x22222222);
		ha_ina_group_leave(g);
		ha_ina_close(ina);
		stream_destroy(stream);
	}
	check_balanced();
}

static int32_t small[64];

static struct ha_ina_request on_gpu(void)
{
	return (struct ha_ina_request) { .coll = HA_INA_ALL_REDUCE,
					 .type = HA_INA_INT32,
					 .bytes = sizeof(small),
					 .in = small,
					 .out = small,
					 .memory = HA_INA_CUDA };
}

/* A runtime without the calls, or none at all: a sentence, and host memory goes on. */
static void check_without_cuda(const char *text)
{
	struct ha_ina *ina = open_loopback();
	struct ha_ina_group *g = group_or_die(ina, 2, 0);
	struct ha_ina_request q = on_gpu();
	struct ha_ina_op *op;

	CHECK_INT(ha_ina_post(g, &q, &op), -ENOSYS);
	CHECK(strstr(ha_ina_error(ina), text));
	q.memory = HA_INA_HOST;
	CHECK_INT(run_request(ina, g, &q), 0);
	ha_ina_group_leave(g);
	ha_ina_close(ina);
}

static void old_runtime_is_refused(void)
{
	check_without_cuda("must be version 11 or newer");
}

/* A runtime that the program has itself is taken, though the loader would find another one. */
static void own_runtime_is_taken(void)
{
	struct ha_ina_request q = on_gpu();
	struct ha_ina_group *g;
	struct ha_ina *ina;
	void *library = dlopen("libown_cudart.so", RTLD_NOW | RTLD_GLOBAL);

	CHECK(library);
	stream_create = (int (*)(void **, unsigned))find_call(library, "cudaStreamCreateWithFlags");
	stream_destroy = (int (*)(void *))find_call(library, "cudaStreamDestroy");
	q.stream = new_stream();
	ina = open_loopback();
	g = group_or_die(ina, 2, 0);
	for (int i = 0; i < 64; i++)
		small[i] = i;
	CHECK_INT(run_request(ina, g, &q), 0);
	for (int i = 0; i < 64; i++)
		CHECK_INT(small[i], 2 * i);
	CHECK_INT(stream_destroy(q.stream), 0);
	ha_ina_group_leave(g);
	ha_ina_close(ina);
}

/* The machine's own: none, or one that says what it lacks, or one that works. */
static void real_runtime_is_tried(void)
{
	void *library = dlopen("libcudart.so", RTLD_NOW | RTLD_LOCAL);
	struct ha_ina_request q = on_gpu();
	struct ha_ina_group *g;
	struct ha_ina_op *op;
	struct ha_ina *ina;
	void *memory = NULL;

	if (!library) {
		check_without_cuda("libcudart.so is not where the loader looks");
		return;
	}
	ina = open_loopback();
	g = group_or_die(ina, 2, 0);
	if (((int (*)(void **, size_t))find_call(library, "cudaMalloc"))(&memory, sizeof(small))) {
		CHECK_INT(ha_ina_post(g, &q, &op), -EIO);
		fprintf(stderr, "no GPU: %s\n", ha_ina_error(ina));
		CHECK(strstr(ha_ina_error(ina), "cuda"));
	} else {
		int (*copy)(void *, const void *, size_t, int) =
			(int (*)(void *, const void *, size_t, int))find_call(library,
									      "cudaMemcpy");

		for (int i = 0; i < 64; i++)
			small[i] = i;
		CHECK_INT(copy(memory, small, sizeof(small), 1), 0);
		q.in = q.out = memory;
		CHECK_INT(run_request(ina, g, &q), 0);
		CHECK_INT(copy(small, memory, sizeof(small), 2), 0);
		for (int i = 0; i < 64; i++)
			CHECK_INT(small[i], 2 * i);
		fprintf(stderr, "summed on a GPU\n");
	}
	ha_ina_group_leave(g);
	ha_ina_close(ina);
}

/* With softcuda: whoever closes a context goes on with the device that it had. */
static void closing_keeps_the_device(void)
{
	void *library = dlopen("libcudart.so", RTLD_NOW | RTLD_LOCAL), *memory = NULL;
	int (*use)(int), (*get)(int *), (*allocate)(void **, size_t), device = -1;
	struct ha_ina_request q = on_gpu();
	struct ha_ina_group *g;
	struct ha_ina *ina;

	CHECK(library);
	use = (int (*)(int))find_call(library, "cudaSetDevice");
	get = (int (*)(int *))find_call(library, "cudaGetDevice");
	allocate = (int (*)(void **, size_t))find_call(library, "cudaMalloc");
	ina = open_loopback();
	g = group_or_die(ina, 2, 0);
	for (int d = 0; d < 2; d++) {
		CHECK_INT(use(d), 0);
		CHECK_INT(allocate(&memory, sizeof(small)), 0);
		q.in = q.out = memory;
		CHECK_INT(run_request(ina, g, &q), 0);
	}
	CHECK_INT(use(0), 0);
	ha_ina_group_leave(g);
	ha_ina_close(ina);
	CHECK_INT(get(&device), 0);
	CHECK_INT(device, 0);
}

static const struct named_test tests[] = {
	{ "order", stream_order_is_kept },      { "mixed", mixed_memory_in_flight },
	{ "copy_fails", copy_fails },           { "record_fails", record_fails },
	{ "freed", operation_is_freed_early },  { "old", old_runtime_is_refused },
	{ "own", own_runtime_is_taken },        { "real", real_runtime_is_tried },
	{ "device", closing_keeps_the_device },
};

int main(int argc, char **argv)
{
	alarm(850);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
