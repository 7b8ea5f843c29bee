/* SPDX-License-Identifier: BSD-3-Clause */
/* trust.h - may a file that another process has written be read for what it says? */
#ifndef HA_BASE_TRUST_H
#define HA_BASE_TRUST_H

#include <sys/stat.h>

/* NULL: a regular file of root or of our own user, which nobody else may write to. Else what is
 * wrong with it, "it is another user's" for example. */
const char *ha_trust_fault(const struct stat *st);

#endif
