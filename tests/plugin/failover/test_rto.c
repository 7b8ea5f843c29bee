/* SPDX-License-Identifier: BSD-3-Clause */
/* False alarms in a row widen the soft time-out, up to a limit; everything else leaves it alone. */
#include "plugin/failover/rto.h"

#include "base/check.h"

#define MS UINT64_C(1000000)

static uint64_t now = 1000 * MS;

/* A soft time-out, and a recovery so many ns later. */
static bool alarm_of(struct ha_rto *rto, uint64_t ns)
{
	now += 7000 * MS;
	ha_rto_failed(rto, now);
	now += ns;
	return ha_rto_recovered(rto, now);
}

static void three_in_a_row_widen(void)
{
	struct ha_rto rto;

	ha_rto_init(&rto, 1000 * MS);
	CHECK_INT(rto.rto_ns, 1000 * MS);
	CHECK(!alarm_of(&rto, 0));
	CHECK(!alarm_of(&rto, 99 * MS));
	CHECK_INT(rto.rto_ns, 1000 * MS);
	CHECK(alarm_of(&rto, 100 * MS - 1));
	CHECK_INT(rto.rto_ns, 1500 * MS);
	CHECK_INT(rto.false_alarms, 0); /* the next widening takes three again */
	CHECK(!alarm_of(&rto, MS));
	CHECK(!alarm_of(&rto, MS));
	CHECK(alarm_of(&rto, MS));
	CHECK_INT(rto.rto_ns, 2250 * MS);
}

static void a_real_failure_breaks_the_row(void)
{
	struct ha_rto rto;

	ha_rto_init(&rto, 1000 * MS);
	for (int i = 0; i < 10; i++) {
		CHECK(!alarm_of(&rto, MS));
		CHECK(!alarm_of(&rto, MS));
		CHECK(!alarm_of(&rto, 100 * MS)); /* from 100 ms on it was down */
		CHECK_INT(rto.false_alarms, 0);
	}
	CHECK_INT(rto.rto_ns, 1000 * MS);
}

static void other_recoveries_do_not_count(void)
{
	struct ha_rto rto;

	ha_rto_init(&rto, 1000 * MS);
	for (int i = 0; i < 10; i++)
		CHECK(!ha_rto_recovered(&rto, now)); /* an error completion took it down */
	CHECK_INT(rto.false_alarms, 0);
	CHECK(!alarm_of(&rto, MS));
	CHECK(!alarm_of(&rto, MS));
	CHECK(!ha_rto_recovered(&rto, now)); /* the same recovery reported twice is one */
	CHECK_INT(rto.rto_ns, 1000 * MS);
	CHECK(alarm_of(&rto, MS));
}

static void widening_ends_at_five_seconds(void)
{
	struct ha_rto rto;
	int widened = 0;

	ha_rto_init(&rto, 940 * MS);
	for (int i = 0; i < 100; i++) {
		uint64_t before = rto.rto_ns;
		bool wider = alarm_of(&rto, MS);

		CHECK(wider == (rto.rto_ns > before));
		CHECK(rto.rto_ns >= rto.base_ns && rto.rto_ns <= 5000 * MS);
		widened += wider;
	}
	CHECK_INT(rto.rto_ns, 5000 * MS);
	CHECK_INT(widened, 5); /* 1.41, 2.115, 3.1725, 4.75875, 5 s */
}

/* A window of more than 5 s asks for a base beyond the limit. */
static void never_below_the_base(void)
{
	struct ha_rto rto;

	ha_rto_init(&rto, 60000 * MS);
	for (int i = 0; i < 10; i++)
		CHECK(!alarm_of(&rto, MS));
	CHECK_INT(rto.rto_ns, 60000 * MS);
}

int main(void)
{
	three_in_a_row_widen();
	a_real_failure_breaks_the_row();
	other_recoveries_do_not_count();
	widening_ends_at_five_seconds();
	never_below_the_base();
	return 0;
}
