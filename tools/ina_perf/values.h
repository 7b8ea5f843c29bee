/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h - what a rank brings to a step, and what must therefore come */
#ifndef HAWSER_INA_PERF_VALUES_H
#define HAWSER_INA_PERF_VALUES_H

#include "include/hawser/ina.h"

/* One operation of a run. */
struct ina_step {
	enum ha_ina_coll coll;
	enum ha_ina_type type;
	size_t bytes; /* of the whole */
	unsigned root;
	uint32_t salt; /* another one, other numbers */
};

/* What rank brings, into in[]. */
void ina_values_fill(const struct ina_step *s, unsigned rank, unsigned ranks, void *in);
/* Whether the rank gets a result: nobody of a barrier, of reduce the root alone. */
bool ina_values_come(const struct ina_step *s, unsigned rank);
/*
 * Of the rank's out[]: how many elements are wrong. Integers and bytes must be exact. Floats are
 * held against sums in float64, within what docs/ina.md says ("The numbers"): half a unit of the
 * block's exponent for each rank's rounding and each alignment, and float32's own; *worst becomes
 * the largest error as a part of that bound, if it is larger than it was.
 */
size_t ina_values_wrong(const struct ina_step *s, unsigned rank, unsigned ranks, const void *out,
			double *worst);

#endif
