/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TESTS_COMMUNICATORS_FOOTPRINT_H
#define HA_TESTS_COMMUNICATORS_FOOTPRINT_H

#define FOOTPRINT_NAMES 512

/* footprint - what this process holds of the system */
struct footprint {
	long memory_kb; /* private and shared anonymous memory that is resident */
	long heap_kb;   /* what malloc has given out */
	/* threads without those of the plugin that come and stay for a reason (footprint.c) */
	long descriptors, threads, mappings;
	char names[FOOTPRINT_NAMES]; /* of those threads */
};

/* Before anything is allocated that counts: afterwards resident memory says what is held. */
void footprint_prepare(void);
struct footprint footprint_take(void);
/* The same when what is about to end has done so: there are no more threads and descriptors than
 * there were, or a minute is over. */
struct footprint footprint_await(const struct footprint *early);
void footprint_print(int rank, const char *when, const struct footprint *footprint);

#endif
