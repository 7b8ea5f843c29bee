/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/fabric/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATE_FACTOR 4 /* times the usual latency */
#define LATE_US 50.0f /* and so much above it */

enum fault {
	FAULT_NONE,
	FAULT_DOWN,
	FAULT_DEAD,
	FAULT_CORRUPT,
	FAULT_FAILOVER,
	FAULT_SLOW,
	FAULT_LATE
};

struct verdict {
	const struct fabric *fabric;
	struct doctor_report *report;
	int slow_percent;
	uint8_t *fault;   /* of each cell; FAULT_NONE again when it has been explained */
	bool *explained;  /* of each cell: it counts no more */
	float *sorted;    /* room for as many values as there are cells */
	float latency_us; /* the usual one */
};

/* A row (a port that sends) or a column (one that receives). */
struct line {
	int port;
	bool sends;
};

struct count {
	int bad, all;
};

static size_t index_of(const struct fabric *f, const struct line *line, int other)
{
	int from = line->sends ? line->port : other, to = line->sends ? other : line->port;

	return (size_t)from * (size_t)f->ports_count + (size_t)to;
}

/* ---- what is usual ---- */

static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Of two the larger: a slow path of two is to be found. */
static float upper_median(float *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_floats);
	return n ? values[n / 2] : 0;
}

static int slower_end(const struct fabric *f, int from, int to)
{
	int a = f->ports[from].speed_mbps, b = f->ports[to].speed_mbps;

	return a < b ? a : b;
}

/* What paths do whose slower end has this speed. */
static float usual_mbs(const struct verdict *v, int speed)
{
	const struct fabric *f = v->fabric;
	size_t n = 0;

	for (int from = 0; from < f->ports_count; from++)
		for (int to = 0; to < f->ports_count; to++)
			if (fabric_cell(f, from, to)->state == FABRIC_REACHED &&
			    slower_end(f, from, to) == speed)
				v->sorted[n++] = fabric_cell(f, from, to)->mbs;
	return upper_median(v->sorted, n);
}

static float usual_latency(const struct verdict *v)
{
	const struct fabric *f = v->fabric;
	size_t n = 0, cells = (size_t)f->ports_count * (size_t)f->ports_count;

	for (size_t i = 0; i < cells; i++)
		if (f->cells[i].state == FABRIC_REACHED)
			v->sorted[n++] = f->cells[i].latency_us;
	return upper_median(v->sorted, n);
}

/* ---- cells ---- */

static enum fault fault_of(const struct verdict *v, const struct fabric_cell *cell, float usual)
{
	switch ((enum fabric_state)cell->state) {
	case FABRIC_NOT_TRIED:
		return FAULT_NONE;
	case FABRIC_PORT_DOWN:
		return FAULT_DOWN;
	case FABRIC_UNREACHED:
		return FAULT_DEAD;
	case FABRIC_CORRUPT:
		return FAULT_CORRUPT;
	case FABRIC_REACHED:
		break;
	}
	if (cell->failover == FABRIC_FAILED)
		return FAULT_FAILOVER;
	if (cell->mbs * 100 < usual * (float)v->slow_percent)
		return FAULT_SLOW;
	if (cell->latency_us > LATE_FACTOR * v->latency_us &&
	    cell->latency_us > v->latency_us + LATE_US)
		return FAULT_LATE;
	return FAULT_NONE;
}

/* Speeds are few, cells are many: the usual bandwidth of each speed is looked for once. */
static void cells_judge(struct verdict *v)
{
	const struct fabric *f = v->fabric;

	v->latency_us = usual_latency(v);
	for (int p = 0; p < f->ports_count; p++) {
		int speed = f->ports[p].speed_mbps;
		bool seen = false;
		float usual;

		for (int q = 0; q < p && !seen; q++)
			seen = f->ports[q].speed_mbps == speed;
		if (seen)
			continue;
		usual = usual_mbs(v, speed);
		for (int from = 0; from < f->ports_count; from++)
			for (int to = 0; to < f->ports_count; to++)
				if (slower_end(f, from, to) == speed) {
					size_t at =
						(size_t)from * (size_t)f->ports_count + (size_t)to;

					v->fault[at] = fault_of(v, &f->cells[at], usual);
				}
	}
}

static struct count line_count(const struct verdict *v, const struct line *line, enum fault fault)
{
	const struct fabric *f = v->fabric;
	struct count count = { 0 };

	for (int other = 0; other < f->ports_count; other++) {
		size_t at = index_of(f, line, other);

		if (f->cells[at].state == FABRIC_NOT_TRIED || v->explained[at])
			continue;
		count.all++;
		count.bad += v->fault[at] == fault;
	}
	return count;
}

/* ---- words ---- */

static const char *port_name(const struct fabric *f, int port, char *text, size_t size)
{
	snprintf(text, size, "%s %s", f->ports[port].host, f->ports[port].label);
	return text;
}

