/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watcher.h - the processes with hawser in them, by their status pages
 *
 * Each page is kept open: what its process has counted last can be read also when the file is
 * removed or the process was killed. Reading costs the process nothing.
 */
#ifndef HAWSER_EXPORTER_WATCHER_H
#define HAWSER_EXPORTER_WATCHER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/process_list.h"
#include "include/hawser/status.h"
#include "tools/exporter/counters.h"

#define WATCHER_PROCESSES 2048 /* places: a user has half of what the others leave */
#define WATCHER_LEFT 4096      /* pages of processes that have ended, which nobody has removed */
#define WATCHER_FILES 4096     /* of a directory that are looked at */
#define WATCHER_SPARE 128      /* descriptors that are for anything but pages */
#define WATCHER_RECENT 256     /* events that are remembered, of all processes */
#define WATCHER_SAMPLES 120    /* looks whose rates are remembered */
#define WATCHER_JOB 64

struct watcher_connection {
	uint64_t since, messages;
	bool sends;
};

struct watcher_process {
	int fd;
	ino_t inode;
	char name[64]; /* of the page's file */
	uid_t uid;
	char job[WATCHER_JOB]; /* the batch system's number of it, or its program */
	uint64_t next_event;   /* that was not counted yet */
	bool counted;          /* it was read at least once */
	bool sought;           /* so was its process */
	pid_t here;            /* the process's number in our pid namespace; 0: not seen */
	bool silent;           /* not seen, and it writes nothing: it has ended or is stopped */
	bool ended;            /* and for the last time: its process has ended */
	struct watcher_connection connection[HA_STATUS_CONNECTIONS];
	struct ha_status_page page; /* as last read */
};

struct watcher_event {
	struct ha_status_event event;
	unsigned pid;
	char job[WATCHER_JOB];
};

/* A page that has been counted to its end. Kept, so that it is not counted again. */
struct watcher_left {
	ino_t inode;
	uid_t uid;
	unsigned pid;
	uint64_t start, next_event;
	bool found; /* in this look */
};

/* Where a process had been counted up to, when the exporter was stopped. */
struct watcher_mark {
	unsigned pid;
	uint64_t start, next_event;
};

struct watcher {
	const char *pattern; /* of the directories: "/dev/shm/hawser-%u", or one without %u */
	struct counters counters;
	struct watcher_process *process[WATCHER_PROCESSES];
	unsigned processes;
	unsigned places; /* for processes; fewer than WATCHER_PROCESSES where descriptors are few */
	unsigned unplaced; /* pages without a place in the last look: they are not counted */
	struct watcher_left left[WATCHER_LEFT];
	unsigned lefts;
	struct ha_process_list list; /* of this look */
	bool partial;                /* this look has not seen all files: no descriptors */
	unsigned refused; /* files that are no page, or another version's, in the last look */
	uint64_t looked;  /* CLOCK_MONOTONIC of the last look, ns; 0: never */
	struct watcher_event recent[WATCHER_RECENT];
	uint64_t events;              /* so many were there; the last WATCHER_RECENT are kept */
	double rate[WATCHER_SAMPLES]; /* messages per second; the last one at (looks - 1) % SAMPLES
				       */
	uint64_t looks;
	struct watcher_mark mark[WATCHER_PROCESSES + WATCHER_LEFT];
	unsigned marks;
	/* Called for each event that is counted; NULL: for none. */
	void (*report)(void *user, const struct watcher_event *event);
	void *user;
};

/* Its process runs, as far as can be told. */
static inline bool watcher_runs(const struct watcher_process *p)
{
	return p->counted && !p->ended && !p->silent;
}

void watcher_open(struct watcher *w, const char *pattern);
/* Reads every page; `now`: CLOCK_MONOTONIC, ns. */
void watcher_look(struct watcher *w, uint64_t now);
void watcher_close(struct watcher *w);

/* Counters and marks, so that another exporter goes on from here. 0, or a negative errno. */
int watcher_save(const struct watcher *w, const char *path);
int watcher_load(struct watcher *w, const char *path);

#endif
