/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/switches.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/trust.h"

#define SIZE_MAX_FILE 65536 /* bytes; some 500 ports */
#define WORDS 5

/* ---- one line ---- */

void ha_switches_word(char *word, size_t size, const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && n < size - 1 && text[n]) {
		word[n] =
			(char)(isascii(text[n]) && isgraph((unsigned char)text[n]) ? text[n] : '_');
		n++;
	}
	word[n] = 0;
}

/* The next word of *text into `word`. False: there is none, it does not fit, or it is no visible
 * ASCII. */
static bool take_word(const char **text, char *word, size_t size)
{
	const char *at = *text + strspn(*text, " \t");
	size_t n = strcspn(at, " \t");

	*text = at + n;
	if (!n || n >= size)
		return false;
	ha_switches_word(word, size, at, n);
	return !strncmp(word, at, n);
}

/* "mlx5_0:1" */
static bool take_label(const char *label, struct ha_switches_line *line)
{
	const char *colon = strrchr(label, ':');
	char *end;

	if (!colon || colon == label || colon - label >= HA_DEVICE_NAME_MAX ||
	    !isdigit((unsigned char)colon[1]))
		return false;
	ha_switches_word(line->device, sizeof(line->device), label, (size_t)(colon - label));
	line->port = (int)strtol(colon + 1, &end, 10);
	return !*end && line->port >= 1 && line->port <= UINT8_MAX;
}

/* "-" is no identity; else there is a kind before a colon, and something behind it. */
static bool take_id(char *id)
{
	const char *colon = strchr(id, ':');

	if (!strcmp(id, "-")) {
		*id = 0;
		return true;
	}
	return colon && colon > id && colon[1];
}

static void drop_dash(char *word)
{
	if (!strcmp(word, "-"))
		*word = 0;
}

int ha_switches_parse(const char *text, struct ha_switches_line *line)
{
	struct ha_topo_switch *at = &line->at;
	char label[HA_DEVICE_NAME_MAX + 8];

	text += strspn(text, " \t");
	if (!*text || *text == '#')
		return 0;
	if (!take_word(&text, label, sizeof(label)) || !take_word(&text, at->id, sizeof(at->id)) ||
	    !take_word(&text, at->port, sizeof(at->port)) ||
	    !take_word(&text, at->source, sizeof(at->source)) ||
	    !take_word(&text, at->name, sizeof(at->name)))
		return -EINVAL;
	if (text[strspn(text, " \t")] || !take_label(label, line) || !take_id(at->id))
		return -EINVAL;
	drop_dash(at->port);
	drop_dash(at->source);
	drop_dash(at->name);
	return 1;
}

static const char *or_dash(const char *word)
{
	return *word ? word : "-";
}

void ha_switches_print(const struct ha_switches_line *line, FILE *out)
{
	fprintf(out, "%s:%d %s %s %s %s\n", line->device, line->port, or_dash(line->at.id),
		or_dash(line->at.port), or_dash(line->at.source), or_dash(line->at.name));
}

/* ---- the file ---- */

static void refuse_file(const char *path, const char *why)
{
	HA_WARN(NULL,
		"%s is not read: %s; no leaf switch is known by it. Let root write it with "
		"`ha switches --write`, or set HA_NCCL_SWITCHES=none",
		path, why);
}

/* The whole file, with a 0 behind it; NULL: it is refused, with a line. */
static char *read_file(int fd, const char *path)
{
	struct stat st;
	char *text = malloc(SIZE_MAX_FILE + 1);
	const char *fault = fstat(fd, &st) ? "it cannot be looked at" : ha_trust_fault(&st);
	size_t used = 0;
	ssize_t n = 1;

	while (text && !fault && n > 0 && used < SIZE_MAX_FILE) {
		n = read(fd, text + used, SIZE_MAX_FILE - used);
		used += n > 0 ? (size_t)n : 0;
	}
	if (!fault && n < 0)
		fault = "it cannot be read";
	if (!fault && used == SIZE_MAX_FILE)
		fault = "it is longer than any that `ha switches` writes";
	if (fault)
		refuse_file(path, fault);
	if (!text || fault) {
		free(text);
		return NULL;
	}
	text[used] = 0;
	return text;
}

static struct ha_topo_device *find_port(struct ha_topo *topo, const char *device, int port)
{
	for (int i = 0; i < topo->nports; i++)
		if (topo->devices[i].port == port && !strcmp(topo->devices[i].name, device))
			return &topo->devices[i];
	return NULL;
}

/* False: the line makes no sense, or is the second of a port. */
static bool take_line(const char *text, struct ha_topo *topo)
{
	struct ha_switches_line line;
	struct ha_topo_device *dev;
	int rc = ha_switches_parse(text, &line);

	if (rc <= 0)
		return !rc;
	dev = find_port(topo, line.device, line.port);
	if (!dev)
		return true; /* filtered out, or gone */
	if (*dev->place.at.source || *dev->place.at.id)
		return false;
	dev->place.at = line.at;
	return true;
}

static void take_lines(char *text, const char *path, struct ha_topo *topo)
{
	unsigned number = 1, first = 0, bad = 0;
	char *next;

	for (char *line = text; line; line = next, number++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (take_line(line, topo))
			continue;
		if (!bad++)
			first = number;
	}
	if (bad)
		HA_WARN(NULL,
			"line %u of %s is no port with its switch and is left out (%u such in "
			"all); "
			"`ha switches --write` writes it anew",
			first, path, bad);
}

static void report_result(const struct ha_topo *topo, const char *path)
{
	int known = 0;

	for (int i = 0; i < topo->nports; i++)
		known += *topo->devices[i].place.at.id != 0;
	HA_INFO(NULL, "leaf switches of %d of %d ports are known by %s", known, topo->nports, path);
}

void ha_switches_read(const struct ha_config *config, struct ha_topo *topo)
{
	const char *path = config->switches;
	bool usual = !strcmp(path, HA_SWITCHES_FILE);
	char *text;
	int fd;

	if (!*path || !strcmp(path, "none") || !topo->nports)
		return;
	if (usual && *config->sysfs_root)
		return; /* of another machine, which this one's file says nothing about */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		if (!usual || errno != ENOENT)
			refuse_file(path, strerror(errno));
		return;
	}
	text = read_file(fd, path);
	close(fd);
	if (!text)
		return;
	if (strncmp(text, HA_SWITCHES_HEAD "\n", sizeof(HA_SWITCHES_HEAD))) {
		refuse_file(path, "its first line is not \"" HA_SWITCHES_HEAD "\"");
	} else {
		take_lines(text, path, topo);
		report_result(topo, path);
	}
	free(text);
}
