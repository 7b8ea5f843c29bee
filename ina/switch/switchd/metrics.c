/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/metrics.h"

#include "base/clock.h"
#include "ina/frame/address.h"
#include "ina/switch/switchd/switchd.h"

#include <inttypes.h>
#include <rte_cycles.h>
#include <string.h>

/* ---- OpenMetrics ---- */

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# TYPE hawser_switch_%s %s\n# HELP hawser_switch_%s %s\n", name, type, name,
		help);
}

static void print_counter(FILE *out, const char *name, uint64_t value, const char *help)
{
	print_head(out, name, "counter", help);
	fprintf(out, "hawser_switch_%s_total %" PRIu64 "\n", name, value);
}

static void print_gauge(FILE *out, const char *name, uint64_t value, const char *help)
{
	print_head(out, name, "gauge", help);
	fprintf(out, "hawser_switch_%s %" PRIu64 "\n", name, value);
}

static void print_frame_counters(const struct ina_core_counts *c, FILE *out)
{
	print_head(out, "frames", "counter",
		   "Frames of aggregation, by what the slot core said of them.");
	for (unsigned r = 0; r < INA_REASONS; r++)
		fprintf(out, "hawser_switch_frames_total{reason=\"%s\"} %" PRIu64 "\n",
			ina_reason_name(r, NULL), c->reason[r]);
	print_head(out, "bad_frames", "counter",
		   "Frames to this switch that are not taken, by what is wrong with them.");
	for (unsigned f = INA_FAULT_NONE + 1; f < INA_FAULTS; f++)
		fprintf(out, "hawser_switch_bad_frames_total{fault=\"%s\"} %" PRIu64 "\n",
			ina_fault_name(f, NULL), c->fault[f]);
}

/* Of a port: what we have, or the driver. */
struct port_row {
	struct ina_port_counts driver;
	uint64_t sent, dropped, depth, up;
};

static void port_row(const struct ina_cores *all, unsigned p, struct port_row *r)
{
	memset(r, 0, sizeof(*r));
	ina_port_count(&all->port[p], &r->driver);
	r->up = ina_port_linked(&all->port[p]);
	for (unsigned i = 0; i < all->ncores; i++) {
		const struct ina_tx *tx = &all->core[i]->tx[p];

		r->sent += __atomic_load_n(&tx->sent, __ATOMIC_RELAXED);
		r->dropped += __atomic_load_n(&tx->dropped, __ATOMIC_RELAXED);
		r->depth += __atomic_load_n(&tx->head, __ATOMIC_RELAXED) -
			    __atomic_load_n(&tx->tail, __ATOMIC_RELAXED);
	}
}

#define ROW(field) offsetof(struct port_row, field)
static const struct {
	const char *name, *type, *help;
	size_t at;
} of_port[] = {
	{ "port_up", "gauge", "The other end of the cable is up.", ROW(up) },
	{ "port_depth", "gauge", "Packets that wait for the driver to take them.", ROW(depth) },
	{ "port_sent", "counter", "Packets that the driver took.", ROW(sent) },
	{ "port_dropped", "counter",
	  "Packets dropped because the port's queue was full or nobody at its other end.",
	  ROW(dropped) },
	{ "port_received", "counter", "Packets received, by the driver.", ROW(driver.rx_packets) },
	{ "port_missed", "counter", "Packets that the device had no room for, by the driver.",
	  ROW(driver.rx_missed) },
	{ "port_errors", "counter", "Packets received with errors, by the driver.",
	  ROW(driver.rx_errors) },
	{ "port_no_packet", "counter", "Packets lost because the pool was empty, by the driver.",
	  ROW(driver.no_mbuf) },
};

static void print_ports(const struct ina_cores *all, FILE *out)
{
	struct port_row row[INA_PORTS_MAX];

	for (unsigned p = 0; p < all->nports; p++)
		port_row(all, p, &row[p]);
	for (size_t i = 0; i < sizeof(of_port) / sizeof(of_port[0]); i++) {
		const char *tail = strcmp(of_port[i].type, "counter") ? "" : "_total";

		print_head(out, of_port[i].name, of_port[i].type, of_port[i].help);
		for (unsigned p = 0; p < all->nports; p++)
			fprintf(out, "hawser_switch_%s%s{port=\"%s\"} %" PRIu64 "\n",
				of_port[i].name, tail, all->port[p].name,
				*(const uint64_t *)((const char *)&row[p] + of_port[i].at));
	}
}

