/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cwnd.c - the window's law, step by step, and where it settles behind a queue that marks */
#include "ina/host/cwnd.h"
#include "tests/ina/switch/named.h"

#include <math.h>

#define RTT 10000u

static struct ina_cwnd c;
static uint64_t now;

/* One interval in which the window was full. */
static void run_interval(bool marked)
{
	now += RTT;
	ina_cwnd_answered(&c, marked);
	ina_cwnd_adjust(&c, (uint32_t)c.cwnd, RTT, now);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* Half of alpha off at a mark; alpha follows how often there is one. */
static void marks_decrease_window(void)
{
	double alpha = 0, cwnd = 512;

	now = 0;
	ina_cwnd_init(&c, 512, now);
	CHECK(is_near(c.cwnd, 512));
	for (int i = 0; i < 40; i++) {
		run_interval(true);
		alpha = alpha * 15 / 16 + 1.0 / 16;
		cwnd = fmax(cwnd * (1 - alpha / 2), INA_CWND_MIN);
		CHECK(is_near(c.alpha, alpha));
		CHECK(is_near(c.cwnd, cwnd));
	}
	CHECK(c.alpha > 0.9);
	CHECK_INT(c.decreases, 40);
	for (int i = 0; i < 40; i++)
		run_interval(true);
	CHECK(is_near(c.cwnd, INA_CWND_MIN));
}

/* After a mark: five times half-way back, then one packet more each time, then more and more. */
static void window_recovers(void)
{
	double target, cwnd;

	now = 0;
	ina_cwnd_init(&c, 1000, now);
	c.cwnd = c.target = 100;
	c.alpha = 0.5;
	run_interval(true);
	target = 100;
	cwnd = 100 * (1 - (0.5 * 15 / 16 + 1.0 / 16) / 2);
	CHECK(is_near(c.cwnd, cwnd));
	for (int i = 0; i < 5; i++) {
		run_interval(false);
		cwnd = (cwnd + target) / 2;
		CHECK(is_near(c.cwnd, cwnd) && is_near(c.target, target));
	}
	CHECK(cwnd > 99);
	for (int i = 0; i < 5; i++) {
		run_interval(false);
		target += 1;
		cwnd = (cwnd + target) / 2;
		CHECK(is_near(c.cwnd, cwnd) && is_near(c.target, target));
	}
	for (int i = 1; i < 10; i++) {
		run_interval(false);
		target += 5 * i;
		cwnd = (cwnd + target) / 2;
		CHECK(is_near(c.cwnd, cwnd) && is_near(c.target, target));
	}
	for (int i = 0; i < 100; i++)
		run_interval(false);
	CHECK(c.cwnd <= 1000 && c.cwnd > 999);
}

/* At most one change per interval, none without answers, no growth of what is not used. */
static void one_change_per_interval(void)
{
	double was;

	now = 0;
	ina_cwnd_init(&c, 100, now);
	now += RTT - 1;
	ina_cwnd_answered(&c, true);
	ina_cwnd_adjust(&c, 100, RTT, now);
	CHECK(is_near(c.cwnd, 100));
	now++;
	ina_cwnd_adjust(&c, 100, RTT, now);
	CHECK(c.cwnd < 100);
	was = c.cwnd;
	for (int i = 0; i < 20; i++) {
		now += RTT;
		ina_cwnd_adjust(&c, 100, RTT, now);
	}
	CHECK(is_near(c.cwnd, was));
	for (int i = 0; i < 50; i++) { /* two in flight of nearly a hundred */
		now += RTT;
		ina_cwnd_answered(&c, false);
		ina_cwnd_adjust(&c, 2, RTT, now);
	}
	CHECK(c.target <= 100 && c.cwnd <= 100);
	CHECK_INT(c.count, 0);
}

/* A time-out begins anew, and comes back in fast recovery; if nothing was lost, at once. */
static void time_out(void)
{
	now = 0;
	ina_cwnd_init(&c, 64, now);
	ina_cwnd_timeout(&c, now);
	CHECK(is_near(c.cwnd, INA_CWND_MIN) && is_near(c.target, 64));
	ina_cwnd_timeout(&c, now);
	CHECK(is_near(c.target, 64));
	ina_cwnd_spurious(&c);
	CHECK(is_near(c.cwnd, 64));
	ina_cwnd_timeout(&c, now);
	ina_cwnd_lost(&c);
	ina_cwnd_spurious(&c);
	CHECK(is_near(c.cwnd, INA_CWND_MIN));
	ina_cwnd_init(&c, 4, now); /* nor more than the range allows */
	ina_cwnd_timeout(&c, now);
	CHECK(is_near(c.cwnd, 4));
	ina_cwnd_init(&c, 64, now);
	ina_cwnd_timeout(&c, now);
	for (int i = 0; i < 5; i++)
		run_interval(false);
	CHECK(c.cwnd > 62);
}

/* Behind a queue that marks what waits too long, the window settles around what the path holds,
 * from above and from below. */
static void window_settles(void)
{
	for (int from = 0; from < 2; from++) {
		/* packets in flight: without a queue, and when one is long enough to be marked */
		const double pipe = 40;
		const double mark_above = 60;
		double sum = 0, least = 1e9, most = 0;

		now = 0;
		ina_cwnd_init(&c, 512, now);
		c.cwnd = c.target = from ? 512 : 1;
		for (int i = 0; i < 4000; i++) {
			run_interval(c.cwnd > mark_above);
			if (i < 2000)
				continue;
			sum += c.cwnd;
			least = fmin(least, c.cwnd);
			most = fmax(most, c.cwnd);
		}
		printf("from %d: mean %.1f, %.1f to %.1f, of %.0f without a queue and %.0f with "
		       "marks\n",
		       from ? 512 : 1, sum / 2000, least, most, pipe, mark_above);
		CHECK(sum / 2000 > pipe && sum / 2000 < 1.3 * mark_above);
		CHECK(least > pipe / 2);
	}
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "decrease", marks_decrease_window }, { "recovery", window_recovers },
		{ "pace", one_change_per_interval },   { "time_out", time_out },
		{ "settles", window_settles },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