/* How the line's bad cells stand against the usual ones: MB/s, or microseconds. */
static float line_typical(const struct verdict *v, const struct line *line, enum fault fault)
{
	const struct fabric *f = v->fabric;
	size_t n = 0;

	for (int other = 0; other < f->ports_count; other++) {
		size_t at = index_of(f, line, other);

		if (!v->explained[at] && v->fault[at] == fault)
			v->sorted[n++] =
				fault == FAULT_LATE ? f->cells[at].latency_us : f->cells[at].mbs;
	}
	return upper_median(v->sorted, n);
}

static void line_words(const struct verdict *v, const struct line *line, enum fault fault,
		       struct count count, char *text, size_t size)
{
	const char *does = line->sends ? "sends" : "receives";

	if (fault == FAULT_SLOW) {
		float typical = line_typical(v, line, fault),
		      usual = usual_mbs(v, v->fabric->ports[line->port].speed_mbps);

		snprintf(text, size, "%s %.0f MB/s on %d of %d paths, %.0f %% of the usual %.0f",
			 does, (double)typical, count.bad, count.all,
			 (double)(typical * 100 / (usual > 0 ? usual : 1)), (double)usual);
	} else if (fault == FAULT_LATE) {
		snprintf(text, size, "%s after %.0f us on %d of %d paths, others after %.0f", does,
			 (double)line_typical(v, line, fault), count.bad, count.all,
			 (double)v->latency_us);
	} else if (fault == FAULT_FAILOVER) {
		snprintf(text, size, "%s: no failover on %d of %d paths", does, count.bad,
			 count.all);
	} else if (fault == FAULT_CORRUPT) {
		snprintf(text, size, "%s other bytes than it should on %d of %d paths", does,
			 count.bad, count.all);
	} else {
		snprintf(text, size, "%s nothing on %d of %d paths", does, count.bad, count.all);
	}
}

static bool is_severe(enum fault fault)
{
	return fault != FAULT_SLOW && fault != FAULT_LATE;
}

static const char *cost_of(enum fault fault)
{
	switch (fault) {
	case FAULT_SLOW:
	case FAULT_LATE:
		return "collectives run at the pace of their slowest path";
	case FAULT_FAILOVER:
		return "the job ends where this path fails";
	case FAULT_CORRUPT:
		return "wrong results";
	default:
		return "connections over it run on their standby, or do not come up";
	}
}

static void advise_repair(struct doctor_finding *finding, enum fault fault)
{
	if (fault == FAULT_FAILOVER)
		doctor_mend(finding, "look at the standbys of both ends: `ha topo -v`, and at what "
				     "HA_NCCL_ENABLE_BACKUP is there");
	else if (is_severe(fault))
		doctor_mend(finding, "cable, transceiver and switch port; the port's addresses and "
				     "VLAN; `ibv_devinfo -v`, `ethtool IFACE`");
	else
		doctor_mend(finding, "cable, transceiver and switch port: `ethtool -m IFACE`, "
				     "`mlxlink -d DEVICE -c`; then `ha doctor` there for its PCI "
				     "link");
}

/* ---- ports ---- */

static void ports_down(struct verdict *v)
{
	const struct fabric *f = v->fabric;
	struct doctor_finding *finding;
	char name[160];

	for (int p = 0; p < f->ports_count; p++) {
		if (f->ports[p].up)
			continue;
		finding = doctor_add(v->report, DOCTOR_ERROR, "fabric.port",
				     port_name(f, p, name, sizeof(name)), "the port is down");
		doctor_cost(finding, "%s", cost_of(FAULT_DOWN));
		advise_repair(finding, FAULT_DOWN);
	}
	for (size_t i = 0; i < (size_t)f->ports_count * (size_t)f->ports_count; i++)
		if (v->fault[i] == FAULT_DOWN)
			v->explained[i] = true;
}

/* The line with the largest part of bad cells; false: none has more bad ones than good ones. */
static bool worst_line(const struct verdict *v, enum fault fault, struct line *worst)
{
	struct count most = { 0, 1 };

	for (int i = 0; i < 2 * v->fabric->ports_count; i++) {
		struct line line = { i / 2, i % 2 == 0 };
		struct count count = line_count(v, &line, fault);

		if (count.bad < 2 || count.bad * 2 <= count.all)
			continue;
		if (count.bad * most.all > most.bad * count.all ||
		    (count.bad * most.all == most.bad * count.all && count.bad > most.bad)) {
			most = count;
			*worst = line;
		}
	}
	return most.bad > 0;
}

static void line_explain(struct verdict *v, const struct line *line, enum fault fault)
{
	for (int other = 0; other < v->fabric->ports_count; other++) {
		size_t at = index_of(v->fabric, line, other);

		if (v->fault[at] == fault)
			v->explained[at] = true;
	}
}

