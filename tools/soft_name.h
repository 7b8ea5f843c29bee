/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft_name.h - how the commands about software NICs name a device, and what they say when they
 * find none
 */
#ifndef HA_TOOLS_SOFT_NAME_H
#define HA_TOOLS_SOFT_NAME_H

#include "softroce/control.h"

#include <stddef.h>

/* "soft0@127.1.0.2 (pid 12, job 10)" */
void ha_soft_name(const struct sr_control_entry *entry, char *buf, size_t len);

/*
 * The folder of the control pages cannot be read (err: a negative errno): one line; the exit
 * status.
 */
int ha_soft_complain(const char *command, int err);

#endif
