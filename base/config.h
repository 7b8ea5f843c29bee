/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h - what the operator set
 *
 * config_table.h lists every variable; struct ha_config has one plain field for each. A context is
 * built from a struct ha_config and reads no environment itself.
 */
#ifndef HA_BASE_CONFIG_H
#define HA_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HA_CONFIG_TEXT_MAX 512 /* bytes of a STR field, with the final 0 */

/* C types of the table's types. */
#define HA_CONFIG_TYPE_BOOL(field) bool field;
#define HA_CONFIG_TYPE_INT(field) int field;
#define HA_CONFIG_TYPE_ENUM(field) int field;
#define HA_CONFIG_TYPE_SIZE(field) uint64_t field;
#define HA_CONFIG_TYPE_STR(field) char field[HA_CONFIG_TEXT_MAX];

/* One index per variable: HA_CFG_rto_ms. */
enum ha_config_id {
#define X(type, field, ...) HA_CFG_##field,
#include "base/config_table.h"
#undef X
	HA_CONFIG_COUNT
};

enum ha_config_source {
	HA_CONFIG_DEFAULT,  /* not set */
	HA_CONFIG_SET,      /* set, and taken */
	HA_CONFIG_REJECTED, /* set to nonsense; the default is in force */
	HA_CONFIG_ADJUSTED, /* a rule between variables moved it */
};

struct ha_config {
#define X(type, field, ...) HA_CONFIG_TYPE_##type(field)
#include "base/config_table.h"
#undef X
	uint8_t source[HA_CONFIG_COUNT]; /* enum ha_config_source */
};

/* Values of the ENUM fields, in the order of their choices. */
enum ha_ack { HA_ACK_NIC, HA_ACK_MEMORY };
enum ha_gin_choice { HA_GIN_AUTO, HA_GIN_NEVER, HA_GIN_ALWAYS };
enum ha_collnet_choice { HA_COLLNET_AUTO, HA_COLLNET_NEVER, HA_COLLNET_ALWAYS };
enum ha_mr_mode { HA_MR_LAZY, HA_MR_EAGER };
enum ha_policy {
	HA_POLICY_AUTO,
	HA_POLICY_PRIMARY,
	HA_POLICY_STATIC,
	HA_POLICY_TOPOLOGY,
	HA_POLICY_AGENT,
	HA_POLICY_ADAPTIVE
};
enum ha_gid_family { HA_GID_INET, HA_GID_INET6 };
enum ha_socket_family { HA_SOCKET_ANY, HA_SOCKET_INET, HA_SOCKET_INET6 };

/* Returns the text of a variable, or NULL when it is not set. The text must live until the next
 * call. */
typedef const char *(*ha_config_get_fn)(void *user, const char *name);

/* Where root's agent puts its socket and its hints. */
#define HA_CONFIG_AGENT_FOLDER "/run/mpib"
/* A directory, no link, that is root's or ours and that nobody else may write to. */
bool ha_config_folder_trusted(const char *path);

/* Every default. */
void ha_config_defaults(struct ha_config *config);
/* Defaults, then what `get` knows. A nonsense value is one warning and the default. Returns how
 * many were rejected. */
int ha_config_load(struct ha_config *config, ha_config_get_fn get, void *user);
/* From the environment of the process; then HA_LOG follows NCCL_DEBUG and HA_NCCL_DEBUG, and
 * unknown HA_NCCL_, MPIB_ and NETCCL_ variables are named once each, with the nearest known one.
 * Returns as ha_config_load. */
int ha_config_load_env(struct ha_config *config);

static inline bool ha_config_is_set(const struct ha_config *config, enum ha_config_id id)
{
	return config->source[id] == HA_CONFIG_SET;
}

/* The variable has an effect in this version (config_table.h, status NOW). */
bool ha_config_has_effect(enum ha_config_id id);

/* The local ACK timeout in force, as the queue pair attribute (4.096 us x 2^value, IBTA
 * 9.7.6.1.3). */
int ha_config_timeout(const struct ha_config *config);
/* The hardware's own window in nanoseconds: 4.096 us x 2^timeout x retry count. */
uint64_t ha_config_window_ns(const struct ha_config *config);
/*
 * Nanoseconds without progress after which a path is suspect: HA_NCCL_RTO_MS, but always more than
 * twice the window, for otherwise a path would be given up while the NIC is still trying. Loading
 * has said so where it raised the value.
 */
uint64_t ha_config_rto_ns(const struct ha_config *config);

const char *ha_config_name(enum ha_config_id id);
/* The value in force as text, into `buf`. Returns buf. */
const char *ha_config_value(const struct ha_config *config, enum ha_config_id id, char *buf,
			    size_t len);

/* The table for a terminal: name, value, where it comes from, help. */
void ha_config_print(const struct ha_config *config, FILE *out);
/* docs/configuration.md. */
void ha_config_print_markdown(FILE *out);

#endif
