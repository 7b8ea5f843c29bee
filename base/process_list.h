/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process_list.h - what has become of a process of another pid namespace
 *
 * A process in a container knows itself by a number that means another process here. The kernel
 * shows both numbers (NSpid in proc(5)) to those who see the process: in its own pid namespace and
 * in those above it. Everybody is seen from the first one, the host's.
 */
#ifndef HA_BASE_PROCESS_LIST_H
#define HA_BASE_PROCESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Who a process is, as it says itself: its number, when it started (ha_process_start) and its pid
 * namespace (ha_process_space). */
struct ha_process_name {
	pid_t pid;
	uint64_t start, space;
};

enum ha_process_state {
	HA_PROCESS_UNKNOWN, /* it cannot be seen from here */
	HA_PROCESS_RUNS,
	HA_PROCESS_ENDED
};

/* Processes of pid namespaces below ours. */
struct ha_process_list {
	struct ha_process_entry *entry;
	size_t n, room;
	bool taken;
	bool complete; /* nobody was left out */
};

/*
 * Takes the list when it is needed first; before, it is all zero. A process that has begun after
 * that is not in it and looks as if it had ended: what `name` is copied from must be older. Its
 * number here goes to *here, 0 unless it runs.
 */
enum ha_process_state ha_process_find(struct ha_process_list *list,
				      const struct ha_process_name *name, pid_t *here);
/* All zero again. */
void ha_process_list_free(struct ha_process_list *list);

#endif