void ina_switchd_metrics(const struct ina_switchd *s, FILE *out)
{
	struct ina_core_counts c;
	struct ina_groups_figures groups;

	ina_groups_count((struct ina_groups *)&s->groups, &groups); /* takes its lock */
	ina_cores_count(s->all, &c);
	print_frame_counters(&c, out);
#define X(name, help) print_counter(out, #name, c.name, help);
	INA_CORE_COUNTERS(X)
#undef X
	print_gauge(out, "cycles_per_second", rte_get_tsc_hz(), "Of the counter of busy_cycles.");
	print_gauge(out, "cores", s->all->ncores, "Cores that poll.");
	print_gauge(out, "groups", groups.live,
		    "Groups that there are, those that have ended included.");
	print_gauge(out, "groups_over", groups.over,
		    "Groups that have ended and whose ranks are still being informed.");
	print_counter(out, "installs", groups.installs, "Incarnations of groups that have begun.");
	print_counter(out, "ends", groups.ends, "Groups ended by the controller or the file.");
	print_counter(out, "reloads", s->reloads, "Times that the file of groups was read.");
	print_gauge(out, "addresses",
		    ina_mac_count(&s->all->macs,
				  (uint32_t)(ha_clock_now(&ha_clock_live) / HA_NS_PER_S), NULL,
				  NULL),
		    "Ethernet addresses that are known.");
	print_gauge(out, "controller_answered", s->follow && ina_follow_answered(s->follow),
		    "The controller has answered.");
	print_ports(s->all, out);
	fputs("# EOF\n", out);
}

/* ---- lines ---- */

static const char *mac_text(const uint8_t m[6], char *buf, size_t size)
{
	snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
	return buf;
}

static void dump_group(struct ina_switchd *s, unsigned id, FILE *out)
{
	const struct ina_group_config *c = &s->groups.config[id];
	char addr[HA_ADDRESS_TEXT], mac[24];

	fprintf(out, "group %u epoch %u: slots %u to %u, %u workers, %s frames%s\n", id, c->epoch,
		c->base, c->base + c->len - 1, c->workers, c->extended ? "extended" : "old",
		ina_groups_is_over(&s->groups, (uint8_t)id) ? ", over" : "");
	for (unsigned r = 0; r < c->ranks; r++) {
		uint64_t place = atomic_load_explicit(&s->all->where[id][r], memory_order_relaxed);
		uint8_t m[6];

		ina_place_mac(place, m);
		fprintf(out, "  rank %-2u %-15s %s\n", r, ha_address_text(c->member[r].addr, addr),
			place ? mac_text(m, mac, sizeof(mac)) : "has not answered");
	}
}

struct dumping {
	struct ina_switchd *s;
	FILE *out;
};

static void dump_mac(void *arg, const uint8_t mac[6], uint16_t port, uint32_t age)
{
	struct dumping *d = arg;
	char text[24];

	fprintf(d->out, "address %s behind %s, %u s ago\n", mac_text(mac, text, sizeof(text)),
		d->s->all->port[port].name, age);
}

void ina_switchd_dump(struct ina_switchd *s, FILE *out)
{
	struct ina_core_counts c;
	struct port_row row;

	for (unsigned p = 0; p < s->all->nports; p++) {
		port_row(s->all, p, &row);
		fprintf(out,
			"port %s (%s): %s, sent %" PRIu64 ", dropped %" PRIu64 ", %" PRIu64
			" wait\n",
			s->all->port[p].name, s->all->port[p].driver, row.up ? "up" : "down",
			row.sent, row.dropped, row.depth);
	}
	pthread_mutex_lock(&s->groups.lock);
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (s->groups.live[id])
			dump_group(s, id, out);
	pthread_mutex_unlock(&s->groups.lock);
	ina_mac_count(&s->all->macs, (uint32_t)(ha_clock_now(&ha_clock_live) / HA_NS_PER_S),
		      dump_mac, &(struct dumping) { s, out });
	ina_cores_count(s->all, &c);
	for (unsigned r = 0; r < INA_REASONS; r++)
		if (c.reason[r])
			fprintf(out, "frames %s: %" PRIu64 "\n", ina_reason_name(r, NULL),
				c.reason[r]);
	for (unsigned f = INA_FAULT_NONE + 1; f < INA_FAULTS; f++)
		if (c.fault[f])
			fprintf(out, "bad frames %s: %" PRIu64 "\n", ina_fault_name(f, NULL),
				c.fault[f]);
	fflush(out);
}
