/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"
#include "base/clamp.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

/* What NCCL prints without NCCL_DEBUG_SUBSYS: INIT, BOOTSTRAP, ENV. */
#define SUBSYS_DEFAULT (HA_LOG_INIT | 0x1000UL | HA_LOG_ENV)

atomic_int ha_log_threshold = HA_LOG_WARN;

/*
 * All relaxed: each is one word that stands alone; a line that races with a change of the settings
 * may go the old way.
 */
static _Atomic(ha_log_sink_fn) sink_current;
static atomic_int level_nccl; /* what the host's logger prints */
static atomic_int level_ha;   /* what HA_NCCL_DEBUG adds */
static atomic_ulong subsys_mask = SUBSYS_DEFAULT;

struct name_value {
	const char *name;
	unsigned long value;
};

static const struct name_value levels[] = {
	{ "VERSION", HA_LOG_VERSION }, { "WARN", HA_LOG_WARN },   { "INFO", HA_LOG_INFO },
	{ "ABORT", HA_LOG_ABORT },     { "TRACE", HA_LOG_TRACE },
};

static const struct name_value subsystems[] = {
	{ "INIT", 0x1 },         { "COLL", 0x2 },   { "P2P", 0x4 },        { "SHM", 0x8 },
	{ "NET", 0x10 },         { "GRAPH", 0x20 }, { "TUNING", 0x40 },    { "ENV", 0x80 },
	{ "ALLOC", 0x100 },      { "CALL", 0x200 }, { "PROXY", 0x400 },    { "NVLS", 0x800 },
	{ "BOOTSTRAP", 0x1000 }, { "REG", 0x2000 }, { "PROFILE", 0x4000 }, { "RAS", 0x8000 },
	{ "ALL", ~0UL },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static unsigned long name_lookup(const struct name_value *table, size_t n, const char *name,
				 size_t len, unsigned long missing)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(table[i].name) == len && !strncasecmp(table[i].name, name, len))
			return table[i].value;
	return missing;
}

/* A comma-separated list, inverted by a leading '^', as NCCL reads it. */
static unsigned long subsys_parse(const char *text)
{
	unsigned long mask = 0;
	int invert;

	if (!text || !*text)
		return SUBSYS_DEFAULT;
	invert = *text == '^';
	text += invert;
	while (*text) {
		size_t len = strcspn(text, ",");

		mask |= name_lookup(subsystems, COUNT(subsystems), text, len, 0);
		text += len;
		text += *text == ',';
	}
	return invert ? ~mask : mask;
}

void ha_log_set_sink(ha_log_sink_fn sink)
{
	atomic_store_explicit(&sink_current, sink, memory_order_relaxed);
}

void ha_log_configure(const char *nccl_debug, const char *nccl_subsys, int ha_debug)
{
	static const int ha_levels[] = { HA_LOG_NONE, HA_LOG_WARN, HA_LOG_INFO, HA_LOG_TRACE };
	int nccl = HA_LOG_NONE, ha, threshold;

	if (nccl_debug && *nccl_debug)
		nccl = (int)name_lookup(levels, COUNT(levels), nccl_debug, strlen(nccl_debug),
					HA_LOG_WARN);
	ha = ha_levels[ha_clamp(ha_debug, 0, COUNT(ha_levels) - 1)];
	threshold = nccl > ha ? nccl : ha;
	if (threshold < HA_LOG_WARN)
		threshold = HA_LOG_WARN;
	atomic_store_explicit(&subsys_mask, subsys_parse(nccl_subsys), memory_order_relaxed);
	atomic_store_explicit(&level_nccl, nccl, memory_order_relaxed);
	atomic_store_explicit(&level_ha, ha, memory_order_relaxed);
	atomic_store_explicit(&ha_log_threshold, threshold, memory_order_relaxed);
}

static const char *level_name(int level)
{
	for (size_t i = 0; i < COUNT(levels); i++)
		if (levels[i].value == (unsigned long)level)
			return levels[i].name;
	return "?";
}

/* One write per line, so that lines of several processes on one terminal do not mix. */
static void stderr_write(int level, const char *text)
{
	char line[LINE_MAX_BYTES + 128], host[64] = "";
	int n;

	gethostname(host, sizeof(host) - 1);
	n = snprintf(line, sizeof(line), "%s:%d:%ld %s %s\n", host, (int)getpid(),
		     syscall(SYS_gettid), level_name(level), text);
	if (n >= (int)sizeof(line)) {
		n = sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nowhere left to complain */
}

void ha_log_line(int level, unsigned long flags, const char *file, int line, const char *name,
		 const char *fmt, ...)
{
	ha_log_sink_fn sink = atomic_load_explicit(&sink_current, memory_order_relaxed);
	int nccl = atomic_load_explicit(&level_nccl, memory_order_relaxed);
	int ha = atomic_load_explicit(&level_ha, memory_order_relaxed);
	unsigned long mask = atomic_load_explicit(&subsys_mask, memory_order_relaxed);
	int host_prints = level <= nccl && (flags & mask);
	char text[LINE_MAX_BYTES];
	int used;
	va_list ap;

	used = snprintf(text, sizeof(text), "NET/HA: %s%s", name ? name : "", name ? ": " : "");
	if (used < (int)sizeof(text)) {
		va_start(ap, fmt);
		vsnprintf(text + used, sizeof(text) - (size_t)used, fmt, ap);
		va_end(ap);
	}
	/* NCCL's logger gets warnings also when it does not print them: it keeps the last one for
	 * ncclGetLastError. */
	if (sink && (host_prints || level == HA_LOG_WARN))
		sink(level, flags, file, line, "%s", text);
	if (sink ? level <= ha && !host_prints : level <= ha || host_prints || level == HA_LOG_WARN)
		stderr_write(level, text);
}
