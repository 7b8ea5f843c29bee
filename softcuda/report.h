/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - lines for the user on standard error
 */
#ifndef SOFTCUDA_REPORT_H
#define SOFTCUDA_REPORT_H

/* One line, without newline at its end; "softcuda: " is put before it. */
void report_problem(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#endif
