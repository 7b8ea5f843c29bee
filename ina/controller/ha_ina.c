/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-ina (`ha ina`): what ha-controller has given to whom; asking for a group, renewing and ending one by hand. */
#include "base/config.h"
#include "base/log.h"
#include "base/number.h"
#include "ina/frame/address.h"
#include "ina/controller/client.h"
#include "ina/controller/group_table.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "ha ina"

struct options {
	struct ha_ina_client_options client;
	struct ha_ina_group_spec spec;
	const char *switch_name;
	uint64_t key;
	int rank;
	bool json;
	int words;
	char **word;
};

static int usage(FILE *out)
{
	fprintf(out,
		"usage: ha ina groups [--json]                      switches and groups of the controller\n"
		"       ha ina create ADDRESS,ADDRESS,... [OPTIONS]   a group, members in the order of their ranks\n"
		"         --length=N --least=N  aggregators; --lease=SECONDS (none: it lasts without renewal); --name=TEXT\n"
		"         --workers=N  of each rank (as the switch is set); --frames=old|extended (old)\n"
		"       ha ina renew GROUP [--rank=N]                its lease begins anew\n"
		"       ha ina destroy GROUP\n"
		"         --switch=NAME --secret=KEY   which group is meant, and why we may\n"
		"everywhere: --controller=HOST:PORT|unix:PATH (NETCCL_CONTROLLER_ADDR), --timeout=MS (5000), --wait (try again\n"
		"until then if it cannot be reached), --ca=FILE --cert=FILE --key=FILE (NETCCL_CONTROLLER_CA, _CERT, _KEY)\n"
		"Exit status 1: the controller cannot be reached, or refuses; 2: called wrongly; 3: no group, do without.\n");
	return out == stdout ? 0 : 2;
}

static bool number(const char *what, const char *text, unsigned low, unsigned high, uint32_t *to)
{
	return ha_number_take_unsigned(PROGRAM, what, text, low, high, to);
}

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "ha ina: %s: %s\n", what, why);
	return 2;
}

static int failed(const struct ha_ina_client *client)
{
	fprintf(stderr, "ha ina: %s\n", ha_ina_client_error(client));
	return 1;
}

/* ---- commands ---- */

static int groups(struct ha_ina_client *client, const struct options *o)
{
	struct ha_group_table table;
	int err;

	if (o->words != 1)
		return usage(stderr);
	ha_group_table_begin(&table, stdout, o->json);
	err = ha_ina_client_list(client, ha_group_table_page, &table);
	if (err)
		return failed(client);
	ha_group_table_end(&table);
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}

