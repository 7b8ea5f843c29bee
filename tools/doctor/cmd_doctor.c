/* SPDX-License-Identifier: BSD-3-Clause */
/* ha doctor: before a job, on one host: would NCCL load hawser here, and is the host as it should
 * be? */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/options.h"
#include "rdma/verbs/dlopen.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/fabric/run.h"
#include "tools/doctor/nccl_conf.h"
#include "tools/doctor/show.h"
#include "tools/ha.h"

struct options {
	bool json, verbose, strict, fabric;
	const char *nccl;
	struct fabric_options all; /* of --fabric */
};

#define HA_TARGET struct options

/* enum fabric_pairs */
static const char *const pairs[] = { "auto", "rail", "all", NULL };

static const struct ha_option rows[] = {
	{ "verbose", 'v', NULL, "also what is in order", HA_FLAG(verbose) },
	{ "json", 'j', NULL, "everything as one JSON object", HA_FLAG(json) },
	{ "strict", 's', NULL, "warnings count as errors for the exit status", HA_FLAG(strict) },
	{ "nccl", 0, "PATH", "the library of NCCL or RCCL that the job uses (libnccl.so.2)",
	  HA_TEXT(nccl) },
	{ "fabric", 'F', NULL,
	  "measure every path between the hosts instead; one rank on each, under mpirun, srun or "
	  "torchrun",
	  HA_FLAG(fabric) },
	{ 0 },
};

static const struct ha_option fabric_rows[] = {
	{ "pairs", 0, "WHICH",
	  "with --fabric: rail: ports of one name; all: every port to every other; auto: all up to "
	  "32 ports (auto)",
	  HA_CHOICE(all.pairs, pairs) },
	{ "png", 0, "FILE", "the matrix as a picture, by gnuplot", HA_TEXT(all.png) },
	{ "time", 0, "TIME", "how long each latency and bandwidth is measured (100ms)",
	  HA_TIME(all.probe.time_ns, HA_NS_PER_MS, 60 * HA_NS_PER_S) },
	{ "slow", 0, "PERCENT", "a path is slow below so much of what others do (70)",
	  HA_NUMBER(all.slow_percent, 1, 99) },
	{ "no-failover", 0, NULL, "measure only: take no path away", HA_FLAG_OFF(all.failover) },
	{ "limit", 0, "TIME", "give a path up when nothing moves for so long (10s)",
	  HA_TIME(all.probe.limit_ns, 100 * HA_NS_PER_MS, 600 * HA_NS_PER_S) },
	{ "timeout", 'T', "SECONDS", "how long the ranks wait for each other (60)",
	  HA_NUMBER(all.launch.timeout_s, 1, 86400) },
	{ "ranks", 0, "N", "start N ranks here, each a host with software NICs",
	  HA_NUMBER(all.launch.ranks, 1, 1024) },
	{ "rank", 0, "R", "this is rank R, without a launcher",
	  HA_NUMBER(all.launch.rank, 0, 1 << 20) },
	{ "rendezvous", 0, "HOST:PORT", "where rank 0 listens", HA_TEXT(all.launch.rendezvous) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha doctor",
	.about = "Looks at this host as a job would see it, in the environment of the job: plugin, "
		 "NCCL, "
		 "variables, limits, devices, ports, PCI links, standbys, daemons. Each finding "
		 "has a "
		 "severity, what it costs and the command that mends it. Changes nothing. With "
		 "--fabric "
		 "the hosts of a job measure each path between them, take each away once (the "
		 "queue pair, never a port), and name the odd cable.",
	.options = { rows, fabric_rows },
	.notes = "An error: NCCL would not use hawser, or end with an error. A warning: the job "
		 "runs "
		 "slower, or with less protection.\n"
		 "Exit status: 0 no error; 1 there is one; 2 called wrongly.",
};

/* ---- what the plugin's own code logs while it looks ---- */

static struct doctor_lines *catcher; /* of the line's sink, which has no argument for it */

static void catch_line(int level, unsigned long flags, const char *file, int line,
		       const char *format, ...) __attribute__((format(printf, 5, 6)));

static void catch_line(int level, unsigned long flags, const char *file, int line,
		       const char *format, ...)
{
	static const char prefix[] = "NET/HA: ";
	char text[sizeof(catcher->text[0])], *from = text;
	va_list args;

	if (level != HA_LOG_WARN || catcher->n == DOCTOR_LINES_MAX)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!strncmp(text, prefix, strlen(prefix)))
		from += strlen(prefix);
	snprintf(catcher->text[catcher->n++], sizeof(catcher->text[0]), "%s", from);
}

static void catch_lines(struct doctor_lines *lines)
{
	catcher = lines;
	ha_log_set_sink(lines ? catch_line : NULL);
}

/* ---- the parts ---- */

struct examination {
	struct doctor_host host;
	struct ha_config config;
	struct ha_topo topo;
	struct ha_standby standby;
	struct ha_verbs_ops *verbs;
};

static void discover_devices(struct examination *p)
{
	struct ha_config config = p->config;

	config.enable_backup = false; /* a finding of its own says what is to say about APM */
	if (ha_verbs_open_library(config.verbs, &p->verbs))
		return;
	p->host.verbs = p->verbs->name;
	if (ha_topo_discover(p->verbs, &config, &p->topo))
		return;
	ha_standby_compute(&p->topo, &p->standby);
	ha_standby_avoid_leaf(&p->topo, &p->standby);
}

static void examine_host(struct examination *p, const char *nccl)
{
	p->host.config = &p->config;
	p->host.topo = &p->topo;
	p->host.standby = &p->standby;
	doctor_nccl_conf_load();
	catch_lines(&p->host.from_config);
	ha_config_load_env(&p->config);
	catch_lines(&p->host.from_devices);
	discover_devices(p);
	catch_lines(&(struct doctor_lines) { 0 }); /* of the interfaces: a finding of its own */
	doctor_host_gather(&p->host, nccl);
	catch_lines(NULL);
}

static int show_report(const struct examination *p, const struct options *options)
{
	struct doctor_report report = { 0 };
	bool sick;
	int err = 0;

	doctor_check_all(&p->host, &report);
	sick = report.count[DOCTOR_ERROR] || (options->strict && report.count[DOCTOR_WARNING]);
	if (options->json)
		err = doctor_print_json(&p->host, &report, stdout);
	else
		doctor_print(&p->host, &report, options->verbose, stdout);
	doctor_report_free(&report);
	return err || sick || fflush(stdout) || ferror(stdout) ? 1 : 0;
}

static int survey_fabric(struct options *options)
{
	options->all.json = options->json;
	options->all.verbose = options->verbose;
	options->all.strict = options->strict;
	return fabric_run(&options->all);
}

int ha_cmd_doctor(int argc, char **argv)
{
	struct options options = { 0 };
	struct examination *p;
	int status;

	fabric_options_default(&options.all);
	status = ha_options_parse(&program, argc, argv, &options);
	if (status)
		return status - 1;
	if (options.fabric)
		return survey_fabric(&options);
	p = calloc(1, sizeof(*p));
	if (!p) {
		fprintf(stderr, "ha doctor: no memory\n");
		return 1;
	}
	examine_host(p, options.nccl);
	status = show_report(p, &options);
	if (p->topo.verbs)
		ha_topo_release(&p->topo);
	if (p->verbs)
		ha_verbs_close_library(p->verbs);
	free(p);
	return status;
}
