/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c - from text to struct ha_config. The only file of the project that reads the
 * environment.
 *
 * NCCL itself puts the lines of /etc/nccl.conf and ~/.nccl.conf into the environment before it
 * loads a plugin, so those count here too.
 */
#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config_entry.h"
#include "base/log.h"
#include "base/names.h"
#include "include/mpib_agent_iface.h"

#define IGNORED_MAX 64   /* variables of NCCL's own transport */
#define ELSEWHERE_MAX 64 /* variables of the other programs */

void ha_config_defaults(struct ha_config *config)
{
	memset(config, 0, sizeof(*config));
	for (int i = 0; i < HA_CONFIG_COUNT; i++) {
		const struct ha_config_entry *entry = &ha_config_entries[i];

		if (entry->type == HA_CONFIG_STR)
			snprintf((char *)config + entry->offset, HA_CONFIG_TEXT_MAX, "%s",
				 entry->choices);
		else
			ha_config_entry_store(entry, config, entry->def);
	}
}

static bool bool_parse(const char *text, int64_t *value)
{
	static const char *const words[2][4] = { { "0", "no", "false", "off" },
						 { "1", "yes", "true", "on" } };

	for (int v = 0; v < 2; v++)
		for (int i = 0; i < 4; i++)
			if (!strcasecmp(text, words[v][i])) {
				*value = v;
				return true;
			}
	return false;
}

/* Decimal, 0x or 0 octal as NCCL reads its numbers; `suffix`: one of K M G (and an optional B, iB)
 * may follow. */
static bool number_parse(const char *text, bool suffix, int64_t *value)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;
	long long v;
	int shift = 0;

	while (isspace((unsigned char)*text))
		text++;
	errno = 0;
	v = strtoll(text, &end, 0);
	if (errno || end == text)
		return false;
	if (suffix && *end && (unit = strchr(units, toupper((unsigned char)*end)))) {
		shift = 10 * (int)(unit - units + 1);
		end++;
		if (!strcasecmp(end, "B") || !strcasecmp(end, "iB"))
			end += strlen(end);
	}
	while (isspace((unsigned char)*end))
		end++;
	if (*end || v > INT64_MAX >> shift || v < INT64_MIN >> shift)
		return false;
	*value = v * (INT64_C(1) << shift);
	return true;
}

/* False: the text is nonsense for this entry, or out of its range. */
static bool entry_parse(const struct ha_config_entry *entry, const char *text,
			struct ha_config *config)
{
	int64_t value = 0;
	bool ok = false;

	switch (entry->type) {
	case HA_CONFIG_BOOL:
		ok = bool_parse(text, &value);
		break;
	case HA_CONFIG_INT:
		ok = number_parse(text, false, &value);
		break;
	case HA_CONFIG_SIZE:
		ok = number_parse(text, true, &value);
		break;
	case HA_CONFIG_ENUM:
		value = ha_config_entry_choice(entry, text);
		ok = value >= 0;
		break;
	case HA_CONFIG_STR:
		if (strlen(text) >= HA_CONFIG_TEXT_MAX)
			return false;
		strcpy((char *)config + entry->offset, text);
		return true;
	}
	if (!ok || value < entry->min || value > entry->max)
		return false;
	ha_config_entry_store(entry, config, value);
	return true;
}

static void rejection_log(const struct ha_config_entry *entry, const char *text)
{
	char accepts[160], def[HA_CONFIG_TEXT_MAX];

	HA_WARN(NULL, "%s='%.64s' is not %s; using the default '%s'", entry->name, text,
		ha_config_entry_accepts(entry, accepts, sizeof(accepts)),
		ha_config_entry_text(entry, entry->def, def, sizeof(def)));
}

uint64_t ha_config_window_ns(const struct ha_config *config)
{
	uint64_t tries = config->qp_retry_cnt > 0 ? (uint64_t)config->qp_retry_cnt : 1;

	return (UINT64_C(4096) << ha_config_timeout(config)) * tries;
}

