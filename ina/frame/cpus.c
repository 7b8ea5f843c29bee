/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

int ina_cpus_parse(const char *text, int *cpu, int max)
{
	int n = 0;

	while (*text) {
		char *end;
		long from, to;

		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		from = to = strtol(text, &end, 10);
		if (*end == '-') {
			text = end + 1;
			if (!isdigit((unsigned char)*text))
				return -EINVAL;
			to = strtol(text, &end, 10);
		}
		if (to < from || to >= CPU_SETSIZE || to - from >= max - n)
			return -EINVAL;
		for (; from <= to; from++)
			cpu[n++] = (int)from;
		if (*end && *end != ',')
			return -EINVAL;
		text = *end ? end + 1 : end;
	}
	return n ? n : -EINVAL;
}
