/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/namelist.h"

#include <stddef.h>
#include <string.h>

#define PORT_MAX 65535 /* more than any port */

/* An unsigned number of `len` bytes; empty is HA_NAMELIST_ANY. */
static bool number_parse(const char *text, size_t len, int max, int *value)
{
	int v = 0;

	if (!len) {
		*value = HA_NAMELIST_ANY;
		return true;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (text[i] - '0');
		if (v > max)
			return false;
	}
	*value = v;
	return true;
}

static bool item_parse(struct ha_namelist_item *item, const char *text, size_t len)
{
	int *const numbers[] = { &item->port, &item->rail, &item->plane };
	static const int max[] = { PORT_MAX, HA_NAMELIST_RAIL_MAX, HA_NAMELIST_PLANE_MAX };
	const char *end = text + len;
	const char *colon = memchr(text, ':', len);
	size_t name_len = colon ? (size_t)(colon - text) : len;

	if (name_len == 0 || name_len >= HA_NAMELIST_NAME_MAX)
		return false;
	memcpy(item->name, text, name_len);
	item->name[name_len] = 0;
	text += name_len;
	for (size_t i = 0; i < 3; i++) {
		const char *part = text < end ? text + 1 : end; /* behind the ':' */
		const char *next = memchr(part, ':', (size_t)(end - part));

		text = next ? next : end;
		if (!number_parse(part, (size_t)(text - part), max[i], numbers[i]))
			return false;
	}
	return text == end;
}

int ha_namelist_parse(struct ha_namelist *list, const char *text)
{
	int bad = 0;

	memset(list, 0, sizeof(*list));
	if (!text)
		return 0;
	if (*text == '^') {
		list->exclude = true;
		text++;
	}
	if (*text == '=') {
		list->exact = true;
		text++;
	}
	while (*text) {
		size_t len = strcspn(text, ",");

		if (len && list->n < HA_NAMELIST_ITEMS_MAX &&
		    item_parse(&list->items[list->n], text, len))
			list->n++;
		else if (len)
			bad++;
		text += len;
		text += *text == ',';
	}
	return bad;
}

static bool item_match(const struct ha_namelist *list, const struct ha_namelist_item *item,
		       const char *name, int port)
{
	if (item->port != HA_NAMELIST_ANY && port != HA_NAMELIST_ANY && item->port != port)
		return false;
	return list->exact ? !strcmp(name, item->name)
			   : !strncmp(name, item->name, strlen(item->name));
}

bool ha_namelist_match(const struct ha_namelist *list, const char *name, int port,
		       const struct ha_namelist_item **item)
{
	if (item)
		*item = NULL;
	if (list->n == 0)
		return true;
	for (int i = 0; i < list->n; i++) {
		if (!item_match(list, &list->items[i], name, port))
			continue;
		if (item)
			*item = &list->items[i];
		return !list->exclude;
	}
	return list->exclude;
}
