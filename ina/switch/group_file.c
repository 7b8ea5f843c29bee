/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/group_file.h"

#include "base/clock.h"
#include "base/number.h"
#include "ina/frame/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE 1024
#define BLANK " \t\r\n"

static const char *take_slots(char **rest, struct ina_group_config *c)
{
	uint64_t base, len;

	if (!ha_decimal_parse(strtok_r(NULL, BLANK, rest), 0, UINT16_MAX, &base) ||
	    !ha_decimal_parse(strtok_r(NULL, BLANK, rest), 0, 65536, &len))
		return "slots: the first one and how many, as in slots 0 1024";
	c->base = (uint16_t)base;
	c->len = (uint32_t)len;
	return NULL;
}

static const char *take_members(char **rest, struct ina_group_config *c)
{
	for (char *word; (word = strtok_r(NULL, BLANK, rest)); c->ranks++) {
		if (c->ranks == INA_RANKS_MAX)
			return "more than 32 members";
		if (!ha_address_parse(word, &c->member[c->ranks].addr))
			return "members: IPv4 addresses in the order of ranks, to the end of the "
			       "line";
	}
	return NULL;
}

static const char *take_frames(const char *word, struct ina_group_config *c)
{
	c->extended = word && !strcmp(word, "extended");
	return c->extended || (word && !strcmp(word, "old")) ? NULL : "frames: old or extended";
}

static const char *take_number(const char *key, const char *text, uint64_t now,
			       struct ina_group_config *c)
{
	uint64_t v;

	if (strcmp(key, "epoch") && strcmp(key, "workers") && strcmp(key, "first") &&
	    strcmp(key, "lease"))
		return "not understood: epoch, slots, frames, workers, first, lease, members are";
	if (!ha_decimal_parse(text, 0, UINT32_MAX, &v))
		return "a number is missing or too large";
	if (!strcmp(key, "epoch"))
		c->epoch = (uint32_t)v;
	else if (!strcmp(key, "workers"))
		c->workers = v <= INA_WORKERS_MAX ? (uint8_t)v : 0;
	else if (!strcmp(key, "first"))
		c->first_psn = (uint32_t)v;
	else if (v)
		c->lease_until = now + v * HA_NS_PER_MS;
	return NULL;
}

const char *ina_group_line(char *line, uint64_t now, struct ina_group_config *c)
{
	const char *wrong = NULL;
	char *rest, *word = strtok_r(line, BLANK, &rest);
	uint64_t id;

	memset(c, 0, sizeof(*c));
	if (!word || *word == '#')
		return NULL;
	if (strcmp(word, "group") ||
	    !ha_decimal_parse(strtok_r(NULL, BLANK, &rest), 1, INA_GROUPS - 1, &id))
		return "a line begins with group and its number, 1 to 255";
	c->id = (uint8_t)id;
	c->epoch = c->workers = 1;
	c->extended = true;
	c->lease_until = UINT64_MAX;
	while (!wrong && (word = strtok_r(NULL, BLANK, &rest))) {
		if (!strcmp(word, "slots"))
			wrong = take_slots(&rest, c);
		else if (!strcmp(word, "members"))
			wrong = take_members(&rest, c);
		else if (!strcmp(word, "frames"))
			wrong = take_frames(strtok_r(NULL, BLANK, &rest), c);
		else
			wrong = take_number(word, strtok_r(NULL, BLANK, &rest), now, c);
	}
	if (!wrong && !c->len)
		wrong = "it has no slots";
	if (!wrong && c->ranks < 2)
		wrong = "a group has 2 to 32 members";
	return wrong;
}

int ina_group_file(const char *path, uint64_t now, struct ina_group_config *wanted, char *why,
		   size_t size)
{
	struct ina_group_config c;
	char line[LINE];
	unsigned n = 0;
	FILE *f = fopen(path, "re");

	if (!f) {
		int err = errno;

		snprintf(why, size, "%s: %s", path, strerror(err));
		return -err;
	}
	memset(wanted, 0, INA_GROUPS * sizeof(*wanted));
	while (fgets(line, sizeof(line), f)) {
		const char *wrong = strchr(line, '\n') || feof(f) ? ina_group_line(line, now, &c)
								  : "the line is too long";

		n++;
		if (!wrong && c.id && wanted[c.id].id)
			wrong = "this group is there already";
		if (wrong) {
			snprintf(why, size, "%s:%u: %s", path, n, wrong);
			fclose(f);
			return -EINVAL;
		}
		if (c.id)
			wanted[c.id] = c;
	}
	fclose(f);
	return 0;
}
