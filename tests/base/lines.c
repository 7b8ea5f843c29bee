/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/base/lines.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static char text[1 << 16];
static size_t used;
static int warnings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((format(printf, 5, 6))) void catch_line(int level, unsigned long flags,
							     const char *file, int line,
							     const char *fmt, ...)
{
	va_list ap;
	int n;

	pthread_mutex_lock(&lock);
	warnings += level == HA_LOG_WARN;
	va_start(ap, fmt);
	n = vsnprintf(text + used, sizeof(text) - used, fmt, ap);
	va_end(ap);
	used += n > 0 && (size_t)n + 1 < sizeof(text) - used ? (size_t)n : 0;
	if (used + 1 < sizeof(text))
		text[used++] = '\n';
	pthread_mutex_unlock(&lock);
}

void lines_catch(void)
{
	used = 0;
	warnings = 0;
	memset(text, 0, sizeof(text));
	ha_log_set_sink(catch_line);
	ha_log_configure("INFO", "ALL", 0);
}

int lines_warnings(void)
{
	int n;

	pthread_mutex_lock(&lock);
	n = warnings;
	pthread_mutex_unlock(&lock);
	return n;
}

int lines_count(const char *part)
{
	int n = 0;

	pthread_mutex_lock(&lock);
	for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
		n++;
	pthread_mutex_unlock(&lock);
	return n;
}

bool lines_contain(const char *part)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = strstr(text, part) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}
