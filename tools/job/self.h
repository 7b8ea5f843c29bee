/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_SELF_H
#define HAWSER_JOB_SELF_H

#include <stddef.h>

/*
 * The folder of the running program, without a slash at the end; "." when the system does not say.
 * Returns text.
 */
const char *ha_self_folder(char *text, size_t size);

/*
 * A file that belongs to the program, by its name: in ../lib or ../lib64 when installed, beside
 * the program in a build folder. Beside it when it is nowhere. Returns text.
 */
const char *ha_self_library(char *text, size_t size, const char *name);

#endif