/* The least HA_NCCL_RTO_MS. */
static int rto_least_ms(const struct ha_config *config)
{
	return (int)(2 * ha_config_window_ns(config) / HA_NS_PER_MS) + 1;
}

uint64_t ha_config_rto_ns(const struct ha_config *config)
{
	int least = rto_least_ms(config);

	return HA_NS_PER_MS * (uint64_t)(config->rto_ms > least ? config->rto_ms : least);
}

int ha_config_timeout(const struct ha_config *config)
{
	if (ha_config_is_set(config, HA_CFG_force_ib_timeout) ||
	    !ha_config_is_set(config, HA_CFG_qp_timeout))
		return config->force_ib_timeout;
	return config->qp_timeout;
}

bool ha_config_folder_trusted(const char *path)
{
	struct stat st;

	if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	return st.st_uid == 0 || st.st_uid == geteuid();
}

/* Anybody can make /tmp/mpib, and only root /run/mpib: the second is where a host's agent is, when
 * there is one. */
static void agent_paths_choose(struct ha_config *config)
{
	if (ha_config_folder_trusted(HA_CONFIG_AGENT_FOLDER))
		return;
	if (!ha_config_is_set(config, HA_CFG_agent_socket))
		strcpy(config->agent_socket, MPIB_AGENT_SOCK_PATH);
	if (!ha_config_is_set(config, HA_CFG_agent_hints))
		strcpy(config->agent_hints, MPIB_HINT_SHM_PATH);
}

/* What NCCL's own transport calls failover and recovery. hawser's variables win. */
static void resiliency_map(struct ha_config *config)
{
	if (ha_config_is_set(config, HA_CFG_ib_port_failover) &&
	    !ha_config_is_set(config, HA_CFG_enable_backup) && !config->ib_port_failover) {
		config->enable_backup = false;
		config->source[HA_CFG_enable_backup] = HA_CONFIG_ADJUSTED;
		HA_WARN(NULL, "NCCL_IB_RESILIENCY_PORT_FAILOVER=0: no connection has a standby, "
			      "and a broken path ends it; unset "
			      "it, or set HA_NCCL_ENABLE_BACKUP=1");
	}
	if (ha_config_is_set(config, HA_CFG_ib_port_recovery) &&
	    !ha_config_is_set(config, HA_CFG_enable_failback) && config->ib_port_recovery) {
		config->enable_failback = true;
		config->source[HA_CFG_enable_failback] = HA_CONFIG_ADJUSTED;
	}
}

/* Rules between variables. */
static void rules_apply(struct ha_config *config)
{
	int least = rto_least_ms(config);

	agent_paths_choose(config);
	resiliency_map(config);

	if (ha_config_is_set(config, HA_CFG_force_ib_timeout) &&
	    ha_config_is_set(config, HA_CFG_qp_timeout) &&
	    config->force_ib_timeout != config->qp_timeout)
		HA_INFO(NULL, "HA_NCCL_FORCE_IB_TIMEOUT=%d wins over HA_NCCL_QP_TIMEOUT=%d",
			config->force_ib_timeout, config->qp_timeout);
	if (config->rto_ms >= least)
		return;
	HA_WARN(NULL,
		"HA_NCCL_RTO_MS=%d does not exceed twice the hardware's window of %" PRIu64
		" ms (timeout %d, %d retries); using %d. Lower HA_NCCL_FORCE_IB_TIMEOUT or "
		"HA_NCCL_QP_RETRY_CNT to "
		"detect faults sooner",
		config->rto_ms, ha_config_window_ns(config) / HA_NS_PER_MS,
		ha_config_timeout(config), config->qp_retry_cnt, least);
	config->rto_ms = least;
	config->source[HA_CFG_rto_ms] = HA_CONFIG_ADJUSTED;
}

