/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pace.h - what a path carries, from the times at which its messages were seen to be there
 *
 * The best of some windows counts: a processor that was busy elsewhere is no slow cable. But what
 * has arrived while it was busy is then seen at once, and must not look like a fast path. So a
 * window begins and ends with a message that was waited for: a look shortly before has not found
 * it. Where there is no such window, the whole counts, from before the first message.
 */
#ifndef HA_TOOLS_DOCTOR_FABRIC_PACE_H
#define HA_TOOLS_DOCTOR_FABRIC_PACE_H

#include <stdint.h>

struct pace {
	uint64_t window_ns;    /* least length of a window */
	uint64_t start;        /* ns: before the first message */
	uint64_t began, bytes; /* of the present window; began 0: none */
	uint64_t all_bytes, last;
	float best_mbs;
};

void pace_begin(struct pace *pace, uint64_t window_ns, uint64_t now);
/* A message is there. missing_at: the last look before that did not find it, ns; 0: none was. */
void pace_count(struct pace *pace, uint64_t bytes, uint64_t missing_at, uint64_t now);
/* MB/s; 0: nothing came. */
float pace_of(const struct pace *pace);

#endif
