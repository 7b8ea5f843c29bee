/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOFTROCE_RATE, SOFTROCE_UPSTREAM and `ha rate`: the bucket in numbers, with a clock of the test's
 * own; and over the wire, where nothing takes less time than the rate allows (a busy machine may
 * take longer).
 */
#include "base/clock.h"
#include "softroce/control.h"
#include "softroce/limit.h"
#include "tests/softroce/front_side.h"

#include <errno.h>
#include <sys/wait.h>

#define MS UINT64_C(1000000)
#define PACKET 4096u
#define RATE_KB 40000u /* per ms: 40 MB/s */
#define SIZE (4u << 20)

/* Bytes that pass in `ms` from `from` on, of a sender that always has more, and looks again `late`
 * ns after it may. */
static uint64_t count_passed(struct sr_limit **through, unsigned n, uint64_t from, uint64_t ms,
			     uint64_t late)
{
	uint64_t now = from * MS, until = now + ms * MS, bytes = 0, due = 0;

	while (now < until) {
		uint64_t when = 0;

		for (unsigned i = 0; i < n; i++) { /* the upstream is the last */
			uint64_t room = sr_limit_room(through[i], i + 1 < n ? SR_LIMIT_QUEUE : 0);

			when = room > when ? room : when;
		}
		if (when > now) {
			due = when;
			now = when + late;
			continue;
		}
		for (unsigned i = 0; i < n; i++)
			sr_limit_charge(through[i], PACKET, sr_limit_since(due, now));
		bytes += PACKET;
	}
	return bytes;
}

static bool is_near(uint64_t bytes, uint64_t rate_kb, uint64_t ms)
{
	uint64_t should = rate_kb * ms, slack = should / 100 + 2 * PACKET + SR_LIMIT_QUEUE;

	if (bytes + slack < should || bytes > should + slack)
		fprintf(stderr, "%llu bytes, not %llu\n", (unsigned long long)bytes,
			(unsigned long long)should);
	return bytes + slack >= should && bytes <= should + slack;
}

static void rates_are_kept(void)
{
	struct sr_limit one = { .rate = RATE_KB }, slow = { .rate = 234 },
			up = { .rate = RATE_KB / 2 }, none = { 0 };
	struct sr_limit *alone[] = { &one }, *behind[] = { &one, &up }, *low[] = { &slow };

	CHECK(is_near(count_passed(alone, 1, 1000, 500, 0), RATE_KB, 500));
	one.free = 0;
	CHECK(is_near(count_passed(alone, 1, 1000, 500, MS), RATE_KB,
		      501)); /* late, but not too late */
	one.free = 0;
	/* what is made up for is bounded */
	CHECK(count_passed(alone, 1, 1000, 500, 200 * MS) < RATE_KB * 500u / 4);
	one.free = 0;
	CHECK(is_near(count_passed(behind, 2, 1000, 500, 0), RATE_KB / 2, 500));
	CHECK(is_near(count_passed(low, 1, 1000, 5000, 0), 234, 5000));
	CHECK(sr_limit_when(&none) == 0);
	sr_limit_charge(&none, PACKET, 5);
	CHECK(sr_limit_when(&none) == 0);
}

/* A wire that was idle is as slow as one that was not: nothing gathers. */
static void idleness_earns_nothing(void)
{
	struct sr_limit one = { .rate = RATE_KB }, up = { .rate = 2 * RATE_KB },
			other = { .rate = RATE_KB };
	struct sr_limit *both[] = { &one, &up }, *second[] = { &other, &up };

	CHECK(is_near(count_passed(both, 2, 1000, 100, 0), RATE_KB, 100));
	CHECK(is_near(count_passed(both, 2, 1500, 3, 0), RATE_KB, 3));
	/* Nor does what one device leaves of the upstream to the other. */
	CHECK(is_near(count_passed(second, 2, 1600, 3, 0), RATE_KB, 3));
	up.rate = RATE_KB / 2;
	CHECK(is_near(count_passed(second, 2, 1700, 3, 0), RATE_KB / 2, 3));
}

/* Two devices with a thread each that is a little late, both always busy: they have all of the
 * upstream. */
