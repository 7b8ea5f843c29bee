/* SPDX-License-Identifier: BSD-3-Clause */
/* rule_file.h - the operator's rules: in force, and kept over a restart */
#ifndef HA_AGENT_RULE_FILE_H
#define HA_AGENT_RULE_FILE_H

#include <stdbool.h>

struct ha_daemon;
struct ha_rule;

/* Sets or unsets a rule. NULL, or why not. */
const char *ha_rule_file_change(struct ha_daemon *d, const struct ha_rule *rule, bool set);
/* Keeps them. Negative errno. */
int ha_rule_file_save(struct ha_daemon *d);
/* What was kept. What is wrong with it is a line in the log. */
void ha_rule_file_load(struct ha_daemon *d);

#endif
