/* SPDX-License-Identifier: BSD-3-Clause */
/* status_file.h - the file under the status page: how it is made, its end, the removal of what dead
 * processes left */
#ifndef HA_PLUGIN_STATUS_FILE_H
#define HA_PLUGIN_STATUS_FILE_H

#include "include/hawser/status.h"

#include <stddef.h>
#include <sys/types.h>

struct ha_status_file {
	struct ha_status_page *page; /* NULL: there is none */
	pid_t pid; /* who made it; a forked child has the mapping but no right to the file */
	char path[600];
};

/*
 * Make a page in `dir` (made too, for its user alone, if only its last part is missing) and fill
 * its header. Pages of processes that are known to have ended are removed on the way. started_wall,
 * started_mono: ns. Errors: -EPERM: the directory is another user's or open to others; -EEXIST:
 * every name of this process is taken; else what the system says (-ENOSPC: no room).
 */
int ha_status_file_open(struct ha_status_file *f, const char *dir, uint64_t started_wall,
			uint64_t started_mono);
void ha_status_file_close(struct ha_status_file *f);

/* Replace a record of the page, size bytes, the sequence number in its first word apart. One writer
 * at a time. */
void ha_status_put(void *record, const void *from, size_t size);

#endif
