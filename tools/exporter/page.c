/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/page.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/version.h"
#include "tools/status_view.h"

#define DEVICES_MAX 32 /* that are drawn */
#define WIDTH 960
#define TIMELINE_HEIGHT 150
#define RATE_HEIGHT 110
#define EVENTS_SHOWN 14

/* Text of a page is another program's: nothing in it is markup. */
static void print_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void print_cell(const char *text, FILE *out)
{
	fputs("<td>", out);
	print_text(text, out);
	fputs("</td>", out);
}

static void print_time(uint64_t wall, FILE *out)
{
	time_t seconds = (time_t)(wall / HA_NS_PER_S);
	char text[32];
	struct tm tm;

	strftime(text, sizeof(text), "%H:%M:%S", gmtime_r(&seconds, &tm));
	fprintf(out, "<td>%s.%03u</td>", text, (unsigned)(wall / HA_NS_PER_MS % 1000));
}

/* ---- who stands by for whom ---- */

struct drawn {
	const char *device[DEVICES_MAX];
	bool down[DEVICES_MAX];
	unsigned n;
	unsigned standby[DEVICES_MAX]
			[DEVICES_MAX]; /* connections on the first, the second stands by */
};

static int place_of(struct drawn *d, const char *device)
{
	for (unsigned i = 0; i < d->n; i++)
		if (!strcmp(d->device[i], device))
			return (int)i;
	if (d->n == DEVICES_MAX)
		return -1;
	d->device[d->n] = device;
	return (int)d->n++;
}

/* The place of a rail's device in the drawing, or -1. */
static int place_of_rail(struct drawn *d, const struct ha_status_page *page,
			 const struct ha_status_rail *rail)
{
	return rail->device < HA_STATUS_DEVICES ? place_of(d, page->device[rail->device].name) : -1;
}

static void draw_connection(struct drawn *d, const struct ha_status_page *page,
			    const struct ha_status_connection *c)
{
	for (unsigned i = 0; i < c->nrails; i++)
		for (unsigned k = 0; k < c->nrails; k++) {
			int from, to;

			if (!c->rail[i].weight || c->rail[k].weight ||
			    c->rail[k].state != HA_STATUS_RAIL_UP)
				continue;
			from = place_of_rail(d, page, &c->rail[i]);
			to = place_of_rail(d, page, &c->rail[k]);
			if (from >= 0 && to >= 0 && from != to)
				d->standby[from][to]++;
		}
}

static void draw_processes(const struct watcher *w, struct drawn *d)
{
	for (unsigned i = 0; i < w->processes; i++) {
		const struct ha_status_page *page = &w->process[i]->page;

		if (!watcher_runs(w->process[i]))
			continue;
		for (int k = 0; k < HA_STATUS_DEVICES; k++) {
			const struct ha_status_device *device = &page->device[k];
			int place = device->seq && *device->name ? place_of(d, device->name) : -1;

			if (place >= 0)
				d->down[place] |= device->port == HA_PORT_DOWN ||
						  device->port == HA_PORT_FAILED;
		}
		for (int k = 0; k < HA_STATUS_CONNECTIONS; k++)
			if (page->connection[k].seq && page->connection[k].used)
				draw_connection(d, page, &page->connection[k]);
	}
}

/* A box per device in a row; an arc from the device that carries to the one that stands by. */
static void print_standbys(const struct watcher *w, FILE *out)
{
	struct drawn d = { 0 };
	unsigned step;

	draw_processes(w, &d);
	fprintf(out, "<h2>Devices, and who stands by for whom</h2>\n");
	if (!d.n) {
		fprintf(out, "<p id=\"devices\">No process with hawser runs on this host.</p>\n");
		return;
	}
	step = WIDTH / d.n;
	fprintf(out, "<svg id=\"devices\" viewBox=\"0 0 %d 180\" role=\"img\">\n", WIDTH);
	for (unsigned i = 0; i < d.n; i++)
		for (unsigned k = 0; k < d.n; k++) {
			unsigned x = step * i + step / 2, y = step * k + step / 2;
			int up = i < k ? -60 : 60;

			if (!d.standby[i][k])
				continue;
			fprintf(out,
				"<path class=\"arc\" d=\"M%u %d Q%u %d %u %d\"/>"
				"<text class=\"small\" x=\"%u\" y=\"%d\">%u</text>\n",
				x, 85 + up / 3, (x + y) / 2, 85 + up * 5 / 3, y, 85 + up / 3,
				(x + y) / 2, 85 + up + (up < 0 ? -4 : 16), d.standby[i][k]);
		}
	for (unsigned i = 0; i < d.n; i++) {
		fprintf(out,
			"<rect class=\"%s\" x=\"%u\" y=\"65\" width=\"%u\" height=\"40\" rx=\"6\"/>"
			"<text x=\"%u\" y=\"90\">",
			d.down[i] ? "down" : "up", step * i + 8, step > 24 ? step - 16 : 8,
			step * i + step / 2);
		print_text(d.device[i], out);
		fprintf(out, "</text>\n");
	}
	fprintf(out,
		"</svg>\n<p>An arc leads from the device that carries to the one that stands by, "
		"with the number of connections; red: the port is down.</p>\n");
}

