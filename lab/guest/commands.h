/* SPDX-License-Identifier: BSD-3-Clause */
/* What a lab machine's agent does as a command: `agent NAME ...`. Each returns an exit status. */
#ifndef LAB_GUEST_COMMANDS_H
#define LAB_GUEST_COMMANDS_H

/* CLOCK_MONOTONIC. */
long long now_ns(void);

/* FILE (follow.c): prints the file and whatever is appended to it, as soon as it is. At the start,
 * and whenever it receives SIGUSR1, it says FOLLOW_CAUGHT_UP behind all that the file held then. */
#define FOLLOW_CAUGHT_UP "caught up\n"
int follow_command(const char *path);

#endif
