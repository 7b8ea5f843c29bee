/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules.h - what a person wants for which flows
 *
 * A text file, one rule per line: SOURCE DESTINATION SHARE. SOURCE and DESTINATION are IPv4
 * addresses of the SOUT rail, with /LENGTH for a network, or * for any; SHARE is SUP's part of
 * 1024. # begins a comment. The rule with the longer prefixes wins, of equals the last.
 */
#ifndef HA_AGENT_RULES_H
#define HA_AGENT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HA_RULES_MAX 4096

struct ha_rule {
	uint32_t src, dst; /* host byte order, without the bits beyond the prefix */
	uint8_t src_len, dst_len;
	uint16_t share;
};

struct ha_rules {
	struct ha_rule *rule;
	size_t n, room;
};

void ha_rules_free(struct ha_rules *rules);
/* Of a whole line; NULL, or what is wrong with it. */
const char *ha_rule_parse(const char *src, const char *dst, const char *share,
			  struct ha_rule *rule);
/* Add, or change the share of the rule with the same ends. -ENOSPC, -ENOMEM. */
int ha_rules_set(struct ha_rules *rules, const struct ha_rule *rule);
/* false: there is no such rule. */
bool ha_rules_unset(struct ha_rules *rules, const struct ha_rule *rule);
/* Replace all by a file's; a file with a mistake changes nothing, and `why` says what and in which
 * line. Negative errno. */
int ha_rules_load(struct ha_rules *rules, const char *path, char *why, size_t len);
/* The same from an open file. */
int ha_rules_read(struct ha_rules *rules, FILE *file, char *why, size_t len);
void ha_rules_print(const struct ha_rules *rules, FILE *out);
/* The rule for a flow (addresses in network byte order), or NULL. */
const struct ha_rule *ha_rules_match(const struct ha_rules *rules, uint32_t src, uint32_t dst);

#endif
