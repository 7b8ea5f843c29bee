/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/show.h"

#include <errno.h>

#include "base/version.h"

static void print_finding(const struct doctor_finding *f, FILE *out)
{
	fprintf(out, "%-8s %s%s%s: %s\n", doctor_severity_name(f->severity), f->check,
		*f->subject ? " " : "", f->subject, f->text);
	if (*f->cost)
		fprintf(out, "         costs: %s\n", f->cost);
	if (*f->mend)
		fprintf(out, "         mend:  %s\n", f->mend);
}

static const char *plural_suffix(unsigned n)
{
	return n == 1 ? "" : "s";
}

void doctor_print_findings(const struct doctor_report *report, bool verbose, FILE *out)
{
	const unsigned *count = report->count;
	int least = verbose ? DOCTOR_FINE : DOCTOR_NOTE;

	for (int severity = DOCTOR_ERROR; severity >= least; severity--)
		for (size_t i = 0; i < report->n; i++)
			if ((int)report->list[i].severity == severity)
				print_finding(&report->list[i], out);
	fprintf(out, "%u error%s, %u warning%s, %u note%s; %u in order%s\n", count[DOCTOR_ERROR],
		plural_suffix(count[DOCTOR_ERROR]), count[DOCTOR_WARNING],
		plural_suffix(count[DOCTOR_WARNING]), count[DOCTOR_NOTE],
		plural_suffix(count[DOCTOR_NOTE]), count[DOCTOR_FINE],
		report->lost ? "; NO MEMORY for more" : "");
}

void doctor_print(const struct doctor_host *host, const struct doctor_report *report, bool verbose,
		  FILE *out)
{
	fprintf(out, "%s, hawser %s, %d active port%s, %d down\n", host->name, ha_version,
		host->topo->ndevices, plural_suffix((unsigned)host->topo->ndevices),
		host->topo->down);
	doctor_print_findings(report, verbose, out);
}

static void put_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, text && *text ? json_string(text) : json_null());
}

static json_t *finding_json(const struct doctor_finding *f)
{
	json_t *o = json_object();

	put_text(o, "severity", doctor_severity_name(f->severity));
	put_text(o, "check", f->check);
	put_text(o, "subject", f->subject);
	put_text(o, "text", f->text);
	put_text(o, "cost", f->cost);
	put_text(o, "mend", f->mend);
	return o;
}

json_t *doctor_findings_json(const struct doctor_report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->n; i++)
		json_array_append_new(list, finding_json(&report->list[i]));
	return list;
}

int doctor_print_json(const struct doctor_host *host, const struct doctor_report *report, FILE *out)
{
	json_t *all = json_object(), *count = json_object();
	int err;

	put_text(all, "host", host->name);
	put_text(all, "hawser", ha_version);
	put_text(all, "verbs", host->verbs);
	put_text(all, "plugin", host->plugin.path);
	put_text(all, "nccl", host->nccl.path);
	json_object_set_new(all, "ports", json_integer(host->topo->ndevices));
	for (int i = 0; i < DOCTOR_SEVERITIES; i++)
		json_object_set_new(count, doctor_severity_name((enum doctor_severity)i),
				    json_integer(report->count[i]));
	json_object_set_new(all, "count", count);
	json_object_set_new(all, "findings", doctor_findings_json(report));
	err = json_dumpf(all, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) ? -EIO : 0;
	fputc('\n', out);
	json_decref(all);
	return report->lost ? -ENOMEM : err;
}
