/* SPDX-License-Identifier: BSD-3-Clause */
/* idle.h - what a thread does that polls an empty completion queue again and again */
#ifndef SOFTROCE_IDLE_H
#define SOFTROCE_IDLE_H

/* Let others have the core for a moment: until a packet arrives for any open device of the process,
 * or for a few microseconds, or as long as the scheduler thinks right. Called without any lock. */
void sr_idle_pause(void);

#endif
