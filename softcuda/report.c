/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/report.h"

#include <stdarg.h>
#include <stdio.h>

void report_problem(const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fprintf(stderr, "softcuda: %s\n", line);
}
