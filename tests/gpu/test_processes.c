/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_processes.c - three processes, two software NICs each, TCP bootstrap; a NIC is killed under
 * traffic, healed, and traffic never errs
 *
 * Each process runs one kernel per row: in every round it puts a pattern and a signal to each peer,
 * and waits for theirs. Two buffers take turns: who has seen a peer's signal of round r + 1 knows
 * that the peer has looked at what it got in round r.
 */
#include "base/check.h"
#include "gpu/host/host.h"
#include "gpu/host/soft.h"
#include "gpu/host/stream.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define PES 3
#define NICS 2
#define ROUNDS 600
#define PIECE 1024
#define SECOND UINT64_C(1000000000)

struct kernel {
	pthread_t thread;
	struct ha_gpu_world *world;
	uint8_t *heap;
	uint64_t row, done; /* rounds */
	uint64_t slowest_ns;
};

static struct soft_fabric *fabric;
static char root[80];

/* In a heap: [row][peer][parity] to send, then the same for what comes. */
static uint64_t piece_offset(uint64_t row, uint32_t peer, uint64_t round, bool incoming)
{
	return ((((uint64_t)incoming * 2 + row) * PES + peer) * 2 + (round & 1)) * PIECE;
}

static uint8_t pattern_byte(uint64_t row, uint32_t from, uint32_t to, uint64_t round)
{
	return (uint8_t)(round * 37 + row * 11 + from * 5 + to);
}

static void send_round(struct kernel *k, uint64_t round)
{
	for (uint32_t to = 0; to < PES; to++) {
		struct ha_gpu_conn *c = ha_gpu_world_conn(k->world, k->row, to);
		uint8_t *from;

		if (!c)
			continue;
		from = k->heap + piece_offset(k->row, to, round, false);
		memset(from, pattern_byte(k->row, k->world->pe, to, round), PIECE);
		CHECK_INT(ha_gpu_put_nbi(
				  c, c->remote + piece_offset(k->row, k->world->pe, round, true),
				  from, PIECE, HA_GPU_LATER, 30 * SECOND),
			  HA_GPU_DONE);
		CHECK_INT(ha_gpu_signal(c, 0, 1, 0, 30 * SECOND), HA_GPU_DONE);
	}
}

static void take_round(struct kernel *k, uint64_t round)
{
	for (uint32_t from = 0; from < PES; from++) {
		struct ha_gpu_conn *c = ha_gpu_world_conn(k->world, k->row, from);
		const uint8_t *at = k->heap + piece_offset(k->row, from, round, true);

		if (!c)
			continue;
		CHECK_INT(ha_gpu_wait(c, 0, round, 30 * SECOND), HA_GPU_DONE);
		for (unsigned i = 0; i < PIECE; i++)
			CHECK_INT(at[i], pattern_byte(k->row, from, k->world->pe, round));
	}
}

static void *run_kernel(void *arg)
{
	struct kernel *k = arg;

	ha_gpu_world_enter(k->world);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		uint64_t start = ha_gpu_now(), took;

		send_round(k, round);
		take_round(k, round);
		took = ha_gpu_now() - start;
		k->slowest_ns = took > k->slowest_ns ? took : k->slowest_ns;
		ha_gpu_store(&k->done, round);
	}
	for (uint32_t to = 0; to < PES; to++)
		if (ha_gpu_world_conn(k->world, k->row, to))
			CHECK_INT(ha_gpu_quiet(ha_gpu_world_conn(k->world, k->row, to),
					       30 * SECOND),
				  HA_GPU_DONE);
	ha_gpu_world_leave(k->world);
	return NULL;
}

static void wait_for_round(struct kernel *k, uint64_t round)
{
	while (ha_gpu_load(&k->done) < round)
		usleep(1000);
}

/* Process 1 loses its first NIC in the middle, and gets it back; for the others it is the peer's
 * that dies. */
