/* SPDX-License-Identifier: BSD-3-Clause */
/* Which cable is the odd one, in matrices that are made up; and that every two hosts meet once. */
#include "base/check.h"
#include "tools/doctor/fabric/judge.h"
#include "tools/doctor/fabric/plan.h"

#include <stdlib.h>
#include <string.h>

#define HOSTS_MOST 8

static struct fabric f;
static struct doctor_report found;

/* Hosts n0, n1, ... with ports a and b; with all pairs or those of one name, all well. */
static void fabric_make(int hosts, bool all_pairs)
{
	static struct fabric_port ports[2 * HOSTS_MOST];
	static struct fabric_cell cells[4 * HOSTS_MOST * HOSTS_MOST];

	memset(cells, 0, sizeof(cells));
	f = (struct fabric) { .ports = ports,
			      .cells = cells,
			      .ports_count = 2 * hosts,
			      .hosts_count = hosts,
			      .all_pairs = all_pairs };
	for (int p = 0; p < f.ports_count; p++) {
		ports[p] = (struct fabric_port) { .speed_mbps = 100000, .up = true };
		snprintf(ports[p].host, sizeof(ports[p].host), "n%d", p / 2);
		snprintf(ports[p].label, sizeof(ports[p].label), "%c", 'a' + p % 2);
	}
	for (int from = 0; from < f.ports_count; from++)
		for (int to = 0; to < f.ports_count; to++)
			if (from / 2 != to / 2 && (all_pairs || from % 2 == to % 2))
				*fabric_cell(&f, from, to) =
					(struct fabric_cell) { .state = FABRIC_REACHED,
							       .failover = FABRIC_SURVIVED,
							       .mbs = 1000 + (float)(from % 3),
							       .latency_us = 5 };
}

static void judge_fabric(void)
{
	doctor_report_free(&found);
	memset(&found, 0, sizeof(found));
	fabric_judge(&f, 70, &found);
}

/* The finding about this subject; NULL: there is none. */
static const struct doctor_finding *finding_of(const char *check, const char *subject)
{
	for (size_t i = 0; i < found.n; i++)
		if (!strcmp(found.list[i].check, check) && !strcmp(found.list[i].subject, subject))
			return &found.list[i];
	return NULL;
}

static unsigned count_complaints(void)
{
	return found.count[DOCTOR_ERROR] + found.count[DOCTOR_WARNING];
}

static void port_dead(int port)
{
	for (int other = 0; other < f.ports_count; other++) {
		if (fabric_cell(&f, port, other)->state)
			fabric_cell(&f, port, other)->state = FABRIC_UNREACHED;
		if (fabric_cell(&f, other, port)->state)
			fabric_cell(&f, other, port)->state = FABRIC_UNREACHED;
	}
}

static void test_all_well(void)
{
	for (int hosts = 2; hosts <= HOSTS_MOST; hosts++) {
		fabric_make(hosts, hosts % 2);
		judge_fabric();
		CHECK_INT(count_complaints(), 0);
		CHECK_INT(found.count[DOCTOR_FINE], 1);
	}
}

static void test_one_port_dead(void)
{
	for (int hosts = 3; hosts <= HOSTS_MOST; hosts++) {
		fabric_make(hosts, false);
		port_dead(3);
		judge_fabric();
		CHECK_INT(count_complaints(), 1);
		CHECK(finding_of("fabric.port", "n1 b"));
		CHECK(strstr(finding_of("fabric.port", "n1 b")->text, "sends nothing on"));
		CHECK(strstr(finding_of("fabric.port", "n1 b")->text, "receives nothing on"));
	}
}

/* Two hosts can tell which end it is only when each port is measured with two. */
static void test_two_hosts(void)
{
	fabric_make(2, true);
	port_dead(3);
	judge_fabric();
	CHECK_INT(count_complaints(), 1);
	CHECK(finding_of("fabric.port", "n1 b"));
	fabric_make(2, false);
	port_dead(3);
	judge_fabric();
	CHECK_INT(count_complaints(), 2);
	CHECK(finding_of("fabric.path", "n0 b"));
	CHECK(finding_of("fabric.path", "n1 b"));
}

