/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ring.c - rings between two threads, full, empty, asleep, torn */
#include "ina/host/shm/ring.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define SIZE 8u
/* entries of 8: on a busy machine each ring of them is a turn of the scheduler for both threads */
#define MANY 40000u

struct entry {
	uint64_t a, b;
};

static struct ina_shm_ends ends;
static struct entry slots[SIZE];
static struct ina_shm_ring in, out;

static void open_rings(void)
{
	memset(&ends, 0, sizeof(ends));
	ina_shm_ring_init(&in, &ends, slots, SIZE, sizeof(slots[0]));
	ina_shm_ring_init(&out, &ends, slots, SIZE, sizeof(slots[0]));
}

static int push_entry(uint64_t n)
{
	struct entry e = { n, ~n };

	return ina_shm_ring_push(&in, &e);
}

static void full_and_empty(void)
{
	struct entry e;

	open_rings();
	for (unsigned round = 0; round < 1000; round++) {
		unsigned n = round % (SIZE + 1);

		CHECK_INT(ina_shm_ring_pop(&out, &e), 0);
		for (unsigned i = 0; i < n; i++)
			CHECK_INT(push_entry(round * 100 + i), 0);
		if (n == SIZE)
			CHECK_INT(push_entry(0), -EAGAIN);
		for (unsigned i = 0; i < n; i++) {
			CHECK_INT(ina_shm_ring_pop(&out, &e), 1);
			CHECK(e.a == round * 100 + i && e.b == ~e.a);
		}
	}
}

/* Indices wrap at 2^32. */
static void indices_wrap(void)
{
	struct entry e;

	open_rings();
	in.mine = in.other = out.mine = out.other = UINT32_MAX - 20;
	atomic_store(&ends.head.value, UINT32_MAX - 20);
	atomic_store(&ends.tail.value, UINT32_MAX - 20);
	for (unsigned i = 0; i < 100; i++) {
		CHECK_INT(push_entry(i), 0);
		CHECK_INT(push_entry(i + 1000), 0);
		CHECK_INT(ina_shm_ring_pop(&out, &e), 1);
		CHECK_INT(e.a, i);
		CHECK_INT(ina_shm_ring_pop(&out, &e), 1);
		CHECK_INT(e.a, i + 1000);
	}
}

/* Whatever the other side writes into the indices: -EPROTO, and nothing outside of the ring is
 * touched. */
static void torn_ring_is_noticed(void)
{
	static const uint32_t lies[] = { SIZE + 1, 1u << 31, UINT32_MAX, UINT32_MAX - SIZE };
	struct entry e;

	for (unsigned i = 0; i < 4; i++) {
		open_rings();
		atomic_store(&ends.tail.value, lies[i]);
		CHECK_INT(ina_shm_ring_pop(&out, &e), -EPROTO);
		atomic_store(&ends.tail.value, 0);
		CHECK_INT(ina_shm_ring_pop(&out, &e), -EPROTO);
		CHECK(!ina_shm_ring_sleep(&out));
	}
	for (unsigned i = 0; i < 3; i++) {
		open_rings();
		for (unsigned n = 0; n < SIZE; n++)
			CHECK_INT(push_entry(n), 0);
		/* more than was pushed, or less than was there */
		atomic_store(&ends.head.value, lies[i]);
		CHECK_INT(push_entry(9), -EPROTO);
		atomic_store(&ends.head.value, SIZE);
		CHECK_INT(push_entry(9), -EPROTO);
	}
}

static void bell_rings_for_a_sleeper(void)
{
	struct entry e;

	open_rings();
	CHECK_INT(push_entry(1), 0);
	CHECK(!ina_shm_ring_bell(&in));   /* nobody sleeps */
	CHECK(!ina_shm_ring_sleep(&out)); /* there is something */
	CHECK_INT(ina_shm_ring_pop(&out, &e), 1);
	CHECK(ina_shm_ring_sleep(&out));
	CHECK_INT(push_entry(2), 0);
	CHECK(ina_shm_ring_bell(&in));
	CHECK(!ina_shm_ring_bell(&in)); /* once */
	ina_shm_ring_awake(&out);
	CHECK_INT(ina_shm_ring_pop(&out, &e), 1);
	CHECK_INT(push_entry(3), 0);
	CHECK(!ina_shm_ring_bell(&in));
}

static sem_t wake;

static void *push_many(void *arg)
{
	for (uint64_t n = 0; n < MANY;) {
		if (push_entry(n)) {
			sched_yield();
			continue;
		}
		n++;
		if (ina_shm_ring_bell(&in))
			sem_post(&wake);
	}
	return NULL;
}

/* Two threads: every entry once, in order, whole; and who sleeps is woken, or this test hangs. */
static void two_threads_pass_entries(void)
{
	pthread_t thread;
	struct entry e;

	open_rings();
	sem_init(&wake, 0, 0);
	CHECK_INT(pthread_create(&thread, NULL, push_many, NULL), 0);
	for (uint64_t n = 0; n < MANY;) {
		int got = ina_shm_ring_pop(&out, &e);

		CHECK(got >= 0);
		if (got) {
			CHECK(e.a == n && e.b == ~n);
			n++;
		} else if (ina_shm_ring_sleep(&out)) {
			sem_wait(&wake);
			ina_shm_ring_awake(&out);
		}
	}
	pthread_join(thread, NULL);
}

static atomic_bool stop;

static void *write_random_words(void *arg)
{
	for (uint32_t n = 1; !atomic_load(&stop); n = n * 1664525 + 1013904223) {
		_Atomic uint32_t *word[] = { &ends.tail.value, &ends.head.value,
					     &ends.sleeps.value };

		atomic_store_explicit(word[n >> 30 & 1 ? 2 : n >> 29 & 1], n, memory_order_relaxed);
	}
	return NULL;
}

/* A thread that writes anything anywhere while both ends work. */
static void random_writes_do_no_harm(void)
{
	pthread_t thread;
	struct entry e;

	atomic_store(&stop, false);
	open_rings();
	CHECK_INT(pthread_create(&thread, NULL, write_random_words, NULL), 0);
	for (unsigned n = 0; n < 20000; n++) {
		int got;

		ina_shm_ring_init(&in, &ends, slots, SIZE, sizeof(slots[0]));
		ina_shm_ring_init(&out, &ends, slots, SIZE, sizeof(slots[0]));
		for (unsigned i = 0; i < 2 * SIZE; i++) {
			got = push_entry(i);
			CHECK(got == 0 || got == -EAGAIN || got == -EPROTO);
			got = ina_shm_ring_pop(&out, &e);
			CHECK(got == 0 || got == 1 || got == -EPROTO);
		}
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

static const struct named_test tests[] = {
	{ "full_and_empty", full_and_empty },    { "wrap", indices_wrap },
	{ "torn", torn_ring_is_noticed },        { "bell", bell_rings_for_a_sleeper },
	{ "threads", two_threads_pass_entries }, { "vandalised", random_writes_do_no_harm },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
