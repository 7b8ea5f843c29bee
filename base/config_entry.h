/* SPDX-License-Identifier: BSD-3-Clause */
/* config_entry.h - the rows of config_table.h as data, for the parser and the printers. Private to
 * base/. */
#ifndef HA_BASE_CONFIG_ENTRY_H
#define HA_BASE_CONFIG_ENTRY_H

#include "base/config.h"

enum ha_config_type {
	HA_CONFIG_BOOL,
	HA_CONFIG_INT,
	HA_CONFIG_ENUM,
	HA_CONFIG_SIZE,
	HA_CONFIG_STR
};

enum ha_config_status { HA_CONFIG_NOW, HA_CONFIG_LATER };

enum ha_config_group {
	HA_CONFIG_AVAILABILITY,
	HA_CONFIG_PROGRESS,
	HA_CONFIG_QUEUE_PAIR,
	HA_CONFIG_BUDGET,
	HA_CONFIG_MEMORY,
	HA_CONFIG_RAILS,
	HA_CONFIG_DEVICES,
	HA_CONFIG_ONE_SIDED,
	HA_CONFIG_AGGREGATION,
	HA_CONFIG_LOGGING,
	HA_CONFIG_TESTING,
	HA_CONFIG_GROUPS
};

struct ha_config_entry {
	const char *name;
	enum ha_config_type type;
	size_t offset; /* of the field in struct ha_config */
	int64_t def, min, max;
	const char *choices; /* see config_table.h */
	enum ha_config_status status;
	enum ha_config_group group;
	const char *help;
};

extern const struct ha_config_entry ha_config_entries[HA_CONFIG_COUNT];

/* A variable of NCCL's own transport that hawser does not read. */
struct ha_config_ignored {
	const char *name, *why;
	/* the value that says what hawser does in any case; NULL: there is none */
	const char *same;
};

extern const struct ha_config_ignored ha_config_ignored[];
extern const int ha_config_ignored_count;

/* A variable of NCCL's core, which acts above every plugin. */
struct ha_config_core {
	const char *name, *effect;
};

extern const struct ha_config_core ha_config_core[];
extern const int ha_config_core_count;

/* A variable that one of the other programs reads by itself: libhawser-ina.so, which stands on no
 * configuration, ha-backend, netccl. */
struct ha_config_elsewhere {
	/* def: what holds when it is not set; "" = nothing */
	const char *name, *def, *reader, *help;
};

extern const struct ha_config_elsewhere ha_config_elsewhere[];
extern const int ha_config_elsewhere_count;

/* Number `value` into the field (not for STR). */
void ha_config_entry_store(const struct ha_config_entry *entry, struct ha_config *config,
			   int64_t value);
int64_t ha_config_entry_number(const struct ha_config_entry *entry, const struct ha_config *config);
/* What a value must look like, for messages: "a whole number from 10 to 60000". Returns buf. */
const char *ha_config_entry_accepts(const struct ha_config_entry *entry, char *buf, size_t len);
/* Text of number `value` in this entry's type; for STR of the text in `config`. Returns buf. */
const char *ha_config_entry_text(const struct ha_config_entry *entry, int64_t value, char *buf,
				 size_t len);
/* Index of `text` among the choices "a|b|c", -1 when it is none; case does not matter. */
int ha_config_entry_choice(const struct ha_config_entry *entry, const char *text);

#endif
