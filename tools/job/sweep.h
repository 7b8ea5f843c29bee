/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.h - what a run measures, one after the other: each type, each reduction, each size */
#ifndef HAWSER_JOB_SWEEP_H
#define HAWSER_JOB_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

struct ha_datatype;
struct ha_layout;
struct ha_run_options;

/* The caller sets the first three, and the rest to zero. */
struct ha_sweep {
	const struct ha_run_options *run;
	const struct ha_layout *layout;
	int ranks; /* that the elements are divided among */
	/* What comes next. */
	const struct ha_datatype *type;
	int redop; /* enum ha_redop, -1: nothing is reduced */
	size_t bytes, count;
	int begun; /* pairs of a type and a reduction */
};

/* Sizes that come down to the same number of elements are one. False: that was all. */
bool ha_sweep_next(struct ha_sweep *sweep);

#endif
