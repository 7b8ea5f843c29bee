/* SPDX-License-Identifier: BSD-3-Clause */
/* ha status: what the processes of this user on this host say about their connections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/options.h"
#include "tools/ha.h"
#include "tools/status_view.h"

struct options {
	bool json;
	unsigned watch; /* seconds between two looks; 0 = one look */
	bool again;     /* --watch, perhaps without seconds */
	int events;
	const char *dir;
};

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "json", 'j', NULL, "as one JSON object", HA_FLAG(json) },
	{ "watch", 'w', "[SECONDS]", "again and again, every second or so many",
	  HA_NUMBER(watch, 1, 86400), HA_GIVEN(again) },
	{ "events", 'e', "N", "the last N events per process (10; at most 128 are kept)",
	  HA_NUMBER(events, 0, HA_STATUS_EVENTS) },
	{ "dir", 'd', "DIR", "where the pages are (HA_NCCL_STATUS_DIR)", HA_TEXT(dir) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha status",
	.about = "Shows devices, connections, protection and last events of every process.",
	.options = { rows },
	.notes = "Exit status: 0, also when there is nothing to show; 1 the directory cannot be "
		 "read; 2 called wrongly.",
};

static int show_processes(const struct options *o, const char *dir)
{
	struct ha_status_found *found;
	size_t n;
	int err = ha_status_scan(dir, &found, &n);

	if (err) {
		fprintf(stderr, "ha status: %s: %s\n", dir, ha_status_scan_why(err));
		return 1;
	}
	if (o->watch && isatty(STDOUT_FILENO))
		printf("\033[H\033[2J");
	if (o->json)
		err = ha_status_print_json(found, n, stdout);
	else
		ha_status_print(found, n, dir, o->events, stdout);
	ha_status_scan_free(found, n);
	fflush(stdout);
	return err || ferror(stdout) ? 1 : 0;
}

int ha_cmd_status(int argc, char **argv)
{
	struct options o = { .events = 10 };
	char dir[HA_CONFIG_TEXT_MAX];
	struct ha_config config;
	int rc = ha_options_parse(&program, argc, argv, &o);

	if (rc)
		return rc - 1;
	if (o.again && !o.watch)
		o.watch = 1;
	ha_config_load_env(&config);
	rc = ha_status_dir(&config, o.dir, dir, sizeof(dir));
	if (rc == -ENOENT) {
		printf("no pages: HA_NCCL_STATUS_DIR is none\n");
		return 0;
	}
	if (rc) {
		fprintf(stderr, "ha status: the name of the directory is too long\n");
		return 1;
	}
	if (o.dir && access(dir, F_OK)) {
		fprintf(stderr,
			"ha status: %s: %s; give the directory that HA_NCCL_STATUS_DIR names for "
			"the processes\n",
			dir, strerror(errno));
		return 1;
	}
	while (!(rc = show_processes(&o, dir)) && o.watch)
		sleep(o.watch);
	return rc;
}
