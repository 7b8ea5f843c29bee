/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/nccl/log.h"

/* The file by NCCL_DEBUG_FILE; "": none that is known. Returns path. */
static const char *nccl_log_path(char path[PATH_MAX])
{
	const char *pattern = getenv("NCCL_DEBUG_FILE");
	char host[256] = "";
	size_t n = 0;

	path[0] = 0;
	if (!pattern || !getenv("NCCL_DEBUG"))
		return path;
	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = 0;
	for (; *pattern && n + sizeof(host) < PATH_MAX; pattern++) {
		if (pattern[0] != '%' || !pattern[1]) {
			path[n++] = *pattern;
			continue;
		}
		pattern++;
		if (*pattern == 'h')
			n += (size_t)sprintf(path + n, "%s", host);
		else if (*pattern == 'p')
			n += (size_t)sprintf(path + n, "%d", (int)getpid());
		else
			path[n++] = *pattern;
	}
	path[n] = 0;
	return path;
}

/* "host:pid:tid [0] NCCL INFO message": what follows NCCL's level, or the whole line. A warning
 * stands on a line of its own with its place in the source before it. */
static const char *message_of(const char *line)
{
	const char *at = strstr(line, "NCCL INFO ");

	if (at)
		return at + strlen("NCCL INFO ");
	at = strstr(line, "NCCL WARN ");
	return at ? at : line;
}

bool nccl_log_read(void (*take)(void *context, const char *message), void *context)
{
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	FILE *file;

	if (!nccl_log_path(path)[0])
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "\r\n")] = 0;
		take(context, message_of(line));
	}
	free(line);
	fclose(file);
	return true;
}

struct last_warning {
	const char *prefix; /* of those that count */
	char *text;
	size_t size;
};

static void warning_take(void *context, const char *message)
{
	static const char level[] = "NCCL WARN ";
	struct last_warning *last = context;

	if (strncmp(message, level, strlen(level)))
		return;
	message += strlen(level);
	if (!strncmp(message, last->prefix, strlen(last->prefix)))
		snprintf(last->text, last->size, "%s", message);
}

static void find_warning(const char *prefix, char *text, size_t size)
{
	struct last_warning last = { prefix, text, size };

	text[0] = 0;
	(void)nccl_log_read(warning_take, &last);
}

void nccl_log_warning(char *text, size_t size)
{
	find_warning("", text, size);
}

void nccl_log_plugin_warning(char *text, size_t size)
{
	find_warning("NET/HA: ", text, size);
}
