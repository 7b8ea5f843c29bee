/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ROOM_FIRST 32

/* The next free entry; one that is in no list when there is no memory. */
static struct doctor_finding *new_entry(struct doctor_report *report)
{
	static struct doctor_finding scrap;

	if (report->n == report->room) {
		size_t room = report->room ? 2 * report->room : ROOM_FIRST;
		struct doctor_finding *list = realloc(report->list, room * sizeof(*list));

		if (!list) {
			report->lost = true;
			return &scrap;
		}
		report->list = list;
		report->room = room;
	}
	return &report->list[report->n++];
}

struct doctor_finding *doctor_add(struct doctor_report *report, enum doctor_severity severity,
				  const char *check, const char *subject, const char *format, ...)
{
	struct doctor_finding *finding = new_entry(report);
	va_list args;

	*finding = (struct doctor_finding) { .severity = severity, .check = check };
	snprintf(finding->subject, sizeof(finding->subject), "%s", subject ? subject : "");
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
	report->count[severity]++;
	return finding;
}

void doctor_cost(struct doctor_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->cost, sizeof(finding->cost), format, args);
	va_end(args);
}

void doctor_mend(struct doctor_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->mend, sizeof(finding->mend), format, args);
	va_end(args);
}

const char *doctor_severity_name(enum doctor_severity severity)
{
	static const char *const names[] = { "fine", "note", "warning", "error" };

	return names[severity];
}

void doctor_report_free(struct doctor_report *report)
{
	free(report->list);
	*report = (struct doctor_report) { 0 };
}
