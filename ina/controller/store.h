/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store.h - what outlives the controller, in SQLite: switches with their epochs, groups, the last
 * serial
 *
 * Write-ahead log, synchronous: what was committed is there after a crash of the process or the
 * machine. Writes gather in one transaction until ha_store_commit. The database belongs to one
 * process at a time.
 */
#ifndef HA_INA_STORE_H
#define HA_INA_STORE_H

#include "ina/controller/groups.h"

struct ha_store;

/* NULL, and what is wrong in `why`. */
struct ha_store *ha_store_open(const char *path, char *why, size_t size);
void ha_store_close(struct ha_store *store);

/* Each: 0 or -EIO; after a failure every write fails until ha_store_rollback. */
int ha_store_group(struct ha_store *store, const struct ha_group_record *record);
int ha_store_group_delete(struct ha_store *store, uint64_t serial);
int ha_store_switch(struct ha_store *store, const struct ha_switch *s);
int ha_store_switch_delete(struct ha_store *store, const char *name);
int ha_store_epoch(struct ha_store *store, const char *switch_name, unsigned id, uint32_t epoch);
int ha_store_serial(struct ha_store *store, uint64_t serial);
int ha_store_commit(struct ha_store *store);
void ha_store_rollback(struct ha_store *store);
/* What was wrong last. */
const char *ha_store_error(const struct ha_store *store);

/* Everything into `groups`, whose configured switches are there already; switches that are no
 * longer configured are gone, and those that hold nothing are left out when there are too many. 0,
 * or -EIO / -EINVAL and why. */
int ha_store_load(struct ha_store *store, struct ha_groups *groups, uint64_t now, char *why,
		  size_t size);

#endif
