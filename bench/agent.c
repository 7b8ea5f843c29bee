/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the agent costs: registrations per second of a living ha-agent, by one process that waits
 * for each answer, by one that keeps 32 questions on their way, by eight processes; and nanoseconds
 * per hint that is read, with a writer at rest and with one that writes without pause. Argument:
 * the ha-agent program. Prints, never fails on time.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/options.h"
#include "plugin/balance/hints.h"
#include "tests/agent/rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS 20000 /* registrations, each with its deregistration */
#define WINDOW 32
#define PROCESSES 8
#define READS 20000000

static double seconds_since(uint64_t start)
{
	return (double)(ha_clock_now(&ha_clock_live) - start) / (double)HA_NS_PER_S;
}

static void one_by_one(int fd, int pairs)
{
	for (int i = 0; i < pairs; i++) {
		CHECK_INT(rig_register(fd, (uint32_t)i, 1 + (unsigned)i % 200, NULL),
			  MPIB_STATUS_OK);
		CHECK_INT(rig_deregister(fd, (uint32_t)i), MPIB_STATUS_OK);
	}
}

static void in_windows(int fd, int pairs)
{
	struct {
		struct mpib_register hello;
		struct mpib_deregister bye;
	} question[WINDOW];
	struct {
		struct mpib_register_response hello;
		struct mpib_deregister_response bye;
	} answer[WINDOW];

	for (int i = 0; i < WINDOW; i++) {
		question[i].hello =
			(struct mpib_register) { { MPIB_REG_MAGIC, 28, MPIB_MSG_REGISTER, 0 },
						 (uint32_t)i,
						 rig_flow_src(1u + (unsigned)i),
						 rig_flow_dst(1u + (unsigned)i) };
		question[i].bye =
			(struct mpib_deregister) { { MPIB_REG_MAGIC, 12, MPIB_MSG_DEREGISTER, 0 },
						   (uint32_t)i };
	}
	for (int n = 0; n < pairs; n += WINDOW) {
		rig_send(fd, question, sizeof(question));
		CHECK(rig_receive(fd, answer, sizeof(answer)));
		for (int i = 0; i < WINDOW; i++)
			CHECK(!answer[i].hello.status && !answer[i].bye.status);
	}
}

static void measure_registrations(const struct rig *r)
{
	uint64_t start = ha_clock_now(&ha_clock_live);
	int fd = rig_dial(r);

	one_by_one(fd, PAIRS);
	printf("registrations, one by one:       %9.0f per second, and as many deregistrations\n",
	       PAIRS / seconds_since(start));
	start = ha_clock_now(&ha_clock_live);
	in_windows(fd, 10 * PAIRS);
	printf("registrations, 32 on their way:  %9.0f per second, and as many deregistrations\n",
	       10 * PAIRS / seconds_since(start));
	close(fd);
	start = ha_clock_now(&ha_clock_live);
	for (int i = 0; i < PROCESSES; i++)
		if (!fork()) {
			one_by_one(rig_dial(r), PAIRS / PROCESSES);
			_exit(0);
		}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		CHECK(wait(&status) > 0 && !status);
	}
	printf("registrations, %d processes:      %9.0f per second, and as many deregistrations\n",
	       PROCESSES, PAIRS / seconds_since(start));
}

static struct mpib_hint_shm shm;
static atomic_bool stop;

static void *write_for_ever(void *arg)
{
	for (uint32_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++)
		mpib_hint_put(&shm.entries[i % 64], i % 1024, 1, 2);
	return NULL;
}

static void measure_reads(const char *what)
{
	uint64_t start = ha_clock_now(&ha_clock_live), taken = 0, torn = 0;
	struct ha_hints hints;
	uint32_t bw, sum = 0;

	CHECK(!ha_hints_open(&hints, "/nonexistent", 1));
	atomic_store(&hints.shm, &shm);
	for (uint32_t i = 0; i < READS; i++) {
		enum ha_hint hint = ha_hints_read(&hints, i % 64, 1, 2, &bw);

		taken += hint == HA_HINT_OK;
		torn += hint == HA_HINT_TORN;
		sum += hint == HA_HINT_OK ? bw : 0;
	}
	printf("hints, %-24s %9.2f ns per read, %.4f %% torn (sum %u)\n", what,
	       seconds_since(start) * 1e9 / READS, 100.0 * (double)torn / READS, sum);
	CHECK(taken + torn == READS);
}

struct arguments {
	const char *agent;
};

#define HA_TARGET struct arguments

static const struct ha_option operands[] = {
	{ "AGENT", 0, NULL, "the ha-agent program", HA_TEXT(agent) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-agent",
	.about = "Registrations per second of a running ha-agent, nanoseconds per hint read.",
	.operands = operands,
	.needed = 1,
};

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	int stop = ha_options_parse(&program, argc, argv, &arguments);
	pthread_t writer;
	struct rig r;

	if (stop)
		return stop - 1;
	rig_program = arguments.agent;
	rig_make(&r);
	rig_start(&r, NULL);
	measure_registrations(&r);
	rig_remove(&r);
	for (int i = 0; i < 64; i++)
		mpib_hint_put(&shm.entries[i], 512, 1, 2);
	measure_reads("writer at rest:");
	CHECK(!pthread_create(&writer, NULL, write_for_ever, NULL));
	measure_reads("writer without pause:");
	atomic_store(&stop, true);
	pthread_join(writer, NULL);
	return 0;
}
