/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-backend [WORKERS [RANKS [SEGMENTS]]]: one client, a backend without a network, segments of
 * 2 MiB; where the time goes, beside memcpy in the same run
 *
 *   balancer  NETCCL_LB_LOOPBACK: shared memory, the balancer, ranks times each element
 *   worker    NETCCL_WORKER_LOOPBACK: and the rings to a worker
 *   packet    NETCCL_PACKET_LOOPBACK: and quantised, encoded, added RANKS times by the slot core,
 *             decoded, back
 */
#include "base/clock.h"
#include "base/log.h"
#include "ina/frame/option.h"
#include "tests/ina/host/backend/rig.h"

#include "base/check.h"

static unsigned segments = 96; /* of a round; a few are enough to count instructions */
#define IN_FLIGHT 4u
#define ROUNDS 5

static double seconds_since(uint64_t from)
{
	return (double)(ha_clock_now(&ha_clock_live) - from) / 1e9;
}

/* Millions of elements a second, one thread. */
static double copy_speed(void)
{
	uint8_t *a = malloc(IN_FLIGHT * HA_INA_SEGMENT), *b = malloc(IN_FLIGHT * HA_INA_SEGMENT);
	double best = 0;

	CHECK(a && b);
	memset(a, 1, IN_FLIGHT * HA_INA_SEGMENT);
	memset(b, 1, IN_FLIGHT * HA_INA_SEGMENT);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t from = ha_clock_now(&ha_clock_live);
		double speed;

		for (unsigned i = 0; i < segments; i++) {
			memcpy(b + i % IN_FLIGHT * HA_INA_SEGMENT,
			       a + i % IN_FLIGHT * HA_INA_SEGMENT, HA_INA_SEGMENT);
			__asm__ volatile("" ::: "memory");
		}
		speed = segments * (double)HA_INA_SEGMENT / 4 / seconds_since(from) / 1e6;
		best = speed > best ? speed : best;
	}
	free(a);
	free(b);
	return best;
}

static double run_segments(struct rig_client *c, uint32_t handle, uint8_t type)
{
	struct rig_request q = {
		.handle = handle, .bytes = HA_INA_SEGMENT, .coll = HA_INA_ALL_REDUCE, .type = type
	};
	uint64_t from;

	/* stays 0, however often it is added up */
	memset(c->shm.memory.buffer, 0, IN_FLIGHT * HA_INA_SEGMENT);
	from = ha_clock_now(&ha_clock_live);
	for (unsigned posted = 0, done = 0; done < segments; done++) {
		for (; posted < segments && posted < done + IN_FLIGHT; posted++) {
			q.offset = posted % IN_FLIGHT * (uint64_t)HA_INA_SEGMENT;
			rig_post(c, &q);
		}
		CHECK_INT(rig_response(c).result, 0);
	}
	return segments * (double)HA_INA_SEGMENT / 4 / seconds_since(from) / 1e6;
}

static void measure_mode(const char *name, struct rig_options o, unsigned ranks, double copy)
{
	static const char *const type[] = { "", "int32", "float32" };
	uint32_t member[INA_RANKS_MAX], handle;
	uint8_t ticket[HA_INA_TICKET];
	struct rig_client c;
	struct rig r;

	o.loopback = true;
	rig_open(&r, &o);
	rig_attach(&r, 0, &c);
	for (unsigned i = 0; i < ranks; i++)
		member[i] = RIG_ADDR(0);
	CHECK_INT(rig_create(&c, member, ranks, ticket), 0);
	CHECK_INT(rig_join(&c, ticket, 0, &handle), 0);
	for (uint8_t t = HA_INA_INT32; t <= HA_INA_FLOAT32; t++) {
		double best = 0;

		for (int round = 0; round < ROUNDS; round++) {
			double speed = run_segments(&c, handle, t);

			best = speed > best ? speed : best;
		}
		printf("%-9s %-8s %8.0f Melem/s   %.2f of memcpy\n", name, type[t], best,
		       best / copy);
	}
	rig_detach(&c);
	rig_close(&r);
}

struct options {
	unsigned workers, ranks, segments;
};

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "WORKERS", 0, NULL, "threads of the backend, a power of two (1)",
	  INA_POWER_OF_TWO(workers, 1, INA_WORKERS_MAX) },
	{ "RANKS", 0, NULL, "of the group (2)", HA_NUMBER(ranks, 2, INA_RANKS_MAX) },
	{ "SEGMENTS", 0, NULL, "of 2 MiB", HA_NUMBER(segments, 1, 1024) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-backend",
	.about = "What one worker of ha-backend does in each of its loopback modes, beside memcpy.",
	.operands = operands,
};

int main(int argc, char **argv)
{
	struct options o = { .workers = 1, .ranks = 2, .segments = segments };
	int result = ha_options_parse(&program, argc, argv, &o);
	unsigned workers = o.workers, ranks = o.ranks;
	double copy;

	if (result)
		return result - 1;
	segments = o.segments;
	copy = copy_speed();
	ha_log_configure(NULL, NULL, 1);
	printf("%u worker%s, %u ranks, segments of 2 MiB, best of %d\n%-18s %8.0f Melem/s\n",
	       workers, workers > 1 ? "s" : "", ranks, ROUNDS, "memcpy", copy);
	measure_mode("balancer", (struct rig_options) { .workers = workers, .loop_balancer = true },
		     ranks, copy);
	measure_mode("worker", (struct rig_options) { .workers = workers, .loop_worker = true },
		     ranks, copy);
	measure_mode("packet", (struct rig_options) { .workers = workers }, ranks, copy);
	return 0;
}
