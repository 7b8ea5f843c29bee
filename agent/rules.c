/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rules.h"

#include "base/number.h"
#include "include/mpib_agent_iface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ha_rules_free(struct ha_rules *rules)
{
	free(rules->rule);
	memset(rules, 0, sizeof(*rules));
}

static uint32_t make_mask(unsigned len)
{
	return len ? UINT32_MAX << (32 - len) : 0;
}

/* false: it is no address. */
static bool ha_rule_end_parse(const char *text, uint32_t *address, uint8_t *len)
{
	uint64_t bits = 32;
	struct in_addr in;
	char word[32];
	char *slash;

	*address = 0;
	*len = 0;
	if (!strcmp(text, "*"))
		return true;
	if (strlen(text) >= sizeof(word))
		return false;
	strcpy(word, text);
	slash = strchr(word, '/');
	if (slash) {
		*slash = 0;
		if (!ha_decimal_parse(slash + 1, 0, 32, &bits))
			return false;
	}
	if (inet_pton(AF_INET, word, &in) != 1)
		return false;
	*len = (uint8_t)bits;
	*address = ntohl(in.s_addr) & make_mask(*len);
	return true;
}

const char *ha_rule_parse(const char *src, const char *dst, const char *share, struct ha_rule *rule)
{
	uint64_t value;

	if (!ha_rule_end_parse(src, &rule->src, &rule->src_len))
		return "the source is no IPv4 address, network or *";
	if (!ha_rule_end_parse(dst, &rule->dst, &rule->dst_len))
		return "the destination is no IPv4 address, network or *";
	if (!ha_decimal_parse(share, 0, MPIB_HINT_MAX_BW, &value))
		return "the share is no number from 0 to 1024";
	rule->share = (uint16_t)value;
	return NULL;
}

static bool same_ends(const struct ha_rule *a, const struct ha_rule *b)
{
	return a->src == b->src && a->dst == b->dst && a->src_len == b->src_len &&
	       a->dst_len == b->dst_len;
}

int ha_rules_set(struct ha_rules *rules, const struct ha_rule *rule)
{
	for (size_t i = 0; i < rules->n; i++)
		if (same_ends(&rules->rule[i], rule)) {
			rules->rule[i].share = rule->share;
			return 0;
		}
	if (rules->n == HA_RULES_MAX)
		return -ENOSPC;
	if (rules->n == rules->room) {
		size_t room = rules->room ? 2 * rules->room : 16;
		struct ha_rule *more = realloc(rules->rule, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		rules->rule = more;
		rules->room = room;
	}
	rules->rule[rules->n++] = *rule;
	return 0;
}

bool ha_rules_unset(struct ha_rules *rules, const struct ha_rule *rule)
{
	for (size_t i = 0; i < rules->n; i++)
		if (same_ends(&rules->rule[i], rule)) {
			memmove(&rules->rule[i], &rules->rule[i + 1],
				(--rules->n - i) * sizeof(*rule));
			return true;
		}
	return false;
}

/* Three words, or none; NULL or what is wrong. */
static const char *line_take(struct ha_rules *rules, char *line)
{
	char *word[4], *state = NULL;
	struct ha_rule rule;
	const char *why;
	int n = 0;

	line[strcspn(line, "#\n")] = 0;
	for (char *w = strtok_r(line, " \t\r", &state); w && n < 4;
	     w = strtok_r(NULL, " \t\r", &state))
		word[n++] = w;
	if (!n)
		return NULL;
	if (n != 3)
		return "a rule has three words: SOURCE DESTINATION SHARE";
	why = ha_rule_parse(word[0], word[1], word[2], &rule);
	if (why)
		return why;
	return ha_rules_set(rules, &rule) ? "there are too many rules" : NULL;
}

int ha_rules_read(struct ha_rules *rules, FILE *file, char *why, size_t len)
{
	struct ha_rules fresh = { 0 };
	char line[256];
	unsigned at = 0;

	*why = 0;
	while (fgets(line, sizeof(line), file)) {
		const char *wrong = "it is too long";

		at++;
		if (strchr(line, '\n') || strlen(line) < sizeof(line) - 1)
			wrong = line_take(&fresh, line);
		if (wrong) {
			snprintf(why, len, "line %u: %s", at, wrong);
			ha_rules_free(&fresh);
			return -EINVAL;
		}
	}
	if (ferror(file)) {
		snprintf(why, len, "it cannot be read");
		ha_rules_free(&fresh);
		return -EIO;
	}
	ha_rules_free(rules);
	*rules = fresh;
	return 0;
}

int ha_rules_load(struct ha_rules *rules, const char *path, char *why, size_t len)
{
	FILE *file = fopen(path, "re");
	int err;

	if (!file) {
		err = -errno;
		snprintf(why, len, "%s", strerror(-err));
		return err;
	}
	err = ha_rules_read(rules, file, why, len);
	fclose(file);
	return err;
}

static void end_print(uint32_t address, unsigned len, FILE *out)
{
	if (!len)
		fputs("* ", out);
	else
		fprintf(out, "%u.%u.%u.%u/%u ", address >> 24, address >> 16 & 255,
			address >> 8 & 255, address & 255, len);
}

void ha_rules_print(const struct ha_rules *rules, FILE *out)
{
	for (size_t i = 0; i < rules->n; i++) {
		end_print(rules->rule[i].src, rules->rule[i].src_len, out);
		end_print(rules->rule[i].dst, rules->rule[i].dst_len, out);
		fprintf(out, "%u\n", rules->rule[i].share);
	}
}

const struct ha_rule *ha_rules_match(const struct ha_rules *rules, uint32_t src, uint32_t dst)
{
	const struct ha_rule *best = NULL;

	src = ntohl(src);
	dst = ntohl(dst);
	for (size_t i = 0; i < rules->n; i++) {
		const struct ha_rule *r = &rules->rule[i];

		if ((src & make_mask(r->src_len)) == r->src &&
		    (dst & make_mask(r->dst_len)) == r->dst &&
		    (!best || r->src_len + r->dst_len >= best->src_len + best->dst_len))
			best = r;
	}
	return best;
}
