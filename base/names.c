/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* edits between a misspelt name and the one that was meant; fewer where it is short */
#define NEAR_ENOUGH 3

extern char **environ;

static int min3(int a, int b, int c)
{
	int ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Levenshtein's distance of two names; names longer than HA_NAME_MAX are far from everything. */
static int edit_distance(const char *a, const char *b)
{
	int row[HA_NAME_MAX + 1];
	int na = (int)strlen(a), nb = (int)strlen(b);

	if (na > HA_NAME_MAX || nb > HA_NAME_MAX)
		return HA_NAME_MAX;
	for (int j = 0; j <= nb; j++)
		row[j] = j;
	for (int i = 1; i <= na; i++) {
		int diagonal = row[0];

		row[0] = i;
		for (int j = 1; j <= nb; j++) {
			int above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[nb];
}

/* How many edits are few: a third of the characters, without the words that both names begin with.
 */
static int few_edits(const char *name, const char *known)
{
	int same = 0, letters;

	if (strlen(name) > 2 * NEAR_ENOUGH && !strncmp(known, name, strlen(name)))
		return NEAR_ENOUGH; /* its unit is missing */
	for (int i = 0; name[i] && name[i] == known[i]; i++)
		if (name[i] == '_')
			same = i + 1;
	letters = (int)strnlen(name, HA_NAME_MAX) - same;
	return letters < 3 * (NEAR_ENOUGH - 1) ? 1 + letters / 3 : NEAR_ENOUGH;
}

const char *ha_name_nearest(const char *name, const char *const *known, size_t n)
{
	const char *nearest = NULL;
	int best = NEAR_ENOUGH + 1;

	for (size_t i = 0; i < n; i++) {
		int distance = edit_distance(name, known[i]);

		if (distance < best && distance <= few_edits(name, known[i])) {
			best = distance;
			nearest = known[i];
		}
	}
	return nearest;
}

static bool name_known(const char *name, const char *const *known, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(known[i], name))
			return true;
	return false;
}

void ha_names_check(const char *prefix, const char *const *known, size_t n,
		    void (*report)(const char *name, const char *nearest))
{
	for (char **env = environ; env && *env; env++) {
		char name[HA_NAME_MAX + 1];
		size_t len = strcspn(*env, "=");

		if (strncmp(*env, prefix, strlen(prefix)))
			continue;
		snprintf(name, sizeof(name), "%.*s",
			 (int)(len < sizeof(name) ? len : sizeof(name) - 1), *env);
		if (!name_known(name, known, n))
			report(name, ha_name_nearest(name, known, n));
	}
}
