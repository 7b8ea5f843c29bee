/* SPDX-License-Identifier: BSD-3-Clause */
/* hawser-exporter: what the processes of this host count, for Prometheus, the journal and a
 * browser. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/newfile.h"
#include "base/options.h"
#include "tools/exporter/metrics.h"
#include "tools/exporter/page.h"
#include "tools/exporter/reporter.h"
#include "tools/job/fault.h"
#include "tools/job/output.h"

#define JOURNAL "/run/systemd/journal/socket"

struct options {
	const char *dir, *metrics, *textfile, *state;
	struct reporter_options report;
	unsigned interval_ms;
	bool once;
};

#define HA_TARGET struct options

static bool add_webhook(void *target, const struct ha_option_text *given)
{
	struct reporter_options *o = &((struct options *)target)->report;

	if (o->webhooks == WEBHOOKS_MAX)
		return ha_option_refuse(given, "%d URLs at most", WEBHOOKS_MAX);
	o->webhook[o->webhooks++] = (struct webhook_options) { .url = given->text };
	return true;
}

/* Of the webhook before it: a secret goes to the receiver that it is meant for. NULL: there is
 * none. */
static struct webhook_options *last_webhook(void *target)
{
	struct reporter_options *o = &((struct options *)target)->report;

	return o->webhooks ? &o->webhook[o->webhooks - 1] : NULL;
}

static bool set_headers(void *target, const struct ha_option_text *given)
{
	struct webhook_options *w = last_webhook(target);

	if (w)
		w->headers = given->text;
	return w;
}

static bool set_ca(void *target, const struct ha_option_text *given)
{
	struct webhook_options *w = last_webhook(target);

	if (w)
		w->ca = given->text;
	return w;
}

