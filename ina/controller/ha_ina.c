/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ha-ina (`ha ina`): what ha-controller has given to whom; asking for a group, renewing and ending
 * one by hand.
 */
#include "base/config.h"
#include "base/log.h"
#include "base/number.h"
#include "base/options.h"
#include "ina/controller/client.h"
#include "ina/controller/group_table.h"
#include "ina/frame/address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 3

struct options {
	struct ha_ina_client_options client;
	struct ha_ina_group_spec spec;
	const char *switch_name;
	uint64_t key;
	int rank;
	bool json;
	const char *word[WORDS_MAX]; /* the command first */
	unsigned words;
};

static const struct ha_program program;

static int wrong_words(const struct options *o)
{
	return ha_program_refuse(&program, "'%.64s' with %u words after it is no command",
				 o->word[0], o->words - 1) -
	       1;
}

static int print_error(const char *what, const char *why)
{
	fprintf(stderr, "ha ina: %s: %s\n", what, why);
	return 2;
}

static int print_client_error(const struct ha_ina_client *client)
{
	fprintf(stderr, "ha ina: %s\n", ha_ina_client_error(client));
	return 1;
}

/* ---- commands ---- */

static int list_groups(struct ha_ina_client *client, const struct options *o)
{
	struct ha_group_table table;
	int err;

	if (o->words != 1)
		return wrong_words(o);
	ha_group_table_begin(&table, stdout, o->json);
	err = ha_ina_client_list(client, ha_group_table_page, &table);
	if (err)
		return print_client_error(client);
	ha_group_table_end(&table);
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}

static int create_group(struct ha_ina_client *client, const struct options *o)
{
	uint32_t member[HA_GROUP_MEMBERS_MAX + 1];
	struct ha_ina_group_spec spec = o->spec;
	struct ha_ina_lease lease;
	char text[HA_ADDRESS_TEXT], list[HA_GROUP_MEMBERS_MAX * 2 * HA_ADDRESS_TEXT], *save = NULL;

	if (o->words != 2)
		return wrong_words(o);
	spec.member = member;
	if (snprintf(list, sizeof(list), "%s", o->word[1]) >= (int)sizeof(list))
		return print_error("create", "a group has 32 members at most");
	for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (spec.members > HA_GROUP_MEMBERS_MAX)
			return print_error("create", "a group has 32 members at most");
		if (!ha_address_parse(one, &member[spec.members++]))
			return print_error(one, "no IPv4 address");
	}
	if (ha_ina_client_create(client, &spec, &lease))
		return print_client_error(client);
	if (!lease.id) {
		fprintf(stderr, "ha ina: no group, do without the switch: %s\n", lease.message);
		return 3;
	}
	printf("group %u on %s (%s): aggregators %u to %u, epoch %u, lease %u ms, secret "
	       "%016" PRIx64 "\n",
	       lease.id, lease.switch_name, ha_address_text(lease.switch_address, text),
	       lease.agg_addr, lease.agg_addr + lease.agg_len - 1, lease.epoch, lease.lease_ms,
	       lease.key);
	return 0;
}

static bool group_number(const struct options *o, uint32_t *id)
{
	if (o->words == 2)
		return ha_number_take_unsigned("ha ina", "GROUP", o->word[1], 1, HA_GROUP_IDS - 1,
					       id);
	wrong_words(o);
	return false;
}

static int renew_group(struct ha_ina_client *client, const struct options *o)
{
	struct ha_ina_lease lease = { .key = o->key };
	struct ha_ina_heartbeat heartbeat;
	uint32_t id;

	if (!group_number(o, &id))
		return 2;
	lease.id = (uint8_t)id;
	if (o->switch_name)
		snprintf(lease.switch_name, sizeof(lease.switch_name), "%s", o->switch_name);
	if (ha_ina_client_renew(client, &lease, o->rank, &heartbeat))
		return print_client_error(client);
	if (!heartbeat.live) {
		fprintf(stderr, "ha ina: %s\n", heartbeat.message);
		return 1;
	}
	printf("group %u: epoch %u, lease %u ms%s\n", id, heartbeat.epoch, heartbeat.lease_ms,
	       heartbeat.switch_away ? ", the switch is silent" : "");
	return 0;
}

static int destroy_group(struct ha_ina_client *client, const struct options *o)
{
	char message[192];
	uint32_t id;

	if (!group_number(o, &id))
		return 2;
	if (ha_ina_client_destroy(client, id, o->switch_name, o->key, message))
		return print_client_error(client);
	if (!*message)
		return 0;
	fprintf(stderr, "ha ina: %s\n", message);
	return 1;
}

