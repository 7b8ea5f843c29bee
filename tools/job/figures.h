/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_FIGURES_H
#define HAWSER_JOB_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/job/datatype.h"

struct ha_place;
struct ha_rendezvous;
struct ha_run_options;

/*
 * figures - what the ranks measured at one size, as the numbers of one line of the report
 */

enum ha_placement { HA_OUT_OF_PLACE, HA_IN_PLACE, HA_PLACEMENTS };

#define HA_SIDES 2 /* what is measured and what it is compared with */

/* One side, one placement, all ranks together; at rank 0 only. Microseconds, GB/s (10^9). */
struct ha_figures {
	bool valid;
	double time_us, algbw, busbw;
	uint64_t wrong;      /* elements, over all ranks and verified iterations */
	uint64_t iterations; /* measured */
	uint64_t verified;   /* iterations whose every element was compared; 0: none was */
	double p50_us, p99_us, max_us; /* of an iteration, over all ranks */
	/* CPU time of all threads of all ranks, per message sent; 0: nobody counts messages */
	double cpu_us_per_msg;
	double cpu_us_per_iter; /* the same per iteration */
	uint64_t messages;      /* sent by all ranks in one iteration; 0: nobody counts them */
	/* of the calls of test() in all ranks' measured iterations, us; calls 0: not asked for */
	uint64_t test_calls;
	double test_p50_us, test_p99_us, test_p999_us, test_max_us;
};

/* One line of the report. */
struct ha_row {
	size_t bytes, count;
	const struct ha_datatype *type;
	int redop;            /* -1: none */
	int root;             /* -1: none */
	const char *protocol; /* NULL: not known */
	struct ha_figures figures[HA_PLACEMENTS][HA_SIDES];
};

struct ha_rows {
	struct ha_row *rows;
	size_t count, room;
};

/* What one rank measured; gathered by rank 0. */
struct ha_tally {
	uint64_t elapsed_ns, cpu_ns, iterations, wrong, verified, messages;
};

/* The times of the measured iterations. */
struct ha_samples {
	uint64_t *ns;
	size_t count, room;
};

/* Each of them returns 0 or -ENOMEM with the fault recorded. */
int ha_rows_add(struct ha_rows *rows, const struct ha_row *row);
int ha_samples_add(struct ha_samples *samples, uint64_t ns);

/* What else the numbers depend on. */
struct ha_figures_of {
	const struct ha_run_options *run;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	bool half_trip;    /* an iteration is two messages one after the other: times are halved */
	double bus_factor; /* bus bandwidth / algorithm bandwidth */
	size_t bytes;
};

/*
 * All ranks' tallies and samples, as many as the tally has iterations (the same number in all
 * ranks), into the figures at rank 0. Collective. 0 or a negative errno with the fault recorded.
 */
int ha_figures_gather(const struct ha_figures_of *of, const struct ha_tally *mine,
		      const struct ha_samples *samples, struct ha_figures *figures);

void ha_samples_sort(uint64_t *samples, size_t n);

/*
 * The smallest sample that at least the given part of all is not above (nearest rank), in
 * microseconds; 0: no samples.
 */
double ha_percentile_us(const uint64_t *sorted, size_t n, double part);

/* Elements that were wrong in any verified iteration of any row. */
uint64_t ha_rows_wrong(const struct ha_rows *rows);

/* Mean bus bandwidth over all rows and placements, GB/s, of one side. */
double ha_rows_busbw(const struct ha_rows *rows, int side);

/*
 * Geometric mean over all rows of the second side's figure over the first's: times when `time`, bus
 * bandwidths else. 0: none.
 */
double ha_rows_ratio(const struct ha_rows *rows, bool time);

#endif
