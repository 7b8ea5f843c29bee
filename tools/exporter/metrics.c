/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/version.h"

/* In the text format the name of a counter's family has its suffix already (OpenMetrics 1.0, 5.1).
 */
static void print_head(const char *name, const char *type, const char *help, enum metrics_form form,
		       FILE *out)
{
	const char *suffix = form == METRICS_TEXT && !strcmp(type, "counter") ? "_total" : "";

	fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix, type);
}

static void print_label(const char *name, const char *value, char before, FILE *out)
{
	fprintf(out, "%c%s=\"", before, name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		fputc(*value == '\n' ? ' ' : *value, out);
	}
	fputc('"', out);
}

static void print_counter(const struct counter *c, const char *suffix, FILE *out)
{
	const struct counter_about *about = &counter_about[c->family];

	fprintf(out, "%s%s", about->name, suffix);
	for (int i = 0; i < 2 && about->label[i]; i++)
		print_label(about->label[i], c->label[i], i ? ',' : '{', out);
	fprintf(out, "%s %.17g\n", about->label[0] ? "}" : "", c->value);
}

static void print_counters(const struct watcher *w, enum metrics_form form, FILE *out)
{
	for (int family = 0; family < COUNTER_FAMILIES; family++) {
		bool gauge = family == COUNTER_LAST_FAILOVER;

		print_head(counter_about[family].name, gauge ? "gauge" : "counter",
			   counter_about[family].help, form, out);
		for (size_t i = 0; i < w->counters.n; i++)
			if ((int)w->counters.list[i].family == family)
				print_counter(&w->counters.list[i], gauge ? "" : "_total", out);
	}
}

/* ---- what is now: sums over the processes, by a label ---- */

#define SUMS_MAX 256 /* labels; a host has some ten devices and jobs */
#define VALUES 5

struct sum {
	const char *label;
	double value[VALUES];
};

struct sums {
	struct sum sum[SUMS_MAX];
	unsigned n;
};

struct gauge {
	const char *name, *help;
};

enum { PORT_UP, RAILS_UP, RAILS_DOWN, DEVICE_CONNECTIONS, DEVICE_GAUGES };
static const struct gauge device_gauge[DEVICE_GAUGES] = {
	[PORT_UP] = { "hawser_plugin_port_up",
		      "1: the port is up, as all processes that use it say." },
	[RAILS_UP] = { "hawser_plugin_rails_up", "Paths over the device that work." },
	[RAILS_DOWN] = { "hawser_plugin_rails_down", "Paths over the device that do not." },
	[DEVICE_CONNECTIONS] = { "hawser_plugin_device_connections",
				 "Connections with a path over the device." },
};

enum { PROCESSES, CONNECTIONS, UNPROTECTED, LOST, STALL_WORST, JOB_GAUGES };
static const struct gauge job_gauge[JOB_GAUGES] = {
	[PROCESSES] = { "hawser_plugin_processes", "Processes with the plugin in them." },
	[CONNECTIONS] = { "hawser_plugin_connections", "Open connections." },
	[UNPROTECTED] = { "hawser_plugin_unprotected_connections",
			  "Connections that have no standby now." },
	[LOST] = { "hawser_plugin_lost_connections",
		   "Open connections that have ended with an error." },
	[STALL_WORST] = { "hawser_plugin_stall_worst_seconds",
			  "The longest time without progress of any connection." },
};

/* NULL: there are too many labels. */
static struct sum *find_sum(struct sums *sums, const char *label)
{
	for (unsigned i = 0; i < sums->n; i++)
		if (!strcmp(sums->sum[i].label, label))
			return &sums->sum[i];
	if (sums->n == SUMS_MAX)
		return NULL;
	sums->sum[sums->n] = (struct sum) { .label = label };
	return &sums->sum[sums->n++];
}

/* A port that one process finds down is down, whatever the others have seen by now. */
static void add_port(struct sum *sum, unsigned port)
{
	if (port == HA_PORT_DOWN || port == HA_PORT_FAILED)
		sum->value[PORT_UP] = -1;
	else if (port == HA_PORT_UP && sum->value[PORT_UP] >= 0)
		sum->value[PORT_UP] = 1;
}

static void sum_devices(const struct watcher *w, struct sums *sums)
{
	for (unsigned i = 0; i < w->processes; i++)
		for (int k = 0; k < HA_STATUS_DEVICES && watcher_runs(w->process[i]); k++) {
			const struct ha_status_device *d = &w->process[i]->page.device[k];
			struct sum *sum = d->seq && *d->name ? find_sum(sums, d->name) : NULL;

			if (!sum)
				continue;
			add_port(sum, d->port);
			sum->value[RAILS_UP] += d->rails_up;
			sum->value[RAILS_DOWN] += d->rails_down;
			sum->value[DEVICE_CONNECTIONS] += d->connections;
		}
	for (unsigned i = 0; i < sums->n; i++)
		if (sums->sum[i].value[PORT_UP] < 0)
			sums->sum[i].value[PORT_UP] = 0;
}

static void add_connections(struct sum *sum, const struct ha_status_page *page)
{
	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		const struct ha_status_connection *c = &page->connection[i];
		double stall = (double)c->stall_worst / 1e9;

		if (!c->seq || !c->used)
			continue;
		sum->value[CONNECTIONS]++;
		sum->value[LOST] += c->lost != 0;
		sum->value[UNPROTECTED] += !c->lost && c->protection == HA_PROTECTION_NO;
		if (stall > sum->value[STALL_WORST])
			sum->value[STALL_WORST] = stall;
	}
}

