/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mutation.h - the switch and the host's protocol, broken on purpose in one place, to see that the
 * simulator notices
 *
 * The products have none of them: defects.txt puts them into the simulator's copy of the sources
 * (sim/kit/defects.cmake).
 */
#ifndef INA_MUTATION_H
#define INA_MUTATION_H

/* X(identifier, "name for --mutate", "what is wrong") */
#define INA_MUTATION_LIST(X)                                                                 \
	X(SINGLE_POOL, "single-pool",                                                        \
	  "a slot is used again half a range later, while its sum may still be asked for")   \
	X(NO_AGE, "no-age", "a packet of another psn takes the slot over, whatever its age") \
	X(NO_EPOCH, "no-epoch", "packets of a past incarnation of the group count")          \
	X(NO_BITMAP, "no-bitmap", "a contribution that comes twice is added twice")          \
	X(NO_SOURCE, "no-source", "nobody looks at who sends")                               \
	X(NO_TIMER, "no-timer", "the host never sends again for want of an answer")          \
	X(NO_SECOND, "no-second", "what was sent again once is not sent again")              \
	X(WIDE_WINDOW, "wide-window", "the host has more in flight than half a range")       \
	X(NO_DEADLINE, "no-deadline", "the host waits for a silent group for ever")          \
	X(ABORT_ONCE, "abort-once", "who gives up says it once, and it may get lost")        \
	X(ANY_ACK, "any-ack", "whatever comes with a psn in flight acknowledges it")         \
	X(SPOIL_REST, "spoil-rest",                                                          \
	  "where one word is saturated, the block's other words are wrong")

enum ina_mutation {
	INA_MUTATE_NOTHING,
#define X(id, name, help) INA_MUTATE_##id,
	INA_MUTATION_LIST(X)
#undef X
		INA_MUTATE_COUNT
};
extern enum ina_mutation ina_mutation; /* one for the process */
#define INA_MUTATION(id) __builtin_expect(ina_mutation == INA_MUTATE_##id, 0)

#endif
