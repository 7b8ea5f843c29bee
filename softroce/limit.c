/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/limit.h"

#include <stdlib.h>

#define KB_PER_MB 1000.0
#define MOST 1000000.0 /* MB/s; no wire of ours is faster */

void sr_limit_charge(struct sr_limit *l, uint32_t bytes, uint64_t since)
{
	uint64_t rate = atomic_load_explicit(&l->rate, memory_order_relaxed), was, from;

	if (!rate)
		return;
	was = atomic_load_explicit(&l->free, memory_order_relaxed);
	do {
		from = was > since ? was : since;
	} while (!atomic_compare_exchange_weak_explicit(
		&l->free, &was, from + (uint64_t)bytes * 1000000 / rate, memory_order_relaxed,
		memory_order_relaxed));
}

int64_t sr_limit_parse(const char *text, unsigned n)
{
	int64_t found = 0;

	for (unsigned i = 0; *text; i++) {
		char *end;
		double mb = strtod(text, &end);

		if (end == text || (*end && (*end != ',' || !end[1])) || !(mb >= 0 && mb <= MOST))
			return -1;
		if (i == n)
			found = (int64_t)(mb * KB_PER_MB + 0.5);
		text = *end ? end + 1 : end;
	}
	return found;
}
