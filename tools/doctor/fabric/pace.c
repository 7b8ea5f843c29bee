/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/fabric/pace.h"

/* A message's time is known to this part of a window. */
#define PRECISION 8

void pace_begin(struct pace *pace, uint64_t window_ns, uint64_t now)
{
	*pace = (struct pace) { .window_ns = window_ns, .start = now };
}

static float rate_of(uint64_t bytes, uint64_t ns)
{
	return ns ? (float)((double)bytes * 1e3 / (double)ns) : 0;
}

static void window_end(struct pace *pace, uint64_t now)
{
	float mbs = rate_of(pace->bytes, now - pace->began);

	if (mbs > pace->best_mbs)
		pace->best_mbs = mbs;
	pace->began = now;
	pace->bytes = 0;
}

void pace_count(struct pace *pace, uint64_t bytes, uint64_t missing_at, uint64_t now)
{
	pace->all_bytes += bytes;
	pace->bytes += bytes;
	pace->last = now;
	if (!missing_at || now - missing_at > pace->window_ns / PRECISION)
		return;
	if (!pace->began) {
		pace->began = now;
		pace->bytes = 0;
	} else if (now - pace->began >= pace->window_ns) {
		window_end(pace, now);
	}
}

float pace_of(const struct pace *pace)
{
	return pace->best_mbs > 0 ? pace->best_mbs
				  : rate_of(pace->all_bytes, pace->last - pace->start);
}
