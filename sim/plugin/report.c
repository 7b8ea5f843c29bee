/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what is found, and the trace */
#include "sim/plugin/world.h"

#include <stdarg.h>
#include <stdio.h>

#define START_NS 1000000000u /* the wire's clock at its creation */

uint64_t sim_now(const struct sim_world *w)
{
	return sr_memwire_now(w->wire);
}

uint64_t sim_elapsed(const struct sim_world *w)
{
	return sim_now(w) - START_NS;
}

const char *sim_finding_name(enum sim_finding f)
{
	static const char *const names[SIM_FINDINGS] = {
		"nothing",     "wrong byte", "stray write", "wrong size", "hang",     "error",
		"unprotected", "leak",       "endless",     "crash",      "unsteady",
	};

	return (unsigned)f < SIM_FINDINGS ? names[f] : "?";
}

void sim_report_finding(struct sim_world *w, enum sim_finding finding, const char *fmt, ...)
{
	va_list args;

	if (sim_has_finding(w))
		return;
	w->result.finding = finding;
	w->result.at = sim_elapsed(w);
	va_start(args, fmt);
	vsnprintf(w->result.text, sizeof(w->result.text), fmt, args);
	va_end(args);
	sim_trace_line(w, "FOUND %s: %s", sim_finding_name(finding), w->result.text);
}

void sim_trace_line(const struct sim_world *w, const char *fmt, ...)
{
	va_list args;

	if (!w->verbose)
		return;
	printf("%12.3f us  ", (double)sim_elapsed(w) / 1e3);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}