int ha_config_load(struct ha_config *config, ha_config_get_fn get, void *user)
{
	int rejected = 0;

	ha_config_defaults(config);
	for (int i = 0; i < HA_CONFIG_COUNT; i++) {
		const struct ha_config_entry *entry = &ha_config_entries[i];
		const char *text = get(user, entry->name);

		if (!text || !*text) /* empty counts as not set, as with NCCL */
			continue;
		if (!entry_parse(entry, text, config)) {
			rejection_log(entry, text);
			config->source[i] = HA_CONFIG_REJECTED;
			rejected++;
			continue;
		}
		config->source[i] = HA_CONFIG_SET;
		if (entry->status == HA_CONFIG_LATER)
			HA_WARN(NULL, "%s=%.64s is understood, but has no effect in version %s",
				entry->name, text, HAWSER_VERSION);
	}
	rules_apply(config);
	return rejected;
}

static const char *environment_get(void *user, const char *name)
{
	return getenv(name);
}

static void unknown_name_log(const char *name, const char *nearest)
{
	HA_WARN(NULL, "%s is set, but there is no such variable%s%s; `ha config` lists them", name,
		nearest ? "; did you mean " : "", nearest ? nearest : "");
}

/* A misspelt variable would otherwise do nothing, silently. */
static void unknown_names_log(void)
{
	static const char *const prefixes[] = { "HA_NCCL_", "MPIB_", "NETCCL_" };
	const char *known[HA_CONFIG_COUNT + ELSEWHERE_MAX];
	size_t n = 0;

	for (int i = 0; i < HA_CONFIG_COUNT; i++)
		known[n++] = ha_config_entries[i].name;
	for (int i = 0; i < ha_config_elsewhere_count && i < ELSEWHERE_MAX; i++)
		known[n++] = ha_config_elsewhere[i].name;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		ha_names_check(prefixes[i], known, n, unknown_name_log);
}

static atomic_uchar foreign_reported; /* once in a process */

static void foreign_name_log(const char *name, const char *nearest)
{
	atomic_store(&foreign_reported, 1);
	HA_WARN(NULL,
		"%s is set, but hawser %s does not know it, and it has no effect there%s%s; "
		"`ha config --markdown` lists those of NCCL",
		name, HAWSER_VERSION, nearest ? "; did you mean " : "", nearest ? nearest : "");
}

/* Of NCCL's own transport: misspelt, or of a version of NCCL that is newer than the tables. */
static void foreign_names_log(void)
{
	const char *known[HA_CONFIG_COUNT + IGNORED_MAX];
	size_t n = 0;

	if (atomic_load(&foreign_reported))
		return;
	for (int i = 0; i < HA_CONFIG_COUNT; i++)
		known[n++] = ha_config_entries[i].name;
	for (int i = 0; i < ha_config_ignored_count && i < IGNORED_MAX; i++)
		known[n++] = ha_config_ignored[i].name;
	ha_names_check("NCCL_IB_", known, n, foreign_name_log);
}

/* So that nobody tunes what is not there. */
static void ignored_names_log(void)
{
	static atomic_uchar reported[IGNORED_MAX]; /* once in a process */

	for (int i = 0; i < ha_config_ignored_count && i < IGNORED_MAX; i++) {
		const struct ha_config_ignored *one = &ha_config_ignored[i];
		const char *text = getenv(one->name);

		if (!text || !*text || (one->same && !strcmp(text, one->same)))
			continue;
		if (!atomic_exchange(&reported[i], 1))
			HA_WARN(NULL, "%s=%.64s is set, but not read: %s", one->name, text,
				one->why);
	}
}

int ha_config_load_env(struct ha_config *config)
{
	const char *debug = getenv("HA_NCCL_DEBUG");

	/* The levels first, so that what loading logs is seen. */
	ha_log_configure(getenv("NCCL_DEBUG"), getenv("NCCL_DEBUG_SUBSYS"),
			 debug ? atoi(debug) : 0);
	unknown_names_log();
	foreign_names_log();
	ignored_names_log();
	return ha_config_load(config, environment_get, NULL);
}
