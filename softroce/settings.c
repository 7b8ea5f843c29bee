/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/settings.h"
#include "softroce/devices.h"
#include "softroce/limit.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sr_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void sr_log_line(const char *format, ...)
{
	char line[512];
	va_list ap;
	int n = snprintf(line, sizeof(line), "softroce: ");

	va_start(ap, format);
	vsnprintf(line + n, sizeof(line) - n - 1, format, ap);
	va_end(ap);
	n = strlen(line);
	line[n++] = '\n';
	/* One write, so that lines of many processes do not mix. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

static int number_read(const char *name, int fallback, int min, int max)
{
	const char *text = getenv(name);
	char *end;
	long value;

	if (!text || !*text)
		return fallback;
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || value < min || value > max) {
		sr_log_line("%s=%.40s is not a number from %d to %d; using %d", name, text, min,
			    max, fallback);
		return fallback;
	}
	return value;
}

static const char *text_read(const char *name, const char *fallback)
{
	const char *text = getenv(name);

	return text && *text ? text : fallback;
}

static const char *rates_read(const char *name)
{
	const char *text = text_read(name, "");

	if (sr_limit_parse(text, 0) >= 0)
		return text;
	sr_log_line("%s=%.40s are no rates in MB/s, separated by commas; there is no limit", name,
		    text);
	return "";
}

const char *const sr_settings_names[] = {
	"SOFTROCE_DEVICES", "SOFTROCE_CONTROL",  "SOFTROCE_RATE",       "SOFTROCE_UPSTREAM",
	"SOFTROCE_GSO",     "SOFTROCE_INFLIGHT", "SOFTROCE_CARD_PORTS", "SOFTROCE_BUSY_POLL",
};
const int sr_settings_names_count = sizeof(sr_settings_names) / sizeof(sr_settings_names[0]);

void sr_settings_reload(void)
{
	settings.devices = text_read("SOFTROCE_DEVICES", SR_DEVICES_DEFAULT);
	settings.control_dir = text_read("SOFTROCE_CONTROL", NULL);
	settings.rate = rates_read("SOFTROCE_RATE");
	settings.upstream = rates_read("SOFTROCE_UPSTREAM");
	settings.gso = number_read("SOFTROCE_GSO", 1, 0, 1);
	settings.card_ports = number_read("SOFTROCE_CARD_PORTS", 1, 1, 8);
	settings.busy_poll = number_read("SOFTROCE_BUSY_POLL", 0, 0, 1);
	settings.max_inflight = number_read("SOFTROCE_INFLIGHT", 0, 0, 1 << 16);
}

const struct sr_settings *sr_settings(void)
{
	pthread_once(&once, sr_settings_reload);
	return &settings;
}
