/* SPDX-License-Identifier: BSD-3-Clause */
/* ha drill: take NICs, ports and rails of a job away, and say what it made of it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "tools/drill/drill.h"
#include "tools/ha.h"
#include "tools/job/fault.h"
#include "tools/job/output.h"
#include "tools/status_read.h"

static volatile int stop;

static void on_signal(int number)
{
	stop = 1;
}

/* The first one ends the drill in order, with what it has seen; whatever follows is too late to
 * help: the guard puts back in any case. */
static void take_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void do_all(struct drill_run *run)
{
	drill_print_head(run, stdout);
	fflush(stdout);
	for (unsigned i = 0; i < run->count; i++) {
		drill_do(run, &run->drills[i]);
		drill_print(&run->drills[i], stdout);
	}
}

/* A drill that was made for a report is not made without one. */
static int check_files(const struct drill_options *o)
{
	int err = ha_output_check("--json", o->json);

	if (!err)
		err = ha_picture_check("--png", o->png);
	if (err)
		fprintf(stderr, "ha drill: %s\n", ha_fault_text());
	return err;
}

static int write_files(const struct drill_run *run)
{
	const struct drill_options *o = run->options;
	int status = 0, err;

	err = o->json ? drill_write_json(run, o->json) : 0;
	if (err) {
		fprintf(stderr, "ha drill: %s could not be written: %s\n", o->json, strerror(-err));
		status = 1;
	}
	err = o->png ? drill_write_png(run, o->png) : 0;
	if (err) {
		fprintf(stderr, "ha drill: %s could not be drawn: %s\n", o->png, strerror(-err));
		status = 1;
	}
	return status;
}

/* The exit status. */
static int drill_job(struct drill_run *run)
{
	int err = drill_await_job(run);

	if (!err)
		err = drill_plan(run);
	if (!err)
		do_all(run);
	job_end(run->job, &run->end);
	if (err == -EINTR)
		fprintf(stderr, "ha drill: interrupted\n");
	if (err == -ECHILD)
		fprintf(stderr, "ha drill: the job ended before it was connected: %s\n",
			*run->end.said ? run->end.said : "without a message");
	if (err)
		return 1;
	drill_print_end(run, stdout);
	return write_files(run) | !drill_all_well(run);
}

static int run_drills(struct drill_run *run, const char *dir, const char *sysfs)
{
	int err = guard_open(&run->guard);

	if (err) {
		fprintf(stderr, "ha drill: no process that puts back: %s\n", strerror(-err));
		return 1;
	}
	err = run->options->watch ? job_find(run->job, run->options, dir)
				  : job_start(run->job, run->options);
	if (!err) {
		watch_open(&run->watch, dir, sysfs, run->job->pid);
		err = drill_job(run);
		watch_close(&run->watch);
	}
	if (guard_close(&run->guard)) {
		fprintf(stderr, "ha drill: something could not be put back; see above\n");
		err = 1;
	}
	return err ? 1 : 0;
}

int ha_cmd_drill(int argc, char **argv)
{
	static struct drill_run run;
	static struct ha_config config;
	struct drill_options options;
	struct job job;
	char dir[HA_CONFIG_TEXT_MAX];
	int result = drill_options_parse(&options, argc, argv);

	if (result)
		return result - 1;
	if (check_files(&options))
		return 1;
	ha_config_load_env(&config);
	if (ha_status_dir(&config, NULL, dir, sizeof(dir))) {
		fprintf(stderr, "ha drill: it reads the job's status pages, and HA_NCCL_STATUS_DIR "
				"names no directory\n");
		return 1;
	}
	take_signals();
	run = (struct drill_run) { .options = &options, .job = &job, .stop = &stop };
	return run_drills(&run, dir, config.sysfs_root);
}
