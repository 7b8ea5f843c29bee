/* SPDX-License-Identifier: BSD-3-Clause */
/* A path's rate, where the processor that looks at it is busy now and then. */
#include "tools/doctor/fabric/pace.h"

#include "base/check.h"

#define MS UINT64_C(1000000)
#define MESSAGE 1000000u
#define APART (200 * MS) /* of two messages: 5 MB/s */
#define WINDOW_NS (5 * MS)
#define LOOKS 1000 /* ns between two */

/* Messages arrive 200 ms apart from 200 ms on, and nobody looks in [busy_from, busy_until). */
static float measure_pace(unsigned messages, uint64_t busy_from, uint64_t busy_until)
{
	struct pace pace;
	uint64_t now = 0;

	pace_begin(&pace, WINDOW_NS, 0);
	for (unsigned i = 1; i <= messages; i++) {
		uint64_t arrives = i * APART, missing_at = 0;

		if (now < arrives) { /* it was waited for */
			now = arrives + LOOKS;
			missing_at = arrives - LOOKS;
		}
		if (now >= busy_from && now < busy_until)
			now = busy_until;
		if (missing_at >= busy_from && missing_at < busy_until)
			missing_at = busy_from;
		pace_count(&pace, MESSAGE, missing_at, now);
		now += LOOKS;
	}
	return pace_of(&pace);
}

static void always_there(void)
{
	float mbs = measure_pace(20, 0, 0);

	CHECK(mbs > 4.9F && mbs < 5.1F);
}

/* Five messages wait when it comes back. */
static void away_for_a_second(void)
{
	for (uint64_t from = 300; from < 3000; from += 70) {
		float mbs = measure_pace(20, from * MS, (from + 1000) * MS);

		CHECK(mbs > 4.9F && mbs < 5.1F);
	}
}

/* No message was waited for: the whole counts, at most what the path carries. */
static void never_in_time(void)
{
	float mbs = measure_pace(8, 0, 1700 * MS);

	CHECK(mbs > 4.0F && mbs < 5.1F);
}

static void nothing_came(void)
{
	struct pace pace;

	pace_begin(&pace, WINDOW_NS, 7);
	CHECK(pace_of(&pace) < 0.001F);
}

int main(void)
{
	always_there();
	away_for_a_second();
	never_in_time();
	nothing_came();
	return 0;
}