/* One finding for both directions of a port, when both are bad. */
static void port_report(struct verdict *v, const struct line *first, enum fault fault)
{
	struct line second = { first->port, !first->sends };
	struct count one = line_count(v, first, fault), other;
	struct doctor_finding *finding;
	char name[160], words[200], more[200] = "";

	line_words(v, first, fault, one, words, sizeof(words));
	line_explain(v, first, fault);
	other = line_count(v, &second, fault);
	if (other.bad * 2 > other.all) {
		line_words(v, &second, fault, other, more, sizeof(more));
		line_explain(v, &second, fault);
	}
	finding = doctor_add(v->report, is_severe(fault) ? DOCTOR_ERROR : DOCTOR_WARNING,
			     "fabric.port", port_name(v->fabric, first->port, name, sizeof(name)),
			     "%s%s%s", words, *more ? "; " : "", more);
	doctor_cost(finding, "%s", cost_of(fault));
	advise_repair(finding, fault);
}

/* ---- what no port explains ---- */

static const char *path_words(enum fault fault)
{
	switch (fault) {
	case FAULT_SLOW:
		return "slow";
	case FAULT_LATE:
		return "late";
	case FAULT_FAILOVER:
		return "no failover";
	case FAULT_CORRUPT:
		return "other bytes arrive than were sent";
	default:
		return "nothing arrives";
	}
}

static void path_report(struct verdict *v, int from, int to, enum fault fault)
{
	const struct fabric *f = v->fabric;
	const struct fabric_cell *cell = fabric_cell(f, from, to);
	struct doctor_finding *finding;
	char a[160], b[160];

	finding = doctor_add(v->report, is_severe(fault) ? DOCTOR_ERROR : DOCTOR_WARNING,
			     "fabric.path", port_name(f, from, a, sizeof(a)),
			     "to %s: %s (%.0f MB/s, %.0f us%s%s); the cable of either",
			     port_name(f, to, b, sizeof(b)), path_words(fault), (double)cell->mbs,
			     (double)cell->latency_us, cell->error ? ", " : "",
			     cell->error ? strerror(-cell->error) : "");
	doctor_cost(finding, "%s", cost_of(fault));
	advise_repair(finding, fault);
}

static void paths_report(struct verdict *v, enum fault fault)
{
	const struct fabric *f = v->fabric;

	for (int from = 0; from < f->ports_count; from++)
		for (int to = 0; to < f->ports_count; to++) {
			size_t at = (size_t)from * (size_t)f->ports_count + (size_t)to;

			if (v->fault[at] == fault && !v->explained[at]) {
				v->explained[at] = true;
				path_report(v, from, to, fault);
			}
		}
}

static void summarise_fabric(struct verdict *v)
{
	const struct fabric *f = v->fabric;
	size_t cells = (size_t)f->ports_count * (size_t)f->ports_count;
	int tried = 0, reached = 0, survived = 0;

	for (size_t i = 0; i < cells; i++) {
		tried += f->cells[i].state != FABRIC_NOT_TRIED;
		reached += f->cells[i].state == FABRIC_REACHED;
		survived += f->cells[i].failover == FABRIC_SURVIVED;
	}
	if (f->hosts_count < 2 || !tried) {
		struct doctor_finding *finding =
			doctor_add(v->report, DOCTOR_ERROR, "fabric", NULL,
				   "%d host%s with ports: nothing to measure", f->hosts_count,
				   f->hosts_count == 1 ? "" : "s");

		doctor_cost(finding, "this says nothing about the fabric");
		doctor_mend(finding, "start it on two hosts or more, `mpirun -N 1` or `srun "
				     "--ntasks-per-node=1`; `ha doctor` says what ports miss");
		return;
	}
	doctor_add(v->report, DOCTOR_FINE, "fabric", NULL,
		   "%d of %d paths reached, %d survived a failover; %.0f us is usual", reached,
		   tried, survived, (double)v->latency_us);
}

void fabric_judge(const struct fabric *fabric, int slow_percent, struct doctor_report *report)
{
	size_t cells = (size_t)fabric->ports_count * (size_t)fabric->ports_count + 1;
	struct verdict v = {
		.fabric = fabric,
		.report = report,
		.slow_percent = slow_percent,
		.fault = calloc(cells, sizeof(*v.fault)),
		.explained = calloc(cells, sizeof(*v.explained)),
		.sorted = calloc(cells, sizeof(*v.sorted)),
	};
	struct line line;

	if (v.fault && v.explained && v.sorted) {
		cells_judge(&v);
		ports_down(&v);
		for (int fault = FAULT_DEAD; fault <= FAULT_LATE; fault++) {
			while (worst_line(&v, (enum fault)fault, &line))
				port_report(&v, &line, (enum fault)fault);
			paths_report(&v, (enum fault)fault);
		}
		summarise_fabric(&v);
	} else {
		report->lost = true;
	}
	free(v.fault);
	free(v.explained);
	free(v.sorted);
}
