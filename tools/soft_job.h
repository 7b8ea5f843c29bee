/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOLS_SOFT_JOB_H
#define HAWSER_TOOLS_SOFT_JOB_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "softroce/control.h"

/*
 * soft_job - which processes with software NICs belong together
 *
 * A job is what one process has started: the children of a launcher (`ha perf`, mpirun, torchrun, a
 * shell script), named by the launcher's number; of processes whose launcher has ended (their
 * parent is 1), the session they are in.
 */

/* The job of a process; 0: it is gone. */
pid_t ha_soft_job_of(pid_t pid);

/*
 * The job among the `n` devices that a command means when it names none: the one whose measurement
 * runs the command (`--at` of ha perf), else the one whose newest process began last. n > 0.
 */
pid_t ha_soft_job_choose(const struct sr_control_entry *list, int n);

/*
 * Keeps the devices of `job`, or of the job that the process `job` belongs to; returns how many are
 * left.
 */
int ha_soft_job_keep(struct sr_control_entry *list, int n, pid_t job);

/*
 * "job 4711 (ib_write_bw 4712, 4713)": whom a command is about to reach, and, of all[0..n-1], whom
 * it leaves alone.
 */
void ha_soft_job_print(const struct sr_control_entry *all, int n, pid_t job, FILE *out);

#endif
