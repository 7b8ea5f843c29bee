/* SPDX-License-Identifier: BSD-3-Clause */
/* findings.h - what `ha doctor` has found, as a list */
#ifndef HAWSER_DOCTOR_FINDINGS_H
#define HAWSER_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

enum doctor_severity {
	DOCTOR_FINE,    /* looked at and in order */
	DOCTOR_NOTE,    /* costs little, or cannot be looked at from here */
	DOCTOR_WARNING, /* the job runs: slower, or with less protection */
	DOCTOR_ERROR,   /* NCCL does not use hawser, or ends with an error */
	DOCTOR_SEVERITIES
};

struct doctor_finding {
	enum doctor_severity severity;
	const char *check; /* which check: a word that stays, for programs */
	char subject[64];  /* the device, port, file or variable; "" = the host */
	char text[512];    /* what is so */
	char cost[256];    /* what it costs; "" where it is in order */
	char mend[512];    /* the command that mends it, or what to do; "" where it is in order */
};

struct doctor_report {
	struct doctor_finding *list;
	size_t n, room;
	unsigned count[DOCTOR_SEVERITIES];
	bool lost; /* there was no memory for one: the list is not whole */
};

/* The new entry, which stays where it is until the next one is added. Never NULL. subject may be
 * NULL. */
struct doctor_finding *doctor_add(struct doctor_report *report, enum doctor_severity severity,
				  const char *check, const char *subject, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void doctor_cost(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_mend(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

const char *doctor_severity_name(enum doctor_severity severity);
void doctor_report_free(struct doctor_report *report);

#endif