static void fail_and_heal_nic(int pe, struct kernel *k)
{
	struct soft_nic *n = &fabric->nic[pe * NICS];

	if (pe != 1)
		return;
	wait_for_round(&k[0], ROUNDS / 3);
	ha_gpu_store(&n->power, SOFT_DEAD);
	ha_gpu_store(&n->reported, 1);
	wait_for_round(&k[0], ROUNDS * 2 / 3);
	soft_nic_heal(n);
}

static void configure_host(struct ha_gpu_host_config *c, struct ha_gpu_soft *soft,
			   struct ha_gpu_bootstrap *b, int pe)
{
	memset(c, 0, sizeof(*c));
	*soft = (struct ha_gpu_soft) { .fabric = fabric,
				       .first = (unsigned)(pe * NICS),
				       .n = NICS };
	ha_gpu_settings_defaults(&c->settings);
	c->settings.qp_depth = 256;
	c->settings.chunk_log = 12;
	c->settings.check_ms = 2;
	c->settings.silent_checks = 1000;
	c->settings.recovery_ms = 20;
	c->settings.qp_timeout = 8;
	c->ops = &ha_gpu_soft_ops;
	c->hw = soft;
	c->bootstrap = b;
	c->heap_bytes = 4 * PES * 2 * PIECE;
	c->heap = soft_alloc(fabric, c->heap_bytes);
	CHECK(c->heap);
}

static int run_process(int pe)
{
	struct kernel k[NICS] = { { .row = 0 }, { .row = 1 } };
	struct ha_gpu_host_config config;
	struct ha_gpu_host_stats stats;
	struct ha_gpu_bootstrap b;
	struct ha_gpu_host *h;
	struct ha_gpu_soft soft;
	pthread_t nic[NICS];

	for (int i = 0; i < NICS; i++)
		CHECK(!pthread_create(&nic[i], NULL, soft_nic_serve, &fabric->nic[pe * NICS + i]));
	CHECK(!ha_gpu_bootstrap_tcp(&b, root, pe, PES, 99, 30000));
	configure_host(&config, &soft, &b, pe);
	CHECK(!ha_gpu_host_open(&config, &h));
	CHECK(!ha_gpu_host_connect(h, 1, 1));
	CHECK(!ha_gpu_host_launch(h, 0));
	for (int i = 0; i < NICS; i++) {
		k[i].world = ha_gpu_host_world(h);
		k[i].heap = config.heap;
		CHECK(!pthread_create(&k[i].thread, NULL, run_kernel, &k[i]));
	}
	fail_and_heal_nic(pe, k);
	for (int i = 0; i < NICS; i++)
		pthread_join(k[i].thread, NULL);
	ha_gpu_host_stats(h, &stats);
	printf("process %d: %d rounds on %u rows, %llu switches, %llu entries posted again, "
	       "slowest rounds %llu us and %llu us\n",
	       pe, ROUNDS, stats.rows, (unsigned long long)stats.switches,
	       (unsigned long long)stats.replayed, (unsigned long long)k[0].slowest_ns / 1000,
	       (unsigned long long)k[1].slowest_ns / 1000);
	/* Both connections of process 1's row, and one of each other's. */
	CHECK(stats.switches >= (pe == 1 ? 2 : 1));
	CHECK(!ha_gpu_host_finalize(h, 10000));
	ha_gpu_bootstrap_agree(&b, 0);
	for (int i = 0; i < NICS; i++) {
		ha_gpu_store(&fabric->nic[pe * NICS + i].stop, 1);
		pthread_join(nic[i], NULL);
	}
	ha_gpu_bootstrap_close(&b);
	return 0;
}

int main(void)
{
	int status, bad = 0;
	pid_t pid[PES];

	CHECK(!ha_gpu_stream_free_local(root));
	fabric = soft_fabric_open(PES * NICS, 8 << 20);
	CHECK(fabric);
	for (int pe = 0; pe < PES; pe++) {
		fflush(stdout);
		pid[pe] = fork();
		CHECK(pid[pe] >= 0);
		if (!pid[pe]) {
			alarm(850);
			exit(run_process(pe));
		}
	}
	for (int pe = 0; pe < PES; pe++) {
		CHECK(waitpid(pid[pe], &status, 0) == pid[pe]);
		bad |= status;
	}
	return bad != 0;
}
