/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/job/sweep.h"

#include "tools/job/layout.h"
#include "tools/job/options.h"

/* The first size from s->bytes on that is another number of elements. */
static bool find_size(struct ha_sweep *s)
{
	size_t last = s->count;

	for (; s->bytes <= s->run->max_bytes; s->bytes = ha_run_size_next(s->run, s->bytes)) {
		s->count = ha_layout_count(s->layout, s->ranks, s->bytes, s->type->size);
		if (s->count != last)
			return true;
	}
	return false;
}

bool ha_sweep_next(struct ha_sweep *s)
{
	const struct ha_run_options *run = s->run;
	int redops = s->layout->reduces ? run->redops_count : 1;

	if (s->begun) {
		s->bytes = ha_run_size_next(run, s->bytes);
		if (find_size(s))
			return true;
	}
	while (s->begun < run->types_count * redops) {
		s->type = run->types[s->begun / redops];
		s->redop = s->layout->reduces ? (int)run->redops[s->begun % redops] : -1;
		s->bytes = run->min_bytes;
		s->count = (size_t)-1;
		s->begun++;
		if (find_size(s))
			return true;
	}
	return false;
}
