/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h - the file that says which switches there are and who may have what
 *
 * A statement per line, # begins a comment:
 *   switch NAME address A slots N serves PREFIX[,PREFIX...] [registers]
 *   register none|any|NAME[,NAME...]    clients that may announce switches which are not in this
 *                                       file
 *   admin NAME[,NAME...]                clients that may end any group
 *   quota NAME|* groups N slots N       * = who has no line of its own
 *   lease MIN MAX PLAIN                 seconds; PLAIN = of a client that cannot renew
 *   late SECONDS                        packets may live so long: the quarantine
 *   silence SECONDS                     a switch that registers and is silent for so long is away
 *   length N                            aggregators when nobody asks for another number
 * A client's name is its certificate's common name, or its address, or "local" on a Unix socket.
 */
#ifndef HA_INA_SETTINGS_H
#define HA_INA_SETTINGS_H

#include "ina/controller/groups.h"

#include <stdio.h>

#define HA_NAMES 64u

struct ha_names {
	bool any;
	unsigned n;
	char name[HA_NAMES][HA_TENANT_NAME];
};

struct ha_settings {
	struct ha_groups_limits limits;
	struct ha_quotas quotas;
	unsigned nsw;
	struct ha_switch_info sw[HA_GROUPS_SWITCHES];
	struct ha_names registrars, admins;
};

void ha_settings_default(struct ha_settings *settings);
/* On top of what is there. 0, or -EINVAL and why, with the line's number. */
int ha_settings_read(struct ha_settings *settings, FILE *file, char *why, size_t size);
int ha_settings_load(struct ha_settings *settings, const char *path, char *why, size_t size);
bool ha_names_have(const struct ha_names *names, const char *name);

/* A switch's name: 1 to 31 letters, digits, dots, dashes and underscores. */
bool ha_switch_name_valid(const char *name);

#endif
