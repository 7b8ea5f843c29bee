/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ops.c - every operation over two healthy paths, as pthreads: what it moves, what it refuses,
 * what it costs the ring */
#include "sim/gpu/pair.h"
#include "tests/ina/switch/named.h"

#include <pthread.h>

#define SECOND UINT64_C(1000000000)
#define TIME_LIMIT (120 * SECOND) /* that only a hang reaches */

static struct pair pair;
static struct pair_config config;
static struct soft_fabric *fabric;
static pthread_t threads[6];

static void start_pair(void)
{
	fabric = soft_fabric_open(4, 32 << 20);
	CHECK(fabric);
	pair_make(&pair, fabric, &config);
	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, soft_nic_run, &fabric->nic[i]));
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[4 + i], NULL, pair_agent_run, &pair.end[i]));
}

static void stop_pair(void)
{
	for (unsigned i = 0; i < 2; i++)
		ha_gpu_store(&pair.end[i].stop, 1);
	for (unsigned i = 0; i < 4; i++)
		ha_gpu_store(&fabric->nic[i].stop, 1);
	for (unsigned i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(fabric->nic[i].count.errors, 0);
	CHECK_INT(pair.end[0].agent.count.switches, 0);
	pair_free(&pair);
	soft_fabric_close(fabric);
}

static void fill_bytes(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* Every length around a chunk's end, from and to odd addresses. */
static void put_and_quiet(void)
{
	static const uint32_t length[] = { 1,    7, 64, 4096, (1 << 14) - 1, 1 << 14, (1 << 14) + 1,
					   50000 };
	struct ha_gpu_conn *c;

	start_pair();
	c = pair.end[0].conn;
	for (unsigned i = 0; i < 8; i++) {
		uint8_t *from = pair.end[0].heap + 13 * i, *to = pair.end[1].heap + 16300 + i;

		fill_bytes(from, length[i], i);
		memset(pair.end[1].heap, 0, config.heap_bytes);
		CHECK_INT(ha_gpu_put_nbi(c, (uint64_t)(uintptr_t)to, from, length[i], 0, SECOND),
			  HA_GPU_DONE);
		CHECK_INT(ha_gpu_quiet(c, TIME_LIMIT), HA_GPU_DONE);
		CHECK(!memcmp(from, to, length[i]));
		CHECK(!to[-1] && !to[length[i]]);
	}
	stop_pair();
}

static void get_copies_bytes(void)
{
	struct ha_gpu_conn *c;

	start_pair();
	c = pair.end[0].conn;
	fill_bytes(pair.end[1].heap, 100000, 3);
	CHECK_INT(ha_gpu_get(c, pair.end[0].heap + 5, pair_remote(&pair, 0, 1), 70001, TIME_LIMIT),
		  HA_GPU_DONE);
	CHECK(!memcmp(pair.end[0].heap + 5, pair.end[1].heap + 1, 70001));
	CHECK_INT(ha_gpu_get(c, pair.end[0].heap, pair_remote(&pair, 0, 0), 0, 0), HA_GPU_DONE);
	stop_pair();
}

static void inline_puts(void)
{
	struct ha_gpu_conn *c;
	uint8_t bytes[28];
	uint64_t posted;

	start_pair();
	c = pair.end[0].conn;
	fill_bytes(bytes, 28, 9);
	for (unsigned n = 0; n <= 28; n++) {
		memset(pair.end[1].heap, 0xee, 64);
		CHECK_INT(ha_gpu_put_inline(c, pair_remote(&pair, 0, 3), bytes, n, 0, SECOND),
			  HA_GPU_DONE);
		CHECK_INT(ha_gpu_quiet(c, TIME_LIMIT), HA_GPU_DONE);
		CHECK(!memcmp(pair.end[1].heap + 3, bytes, n));
		CHECK_INT(pair.end[1].heap[3 + n], 0xee);
	}
	posted = ha_gpu_load(&c->resv);
	CHECK_INT(ha_gpu_put_inline(c, pair_remote(&pair, 0, config.heap_bytes), bytes, 0, 0,
				    SECOND),
		  HA_GPU_DONE);
	CHECK_INT(ha_gpu_load(&c->resv), posted); /* nothing with a key from behind the table */
	CHECK_INT(ha_gpu_put_inline(c, pair_remote(&pair, 0, 3), bytes, 29, 0, SECOND),
		  HA_GPU_REFUSED);
	CHECK_INT(ha_gpu_put_inline(c, pair_remote(&pair, 0, (1 << 14) - 4), bytes, 8, 0, SECOND),
		  HA_GPU_REFUSED);
	stop_pair();
}

static void bad_requests_are_refused(void)
{
	struct ha_gpu_conn *c;
	uint8_t *heap;

	start_pair();
	c = pair.end[0].conn;
	heap = pair.end[0].heap;
	CHECK_INT(ha_gpu_put_nbi(c, pair_remote(&pair, 0, 0), heap - 1, 8, 0, SECOND),
		  HA_GPU_REFUSED);
	CHECK_INT(ha_gpu_put_nbi(c, pair_remote(&pair, 0, 0) - 1, heap, 8, 0, SECOND),
		  HA_GPU_REFUSED);
	CHECK_INT(ha_gpu_put_nbi(c, pair_remote(&pair, 0, config.heap_bytes - 7), heap, 8, 0,
				 SECOND),
		  HA_GPU_REFUSED);
	CHECK_INT(ha_gpu_put_nbi(c, pair_remote(&pair, 0, 0), heap, UINT64_MAX, 0, SECOND),
		  HA_GPU_REFUSED);
	CHECK_INT(ha_gpu_signal(c, HA_GPU_SIGNALS_USER, 1, 0, SECOND), HA_GPU_REFUSED);
	CHECK_INT(ha_gpu_signal(c, 0, 0, 0, SECOND), HA_GPU_REFUSED);
	CHECK_INT(ha_gpu_load(&c->resv), 0);
	stop_pair();
}

/* Signals follow their data: what the signal announces is there. */
static void signals_follow_data(void)
{
	struct ha_gpu_conn *a, *b;

	start_pair();
	a = pair.end[0].conn;
	b = pair.end[1].conn;
	for (uint32_t i = 1; i <= 500; i++) {
		fill_bytes(pair.end[0].heap, 3000, i);
		CHECK_INT(ha_gpu_put_nbi(a, pair_remote(&pair, 0, 100), pair.end[0].heap, 3000,
					 HA_GPU_LATER, TIME_LIMIT),
			  HA_GPU_DONE);
		CHECK_INT(ha_gpu_signal(a, 7, 2, 0, TIME_LIMIT), HA_GPU_DONE);
		CHECK_INT(ha_gpu_wait(b, 7, 2 * i, TIME_LIMIT), HA_GPU_DONE);
		CHECK(!memcmp(pair.end[0].heap, pair.end[1].heap + 100, 3000));
	}
	CHECK_INT(ha_gpu_signal_value(b, 7), 1000);
	CHECK_INT(ha_gpu_wait(b, 7, 1001, 1000000), HA_GPU_TIMEOUT);
	stop_pair();
}

static void *serve_conn(void *end)
{
	struct pair_end *e = end;

	while (!ha_gpu_load(&e->stop))
		if (!ha_gpu_serve(e->conn))
			ha_gpu_pause();
	return NULL;
}

static void *add_200(void *arg)
{
	uint64_t old, *sum = arg;
	bool posted;

	for (unsigned i = 0; i < 200; i++) {
		CHECK_INT(ha_gpu_fetch_add(pair.end[0].conn, pair_remote(&pair, 0, 64), 3, &old,
					   &posted, 200 * SECOND),
			  HA_GPU_DONE);
		*sum += old;
	}
	return NULL;
}

/* Each old value is seen by one asker. */
static void fetch_add(void)
{
	pthread_t server, asker[3];
	uint64_t old[3] = { 0, 0, 0 };

	start_pair();
	CHECK(!pthread_create(&server, NULL, serve_conn, &pair.end[1]));
	for (unsigned i = 0; i < 3; i++)
		CHECK(!pthread_create(&asker[i], NULL, add_200, &old[i]));
	for (unsigned i = 0; i < 3; i++)
		pthread_join(asker[i], NULL);
	CHECK_INT(((uint64_t *)pair.end[1].heap)[8], 1800);
	CHECK_INT(old[0] + old[1] + old[2], 3u * (599 * 600 / 2));
	ha_gpu_store(&pair.end[1].stop, 1);
	pthread_join(server, NULL);
	stop_pair();
}

/* More entries than the 16-bit hardware index has, and it goes round under several threads: nothing
 * is lost, nothing doubled. One thread is alone until shortly before, for threads whose turns
 * alternate need a switch for each entry, which on a busy machine is milliseconds. */
#ifdef __SANITIZE_THREAD__
#define ALONE 0 /* the threads' order is what this build is for */
#else
#define ALONE 62000
#endif
#define EACH 2500
static void signal_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(ha_gpu_signal(pair.end[0].conn, 1, 1, i % 64 == 63 ? 0 : HA_GPU_LATER,
					60 * SECOND),
			  HA_GPU_DONE);
}

static void *signal_each(void *unused)
{
	signal_many(EACH);
	return NULL;
}

static void index_wraps(void)
{
	pthread_t t[3];

	config.nwqes = 8192;
	config.proof_every = config.proof_every ? 2048 : 0;
	start_pair();
	signal_many(ALONE);
	for (unsigned i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, signal_each, NULL));
	for (unsigned i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK_INT(ha_gpu_quiet(pair.end[0].conn, 60 * SECOND), HA_GPU_DONE);
	CHECK_INT(ha_gpu_signal_value(pair.end[1].conn, 1), ALONE + 3 * EACH);
	CHECK((ha_gpu_load(&pair.end[0].conn->resv) & HA_GPU_INDEX) >= ALONE + 3 * EACH);
	stop_pair();
}

static void wrap_ring_queue(void)
{
	config.cq_log = 13;
	index_wraps();
}

static void wrap_proxied(void)
{
	config.proxied = 1;
	index_wraps();
}

static void wrap_believed(void)
{
	config.proof_every = 0;
	index_wraps();
}

/* A warp's put: an entry per lane, lengths from less than one chunk to more than all lanes'. */
struct lane {
	struct ha_gpu_self self;
	uint64_t result;
};

static void *warp_put(void *arg)
{
	struct lane *l = arg;

	ha_gpu_emu_become(&l->self);
	for (uint32_t i = 0, n = 1; i < 6; i++, n = n * 11 + 5) {
		l->result |= ha_gpu_put_nbi_warp(pair.end[0].conn, pair_remote(&pair, 0, 9),
						 pair.end[0].heap + 77, n % 150000, 0, TIME_LIMIT);
		if (!ha_gpu_lane()) {
			l->result |= ha_gpu_quiet(pair.end[0].conn, TIME_LIMIT);
			CHECK(!memcmp(pair.end[0].heap + 77, pair.end[1].heap + 9, n % 150000));
			memset(pair.end[1].heap, 0, 200000);
		}
		ha_gpu_syncwarp();
	}
	ha_gpu_emu_become(NULL);
	return NULL;
}

static void warp_of(unsigned lanes)
{
	struct ha_gpu_warp w = { .lanes = lanes };
	struct lane lane[HA_GPU_LANES_MAX];
	pthread_t t[HA_GPU_LANES_MAX];

	start_pair();
	fill_bytes(pair.end[0].heap, config.heap_bytes, 1);
	for (unsigned i = 0; i < lanes; i++) {
		lane[i] = (struct lane) { { &w, i }, 0 };
		CHECK(!pthread_create(&t[i], NULL, warp_put, &lane[i]));
	}
	for (unsigned i = 0; i < lanes; i++) {
		pthread_join(t[i], NULL);
		CHECK_INT(lane[i].result, HA_GPU_DONE);
	}
	stop_pair();
}

static void warp_put_nbi(void)
{
	warp_of(3);
	warp_of(32);
}

/* The last eight of a batch of doorbells that nobody rang: who waits rings. */
static void batch_never_rung(void)
{
	start_pair();
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(ha_gpu_signal(pair.end[0].conn, 0, 1, HA_GPU_LATER, SECOND), HA_GPU_DONE);
	CHECK_INT(ha_gpu_load(&pair.end[0].conn->rung), 0);
	CHECK_INT(ha_gpu_quiet(pair.end[0].conn, TIME_LIMIT), HA_GPU_DONE);
	CHECK_INT(ha_gpu_signal_value(pair.end[1].conn, 0), 3);
	stop_pair();
}

/* A put of more pieces than the ring has slots, where acknowledgements are believed: the first
 * waited for the last. */
static void put_longer_than_the_ring(void)
{
	config.nwqes = 8;
	config.proof_every = 0;
	start_pair();
	fill_bytes(pair.end[0].heap, config.heap_bytes, 5);
	CHECK_INT(ha_gpu_put_nbi(pair.end[0].conn, pair_remote(&pair, 0, 0), pair.end[0].heap,
				 config.heap_bytes, 0, 8 * SECOND),
		  HA_GPU_DONE);
	CHECK_INT(ha_gpu_quiet(pair.end[0].conn, 8 * SECOND), HA_GPU_DONE);
	CHECK(!memcmp(pair.end[0].heap, pair.end[1].heap, config.heap_bytes));
	stop_pair();
}

/* The asker dies before the answer; the next request overwrote its words, and was served twice. */
static void fetch_add_after_repair(void)
{
	struct ha_gpu_conn *c;
	pthread_t server;
	uint64_t old;
	bool posted;

	start_pair();
	c = pair.end[0].conn;
	CHECK_INT(ha_gpu_fetch_add(c, pair_remote(&pair, 0, 64), 5, &old, &posted, 20000000),
		  HA_GPU_TIMEOUT);
	CHECK(posted);
	ha_gpu_store(&c->asking, 0); /* as ha_gpu_host_repair() does */
	CHECK_INT(ha_gpu_fetch_add(c, pair_remote(&pair, 0, 64), 7, &old, &posted, 20000000),
		  HA_GPU_TIMEOUT);
	CHECK(!posted);
	CHECK(!pthread_create(&server, NULL, serve_conn, &pair.end[1]));
	CHECK_INT(ha_gpu_fetch_add(c, pair_remote(&pair, 0, 64), 3, &old, &posted, TIME_LIMIT),
		  HA_GPU_DONE);
	CHECK_INT(old, 5);
	CHECK_INT(((uint64_t *)pair.end[1].heap)[8], 8);
	ha_gpu_store(&pair.end[1].stop, 1);
	pthread_join(server, NULL);
	stop_pair();
}

/* An answer that no path can carry any more is nothing done: who serves until nothing is left,
 * ends. */
static void serving_ends(void)
{
	struct ha_gpu_conn *c;

	start_pair();
	c = pair.end[1].conn;
	c->served = 1;
	ha_gpu_or(&c->resv, HA_GPU_CLOSED | HA_GPU_DOWN);
	CHECK(!ha_gpu_serve(c));
	CHECK_INT(c->answered, 0);
	stop_pair();
}

/* A fetch-add whose answer never comes holds the connection; whoever came after it waited for that
 * without an end, though no path was left. */
static void fetch_add_behind_a_dead_one(void)
{
	struct ha_gpu_conn *c;
	uint64_t old;
	bool posted;

	start_pair();
	c = pair.end[0].conn;
	CHECK_INT(ha_gpu_fetch_add(c, pair_remote(&pair, 0, 64), 5, &old, &posted, 20000000),
		  HA_GPU_TIMEOUT);
	CHECK(posted);
	ha_gpu_or(&c->resv, HA_GPU_CLOSED | HA_GPU_DOWN);
	CHECK_INT(ha_gpu_fetch_add_wait(c, &old, HA_GPU_FOREVER), HA_GPU_BOTH_DOWN);
	CHECK_INT(ha_gpu_fetch_add(c, pair_remote(&pair, 0, 64), 7, &old, &posted, SECOND),
		  HA_GPU_BOTH_DOWN);
	CHECK(!posted);
	stop_pair();
}

/* No entry is longer than the message that queue pairs are set up for: with chunks of 2 GiB and
 * more it was, and the NIC refuses it on any path. */
static void longest_message(void)
{
	static const struct ha_gpu_conn c = { .chunk = 32 };
	static const uint64_t bytes[] = {
		1,          (1u << 30) - 1, 1u << 30,          (1u << 30) + 1,
		0x7ffffffe, 0x7fffffff,     UINT64_C(1) << 31, UINT64_C(1) << 32
	};

	for (unsigned i = 0; i < 8; i++)
		CHECK_INT(ha_gpu_piece_bytes(&c, 0, 0, bytes[i]),
			  bytes[i] < 1u << 30 ? bytes[i] : 1u << 30);
}

static const struct named_test tests[] = {
	{ "put_and_quiet", put_and_quiet },
	{ "get", get_copies_bytes },
	{ "inlined", inline_puts },
	{ "refused", bad_requests_are_refused },
	{ "signals", signals_follow_data },
	{ "fetch_add", fetch_add },
	{ "wrap", index_wraps },
	{ "wrap_ring_queue", wrap_ring_queue },
	{ "wrap_proxied", wrap_proxied },
	{ "wrap_believed", wrap_believed },
	{ "warp_put_nbi", warp_put_nbi },
	{ "batch_never_rung", batch_never_rung },
	{ "serving_ends", serving_ends },
	{ "fetch_add_behind_a_dead_one", fetch_add_behind_a_dead_one },
	{ "longest_message", longest_message },
	{ "fetch_add_after_repair", fetch_add_after_repair },
	{ "put_longer_than_the_ring", put_longer_than_the_ring },
};

int main(int argc, char **argv)
{
	pair_defaults(&config);
	config.agent.silent_checks = 1000; /* a machine may be slow; here nothing fails */
	return NAMED_TESTS_RUN(tests, argc, argv);
}
