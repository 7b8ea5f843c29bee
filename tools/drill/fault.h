/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h - what a drill takes away, and how it is put back
 *
 * A software NIC loses its cable, its packets or its speed by its control page; a network interface
 * is taken down by ip(8). What was there before is kept in memory that the drill and its guard
 * share, so that either of them can put it back, any number of times.
 */
#ifndef HAWSER_DRILL_FAULT_H
#define HAWSER_DRILL_FAULT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "softroce/control.h"

#define FAULT_PLACES 256 /* a rail's: a NIC of each process */

enum fault_kind { FAULT_CUT, FAULT_DROP, FAULT_RATE, FAULT_PORT };

struct fault_place {
	char device[SR_DEVICE_NAME_MAX]; /* of the software NIC; FAULT_PORT: any, for people */
	uint32_t pid;                    /* whose it is */
	char netdev[IF_NAMESIZE];        /* FAULT_PORT: the interface */
};

struct fault {
	enum fault_kind kind;
	uint32_t drop_ppm;     /* FAULT_DROP, both directions */
	uint64_t bytes_per_ms; /* FAULT_RATE */
	unsigned places;
	struct fault_place place[FAULT_PLACES];
};

/* How it was before. */
struct fault_saved {
	bool touched[FAULT_PLACES];
	struct sr_faults before[FAULT_PLACES];
	bool was_up[FAULT_PLACES];
	/* FAULT_PORT: routes and addresses that the kernel forgets when the interface goes down;
	 * descriptors of memory, one set for the one interface of a drill */
	int routes4, routes6, addresses6;
};

/* "cut", "drop", "rate", "port" */
const char *fault_name(enum fault_kind kind);

/* Memory for what ip(8) saves. 0 or a negative errno. */
int fault_saved_open(struct fault_saved *saved);
void fault_saved_close(struct fault_saved *saved);

/* Nothing in `saved` is touched before. 0, or the first failure as a negative errno; what was
 * changed until then is in `saved`. */
int fault_apply(const struct fault *fault, struct fault_saved *saved);
/* Puts back what was touched. A place that is gone needs nothing. 0, or the first failure. */
int fault_undo(const struct fault *fault, struct fault_saved *saved);

#endif
