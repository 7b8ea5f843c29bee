/* SPDX-License-Identifier: BSD-3-Clause */
/* ha top: the host's jobs, ports, connections and events, again and again. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/options.h"
#include "tools/ha.h"
#include "tools/top/frame.h"
#include "tools/top/lines.h"
#include "tools/top/screen.h"

struct options {
	uint64_t delay_ns;
	unsigned iterations; /* 0: until q */
	bool batch;
	uint64_t pid;
	int events;
	const char *dir;
};

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "delay", 'd', "TIME", "between two looks (2s)",
	  HA_TIME(delay_ns, 50 * HA_NS_PER_MS, 3600 * HA_NS_PER_S) },
	{ "iterations", 'n', "N", "end after N looks", HA_NUMBER(iterations, 1, 1000000000) },
	{ "batch", 'b', NULL, "write the looks as text, without a terminal", HA_FLAG(batch) },
	{ "pid", 'p', "PID", "this process alone", HA_NUMBER(pid, 1, INT32_MAX) },
	{ "events", 'e', "N", "the last N events per process (10; at most 128 are kept)",
	  HA_NUMBER(events, 0, HA_STATUS_EVENTS) },
	{ "dir", 0, "DIR", "where the status pages are (HA_NCCL_STATUS_DIR)", HA_TEXT(dir) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha top",
	.about = "Shows jobs, ports with what goes through them, connections with their rails, and "
		 "events of all processes with hawser of this user, again and again. The keys are "
		 "top's; h lists them.",
	.options = { rows },
	.notes = "Exit status: 0, also when there is nothing to show; 1 the directory cannot be "
		 "read, or there is no terminal; 2 called wrongly.",
};

struct top {
	struct options options;
	struct top_settings settings;
	struct frame now, before;
	struct top_lines lines;
	const char *dir, *sysfs;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	stop = 1;
}

static int update_lines(struct top *t)
{
	int err;

	frame_release(&t->before);
	t->before = t->now;
	err = frame_look(&t->now, t->dir, t->sysfs);
	return err ? err : top_lines_make(&t->lines, &t->now, &t->before, &t->settings);
}

static void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec) { .tv_sec = (time_t)(ns / HA_NS_PER_S),
				       .tv_nsec = (long)(ns % HA_NS_PER_S) },
		  NULL);
}

static int run_batch(struct top *t)
{
	int err = 0;

	for (unsigned i = 0; !stop && !err && (!t->options.iterations || i < t->options.iterations);
	     i++) {
		if (i)
			sleep_ns(t->options.delay_ns);
		err = update_lines(t);
		for (size_t k = 0; k < t->lines.n && !err; k++)
			puts(t->lines.line[k].text);
		putchar('\n');
		if (fflush(stdout))
			return -EIO; /* whoever read it is gone */
	}
	return err;
}

static void keep_in_range(struct screen *s, const struct top_lines *lines)
{
	size_t body = lines->n > lines->head + 1 ? lines->n - lines->head - 1 : 0;

	if (s->scroll >= body)
		s->scroll = body ? body - 1 : 0;
}

/* Keys until the next look is due. */
static enum screen_action serve_keys(struct top *t, struct screen *s, uint64_t due)
{
	enum screen_action action = SCREEN_WAIT;

	while (!stop && action == SCREEN_WAIT) {
		uint64_t now = ha_clock_now(&ha_clock_live);

		if (now >= due)
			return SCREEN_LOOK;
		action = screen_key(s, (int)((due - now) / HA_NS_PER_MS) + 1);
		if (top_lines_make(&t->lines, &t->now, &t->before, &t->settings))
			return SCREEN_QUIT;
		keep_in_range(s, &t->lines);
		screen_draw(s, &t->lines);
	}
	return stop ? SCREEN_QUIT : action;
}

static int run_screen(struct top *t)
{
	struct screen screen = { .settings = &t->settings, .delay_ns = t->options.delay_ns };
	unsigned looks = 0;
	int err;

	if (!screen_open()) {
		fprintf(stderr, "ha top: there is no terminal to draw on; -b writes text\n");
		return -ENOTTY;
	}
	do {
		err = update_lines(t);
		looks++;
		keep_in_range(&screen, &t->lines);
		screen_draw(&screen, &t->lines);
	} while (!err && looks != t->options.iterations &&
		 serve_keys(t, &screen, t->now.at + screen.delay_ns) != SCREEN_QUIT);
	screen_close();
	return err;
}

int ha_cmd_top(int argc, char **argv)
{
	static struct top t;
	static struct ha_config config;
	const struct sigaction action = { .sa_handler = on_signal };
	char dir[HA_CONFIG_TEXT_MAX];
	int result, err;

	t = (struct top) { .options = { .delay_ns = 2 * HA_NS_PER_S, .events = 10 } };
	result = ha_options_parse(&program, argc, argv, &t.options);
	if (result)
		return result - 1;
	ha_config_load_env(&config);
	if (ha_status_dir(&config, t.options.dir, dir, sizeof(dir))) {
		fprintf(stderr, "ha top: HA_NCCL_STATUS_DIR names no directory\n");
		return 1;
	}
	t.dir = dir;
	t.sysfs = config.sysfs_root;
	t.settings = (struct top_settings) { .pid = (pid_t)t.options.pid,
					     .idle = true,
					     .connections = true,
					     .events = true,
					     .most_events = t.options.events };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	err = t.options.batch ? run_batch(&t) : run_screen(&t);
	if (err && err != -ENOTTY)
		fprintf(stderr, "ha top: %s: %s\n", dir, ha_status_scan_why(err));
	frame_release(&t.now);
	frame_release(&t.before);
	top_lines_free(&t.lines);
	return err ? 1 : 0;
}
