/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_FAULT_H
#define HAWSER_JOB_FAULT_H

/*
 * fault - why this rank cannot go on
 *
 * The first cause is kept and the consequences are dropped, so that a failed run ends with one
 * line. One fault per process: a rank is a process. Any thread may record one; it is read when the
 * others can record none any more.
 */

/*
 * Records the cause (when it is the first) and returns err, a negative errno, so that `return
 * ha_fault(...)` reads.
 */
int ha_fault(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The recorded cause, or "" when there is none. */
const char *ha_fault_text(void);

/* Forgets the cause: it turned out to be the consequence of another rank's. */
void ha_fault_clear(void);

#endif
