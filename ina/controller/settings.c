/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/settings.h"

#include "base/clock.h"
#include "base/number.h"
#include "ina/frame/address.h"

#include <errno.h>
#include <string.h>

#define WORDS 12
#define LINE 1024

void ha_settings_default(struct ha_settings *s)
{
	memset(s, 0, sizeof(*s));
	s->limits = (struct ha_groups_limits) { .late_ns = 10 * HA_NS_PER_S,
						.silence_ns = 3 * HA_NS_PER_S,
						.lease_min_ms = 1000,
						.lease_max_ms = 3600 * 1000,
						.plain_lease_ms = 24 * 3600 * 1000,
						.length = 1024 };
	s->quotas.others = (struct ha_quota) { .groups = 64, .slots = 65536 };
}

bool ha_switch_name_valid(const char *name)
{
	size_t len =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return len && !name[len] && len < HA_SWITCH_NAME;
}

bool ha_names_have(const struct ha_names *names, const char *name)
{
	for (unsigned i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return names->any;
}

static bool parse_number(const char *text, uint32_t least, uint32_t most, uint32_t *to)
{
	uint64_t v;

	if (!ha_decimal_parse(text, least, most, &v))
		return false;
	*to = (uint32_t)v;
	return true;
}

/* Each returns NULL or what is wrong. */

static const char *parse_prefixes(struct ha_switch_info *info, char *text)
{
	char *save = NULL;

	for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (info->nserves == HA_SWITCH_PREFIXES)
			return "a switch serves 16 prefixes at most";
		if (!ha_prefix_parse(one, &info->serves[info->nserves++]))
			return "a prefix is like 10.0.0.0/24, without bits behind its length";
	}
	return info->nserves ? NULL : "no prefix";
}

static const char *switch_set(struct ha_settings *s, char **word, int n)
{
	struct ha_switch_info *info = &s->sw[s->nsw];

	if (s->nsw == HA_GROUPS_SWITCHES)
		return "64 switches at most";
	memset(info, 0, sizeof(*info));
	if (n < 8 || n > 9 || strcmp(word[2], "address") || strcmp(word[4], "slots") ||
	    strcmp(word[6], "serves") || (n == 9 && strcmp(word[8], "registers")))
		return "it is: switch NAME address A slots N serves PREFIX[,PREFIX...] [registers]";
	if (!ha_switch_name_valid(word[1]))
		return "a switch's name has 1 to 31 letters, digits, dots, dashes or underscores";
	strcpy(info->name, word[1]);
	if (!ha_address_parse(word[3], &info->address))
		return "the address is no IPv4 address";
	if (!parse_number(word[5], HA_BUDDY_UNIT, HA_BUDDY_SLOTS, &info->slots))
		return "slots are 16 to 65536";
	for (unsigned i = 0; i < s->nsw; i++)
		if (!strcmp(s->sw[i].name, info->name) || s->sw[i].address == info->address)
			return "another switch has that name or address";
	info->configured = true;
	info->registers = n == 9;
	s->nsw++;
	return parse_prefixes(info, word[7]);
}

static const char *names_set(struct ha_names *names, char *text)
{
	char *save = NULL;

	memset(names, 0, sizeof(*names));
	names->any = !strcmp(text, "any");
	if (names->any || !strcmp(text, "none"))
		return NULL;
	for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (names->n == HA_NAMES)
			return "64 names at most";
		if (strlen(one) >= HA_TENANT_NAME)
			return "a name has 63 bytes at most";
		strcpy(names->name[names->n++], one);
	}
	return names->n ? NULL : "no name";
}

static const char *register_set(struct ha_settings *s, char **word, int n)
{
	return n == 2 ? names_set(&s->registrars, word[1])
		      : "it is: register none|any|NAME[,NAME...]";
}

static const char *admin_set(struct ha_settings *s, char **word, int n)
{
	return n == 2 ? names_set(&s->admins, word[1]) : "it is: admin none|any|NAME[,NAME...]";
}