static int create(struct ha_ina_client *client, const struct options *o)
{
	uint32_t member[HA_GROUP_MEMBERS_MAX + 1];
	struct ha_ina_group_spec spec = o->spec;
	struct ha_ina_lease lease;
	char text[HA_ADDRESS_TEXT], *save = NULL;

	if (o->words != 2)
		return usage(stderr);
	spec.member = member;
	for (char *one = strtok_r(o->word[1], ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (spec.members > HA_GROUP_MEMBERS_MAX)
			return complain("create", "a group has 32 members at most");
		if (!ha_address_parse(one, &member[spec.members++]))
			return complain(one, "no IPv4 address");
	}
	if (ha_ina_client_create(client, &spec, &lease))
		return failed(client);
	if (!lease.id) {
		fprintf(stderr, "ha ina: no group, do without the switch: %s\n", lease.message);
		return 3;
	}
	printf("group %u on %s (%s): aggregators %u to %u, epoch %u, lease %u ms, secret %016" PRIx64 "\n", lease.id,
	       lease.switch_name, ha_address_text(lease.switch_address, text), lease.agg_addr,
	       lease.agg_addr + lease.agg_len - 1, lease.epoch, lease.lease_ms, lease.key);
	return 0;
}

static bool group_number(const struct options *o, uint32_t *id)
{
	if (o->words != 2) {
		usage(stderr);
		return false;
	}
	return number("GROUP", o->word[1], 1, HA_GROUP_IDS - 1, id);
}

static int renew(struct ha_ina_client *client, const struct options *o)
{
	struct ha_ina_lease lease = { .key = o->key };
	struct ha_ina_beat beat;
	uint32_t id;

	if (!group_number(o, &id))
		return 2;
	lease.id = (uint8_t)id;
	if (o->switch_name)
		snprintf(lease.switch_name, sizeof(lease.switch_name), "%s", o->switch_name);
	if (ha_ina_client_renew(client, &lease, o->rank, &beat))
		return failed(client);
	if (!beat.live) {
		fprintf(stderr, "ha ina: %s\n", beat.message);
		return 1;
	}
	printf("group %u: epoch %u, lease %u ms%s\n", id, beat.epoch, beat.lease_ms,
	       beat.switch_away ? ", the switch is silent" : "");
	return 0;
}

static int destroy(struct ha_ina_client *client, const struct options *o)
{
	char message[192];
	uint32_t id;

	if (!group_number(o, &id))
		return 2;
	if (ha_ina_client_destroy(client, id, o->switch_name, o->key, message))
		return failed(client);
	if (!*message)
		return 0;
	fprintf(stderr, "ha ina: %s\n", message);
	return 1;
}

static const struct {
	const char *name;
	int (*run)(struct ha_ina_client *client, const struct options *o);
} commands[] = { { "groups", groups }, { "create", create }, { "renew", renew }, { "destroy", destroy } };

/* ---- options ---- */

static bool key_parse(const char *text, uint64_t *key)
{
	char *end;

	*key = strtoull(text, &end, 16);
	return strspn(text, "0123456789abcdefABCDEF") == strlen(text) && *text && !*end && *key;
}

enum { CONTROLLER = 256, TIMEOUT, WAIT, CA, CERT, KEY, LENGTH, LEAST, LEASE, NAME, SWITCH, SECRET, RANK, JSON, WORKERS, FRAMES };

static const struct option longs[] = {
	{ "controller", required_argument, NULL, CONTROLLER }, { "timeout", required_argument, NULL, TIMEOUT },
	{ "wait", no_argument, NULL, WAIT },		       { "ca", required_argument, NULL, CA },
	{ "cert", required_argument, NULL, CERT },	       { "key", required_argument, NULL, KEY },
	{ "length", required_argument, NULL, LENGTH },	       { "least", required_argument, NULL, LEAST },
	{ "lease", required_argument, NULL, LEASE },	       { "name", required_argument, NULL, NAME },
	{ "switch", required_argument, NULL, SWITCH },	       { "secret", required_argument, NULL, SECRET },
	{ "rank", required_argument, NULL, RANK },	       { "json", no_argument, NULL, JSON },
	{ "workers", required_argument, NULL, WORKERS },       { "frames", required_argument, NULL, FRAMES },
	{ "help", no_argument, NULL, 'h' },		       { 0 },
};

/* false: it makes no sense. */
static bool option(struct options *o, int c, const char *arg)
{
	uint32_t v = 0;
	bool ok = true;

	switch (c) {
	case CONTROLLER: o->client.address = arg; break;
	case TIMEOUT: return number("--timeout", arg, 1, 3600000, &o->client.deadline_ms);
	case WAIT: o->client.patient = true; break;
	case CA: o->client.tls.ca = arg; break;
	case CERT: o->client.tls.cert = arg; break;
	case KEY: o->client.tls.key = arg; break;
	case LENGTH: return number("--length", arg, 0, UINT32_MAX, &o->spec.length);
	case LEAST: return number("--least", arg, 0, UINT32_MAX, &o->spec.least);
	case LEASE:
		if (!number("--lease", arg, 0, 4000000, &v))
			return false;
		o->spec.lease_ms = v * 1000;
		break;
	case NAME: o->spec.name = arg; break;
	case SWITCH: ok = *arg && strlen(arg) < HA_SWITCH_NAME; o->switch_name = arg; break;
	case SECRET: ok = key_parse(arg, &o->key); break;
	case RANK:
		if (!number("--rank", arg, 0, HA_GROUP_MEMBERS_MAX - 1, &v))
			return false;
		o->rank = (int)v;
		break;
	case WORKERS: return number("--workers", arg, 0, HA_GROUP_WORKERS_MAX, &o->spec.workers);
	case FRAMES: o->spec.extended = !strcmp(arg, "extended"); ok = o->spec.extended || !strcmp(arg, "old"); break;
	case JSON: o->json = true; break;
	default: return false;
	}
	if (!ok)
		fprintf(stderr, "ha ina: '%s' is not what that option takes; `ha ina --help` lists the options\n", arg);
	return ok;
}

static int run(const struct options *o)
{
	struct ha_ina_client *client;
	char why[256];
	int rc;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(o->word[0], commands[i].name))
			continue;
		client = ha_ina_client_open(&o->client, why, sizeof(why));
		if (!client)
			return complain(o->client.address, why);
		rc = commands[i].run(client, o);
		ha_ina_client_close(client);
		return rc;
	}
	return usage(stderr);
}

int main(int argc, char **argv)
{
	struct options o = { .rank = -1 };
	struct ha_config config;
	int c;

	ha_config_load_env(&config);
	o.client.address = config.controller_addr;
	o.client.tls = (struct ha_tls){ config.controller_ca, config.controller_cert, config.controller_key };
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0) {
		if (c == 'h' || c == '?')
			return usage(c == 'h' ? stdout : stderr);
		if (!option(&o, c, optarg))
			return 2;
	}
	if (optind == argc)
		return usage(stderr);
	o.words = argc - optind;
	o.word = argv + optind;
	return run(&o);
}