/* ---- in time ---- */

static void print_rates(const struct watcher *w, FILE *out)
{
	unsigned n = w->looks < WATCHER_SAMPLES ? (unsigned)w->looks : WATCHER_SAMPLES;
	double most = 1;

	for (unsigned i = 0; i < n; i++)
		if (w->rate[i] > most)
			most = w->rate[i];
	fprintf(out,
		"<h2>Messages per second, of all processes</h2>\n"
		"<svg id=\"rate\" viewBox=\"0 0 %d %d\"><polyline class=\"rate\" points=\"",
		WIDTH, RATE_HEIGHT);
	for (unsigned i = 0; i < n; i++) {
		uint64_t look = w->looks - n + i;

		fprintf(out, "%u,%.1f ", i * WIDTH / (WATCHER_SAMPLES - 1),
			RATE_HEIGHT - 5 -
				w->rate[look % WATCHER_SAMPLES] / most * (RATE_HEIGHT - 25));
	}
	fprintf(out, "\"/><text class=\"left\" x=\"4\" y=\"14\">%.0f</text></svg>\n", most);
}

static const char *class_of(const struct ha_status_event *e)
{
	switch (e->kind) {
	case HA_EVENT_LOST:
		return "lost";
	case HA_EVENT_SUSPECTED:
	case HA_EVENT_FAILED_OVER:
	case HA_EVENT_NOT_PROTECTED:
		return "warn";
	case HA_EVENT_PROTECTED:
	case HA_EVENT_RECOVERED:
	case HA_EVENT_FAILED_BACK:
	case HA_EVENT_ADDED:
		return "good";
	default:
		return "plain";
	}
}

static const struct watcher_event *event_at(const struct watcher *w, uint64_t number)
{
	return &w->recent[number % WATCHER_RECENT];
}

/* A row per kind of event, a mark per event, from the oldest that is kept until now. */
static void print_timeline(const struct watcher *w, FILE *out)
{
	static const unsigned rows[] = { HA_EVENT_DEVICE,      HA_EVENT_SUSPECTED,
					 HA_EVENT_FAILED_OVER, HA_EVENT_NOT_PROTECTED,
					 HA_EVENT_PROTECTED,   HA_EVENT_RECOVERED,
					 HA_EVENT_LOST };
	unsigned count = sizeof(rows) / sizeof(rows[0]), line = TIMELINE_HEIGHT / count;
	uint64_t first = w->events > WATCHER_RECENT ? w->events - WATCHER_RECENT : 0;
	uint64_t begin = UINT64_MAX, span;

	for (uint64_t i = first; i < w->events; i++)
		if (event_at(w, i)->event.mono < begin)
			begin = event_at(w, i)->event.mono;
	span = w->looked > begin ? w->looked - begin : 1;
	fprintf(out,
		"<h2>Events, the last %.0f s</h2>\n<svg id=\"timeline\" viewBox=\"0 0 %d %d\">\n",
		begin == UINT64_MAX ? 0 : (double)span / 1e9, WIDTH, TIMELINE_HEIGHT);
	for (unsigned r = 0; r < count; r++) {
		fprintf(out, "<text class=\"left\" x=\"0\" y=\"%u\">%s</text>\n", line * r + 15,
			ha_event_kind_text(rows[r]));
		for (uint64_t i = first; i < w->events; i++) {
			const struct ha_status_event *e = &event_at(w, i)->event;

			if (e->kind != rows[r])
				continue;
			fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%u\" r=\"4\"/>\n",
				class_of(e),
				130 + (double)(e->mono - begin) / (double)span * (WIDTH - 140),
				line * r + 11);
		}
	}
	fprintf(out, "</svg>\n");
}

static int compare_newer(const void *a, const void *b)
{
	const struct watcher_event *const *x = a, *const *y = b;
	uint64_t at = (*x)->event.mono, other = (*y)->event.mono;

	return (at < other) - (at > other);
}

/* They were read process by process; the newest comes first. Returns their number. */
static size_t sort_events(const struct watcher *w, const struct watcher_event **sorted)
{
	size_t kept = w->events < WATCHER_RECENT ? w->events : WATCHER_RECENT;

	for (size_t i = 0; i < kept; i++)
		sorted[i] = event_at(w, w->events - 1 - i);
	qsort(sorted, kept, sizeof(*sorted), compare_newer);
	return kept;
}

