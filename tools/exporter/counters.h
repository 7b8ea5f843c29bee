/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.h - what has been counted on this host, by whichever process
 *
 * A counter never goes down: it outlives the process that counted, and with a state file the
 * exporter, too.
 */
#ifndef HAWSER_EXPORTER_COUNTERS_H
#define HAWSER_EXPORTER_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum counter_family {
	COUNTER_EVENTS,        /* event, cause */
	COUNTER_FAILOVERS,     /* device, cause */
	COUNTER_STALL,         /* device; seconds */
	COUNTER_REQUESTS,      /* device; posted again */
	COUNTER_BYTES,         /* device; posted again */
	COUNTER_MESSAGES,      /* direction */
	COUNTER_UNPROTECTED,   /* -; seconds of connections */
	COUNTER_MISSED,        /* -; events that were gone before anybody looked */
	COUNTER_PROCESSES,     /* - */
	COUNTER_LAST_FAILOVER, /* device; seconds since 1970: a gauge that is kept as they are */
	COUNTER_FAMILIES
};

#define COUNTER_LABEL 64
#define COUNTERS_MAX 4096 /* that one process with invented names cannot fill the memory */

struct counter {
	enum counter_family family;
	char label[2][COUNTER_LABEL];
	double value;
};

struct counters {
	struct counter *list;
	size_t n, room;
	uint64_t refused; /* for which there was no room */
};

/* b: NULL where the family has one label; a too where it has none. */
void counters_add(struct counters *c, enum counter_family family, const char *a, const char *b,
		  double value);
/* Sets the value where it is larger. */
void counters_raise(struct counters *c, enum counter_family family, const char *a, double value);
void counters_free(struct counters *c);

/* "hawser_plugin_failovers", "device", what it is. */
struct counter_about {
	const char *name, *label[2], *help;
};
extern const struct counter_about counter_about[COUNTER_FAMILIES];

#endif
