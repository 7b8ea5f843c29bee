/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/xdp/metrics.h"

#include <inttypes.h>

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# TYPE hawser_switch_%s %s\n# HELP hawser_switch_%s %s\n", name, type, name,
		help);
}

static void print_frame_counters(const uint64_t *n, FILE *out)
{
	print_head(out, "frames", "counter",
		   "Frames of aggregation, by what the slot core said of them.");
	for (unsigned i = INA_XDP_REASONS_AT; i < INA_XDP_OWN_AT; i++)
		fprintf(out, "hawser_switch_frames_total{reason=\"%s\"} %" PRIu64 "\n",
			ina_xdp_counter_name(i, NULL), n[i]);
	print_head(out, "bad_frames", "counter",
		   "Frames to this switch that are not taken, by what is wrong with them.");
	for (unsigned i = INA_XDP_FAULTS_AT + INA_FAULT_NONE + 1; i < INA_XDP_REASONS_AT; i++)
		fprintf(out, "hawser_switch_bad_frames_total{fault=\"%s\"} %" PRIu64 "\n",
			ina_xdp_counter_name(i, NULL), n[i]);
}

/* A name without dashes, and a sentence. */
static void print_own_counters(const uint64_t *n, FILE *out)
{
	for (unsigned i = INA_XDP_OWN_AT; i < INA_XDP_COUNTERS; i++) {
		const char *help;
		char name[32], line[160];

		snprintf(name, sizeof(name), "%s", ina_xdp_counter_name(i, &help));
		for (char *c = name; *c; c++)
			*c = *c == '-' ? '_' : *c;
		snprintf(line, sizeof(line), "Packets: %s.", help);
		print_head(out, name, "counter", line);
		fprintf(out, "hawser_switch_%s_total %" PRIu64 "\n", name, n[i]);
	}
}

static void print_groups(struct ina_xdp *x, FILE *out)
{
	unsigned live = 0, over = 0;

	for (unsigned id = 1; id < INA_GROUPS; id++) {
		const struct ina_group *g = ina_xdp_group(x, (uint8_t)id);

		live += g != NULL;
		over += g && (g->over || !g->config.lease_until);
	}
	print_head(out, "groups", "gauge",
		   "Groups that there are, those that have ended included.");
	fprintf(out, "hawser_switch_groups %u\n", live);
	print_head(out, "groups_over", "gauge",
		   "Groups that have ended and whose ranks are still being informed.");
	fprintf(out, "hawser_switch_groups_over %u\n", over);
}

static void ports_native(const struct ina_xdp_port *ports, unsigned nports, FILE *out)
{
	print_head(out, "port_native", "gauge",
		   "1: the program runs in the port's driver; 0: after it.");
	for (unsigned i = 0; i < nports; i++)
		fprintf(out, "hawser_switch_port_native{port=\"%s\"} %d\n", ports[i].name,
			ports[i].native);
}

void ina_xdp_metrics(struct ina_xdp *x, const struct ina_xdp_port *ports, unsigned nports,
		     FILE *out)
{
	uint64_t n[INA_XDP_COUNTERS];

	if (!ina_xdp_count(x, n)) {
		print_frame_counters(n, out);
		print_own_counters(n, out);
	}
	print_groups(x, out);
	ports_native(ports, nports, out);
	fputs("# EOF\n", out);
}
