/* SPDX-License-Identifier: BSD-3-Clause */
/* What a lab machine's agent does as a command: `agent NAME ...`. Each returns an exit status. */
#ifndef LAB_GUEST_COMMANDS_H
#define LAB_GUEST_COMMANDS_H

/* CLOCK_MONOTONIC. */
long long now_ns(void);

/* DEVICE TIME (silence.c): what would leave by the device vanishes, for TIME ns, from now on
 * ("on"), or no longer ("off"). Prints now_ns() of each change, a line each. */
int silence_command(const char *device, const char *time);

/* FILE (follow.c): prints the file and, 0.3 s later, whatever is appended to it. At the start, and
 * at once whenever it receives SIGUSR1, it says FOLLOW_CAUGHT_UP behind all that the file held
 * then. */
#define FOLLOW_CAUGHT_UP "caught up\n"
int follow_command(const char *path);

#endif
