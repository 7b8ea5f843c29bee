/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TESTS_COMMUNICATORS_CABLES_H
#define HA_TESTS_COMMUNICATORS_CABLES_H

#include "tests/under_nccl/communicators/ranks.h"

/*
 * cables - of all ranks, two NICs each, from the process that looks on; each cut begins and ends at
 * a random moment, given in rounds that a rank has compared meanwhile
 */
struct cables_pace {
	unsigned least;          /* rounds before a cut and before its end */
	unsigned before, during; /* and at random up to so many more */
};

/* One NIC of one rank at a time, eight times. */
void cables_cut_one(struct ranks *ranks, const struct cables_pace *pace);
/* The same NIC of all ranks, as if it hung on one switch, four times; for `during` rounds of each.
 */
void cables_cut_switch(struct ranks *ranks, const struct cables_pace *pace);

#endif
