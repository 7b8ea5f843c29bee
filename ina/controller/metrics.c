/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/metrics.h"

#include "ina/controller/server.h"

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# TYPE hawser_controller_%s %s\n# HELP hawser_controller_%s %s\n", name, type,
		name, help);
}

static void print_counter(FILE *out, const char *name, uint64_t value, const char *help)
{
	print_head(out, name, "counter", help);
	fprintf(out, "hawser_controller_%s_total %llu\n", name, (unsigned long long)value);
}

static void print_gauge(FILE *out, const char *name, uint64_t value, const char *help)
{
	print_head(out, name, "gauge", help);
	fprintf(out, "hawser_controller_%s %llu\n", name, (unsigned long long)value);
}

static uint64_t get_slots(const struct ha_groups *g, const struct ha_switch *s, uint64_t now)
{
	return s->buddy.slots;
}

static uint64_t get_free_slots(const struct ha_groups *g, const struct ha_switch *s, uint64_t now)
{
	return s->buddy.free;
}

static uint64_t get_longest_range(const struct ha_groups *g, const struct ha_switch *s,
				  uint64_t now)
{
	return ha_buddy_longest(&s->buddy);
}

static uint64_t is_up(const struct ha_groups *g, const struct ha_switch *s, uint64_t now)
{
	return ha_groups_switch_up(g, s, now);
}

static uint64_t count_live_groups(const struct ha_groups *g, const struct ha_switch *s,
				  uint64_t now)
{
	uint64_t n = 0;

	for (unsigned id = 0; id < HA_GROUP_IDS; id++)
		n += s->group[id] && s->group[id]->r.state == HA_GROUP_LIVE;
	return n;
}

static const struct {
	const char *name, *help;
	uint64_t (*value)(const struct ha_groups *g, const struct ha_switch *s, uint64_t now);
} of_switch[] = {
	{ "switch_slots", "Aggregators of the switch.", get_slots },
	{ "switch_slots_free", "Aggregators that no group has, in quarantine or not.",
	  get_free_slots },
	{ "switch_longest", "The longest range that a group could have.", get_longest_range },
	{ "switch_up", "The switch gets new groups.", is_up },
	{ "switch_groups", "Live groups of the switch.", count_live_groups },
};

void ha_controller_metrics(const struct ha_service *s, const struct ha_server_counters *c,
			   uint64_t now, FILE *out)
{
#define X(name, help) print_counter(out, #name, s->count.name, help);
	HA_SERVICE_COUNTERS(X)
#undef X
	print_counter(out, "calls", c->calls, "Calls that have come.");
	print_counter(out, "calls_crowded", c->crowded,
		      "Calls refused because there were too many at once.");
	print_counter(out, "calls_slow", c->slow,
		      "Calls ended because their request did not come, or their answer was not "
		      "taken.");
	print_counter(out, "calls_cancelled", c->cancelled,
		      "Calls whose client did not wait for the answer.");
	print_gauge(out, "calls_in_progress", c->in_progress, "Calls that have not ended.");
	print_gauge(out, "switches_waiting", c->waiting,
		    "Heartbeats of switches that wait for another table.");
	print_gauge(out, "groups", s->groups.live, "Live groups.");
	print_gauge(out, "groups_quarantined", s->groups.closed,
		    "Groups that have ended, whose packets may still arrive.");
	for (size_t i = 0; i < sizeof(of_switch) / sizeof(of_switch[0]); i++) {
		print_head(out, of_switch[i].name, "gauge", of_switch[i].help);
		for (unsigned k = 0; k < s->groups.nsw; k++)
			fprintf(out, "hawser_controller_%s{switch=\"%s\"} %llu\n",
				of_switch[i].name, s->groups.sw[k]->info.name,
				(unsigned long long)of_switch[i].value(&s->groups, s->groups.sw[k],
								       now));
	}
	fputs("# EOF\n", out);
}
