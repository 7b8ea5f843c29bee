/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/fabric/show.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/version.h"
#include "tools/doctor/show.h"

#define COLUMNS_MOST 32 /* ports: more do not fit a line */
#define WIDTH 20        /* of a column */

static const char *const state_names[] = { "not_tried", "reached", "unreached", "port_down",
					   "corrupt" };
static const char *const failover_names[] = { "not_tried", "survived", "failed" };

/* ---- text ---- */

static void cell_text(const struct fabric_cell *cell, char *text, size_t size)
{
	static const char *const words[] = { ".", "", "UNREACHED", "DOWN", "CORRUPT" };
	char failover[16] = "";

	if (cell->state != FABRIC_REACHED) {
		snprintf(text, size, "%s", words[cell->state]);
		return;
	}
	if (cell->failover == FABRIC_SURVIVED)
		snprintf(failover, sizeof(failover), "%.1f", (double)cell->stall_ms);
	snprintf(text, size, "%.0f %.1f %s", (double)cell->mbs, (double)cell->latency_us,
		 cell->failover == FABRIC_FAILED ? "LOST" : failover);
}

static void port_text(const struct fabric_port *port, char *text, size_t size)
{
	snprintf(text, size, "%s %s", port->host, port->label);
}

/* With `label`: of the ports of that name alone. */
static void matrix_print(const struct fabric *f, const char *label, FILE *out)
{
	char text[160];

	fprintf(out, "%-28s", "from \\ to");
	for (int to = 0; to < f->ports_count; to++) {
		if (label && strcmp(label, f->ports[to].label))
			continue;
		port_text(&f->ports[to], text, sizeof(text));
		fprintf(out, " %*s", WIDTH, text);
	}
	fputc('\n', out);
	for (int from = 0; from < f->ports_count; from++) {
		if (label && strcmp(label, f->ports[from].label))
			continue;
		port_text(&f->ports[from], text, sizeof(text));
		fprintf(out, "%-28s", text);
		for (int to = 0; to < f->ports_count; to++) {
			if (label && strcmp(label, f->ports[to].label))
				continue;
			cell_text(fabric_cell(f, from, to), text, sizeof(text));
			fprintf(out, " %*s", WIDTH, text);
		}
		fputc('\n', out);
	}
	fputc('\n', out);
}

static bool is_first_of_label(const struct fabric *f, int port)
{
	for (int p = 0; p < port; p++)
		if (!strcmp(f->ports[p].label, f->ports[port].label))
			return false;
	return true;
}

static void matrices_print(const struct fabric *f, FILE *out)
{
	if (f->all_pairs) {
		matrix_print(f, NULL, out);
		return;
	}
	for (int p = 0; p < f->ports_count; p++)
		if (is_first_of_label(f, p))
			matrix_print(f, f->ports[p].label, out);
}

void fabric_print(const struct fabric *f, const struct doctor_report *report, bool verbose,
		  FILE *out)
{
	fprintf(out,
		"%d hosts, %d ports, hawser %s; %s, in %.1f s\n"
		"a cell: MB/s, half a round trip in us, longest pause over a failover in ms\n\n",
		f->hosts_count, f->ports_count, ha_version,
		f->all_pairs ? "every port to every other" : "ports of one name to each other",
		f->seconds);
	if (verbose || f->ports_count <= COLUMNS_MOST)
		matrices_print(f, out);
	doctor_print_findings(report, verbose, out);
}

/* ---- JSON ---- */

static json_t *cell_json(const struct fabric *f, int from, int to)
{
	const struct fabric_cell *cell = fabric_cell(f, from, to);

	return json_pack("{s:i, s:i, s:s, s:f, s:f, s:s, s:f, s:s*}", "from", from, "to", to,
			 "state", state_names[cell->state], "mb_per_s", (double)cell->mbs,
			 "latency_us", (double)cell->latency_us, "failover",
			 failover_names[cell->failover], "stall_ms", (double)cell->stall_ms,
			 "error", cell->error ? strerror(-cell->error) : NULL);
}

int fabric_print_json(const struct fabric *f, const struct doctor_report *report, FILE *out)
{
	json_t *all, *ports = json_array(), *cells = json_array();
	int err;

	for (int p = 0; p < f->ports_count; p++)
		json_array_append_new(ports,
				      json_pack("{s:s, s:s, s:i, s:b}", "host", f->ports[p].host,
						"port", f->ports[p].label, "speed_mbps",
						f->ports[p].speed_mbps, "up", f->ports[p].up));
	for (int from = 0; from < f->ports_count; from++)
		for (int to = 0; to < f->ports_count; to++)
			if (fabric_cell(f, from, to)->state != FABRIC_NOT_TRIED)
				json_array_append_new(cells, cell_json(f, from, to));
	all = json_pack("{s:s, s:i, s:b, s:f, s:o, s:o, s:o}", "hawser", ha_version, "hosts",
			f->hosts_count, "all_pairs", f->all_pairs, "seconds", f->seconds, "ports",
			ports, "paths", cells, "findings", doctor_findings_json(report));
	if (!all)
		return -ENOMEM;
	err = json_dumpf(all, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) ? -EIO : 0;
	fputc('\n', out);
	json_decref(all);
	return err;
}
