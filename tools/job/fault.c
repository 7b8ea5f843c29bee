/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "tools/job/fault.h"

static char cause[1024];

int ha_fault(int err, const char *format, ...)
{
	va_list args;

	if (!cause[0]) {
		va_start(args, format);
		vsnprintf(cause, sizeof(cause), format, args);
		va_end(args);
	}
	return err;
}

const char *ha_fault_text(void)
{
	return cause;
}

void ha_fault_clear(void)
{
	cause[0] = 0;
}
