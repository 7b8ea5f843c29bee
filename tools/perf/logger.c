/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/perf/logger.h"

static const struct {
	const char *name;
	unsigned long bit;
} subsystems[] = {
	{ "INIT", NCCL_INIT },
	{ "COLL", NCCL_COLL },
	{ "P2P", NCCL_P2P },
	{ "SHM", NCCL_SHM },
	{ "NET", NCCL_NET },
	{ "GRAPH", NCCL_GRAPH },
	{ "TUNING", NCCL_TUNING },
	{ "ENV", NCCL_ENV },
	{ "ALLOC", NCCL_ALLOC },
	{ "CALL", NCCL_CALL },
	{ "PROXY", NCCL_PROXY },
	{ "NVLS", NCCL_NVLS },
	{ "BOOTSTRAP", NCCL_BOOTSTRAP },
	{ "REG", NCCL_REG },
	{ "PROFILE", NCCL_PROFILE },
	{ "RAS", NCCL_RAS },
	{ "DESTROY", NCCL_DESTROY },
	{ "ALL", ~0UL },
};

static struct {
	int rank;
	ncclDebugLogLevel level;
	unsigned long mask;
	FILE *out;
	char host[64];
} logger;

static struct {
	pthread_mutex_t lock;
	char text[768];
} warning = { .lock = PTHREAD_MUTEX_INITIALIZER };

static ncclDebugLogLevel level_parse(const char *text)
{
	if (!text)
		return NCCL_LOG_NONE;
	if (!strcasecmp(text, "VERSION"))
		return NCCL_LOG_VERSION;
	if (!strcasecmp(text, "WARN"))
		return NCCL_LOG_WARN;
	if (!strcasecmp(text, "INFO"))
		return NCCL_LOG_INFO;
	if (!strcasecmp(text, "ABORT"))
		return NCCL_LOG_ABORT;
	if (!strcasecmp(text, "TRACE"))
		return NCCL_LOG_TRACE;
	return NCCL_LOG_NONE;
}

static unsigned long mask_parse(const char *text)
{
	unsigned long mask = 0, bit;
	char copy[256], *save = NULL, *word;
	bool invert;

	if (!text)
		return NCCL_INIT | NCCL_BOOTSTRAP | NCCL_ENV | NCCL_NET;
	invert = *text == '^';
	snprintf(copy, sizeof(copy), "%s", text + invert);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		bit = 0;
		for (size_t i = 0; i < sizeof(subsystems) / sizeof(subsystems[0]); i++)
			if (!strcasecmp(word, subsystems[i].name))
				bit = subsystems[i].bit;
		mask |= bit;
	}
	return invert ? ~mask : mask;
}

static FILE *file_open(const char *pattern)
{
	char name[4096];
	size_t n = 0;
	FILE *out;

	if (!pattern)
		return stderr;
	for (; *pattern && n < sizeof(name) - 80; pattern++) {
		if (pattern[0] == '%' && (pattern[1] == 'h' || pattern[1] == 'p')) {
			pattern++;
			n += *pattern == 'h' ? sprintf(name + n, "%s", logger.host)
					     : sprintf(name + n, "%d", getpid());
		} else {
			name[n++] = *pattern;
		}
	}
	name[n] = 0;
	out = fopen(name, "a");
	return out ? out : stderr;
}

void ha_logger_open(int rank)
{
	logger.rank = rank;
	logger.level = level_parse(getenv("NCCL_DEBUG"));
	logger.mask = mask_parse(getenv("NCCL_DEBUG_SUBSYS"));
	if (gethostname(logger.host, sizeof(logger.host) - 1))
		strcpy(logger.host, "localhost");
	logger.host[strcspn(logger.host, ".")] = 0;
	logger.out = file_open(getenv("NCCL_DEBUG_FILE"));
}

const char *ha_logger_last_warning(void)
{
	static __thread char copy[sizeof(warning.text)];

	pthread_mutex_lock(&warning.lock);
	memcpy(copy, warning.text, sizeof(copy));
	pthread_mutex_unlock(&warning.lock);
	return copy;
}

static void warning_keep(const char *format, va_list args)
{
	pthread_mutex_lock(&warning.lock);
	vsnprintf(warning.text, sizeof(warning.text), format, args);
	pthread_mutex_unlock(&warning.lock);
}

void ha_logger_print(ncclDebugLogLevel level, unsigned long subsys, const char *file, int line,
		     const char *format, ...)
{
	char text[2048];
	va_list args;

	if (level == NCCL_LOG_WARN) {
		va_start(args, format);
		warning_keep(format, args);
		va_end(args);
	}
	if (!logger.out || logger.level < level || logger.level == NCCL_LOG_NONE)
		return;
	if (level != NCCL_LOG_WARN && !(subsys & logger.mask))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* one call per line, so that the lines of several ranks do not mix */
	if (level == NCCL_LOG_WARN)
		fprintf(logger.out, "%s:%d:%ld [%d] %s:%d NCCL WARN %s\n", logger.host, getpid(),
			syscall(SYS_gettid), logger.rank, file ? file : "?", line, text);
	else
		fprintf(logger.out, "%s:%d:%ld [%d] NCCL %s %s\n", logger.host, getpid(),
			syscall(SYS_gettid), logger.rank,
			level == NCCL_LOG_TRACE ? "TRACE" : "INFO", text);
	fflush(logger.out);
}
