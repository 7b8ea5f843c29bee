/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cases.h - what any switch must be able to show: packets in, by name, for whoever wants to feed
 * them to something
 *
 * What comes out is not written down: it is what the slot core says.
 */
#ifndef INA_VECTORS_CASES_H
#define INA_VECTORS_CASES_H

#include "ina/switch/switch.h"

#define INA_CASE_SWITCH 0x0a0000feu
#define INA_CASE_RANK 0x0a000001u /* + rank; rank i is on port i */
#define INA_CASE_SLOTS 256u
extern const uint8_t ina_case_mac[6]; /* the switch's */

/* Takes what happens in a case, in its order. */
struct ina_case_sink {
	void (*install)(void *arg, const struct ina_group_config *group);
	void (*lapse)(void *arg, const struct ina_group_config *group);  /* its lease ends */
	void (*remove)(void *arg, const struct ina_group_config *group); /* its slots are free */
	void (*packet)(void *arg, unsigned port, const uint8_t *bytes, size_t len);
	void *arg;
};

/* A case has one group at a time, and begins on an empty switch. */
struct ina_case {
	const char *name, *help;
	bool old, extended; /* the kinds of frame that it can be played with */
	void (*run)(const struct ina_case_sink *sink, bool extended);
};
extern const struct ina_case ina_cases[];
extern const unsigned ina_ncases;

#endif
