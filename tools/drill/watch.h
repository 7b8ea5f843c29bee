/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - what a drill sees of the job: events and protection from the status pages of its
 * processes, bytes from the counters of the ports
 *
 * Every moment is CLOCK_MONOTONIC ns, that of an event as the plugin noted it.
 */
#ifndef HAWSER_DRILL_WATCH_H
#define HAWSER_DRILL_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "include/hawser/status.h"
#include "tools/port_bytes.h"

#define WATCH_PROCESSES 256
#define WATCH_DEVICES (WATCH_PROCESSES * HA_STATUS_DEVICES)

struct watch_process {
	pid_t pid;
	uint64_t next_event; /* that was not taken yet */
	bool seen;           /* in the last look */
};

struct watch_event {
	pid_t pid;
	struct ha_status_event event;
};

/* Bytes that had arrived at all ports of the job on this host. */
struct watch_sample {
	int64_t at;
	uint64_t bytes;
};

struct watch {
	const char *dir; /* of the status pages */
	const char *sysfs;
	pid_t job;
	struct watch_process process[WATCH_PROCESSES];
	unsigned processes;
	struct ha_port_bytes device[WATCH_DEVICES];
	unsigned devices;
	/* as in the last look */
	unsigned connections, unprotected, lost;
	unsigned most_unprotected; /* of all looks since the caller set it to 0 */
	unsigned gone;             /* processes that were there and are not any more */
	unsigned cause;            /* enum ha_event_cause: why one is not protected */
	uint64_t messages;         /* of all connections */
	uint64_t missed;           /* events that were overwritten before a look */
	/* all since the beginning */
	struct watch_event *events;
	size_t events_count, events_room;
	struct watch_sample *samples;
	size_t samples_count, samples_room;
};

/* `job`: the process that has started the job's processes. */
void watch_open(struct watch *w, const char *dir, const char *sysfs, pid_t job);
void watch_close(struct watch *w);

/* One look at everything. 0 or a negative errno. */
int watch_look(struct watch *w);

/* Bytes per second that arrived from one moment to another; negative: too short to say. */
double watch_rate(const struct watch *w, int64_t from, int64_t to);

int64_t watch_now(void);

#endif
