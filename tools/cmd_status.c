/* SPDX-License-Identifier: BSD-3-Clause */
/* ha status: what the processes of this user on this host say about their connections. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/number.h"
#include "base/process.h"
#include "tools/ha.h"
#include "tools/status_view.h"

#define PROGRAM "ha status"

struct options {
	bool json;
	unsigned watch; /* seconds between two looks; 0 = one look */
	int events;
	const char *dir;
};

static int usage(FILE *out)
{
	fprintf(out, "usage: ha status [OPTIONS]   devices, connections, protection and last events of every process\n"
		     "  -j, --json            as one JSON object\n"
		     "  -w, --watch[=SECONDS] again and again, every second or so many\n"
		     "  -e, --events=N        the last N events per process (10; at most 128 are kept)\n"
		     "  -d, --dir=DIR         where the pages are (default: what HA_NCCL_STATUS_DIR says)\n"
		     "Exit status 0, also when there is nothing to show; 1: the directory cannot be read.\n");
	return out == stdout ? 0 : 2;
}

static int look(const struct options *o, const char *dir)
{
	struct ha_status_found *found;
	size_t n;
	int err = ha_status_scan(dir, &found, &n);

	if (err) {
		fprintf(stderr, "ha status: %s: %s\n", dir,
			err == -EPERM ? "it is another user's, or others may write to it" : strerror(-err));
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

/* 0: go on; else the exit status + 1. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },	   { "watch", optional_argument, NULL, 'w' },
		{ "events", required_argument, NULL, 'e' }, { "dir", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },	   { 0 },
	};
	unsigned events;
	int c;

	while ((c = getopt_long(argc, argv, "jw::e:d:h", longs, NULL)) >= 0) {
		switch (c) {
		case 'j':
			o->json = true;
			continue;
		case 'w':
			o->watch = 1;
			if (optarg && !ha_number_take_unsigned(PROGRAM, "--watch", optarg, 1, 86400, &o->watch))
				return 1 + 2;
			continue;
		case 'e':
			if (!ha_number_take_unsigned(PROGRAM, "--events", optarg, 0, HA_STATUS_EVENTS, &events))
				return 1 + 2;
			o->events = (int)events;
			continue;
		case 'd':
			o->dir = optarg;
			continue;
		default:
			return 1 + usage(c == 'h' ? stdout : stderr);
		}
	}
	return optind < argc ? 1 + usage(stderr) : 0;
}

int ha_cmd_status(int argc, char **argv)
{
	struct options o = { .events = 10 };
	char dir[HA_CONFIG_TEXT_MAX];
	struct ha_config config;
	int rc = parse(argc, argv, &o);

	if (rc)
		return rc - 1;
	ha_config_load_env(&config);
	if (!o.dir && !strcmp(config.status_dir, "none")) {
		printf("no pages: HA_NCCL_STATUS_DIR is none\n");
		return 0;
	}
	if (!ha_process_expand(o.dir ? o.dir : config.status_dir, dir, sizeof(dir))) {
		fprintf(stderr, "ha status: the name of the directory is too long\n");
		return 1;
	}
	if (o.dir && access(dir, F_OK)) {
		fprintf(stderr, "ha status: %s: %s; give the directory that HA_NCCL_STATUS_DIR says to the processes\n", dir,
			strerror(errno));
		return 1;
	}
	while (!(rc = look(&o, dir)) && o.watch)
		sleep(o.watch);
	return rc;
}