static void share_upstream(void)
{
	struct sr_limit own[2] = { { .rate = RATE_KB }, { .rate = 23400 } }, up = { .rate = 50000 };
	uint64_t now = 1000 * MS, until = now + 500 * MS, due[2] = { 0 },
		 again[2] = { now, now + 1 }, bytes = 0, late = 7;

	while (now < until) {
		unsigned i = again[1] < again[0];
		uint64_t when = sr_limit_room(&own[i], SR_LIMIT_QUEUE);

		now = again[i];
		when = sr_limit_when(&up) > when ? sr_limit_when(&up) : when;
		if (when > now) {
			due[i] = when;
			late = late * 48271 % 2147483647;
			again[i] = when + late % 100000;
			continue;
		}
		sr_limit_charge(&own[i], PACKET, sr_limit_since(due[i], now));
		sr_limit_charge(&up, PACKET, sr_limit_since(due[i], now));
		bytes += PACKET;
	}
	CHECK(bytes >= 50000u * 500 / 100 * 98 && bytes <= 50000u * 500 / 100 * 101);
}

static void rate_lists(void)
{
	CHECK(sr_limit_parse("400,234.5", 0) == 400000 &&
	      sr_limit_parse("400,234.5", 1) == 234500 && sr_limit_parse("400,234.5", 2) == 0);
	CHECK(sr_limit_parse("0,7", 0) == 0 && sr_limit_parse("", 0) == 0 &&
	      sr_limit_parse("0.25", 0) == 250);
	CHECK(sr_limit_parse("400,", 0) == -1 && sr_limit_parse("fast", 0) == -1 &&
	      sr_limit_parse("-1", 0) == -1);
	CHECK(sr_limit_parse("4,x", 0) == -1 && sr_limit_parse("nan", 0) == -1 &&
	      sr_limit_parse("1e9", 0) == -1);
}

static const struct side_options options = { .size = SIZE, .timeout = 18 };

/* Seconds that a write of SIZE bytes takes. */
static double write_all(struct side *side)
{
	double start = ha_monotonic_s();
	struct ibv_wc wc;

	side_post_send(side, IBV_WR_RDMA_WRITE, 1, 0, SIZE);
	CHECK(side_wait(side, &wc, 60000) && wc.status == IBV_WC_SUCCESS);
	return ha_monotonic_s() - start;
}

static void rate_change(struct sr_faults *faults, void *arg)
{
	faults->rate = *(uint64_t *)arg;
}

static void rate_set(struct sr_control_entry *list, uint64_t rate)
{
	int err;

	do
		err = sr_control_change(list, rate_change, &rate);
	while (err == -EBUSY); /* a busy machine */
	CHECK(!err);
}

static void run_active(int fd)
{
	/* what is sent last is not waited for */
	double least = (double)(SIZE - PACKET - SR_LIMIT_QUEUE) / (RATE_KB * 1000.0), took;
	struct sr_control_entry *list;
	char selector[64];
	struct side side;
	int n;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	took = write_all(&side);
	printf("%.1f MB at 40 MB/s: %.1f ms, at least %.1f\n", SIZE / 1e6, took * 1e3, least * 1e3);
	CHECK(took >= least);
	snprintf(selector, sizeof(selector), "soft0:%d", (int)getpid());
	list = sr_control_list(selector, &n);
	CHECK(list && n == 1);
	rate_set(list, 10000);
	took = write_all(&side);
	printf("at 10 MB/s, set from outside: %.1f ms\n", took * 1e3);
	CHECK(took >= (double)(SIZE - PACKET - SR_LIMIT_QUEUE) / 1e7);
	rate_set(list, 0);
	free(list);
	took = write_all(&side);
	CHECK(took >= least);
	side_meet(&side);
	side_close(&side);
}

static void run_passive(int fd)
{
	struct side side;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	side_meet(&side);
	side_close(&side);
}

/* In a process of its own, since variables are read once. */
static void over_the_wire(const char *rate, const char *upstream)
{
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("SOFTROCE_RATE", rate, 1);
		setenv("SOFTROCE_UPSTREAM", upstream, 1);
		side_isolate("127.163.0.0/16,127.164.0.0/16");
		side_run(run_active, run_passive);
		fflush(stdout);
		exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
}

int main(void)
{
	rates_are_kept();
	idleness_earns_nothing();
	share_upstream();
	rate_lists();
	over_the_wire("40,5", "");
	over_the_wire("0,5", "40");
	return 0;
}
