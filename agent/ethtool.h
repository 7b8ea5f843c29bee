/* SPDX-License-Identifier: BSD-3-Clause */
/* ethtool.h - the counters that a network driver shows to `ethtool -S` */
#ifndef HA_AGENT_ETHTOOL_H
#define HA_AGENT_ETHTOOL_H

#include <stdint.h>

typedef void (*ha_ethtool_fn)(void *user, const char *name, uint64_t value);

/*
 * Every counter of an interface. root: "" = ask the driver; else the file
 * <root>/ethtool/<interface>, in the format that `ethtool -S` prints (machines that are not here).
 * 0 or negative errno.
 */
int ha_ethtool_each(const char *root, const char *interface, ha_ethtool_fn fn, void *user);

#endif
