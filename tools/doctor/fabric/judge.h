/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.h - which cable is the odd one
 *
 * A fault of a port shows in its whole row, or its whole column, of the matrix; a fault between two
 * ports in one cell. So the row or column with the most bad cells is named first and its cells are
 * taken out, until no row or column has more bad cells than good ones. What is left is named by
 * both of its ends.
 */
#ifndef HAWSER_FABRIC_JUDGE_H
#define HAWSER_FABRIC_JUDGE_H

#include "tools/doctor/fabric/fabric.h"
#include "tools/doctor/findings.h"

/* slow_percent: a path is slow below so much of what paths between ports of its speed do. */
void fabric_judge(const struct fabric *fabric, int slow_percent, struct doctor_report *report);

#endif
