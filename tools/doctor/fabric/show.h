/* SPDX-License-Identifier: BSD-3-Clause */
/* show.h - the matrix as text, as JSON and as a picture */
#ifndef HAWSER_FABRIC_SHOW_H
#define HAWSER_FABRIC_SHOW_H

#include <stdio.h>

#include "tools/doctor/fabric/fabric.h"
#include "tools/doctor/findings.h"

void fabric_print(const struct fabric *fabric, const struct doctor_report *report, bool verbose,
		  FILE *out);
/* 0; -EIO: `out` did not take it; -ENOMEM. */
int fabric_print_json(const struct fabric *fabric, const struct doctor_report *report, FILE *out);
/* By gnuplot. 0; -EIO: there is none, or it cannot write the file. */
int fabric_write_png(const struct fabric *fabric, const char *path);

#endif
