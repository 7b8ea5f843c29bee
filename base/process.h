/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - who we are, and distinguishing a process from a later one that got its number */
#ifndef HA_BASE_PROCESS_H
#define HA_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Start time of a process in clock ticks since boot (proc(5), field 22 of /proc/<pid>/stat). 0:
 * there is none by that number, or it is dead and only waited for. */
uint64_t ha_process_start(pid_t pid);
/* Inode of our pid namespace: process numbers mean something within it only. 0 = unknown. */
uint64_t ha_process_space(void);
/* path with %h, %p and %u replaced (host, process, user), %% = %. false: it does not fit. */
bool ha_process_expand(const char *path, char *out, size_t size);

#endif
