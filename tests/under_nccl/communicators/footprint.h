/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TESTS_COMMUNICATORS_FOOTPRINT_H
#define HA_TESTS_COMMUNICATORS_FOOTPRINT_H

/* footprint - what this process holds of the system */
struct footprint {
	long memory_kb; /* private and shared anonymous memory that is resident */
	long heap_kb; /* what malloc has given out */
	long descriptors, threads, mappings;
};

struct footprint footprint_take(void);
/* The same, when threads that are about to end have done so: there are no more than so many in all, or a minute is over. */
struct footprint footprint_await_threads(long threads);
void footprint_print(int rank, const char *when, const struct footprint *footprint);

#endif