static void test_slow_in_one_direction(void)
{
	const struct doctor_finding *finding;

	fabric_make(4, true);
	for (int other = 0; other < f.ports_count; other++)
		if (fabric_cell(&f, 4, other)->state)
			fabric_cell(&f, 4, other)->mbs = 400;
	judge_fabric();
	CHECK_INT(count_complaints(), 1);
	finding = finding_of("fabric.port", "n2 a");
	CHECK(finding && finding->severity == DOCTOR_WARNING);
	CHECK(strstr(finding->text, "sends 400 MB/s on 6 of 6 paths, 40 %"));
	CHECK(!strstr(finding->text, "receives"));
}

/* A slower model is not a slow cable. */
static void test_speeds_differ(void)
{
	fabric_make(4, true);
	for (int p = 1; p < f.ports_count; p += 2) {
		f.ports[p].speed_mbps = 25000;
		for (int other = 0; other < f.ports_count; other++)
			fabric_cell(&f, p, other)->mbs = fabric_cell(&f, other, p)->mbs = 250;
	}
	judge_fabric();
	CHECK_INT(count_complaints(), 0);
}

static void test_one_path(void)
{
	fabric_make(4, false);
	fabric_cell(&f, 0, 4)->failover = FABRIC_FAILED;
	fabric_cell(&f, 5, 1)->latency_us = 400;
	fabric_cell(&f, 2, 6)->state = FABRIC_CORRUPT;
	judge_fabric();
	CHECK_INT(count_complaints(), 3);
	CHECK(strstr(finding_of("fabric.path", "n0 a")->text, "to n2 a: no failover"));
	CHECK(strstr(finding_of("fabric.path", "n2 b")->text, "to n0 b: late"));
	CHECK(strstr(finding_of("fabric.path", "n1 a")->text, "other bytes"));
	CHECK_INT(found.count[DOCTOR_ERROR], 2);
}

/* What is known to be down explains its cells, and hides no other port. */
static void test_down_and_dead(void)
{
	fabric_make(4, false);
	f.ports[0].up = false;
	for (int other = 2; other < f.ports_count; other += 2) {
		fabric_cell(&f, 0, other)->state = FABRIC_PORT_DOWN;
		fabric_cell(&f, other, 0)->state = FABRIC_PORT_DOWN;
	}
	port_dead(5);
	judge_fabric();
	CHECK_INT(count_complaints(), 2);
	CHECK(strstr(finding_of("fabric.port", "n0 a")->text, "is down"));
	CHECK(finding_of("fabric.port", "n2 b"));
}

static void test_nothing_to_measure(void)
{
	fabric_make(1, false);
	judge_fabric();
	CHECK_INT(found.count[DOCTOR_ERROR], 1);
}

static void test_plan(void)
{
	for (int hosts = 2; hosts <= 9; hosts++) {
		int met[9][9] = { 0 };

		for (int round = 0; round < fabric_plan_rounds(hosts); round++)
			for (int h = 0; h < hosts; h++) {
				int partner = fabric_plan_partner(hosts, round, h);

				CHECK(partner != h && partner < hosts);
				if (partner < 0)
					continue;
				CHECK_INT(fabric_plan_partner(hosts, round, partner), h);
				met[h][partner]++;
			}
		for (int a = 0; a < hosts; a++)
			for (int b = 0; b < hosts; b++)
				CHECK_INT(met[a][b], a != b);
	}
}

int main(void)
{
	test_all_well();
	test_one_port_dead();
	test_two_hosts();
	test_slow_in_one_direction();
	test_speeds_differ();
	test_one_path();
	test_down_and_dead();
	test_nothing_to_measure();
	test_plan();
	doctor_report_free(&found);
	return 0;
}
