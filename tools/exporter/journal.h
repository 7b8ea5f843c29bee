/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.h - events as entries with fields, in systemd's journal by its native protocol */
#ifndef HAWSER_EXPORTER_JOURNAL_H
#define HAWSER_EXPORTER_JOURNAL_H

#include <stdint.h>

#include "base/sockaddr.h"
#include "tools/exporter/watcher.h"

#define JOURNAL_WAITING 512

struct journal {
	int fd; /* -1: none */
	const char *path;
	struct sockaddr_un to;                         /* path */
	struct watcher_event waiting[JOURNAL_WAITING]; /* from `first` on, as a ring */
	unsigned first, n;
	uint64_t lost; /* for which there was no room any more */
};

/* path: "/run/systemd/journal/socket". False: there is no such socket. */
bool journal_open(struct journal *j, const char *path);
/* Of the events that an operator acts on; never waits. */
void journal_write(struct journal *j, const struct watcher_event *event);
/* What the journal had no room for, again. */
void journal_flush(struct journal *j);
void journal_close(struct journal *j);

#endif