static void print_events(const struct watcher *w, FILE *out)
{
	const struct watcher_event *sorted[WATCHER_RECENT];
	size_t kept = sort_events(w, sorted);

	fprintf(out,
		"<table id=\"events\"><tr><th>UTC<th>job<th>process<th>event<th>cause<th>device"
		"<th>stall<th></tr>\n");
	for (size_t i = 0; i < kept && i < EVENTS_SHOWN; i++) {
		const struct watcher_event *kept_event = sorted[i];
		const struct ha_status_event *e = &kept_event->event;

		fprintf(out, "<tr class=\"%s\">", class_of(e));
		print_time(e->wall, out);
		print_cell(kept_event->job, out);
		fprintf(out, "<td>%u</td>", kept_event->pid);
		print_cell(ha_event_kind_text(e->kind), out);
		print_cell(ha_event_cause_text(e->cause), out);
		print_cell(e->device, out);
		if (e->stall)
			fprintf(out, "<td>%.3f ms</td>", (double)e->stall / 1e6);
		else
			fprintf(out, "<td></td>");
		print_cell(e->text, out);
		fprintf(out, "</tr>\n");
	}
	fprintf(out, "</table>\n");
}

/* ---- processes ---- */

static void print_process(const struct watcher_process *p, FILE *out)
{
	unsigned open = 0, without = 0, failovers = 0;
	uint64_t worst = 0;

	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		const struct ha_status_connection *c = &p->page.connection[i];

		if (!c->seq || !c->used)
			continue;
		open++;
		without += !c->lost && c->protection == HA_PROTECTION_NO;
		failovers += c->failovers;
		worst = c->stall_worst > worst ? c->stall_worst : worst;
	}
	fprintf(out, "<tr class=\"%s\">", without ? "warn" : "good");
	print_cell(p->job, out);
	fprintf(out, "<td>%u</td>", p->page.header.pid);
	print_cell(p->page.header.program, out);
	fprintf(out, "<td>%u</td><td>%u</td><td>%u</td><td>%.3f ms</td></tr>\n", open, without,
		failovers, (double)worst / 1e6);
}

static void print_processes(const struct watcher *w, FILE *out)
{
	fprintf(out, "<h2>Processes</h2>\n<table id=\"processes\"><tr><th>job<th>process<th>program"
		     "<th>connections<th>without standby<th>failovers<th>longest stall</tr>\n");
	for (unsigned i = 0; i < w->processes; i++)
		if (watcher_runs(w->process[i]))
			print_process(w->process[i], out);
	fprintf(out, "</table>\n");
}

static const char head[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<title>hawser</title>\n<style>"
	"body{font:15px/1.4 sans-serif;margin:24px auto;max-width:960px;color:#1b2733}"
	"h1{font-size:22px;margin:0}h2{font-size:16px;margin:26px 0 6px}"
	"svg{width:100%;background:#f5f7f9;border-radius:6px}p{color:#5b6b7a;margin:6px 0}"
	"text{font-size:13px;text-anchor:middle;fill:#1b2733}text.left{text-anchor:start}"
	"text.small{font-size:12px;fill:#5b6b7a}"
	"rect.up{fill:#cdeed8;stroke:#2e8b57}rect.down{fill:#f8d0cd;stroke:#c0392b}"
	".arc{fill:none;stroke:#3b6ea5;stroke-width:1.6}"
	".rate{fill:none;stroke:#3b6ea5;stroke-width:1.6}"
	"circle.good{fill:#2e8b57}circle.warn{fill:#d98e04}circle.lost{fill:#c0392b}"
	"circle.plain{fill:#5b6b7a}"
	"table{border-collapse:collapse;width:100%}td,th{padding:3px 8px;text-align:left;"
	"border-bottom:1px solid #dde3e8;vertical-align:top}th{font-weight:600}"
	"tr.warn td:first-child{border-left:4px solid #d98e04}"
	"tr.good td:first-child{border-left:4px solid #2e8b57}"
	"tr.lost td:first-child{border-left:4px solid #c0392b}"
	"tr.plain td:first-child{border-left:4px solid #b8c4ce}"
	"</style>";

void page_print(const struct watcher *w, bool again, FILE *out)
{
	char host[64] = "";

	if (w->processes)
		snprintf(host, sizeof(host), "%s", w->process[0]->page.header.host);
	fputs(head, out);
	if (again)
		fputs("<meta http-equiv=\"refresh\" content=\"2\">", out);
	fputs("</head><body>\n", out);
	fputs("<h1>hawser", out);
	if (*host) {
		fputs(" on ", out);
		print_text(host, out);
	}
	fprintf(out,
		"</h1>\n<p>%u processes; hawser-exporter %s; "
		"<a href=\"/metrics\">metrics</a></p>\n",
		w->processes, ha_version);
	print_standbys(w, out);
	print_rates(w, out);
	print_processes(w, out);
	print_timeline(w, out);
	print_events(w, out);
	fputs("</body></html>\n", out);
}
