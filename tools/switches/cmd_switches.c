/* SPDX-License-Identifier: BSD-3-Clause */
/* ha switches: the leaf switch that each RDMA port of this host hangs on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/options.h"
#include "tools/ha.h"
#include "tools/switches/infiniband.h"
#include "tools/switches/neighbors.h"
#include "tools/switches/show.h"

struct options {
	bool json;
	const char *file; /* to write; NULL: none */
	const char *socket;
};

static bool take_file(void *target, const struct ha_option_text *given)
{
	struct options *options = target;

	options->file = given->text && *given->text ? given->text : HA_SWITCHES_FILE;
	return true;
}

static bool is_file(const char *word)
{
	return *word != '-';
}

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "json", 'j', NULL, "everything as one JSON object", HA_FLAG(json) },
	{ "write", 'w', "[FILE]",
	  "put it into FILE, which jobs read (HA_NCCL_SWITCHES), at once (" HA_SWITCHES_FILE ")",
	  HA_CALL(take_file, "a path"), .may_follow = is_file },
	{ "lldpd-socket", 0, "PATH", "where lldpd listens, if not at lldpcli's usual place",
	  HA_TEXT(socket) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha switches",
	.about = "Shows on which leaf switch, and on which of its ports, each RDMA port of this "
		 "host "
		 "hangs. Of RoCE ports LLDP knows it, by lldpd or systemd-networkd; of InfiniBand "
		 "ports "
		 "the switch is asked, by smpquery of infiniband-diags.",
	.options = { rows },
	.notes =
		"Needs root. The exit status is 1 when no port could be asked, or FILE could not "
		"be "
		"written.\n"
		"A port whose other end is no switch, or several, is in FILE without a switch; one "
		"that could not be asked is not. hawser-switches.timer writes the file every "
		"minute.",
};

static bool has_ethernet(const struct switches_list *list)
{
	for (int i = 0; i < list->n; i++)
		if (!list->port[i].is_infiniband)
			return true;
	return false;
}

static void ask_ethernet(const struct options *options, const char *root,
			 struct switches_list *list)
{
	struct switches_neighbors *all = has_ethernet(list) ? calloc(2, sizeof(*all)) : NULL;

	if (!all)
		return;
	switches_ask_lldpd(options->socket, &all[0]);
	switches_ask_networkd(root, list, &all[1]);
	for (int i = 0; i < list->n; i++)
		if (!list->port[i].is_infiniband)
			switches_choose(&list->port[i], all, 2);
	free(all);
}

static int count_asked(const struct switches_list *list)
{
	int n = 0;

	for (int i = 0; i < list->n; i++)
		n += list->port[i].answer != SWITCHES_NOT_ASKED;
	return n;
}

static int write_file(const struct options *options, const struct switches_list *list)
{
	int err = options->file ? switches_write_file(list, options->file) : 0;

	if (!err)
		return 0;
	fprintf(stderr,
		"ha switches: %s: %s; run it as root, or name a file in a folder of yours\n",
		options->file, strerror(-err));
	return 1;
}

static int show_list(const struct options *options, const struct switches_list *list)
{
	if (options->json)
		return switches_show_json(list, stdout) != 0;
	switches_show_table(list, stdout);
	return 0;
}

static int find_switches(const struct options *options, const char *root,
			 struct switches_list *list)
{
	int status;

	switches_list_ports(root, list);
	ask_ethernet(options, root, list);
	for (int i = 0; i < list->n; i++)
		if (list->port[i].is_infiniband)
			switches_ask_infiniband(root, &list->port[i]);
	status = write_file(options, list);
	status |= show_list(options, list);
	if (!list->n)
		fprintf(stderr, "ha switches: no RDMA device is in /sys/class/infiniband; load the "
				"NIC's driver\n");
	else if (!count_asked(list))
		fprintf(stderr, "ha switches: no port could be asked; install lldpd, or "
				"infiniband-diags for InfiniBand, and run this as root\n");
	return status || !count_asked(list);
}

int ha_cmd_switches(int argc, char **argv)
{
	struct options options = { 0 };
	struct switches_list *list;
	struct ha_config config;
	int status = ha_options_parse(&program, argc, argv, &options);

	if (status)
		return status - 1;
	ha_config_load_env(&config);
	list = calloc(1, sizeof(*list));
	status = !list || find_switches(&options, config.sysfs_root, list);
	free(list);
	return status;
}
