/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "tools/job/fault.h"

static char cause[1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects cause while it is written */

int ha_fault(int err, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&lock);
	if (!cause[0]) {
		va_start(args, format);
		vsnprintf(cause, sizeof(cause), format, args);
		va_end(args);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

const char *ha_fault_text(void)
{
	return cause;
}

void ha_fault_clear(void)
{
	pthread_mutex_lock(&lock);
	cause[0] = 0;
	pthread_mutex_unlock(&lock);
}
