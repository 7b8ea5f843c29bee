/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - a program of another package, run for what it prints */
#ifndef HAWSER_TOOLS_SWITCHES_PROGRAM_H
#define HAWSER_TOOLS_SWITCHES_PROGRAM_H

#include <stddef.h>

/*
 * What it has printed, to be freed; NULL: it is not there, ended with an error or took more than 10
 * seconds, and `why` says which. argv ends with NULL; argv[0] is looked for along PATH, then in
 * /usr/sbin.
 */
char *switches_run(const char *const argv[], char *why, size_t size);

#endif
