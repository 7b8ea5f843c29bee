/* SPDX-License-Identifier: BSD-3-Clause */
/* names.h - names of environment variables: which are set and known to nobody, and what was
 * meant */
#ifndef HA_BASE_NAMES_H
#define HA_BASE_NAMES_H

#include <stddef.h>

#define HA_NAME_MAX 64 /* bytes of the longest name that is worth comparing */

/* Of the names `known[0..n-1]` the nearest to `name`, at most three edits away (one or two where it
 * is short), or NULL. */
const char *ha_name_nearest(const char *name, const char *const *known, size_t n);

/* Calls report() for each variable of the environment that begins with `prefix` and is not among
 * the `n` known ones; `nearest` may be NULL. */
void ha_names_check(const char *prefix, const char *const *known, size_t n,
		    void (*report)(const char *name, const char *nearest));

#endif
