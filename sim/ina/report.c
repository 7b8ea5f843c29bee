/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what is found, and the trace */
#include "sim/ina/world.h"

#include <stdarg.h>
#include <stdio.h>

const char *ina_sim_finding_name(enum ina_sim_finding f)
{
	static const char *const names[INA_SIM_FINDINGS] = { "nothing", "wrong",   "differs",
							     "twice",   "error",   "late",
							     "hang",    "unsteady" };

	return (unsigned)f < INA_SIM_FINDINGS ? names[f] : "?";
}

static double get_elapsed_us(const struct ina_sim_world *w)
{
	return (double)(ina_sim_now(w) - INA_SIM_START_NS) / 1e3;
}

void ina_sim_report_finding(struct ina_sim_world *w, enum ina_sim_finding f, const char *fmt, ...)
{
	va_list args;

	if (ina_sim_has_finding(w))
		return;
	w->result.finding = f;
	w->result.at = ina_sim_now(w) - INA_SIM_START_NS;
	va_start(args, fmt);
	vsnprintf(w->result.text, sizeof(w->result.text), fmt, args);
	va_end(args);
	ina_sim_trace_line(w, "FOUND %s: %s", ina_sim_finding_name(f), w->result.text);
}

void ina_sim_trace_line(const struct ina_sim_world *w, const char *fmt, ...)
{
	va_list args;

	if (!w->verbose)
		return;
	printf("%12.3f us  ", get_elapsed_us(w));
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}
