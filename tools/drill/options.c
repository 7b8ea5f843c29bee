/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/drill/options.h"

#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/options.h"

#define HOUR_NS (UINT64_C(3600) * HA_NS_PER_S)

static bool take_job(void *target, const struct ha_option_text *given)
{
	struct drill_options *o = target;

	return !given->text || ha_number_parse(given->text, 2, INT32_MAX, &o->job);
}

static bool take_faults(void *target, const struct ha_option_text *given)
{
	struct drill_options *o = target;
	char copy[64], *save, *word;

	snprintf(copy, sizeof(copy), "%s", given->text);
	o->cut = o->drop = o->rate = false;
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (!strcmp(word, "cut"))
			o->cut = true;
		else if (!strcmp(word, "drop"))
			o->drop = true;
		else if (!strcmp(word, "rate"))
			o->rate = true;
		else
			return false;
	}
	return o->cut || o->drop || o->rate;
}

static bool take_size(void *target, const struct ha_option_text *given)
{
	struct drill_options *o = target;
	uint64_t bytes;

	o->size = given->text;
	return ha_size_parse(given->text, &bytes) && bytes >= 1024;
}

#define HA_TARGET struct drill_options

/* enum drill_program */
static const char *const programs[] = { "perf", "nccl", NULL };

static const struct ha_option rows[] = {
	{ "software", 's', NULL, "run a job of its own on software NICs", HA_FLAG(software) },
	{ "watch", 'w', "[JOB]",
	  "drill a job that runs on this host, the newest or the one that process JOB has started",
	  HA_CALL(take_job, "the number of a process"), HA_GIVEN(watch) },
	{ "yes-take-ports-down", 0, NULL,
	  "real ports are taken down by ip(8), one after the other, and put back",
	  HA_FLAG(take_ports) },
	{ "yes-the-default-route-too", 0, NULL,
	  "also a port that the default route leads over: logins from elsewhere hang meanwhile",
	  HA_FLAG(default_route) },
	{ "nics", 0, "NAME",
	  "drill this device (soft0, mlx5_0); may be repeated (all of one process)",
	  HA_LIST(nics, nics_count, DRILL_NAMES) },
	{ "faults", 0, "FAULT,...", "of software NICs: cut, drop, rate (all)",
	  HA_CALL(take_faults, "cut, drop or rate with commas between") },
	{ "no-rails", 0, NULL, "not the NICs of one name of all processes together",
	  HA_FLAG_OFF(rails) },
	{ "drop", 0, "PERCENT", "of the packets are lost in a drop (100)",
	  HA_NUMBER(drop_percent, 1, 100) },
	{ "rate", 0, "MB/S", "what a NIC may send in a rate (a tenth of what it sent before)",
	  HA_NUMBER(rate_mbs, 1, 1000000) },
	{ "before", 0, "TIME", "how long bandwidth is measured before each drill (1s)",
	  HA_TIME(before_ns, 100 * HA_NS_PER_MS, HOUR_NS) },
	{ "hold", 0, "TIME", "how long each drill keeps away what it takes (2s)",
	  HA_TIME(hold_ns, 100 * HA_NS_PER_MS, HOUR_NS) },
	{ "recovery", 0, "TIME", "how long it waits for protection afterwards (30s)",
	  HA_TIME(recovery_ns, 100 * HA_NS_PER_MS, HOUR_NS) },
	{ "job", 0, "PROGRAM", "the job of its own: perf (ha perf) or nccl (ha nccl) (perf)",
	  HA_CHOICE(program, programs) },
	{ "ranks", 0, "N", "of the job of its own (2)", HA_NUMBER(ranks, 2, 64) },
	{ "size", 0, "SIZE", "of its all-reduce (1M)", HA_CALL(take_size, "a size from 1K on") },
	{ "json", 0, "FILE", "the report as JSON", HA_TEXT(json) },
	{ "png", 0, "FILE", "the report as a picture, by gnuplot", HA_TEXT(png) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha drill",
	.about =
		"Takes NICs, ports and rails of a job away, one after the other, puts each back, "
		"and "
		"says what it cost: noticed by what and when, how long nothing moved, what was "
		"sent "
		"again, the bandwidth that was left, and when everything was protected again. What "
		"was taken is put back also when the drill is interrupted or killed.",
	.options = { rows },
	.notes = "Exit status: 0 the job survived every drill and was protected again, 1 it did "
		 "not, "
		 "or a drill could not be done, 2 called wrongly.",
};

static int check_options(struct drill_options *o)
{
	if (o->software + o->watch > 1)
		return ha_program_refuse(&program, "--software and --watch exclude each other");
	if (o->software && o->take_ports)
		return ha_program_refuse(&program, "--software touches software NICs alone: it "
						   "goes without --yes-take-ports-down");
	if (!o->software && !o->watch && !o->take_ports)
		return ha_program_refuse(&program, "what shall be drilled? --software: a job of "
						   "its own on software NICs; --watch: "
						   "a job that runs; --yes-take-ports-down: a job "
						   "of its own on the real ports");
	if (!o->cut && !o->drop && !o->rate)
		o->cut = o->drop = o->rate = true;
	return 0;
}

int drill_options_parse(struct drill_options *o, int argc, char **argv)
{
	int result;

	*o = (struct drill_options) {
		.rails = true,
		.ranks = 2,
		.size = "1M",
		.drop_percent = 100,
		.before_ns = (int64_t)HA_NS_PER_S,
		.hold_ns = 2 * (int64_t)HA_NS_PER_S,
		.recovery_ns = 30 * (int64_t)HA_NS_PER_S,
	};
	result = ha_options_parse(&program, argc, argv, o);
	return result ? result : check_options(o);
}
