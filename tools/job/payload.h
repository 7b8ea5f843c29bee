/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_PAYLOAD_H
#define HAWSER_JOB_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/job/datatype.h"

/*
 * payload - what every rank sends, and what must therefore arrive
 *
 * Element i of rank r is a function of (seed, r, i) alone, so any rank can compute what any other
 * one sent. What is only moved is random bits. What is reduced is chosen so that the result is
 * exact in whatever order it is computed:
 * integers wrap, so their sums and products are those of 64 bits cut short; floating values share
 * an exponent per element and have few enough bits that no partial sum rounds; products are of
 * powers of two and one free significand. The expected result is computed from these numbers in
 * integers and doubles, not with the reduction kernels.
 *
 * mulsum multiplies rank r's contribution by ha_payload_factor(r), 1 or 2, in its own type.
 *
 * With a file, element i of rank r is element (i + a shift by seed and rank) of the file, round and
 * round. Sums of arbitrary floats depend on the order; they are accepted within the bound of the
 * rounding errors of any order.
 */
struct ha_payload {
	uint64_t seed;
	const struct ha_datatype *type;
	bool reduced; /* the values will be reduced with redop */
	enum ha_redop redop;
	int ranks;
	/*
	 * avg multiplies a contribution by 1/ranks before it adds, as NCCL does with floating types
	 */
	bool divides_first;
	/* all elements of a sum have one exponent: it is exact with block exponents, too */
	bool one_scale;
	const void *file;  /* NULL: pseudo-random */
	size_t file_count; /* elements of the file */
};

/* What mulsum multiplies a rank's contribution by. */
int ha_payload_factor(int rank);

/* Writes elements first .. first+count-1 of the rank's data. */
void ha_payload_fill(const struct ha_payload *payload, int rank, size_t first, size_t count,
		     void *dst);

/* How many of the elements at actual differ from what the rank sent there. */
uint64_t ha_payload_compare(const struct ha_payload *payload, int rank, size_t first, size_t count,
			    const void *actual);

/*
 * How many of the elements at actual differ from the reduction over all ranks (beyond the bound of
 * the rounding errors, with a file, and where avg divides first by ranks that are no power of two).
 */
uint64_t ha_payload_compare_reduced(const struct ha_payload *payload, size_t first, size_t count,
				    const void *actual);

#endif