static const char *quota_set(struct ha_settings *s, char **word, int n)
{
	struct ha_quota q = { .groups = 0 };

	if (n != 6 || strcmp(word[2], "groups") || strcmp(word[4], "slots") ||
	    !parse_number(word[3], 0, UINT32_MAX, &q.groups) ||
	    !parse_number(word[5], 0, UINT32_MAX, &q.slots))
		return "it is: quota NAME|* groups N slots N";
	if (!strcmp(word[1], "*")) {
		s->quotas.others = q;
		return NULL;
	}
	if (strlen(word[1]) >= HA_TENANT_NAME)
		return "a name has 63 bytes at most";
	if (s->quotas.n == HA_QUOTAS)
		return "256 quotas at most";
	strcpy(q.tenant, word[1]);
	if (ha_quota_of(&s->quotas, q.tenant) != &s->quotas.others)
		return "a second quota for this name";
	s->quotas.quota[s->quotas.n++] = q;
	return NULL;
}

static const char *lease_set(struct ha_settings *s, char **word, int n)
{
	uint32_t v[3];

	for (int i = 0; i < 3; i++)
		if (n != 4 || !parse_number(word[i + 1], 1, 30 * 24 * 3600, &v[i]))
			return "it is: lease MIN MAX PLAIN, in seconds, a month at most";
	if (v[0] > v[1])
		return "the shortest lease is longer than the longest";
	s->limits.lease_min_ms = v[0] * 1000;
	s->limits.lease_max_ms = v[1] * 1000;
	s->limits.plain_lease_ms = v[2] * 1000;
	return NULL;
}

static const char *late_set(struct ha_settings *s, char **word, int n)
{
	uint32_t v;

	if (n != 2 || !parse_number(word[1], 1, 3600, &v))
		return "it is: late SECONDS, 1 to 3600";
	s->limits.late_ns = v * HA_NS_PER_S;
	return NULL;
}

static const char *silence_set(struct ha_settings *s, char **word, int n)
{
	uint32_t v;

	if (n != 2 || !parse_number(word[1], 1, 3600, &v))
		return "it is: silence SECONDS, 1 to 3600";
	s->limits.silence_ns = v * HA_NS_PER_S;
	return NULL;
}

static const char *length_set(struct ha_settings *s, char **word, int n)
{
	uint32_t v;

	if (n != 2 || !parse_number(word[1], HA_BUDDY_UNIT, HA_BUDDY_LONGEST, &v) ||
	    !ha_buddy_length_valid(v))
		return "it is: length N, a power of two from 16 to 32768";
	s->limits.length = v;
	return NULL;
}

static const struct {
	const char *word;
	const char *(*set)(struct ha_settings *s, char **word, int n);
} statements[] = {
	{ "switch", switch_set },   { "register", register_set }, { "admin", admin_set },
	{ "quota", quota_set },     { "lease", lease_set },       { "late", late_set },
	{ "silence", silence_set }, { "length", length_set },
};

static const char *parse_statement(struct ha_settings *s, char *line)
{
	char *word[WORDS], *save = NULL;
	int n = 0;

	line[strcspn(line, "#\n")] = 0;
	for (char *one = strtok_r(line, " \t\r", &save); one;
	     one = strtok_r(NULL, " \t\r", &save)) {
		if (n == WORDS)
			return "too many words";
		word[n++] = one;
	}
	if (!n)
		return NULL;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (!strcmp(word[0], statements[i].word))
			return statements[i].set(s, word, n);
	return "it begins with none of switch, register, admin, quota, lease, late, silence, "
	       "length";
}

int ha_settings_read(struct ha_settings *s, FILE *file, char *why, size_t size)
{
	char line[LINE];

	for (unsigned at = 1; fgets(line, sizeof(line), file); at++) {
		const char *wrong = strchr(line, '\n') || feof(file) ? parse_statement(s, line)
								     : "the line is too long";

		if (wrong) {
			snprintf(why, size, "line %u: %s", at, wrong);
			return -EINVAL;
		}
	}
	if (!ferror(file))
		return 0;
	snprintf(why, size, "%s", strerror(errno));
	return -EINVAL;
}

int ha_settings_load(struct ha_settings *s, const char *path, char *why, size_t size)
{
	FILE *file = fopen(path, "re");
	int err;

	if (!file) {
		snprintf(why, size, "%s", strerror(errno));
		return -EINVAL;
	}
	err = ha_settings_read(s, file, why, size);
	fclose(file);
	return err;
}
