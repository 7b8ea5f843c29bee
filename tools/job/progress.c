/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <unistd.h>

#include "tools/job/progress.h"

#define TTY_NS 1000000000L  /* between lines on a terminal ... */
#define LOG_NS 10000000000L /* ... and elsewhere */

void ha_progress_quiet(struct ha_progress *p)
{
	if (p->printed && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	p->printed = false;
}

void ha_progress_print(struct ha_progress *p, int64_t now)
{
	bool tty = isatty(STDERR_FILENO);
	int64_t every_ns = p->every_ns;

	if (!every_ns)
		every_ns = tty ? TTY_NS : LOG_NS;
	if (now - p->printed_ns < every_ns)
		return;
	p->printed_ns = now;
	p->printed = true;
	fprintf(stderr, "%s%s: %s, %zu bytes, %s %d", tty ? "\r" : "", p->program, p->operation,
		p->bytes, p->phase, p->iteration + 1);
	if (p->iterations)
		fprintf(stderr, " of %d", p->iterations);
	fprintf(stderr, "%s", tty ? "\033[K" : "\n");
	fflush(stderr);
}