static const struct ha_option rows[] = {
	{ "dir", 'd', "PATH", "the status pages; %u is every user (HA_NCCL_STATUS_DIR)",
	  HA_TEXT(dir) },
	{ "metrics", 'm', "WHERE",
	  "ADDRESS:PORT of the OpenMetrics and of the page, or none (127.0.0.1:9845)",
	  HA_TEXT(metrics) },
	{ "textfile", 't', "FILE",
	  "write them there after each look, too, for node_exporter's textfile collector: a name "
	  "that ends with .prom",
	  HA_TEXT(textfile) },
	{ "state", 's', "FILE", "keep the counters there over a restart of the exporter",
	  HA_TEXT(state) },
	{ "journal", 'j', "SOCKET",
	  "where events are entries of the journal, or none (" JOURNAL ")",
	  HA_TEXT(report.journal) },
	{ "webhook", 'w', "URL", "POST each of these events there as JSON; up to 8 times",
	  HA_CALL(add_webhook, NULL) },
	{ "webhook-headers", 0, "FILE",
	  "of the webhook before it: header lines, such as Authorization, read anew for each "
	  "request",
	  HA_CALL(set_headers, "a FILE behind the --webhook that it is of") },
	{ "webhook-ca", 0, "FILE",
	  "of the webhook before it: certificates of the authorities to trust (the system's)",
	  HA_CALL(set_ca, "a FILE behind the --webhook that it is of") },
	{ "kubernetes", 'k', "[DIR]",
	  "in a pod: write these events as Event objects of the node NODE_NAME; DIR: ca.crt and "
	  "token of the service account (" KUBERNETES_ACCOUNT ")",
	  HA_TEXT(report.account), HA_GIVEN(report.kubernetes) },
	{ "timeout", 0, "TIME", "for a request to a webhook or to Kubernetes (10s)",
	  HA_TIME(report.timeout_ns, 100 * HA_NS_PER_MS, 600 * HA_NS_PER_S) },
	{ "interval", 'i', "MS", "between two looks at the pages (1000)",
	  HA_NUMBER(interval_ms, 10, 60000) },
	{ "once", '1', NULL, "look once, write textfile and state, and end", HA_FLAG(once) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "hawser-exporter",
	.about = "Counts what the plugins of this host report: failovers by device and cause, "
		 "stalls, "
		 "time without protection. One per host; costs the jobs nothing.",
	.options = { rows },
	.notes = "GET /metrics: OpenMetrics. GET /: a page with the connections, who stands by for "
		 "whom "
		 "and the last events; GET /still: the same without asking again.\nExit status: 1 "
		 "it cannot run here, 2 called wrongly.",
};

/* A file that is written after each look. */
struct exporter_file {
	const char *option, *path; /* NULL: not asked for */
	bool failing;              /* that was said */
};

struct exporter {
	struct options options;
	struct exporter_file textfile, state;
	struct watcher watcher;
	struct reporter reporter;
	struct ha_loop loop;
	struct ha_http http;
};

static int stop;

static void on_signal(int signal)
{
	stop = 1;
}

static int report_error(const char *what, const char *why)
{
	fprintf(stderr, "hawser-exporter: %s: %s\n", what, why);
	return 1;
}

static void print_metrics(const void *user, FILE *out)
{
	const struct exporter *x = user;

	metrics_print(&x->watcher, &x->reporter, METRICS_OPEN, out);
}

static void print_page(const void *user, FILE *out)
{
	page_print(&((const struct exporter *)user)->watcher, true, out);
}

static void print_still(const void *user, FILE *out)
{
	page_print(&((const struct exporter *)user)->watcher, false, out);
}

/* The collector never sees half of a file. */
static int write_textfile(const struct exporter *x, const char *path)
{
	struct ha_new_file file;
	int err = ha_new_file_open(&file, path);

	if (err)
		return err;
	metrics_print(&x->watcher, &x->reporter, METRICS_TEXT, file.out);
	return ha_new_file_close(&file);
}

/* Once, not after each look, until it has been written again. */
static int report_file(struct exporter_file *file, int err)
{
	if (err && !file->failing)
		fprintf(stderr,
			"hawser-exporter: %s %s: %s; it is tried again after each look, and this "
			"is not said again\n",
			file->option, file->path, strerror(-err));
	if (!err && file->failing)
		fprintf(stderr, "hawser-exporter: %s %s: it is written again\n", file->option,
			file->path);
	file->failing = err;
	return err ? 1 : 0;
}

static int write_files(struct exporter *x)
{
	int failed = 0;

	if (x->textfile.path)
		failed |= report_file(&x->textfile, write_textfile(x, x->textfile.path));
	if (x->state.path)
		failed |= report_file(&x->state, watcher_save(&x->watcher, x->state.path));
	return failed;
}

/* A mistyped name is told at once. */
static int check_files(struct exporter *x)
{
	int err;

	x->textfile = (struct exporter_file) { "--textfile", x->options.textfile, false };
	x->state = (struct exporter_file) { "--state", x->options.state, false };
	err = ha_replaced_check(x->textfile.option, x->textfile.path);
	if (!err)
		err = ha_replaced_check(x->state.option, x->state.path);
	if (err)
		fprintf(stderr, "hawser-exporter: %s\n", ha_fault_text());
	return err;
}

static int look_once(struct exporter *x)
{
	uint64_t lost = x->reporter.journal.lost;

	watcher_look(&x->watcher, ha_clock_now(&ha_clock_live));
	journal_flush(&x->reporter.journal);
	if (!lost && x->reporter.journal.lost)
		report_error(x->reporter.journal.path,
			     "the journal takes too few entries; some are lost");
	return write_files(x);
}

static int open_http(struct exporter *x)
{
	static const struct ha_http_page pages[] = {
		{ "/", "text/html; charset=utf-8", print_page },
		{ "/still", "text/html; charset=utf-8", print_still }, /* for a picture */
		{ 0 },
	};
	const char *wrong;

	if (ha_loop_open(&x->loop))
		return report_error("its event loop", strerror(errno));
	wrong = ha_http_open(&x->http, &x->loop, print_metrics, x, x->options.metrics);
	if (wrong)
		return report_error(x->options.metrics, wrong);
	x->http.pages = pages;
	if (x->http.server)
		fprintf(stderr, "hawser-exporter: serves port %u\n", x->http.port);
	return 0;
}

static int serve_http(struct exporter *x)
{
	if (open_http(x))
		return 1;
	while (!stop) {
		uint64_t until = ha_clock_now(&ha_clock_live) +
				 (uint64_t)x->options.interval_ms * HA_NS_PER_MS;

		look_once(x);
		ha_http_tick(&x->http);
		ha_loop_serve(&x->loop, until, &stop);
	}
	ha_http_close(&x->http);
	ha_loop_close(&x->loop);
	return 0;
}

/* One for each page, also where a service has few unless it asks for more. */
static void allow_descriptors(void)
{
	struct rlimit files;
	rlim_t wanted = WATCHER_PROCESSES + WATCHER_SPARE;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= wanted)
		return;
	files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &files);
}

static int run_exporter(struct exporter *x)
{
	const struct options *o = &x->options;
	int err, status;

	allow_descriptors();
	watcher_open(&x->watcher, o->dir);
	x->watcher.report = reporter_write;
	x->watcher.user = &x->reporter;
	err = o->state ? watcher_load(&x->watcher, o->state) : 0;
	if (err)
		report_error(o->state, "it holds no counters; they begin with 0");
	status = o->once ? look_once(x) : serve_http(x);
	watcher_close(&x->watcher);
	return status;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	static struct exporter exporter;
	struct reporter_fault fault;
	struct ha_config config;
	int status;

	ha_config_load_env(&config);
	exporter.options = (struct options) { .dir = config.status_dir,
					      .metrics = "127.0.0.1:9845",
					      .report = { .journal = JOURNAL,
							  .account = KUBERNETES_ACCOUNT,
							  .timeout_ns = 10 * HA_NS_PER_S },
					      .interval_ms = 1000 };
	status = ha_options_parse(&program, argc, argv, &exporter.options);
	if (status)
		return status - 1;
	if (check_files(&exporter))
		return 1;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (reporter_open(&exporter.reporter, &exporter.options.report, &fault)) {
		status = run_exporter(&exporter);
	} else {
		report_error(fault.what, fault.why);
		status = fault.status;
	}
	reporter_close(&exporter.reporter);
	return status;
}