static const struct {
	const char *name;
	int (*run)(struct ha_ina_client *client, const struct options *o);
} commands[] = { { "groups", list_groups },
		 { "create", create_group },
		 { "renew", renew_group },
		 { "destroy", destroy_group } };

/* ---- options ---- */

static bool take_key(void *target, const struct ha_option_text *given)
{
	struct options *o = target;
	char *end;

	o->key = strtoull(given->text, &end, 16);
	return strspn(given->text, "0123456789abcdefABCDEF") == strlen(given->text) &&
	       *given->text && !*end && o->key;
}

static bool take_switch(void *target, const struct ha_option_text *given)
{
	struct options *o = target;

	o->switch_name = given->text;
	return *given->text && strlen(given->text) < HA_SWITCH_NAME;
}

#define HA_TARGET struct options

static const char *const frames[] = { "old", "extended", NULL };

static const struct ha_option rows[] = {
	{ "json", 0, NULL, "groups: as one JSON object", HA_FLAG(json) },
	{ "length", 0, "N", "create: aggregators (the controller's default)",
	  HA_NUMBER(spec.length, 0, UINT32_MAX) },
	{ "least", 0, "N", "create: at least so many aggregators",
	  HA_NUMBER(spec.least, 0, UINT32_MAX) },
	{ "lease", 0, "SECONDS", "create: (none: it lasts without renewal)",
	  HA_NUMBER(spec.lease_ms, 0, 4000000), .scale = 1000 },
	{ "name", 0, "TEXT", "create: for people", HA_TEXT(spec.name) },
	{ "workers", 0, "N", "create: of each rank (as the switch is set)",
	  HA_NUMBER(spec.workers, 0, HA_GROUP_WORKERS_MAX) },
	{ "frames", 0, "KIND", "create: old or extended (old)", HA_CHOICE(spec.extended, frames) },
	{ "rank", 0, "N", "renew: the rank whose lease it is",
	  HA_NUMBER(rank, 0, HA_GROUP_MEMBERS_MAX - 1) },
	{ "switch", 0, "NAME", "renew, destroy: which group is meant",
	  HA_CALL(take_switch, "the name of a switch") },
	{ "secret", 0, "KEY", "renew, destroy: the group's key, which create has printed",
	  HA_CALL(take_key, "the hexadecimal key that create has printed") },
	{ "controller", 0, "WHERE", "HOST:PORT or unix:PATH (NETCCL_CONTROLLER_ADDR)",
	  HA_TEXT(client.address) },
	{ "timeout", 0, "MS", "for an answer (5000)", HA_NUMBER(client.deadline_ms, 1, 3600000) },
	{ "wait", 0, NULL, "try again until then if it cannot be reached", HA_FLAG(client.retry) },
	{ "ca", 0, "FILE", "PEM file (NETCCL_CONTROLLER_CA)", HA_TEXT(client.tls.ca) },
	{ "cert", 0, "FILE", "PEM file (NETCCL_CONTROLLER_CERT)", HA_TEXT(client.tls.cert) },
	{ "key", 0, "FILE", "PEM file (NETCCL_CONTROLLER_KEY)", HA_TEXT(client.tls.key) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "COMMAND", 0, NULL, NULL, HA_LIST(word, words, WORDS_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha ina",
	.synopsis = "groups [--json]                       switches and groups of the controller\n"
		    "create ADDRESS,ADDRESS,... [OPTIONS]  a group, members in the order of their "
		    "ranks\n"
		    "renew GROUP [OPTIONS]                 its lease begins anew\n"
		    "destroy GROUP [OPTIONS]",
	.options = { rows },
	.operands = operands,
	.needed = 1,
	.notes = "Exit status: 1 the controller cannot be reached, or refuses; 2 called wrongly; 3 "
		 "no group, do without.",
};

static int run_command(const struct options *o)
{
	struct ha_ina_client *client;
	char why[256];
	int rc;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(o->word[0], commands[i].name))
			continue;
		client = ha_ina_client_open(&o->client, why, sizeof(why));
		if (!client)
			return print_error(o->client.address, why);
		rc = commands[i].run(client, o);
		ha_ina_client_close(client);
		return rc;
	}
	return wrong_words(o);
}

int main(int argc, char **argv)
{
	struct options o = { .rank = -1 };
	struct ha_config config;
	int result;

	ha_config_load_env(&config);
	o.client.address = config.controller_addr;
	o.client.tls = (struct ha_tls) { config.controller_ca, config.controller_cert,
					 config.controller_key };
	result = ha_options_parse(&program, argc, argv, &o);
	return result ? result - 1 : run_command(&o);
}