static void sum_jobs(const struct watcher *w, struct sums *sums)
{
	for (unsigned i = 0; i < w->processes; i++) {
		const struct watcher_process *p = w->process[i];
		struct sum *sum = watcher_runs(p) ? find_sum(sums, p->job) : NULL;

		if (!sum)
			continue;
		sum->value[PROCESSES]++;
		add_connections(sum, &p->page);
	}
}

static void print_sample(const char *name, const char *label, const char *value, double number,
			 FILE *out)
{
	fputs(name, out);
	print_label(label, value, '{', out);
	fprintf(out, "} %.17g\n", number);
}

static void print_gauges(const struct gauge *gauges, int n, const char *label,
			 const struct sums *sums, enum metrics_form form, FILE *out)
{
	for (int g = 0; g < n; g++) {
		print_head(gauges[g].name, "gauge", gauges[g].help, form, out);
		for (unsigned i = 0; i < sums->n; i++)
			print_sample(gauges[g].name, label, sums->sum[i].label,
				     sums->sum[i].value[g], out);
	}
}

/* ---- where events are sent to ---- */

struct delivery {
	const char *name, *type, *help;
	size_t offset; /* in struct sender_counts */
};

#define DELIVERY(of, suffix, kind, text, member)                                            \
	{                                                                                   \
		"hawser_" of "_" suffix, kind, text, offsetof(struct sender_counts, member) \
	}
#define DELIVERIES(of)                                                                          \
	{                                                                                       \
		DELIVERY(of, "sent", "counter", "Events that the receiver has taken.", sent),   \
			DELIVERY(of, "failed", "counter", "Requests that failed.", failed),     \
			DELIVERY(of, "dropped", "counter",                                      \
				 "Events that were given up: no room, or the receiver refused " \
				 "them.",                                                       \
				 dropped),                                                      \
			DELIVERY(of, "waiting", "gauge", "Events that are still to be sent.",   \
				 waiting),                                                      \
	}

#define DELIVERY_COUNT 4
static const struct delivery webhook_delivery[DELIVERY_COUNT] = DELIVERIES("webhook");
static const struct delivery kubernetes_delivery[DELIVERY_COUNT] = DELIVERIES("kubernetes");

/* n senders; with a label where `label` is not NULL. The counts are of one moment. */
static void print_deliveries(const struct delivery *deliveries, struct sender *const *senders,
			     unsigned n, const char *label, enum metrics_form form, FILE *out)
{
	struct sender_counts counts[WEBHOOKS_MAX];

	for (unsigned i = 0; i < n; i++)
		counts[i] = sender_counts(senders[i]);
	for (int k = 0; k < DELIVERY_COUNT; k++) {
		const struct delivery *d = &deliveries[k];
		const char *suffix = strcmp(d->type, "counter") ? "" : "_total";

		print_head(d->name, d->type, d->help, form, out);
		for (unsigned i = 0; i < n; i++) {
			const char *at = (const char *)&counts[i] + d->offset;

			fprintf(out, "%s%s", d->name, suffix);
			if (label) {
				print_label(label, senders[i]->name + WEBHOOK_NAME, '{', out);
				fputc('}', out);
			}
			fprintf(out, " %" PRIu64 "\n", *(const uint64_t *)at);
		}
	}
}

static void print_reporter(const struct reporter *r, enum metrics_form form, FILE *out)
{
	struct sender *senders[WEBHOOKS_MAX];
	unsigned n;

	for (n = 0; n < r->webhooks; n++)
		senders[n] = &r->webhook[n]->sender;
	print_deliveries(webhook_delivery, senders, n, "receiver", form, out);
	if (r->kubernetes)
		senders[0] = &r->kubernetes->sender;
	print_deliveries(kubernetes_delivery, senders, r->kubernetes != NULL, NULL, form, out);
}

void metrics_print(const struct watcher *w, const struct reporter *r, enum metrics_form form,
		   FILE *out)
{
	struct sums devices = { .n = 0 }, jobs = { .n = 0 };

	print_counters(w, form, out);
	sum_devices(w, &devices);
	sum_jobs(w, &jobs);
	print_gauges(device_gauge, DEVICE_GAUGES, "device", &devices, form, out);
	print_gauges(job_gauge, JOB_GAUGES, "job", &jobs, form, out);
	print_reporter(r, form, out);
	print_head("hawser_exporter_pages_refused", "gauge",
		   "Files among the status pages that are none, or another version's.", form, out);
	fprintf(out, "hawser_exporter_pages_refused %u\n", w->refused);
	print_head("hawser_exporter_pages_unplaced", "gauge",
		   "Status pages that are not counted for want of room: too many of one user, no "
		   "descriptors or no memory.",
		   form, out);
	fprintf(out, "hawser_exporter_pages_unplaced %u\n", w->unplaced);
	print_head("hawser_exporter_series_refused", "counter",
		   "Counts without a series of their own, because there are too many.", form, out);
	fprintf(out, "hawser_exporter_series_refused_total %" PRIu64 "\n", w->counters.refused);
	print_head("hawser_exporter_build_info", "gauge", "The version of this exporter.", form,
		   out);
	print_sample("hawser_exporter_build_info", "version", ha_version, 1, out);
	if (form == METRICS_OPEN)
		fputs("# EOF\n", out);
}
