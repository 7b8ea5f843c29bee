/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/users.h"

#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool user_find(const char *word, uid_t *uid)
{
	const struct passwd *entry;
	char *end;
	unsigned long number = strtoul(word, &end, 10);

	if (*word >= '0' && *word <= '9' && !*end && number < UINT32_MAX) {
		*uid = (uid_t)number;
		return true;
	}
	entry = getpwnam(word);
	if (entry)
		*uid = entry->pw_uid;
	return entry != NULL;
}

const char *ha_users_parse(struct ha_users *users, const char *text)
{
	static char word[64];

	memset(users, 0, sizeof(*users));
	while (*text) {
		size_t len = strcspn(text, ",");
		uid_t uid;

		snprintf(word, sizeof(word), "%.*s",
			 (int)(len < sizeof(word) ? len : sizeof(word) - 1), text);
		if (!strcmp(word, "*"))
			users->all = true;
		else if (len && (users->n == HA_USERS_MAX || !user_find(word, &uid)))
			return word;
		else if (len)
			users->uid[users->n++] = uid;
		text += len;
		text += *text == ',';
	}
	return NULL;
}

bool ha_users_rule(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

bool ha_users_allow(const struct ha_users *users, uid_t uid)
{
	bool listed = users->all || ha_users_rule(uid);

	for (unsigned i = 0; i < users->n && !listed; i++)
		listed = users->uid[i] == uid;
	return listed;
}
