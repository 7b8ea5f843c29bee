/* SPDX-License-Identifier: BSD-3-Clause */
/* show.h - the findings for people and for programs */
#ifndef HAWSER_DOCTOR_SHOW_H
#define HAWSER_DOCTOR_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "tools/doctor/findings.h"
#include "tools/doctor/host.h"

/* The worst first; `verbose`: also what is in order. */
void doctor_print(const struct doctor_host *host, const struct doctor_report *report, bool verbose,
		  FILE *out);
/* The findings alone, with their sum. */
void doctor_print_findings(const struct doctor_report *report, bool verbose, FILE *out);
/* A new array. */
json_t *doctor_findings_json(const struct doctor_report *report);
/* One object with everything. 0; -ENOMEM; -EIO: `out` did not take it. */
int doctor_print_json(const struct doctor_host *host, const struct doctor_report *report,
		      FILE *out);

#endif
