/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/switch/switchd/oracle.h"

#include "base/check.h"
#include "base/clock.h"

#include <inttypes.h>
#include <unistd.h>

void oracle_open(struct oracle *o, struct switch_rig *rig, const char *program,
		 const char *const *options)
{
	o->rig = rig;
	for (unsigned i = 0; i < INA_RANKS_MAX; i++)
		o->port[i] = i % RIG_PORTS;
	switch_rig_make(rig, program, RIG_PORTS);
	switch_rig_start(rig, options);
	switch_rig_connect(rig);
	switch_rig_await_up(rig);
}

void oracle_forget(struct oracle *o)
{
	memset(o->slot, 0, sizeof(o->slot));
	ina_switch_init(&o->sw, INA_CASE_SWITCH, ina_case_mac, o->slot, INA_CASE_SLOTS);
}

static uint64_t seen_by_switch(struct switch_rig *r)
{
	const char *page = switch_rig_page(r);
	uint64_t n = 0;
	char name[96];

	for (unsigned i = 0; i < INA_REASONS; i++) {
		snprintf(name, sizeof(name), "hawser_switch_frames_total{reason=\"%s\"}",
			 ina_reason_name(i, NULL));
		n += switch_rig_number(page, name);
	}
	for (unsigned i = INA_FAULT_NONE + 1; i < INA_FAULTS; i++) {
		snprintf(name, sizeof(name), "hawser_switch_bad_frames_total{fault=\"%s\"}",
			 ina_fault_name(i, NULL));
		n += switch_rig_number(page, name);
	}
	return n + switch_rig_number(page, "hawser_switch_not_spoken_total") +
	       switch_rig_number(page, "hawser_switch_reserved_total");
}

/* The port that the rank is behind has this, and next. */
static void expect_answer(struct oracle *o, const struct ina_verdict *v, uint8_t rank)
{
	struct rte_mbuf *m = switch_rig_receive(o->rig, o->port[rank], RIG_TIME_LIMIT_MS);
	uint8_t bytes[INA_FRAME_MAX];
	struct ina_frame f;
	size_t len;

	ina_switch_answer(&o->sw, v, rank, &f);
	len = ina_frame_encode(&f, bytes);
	if (!m)
		fprintf(stderr, "%s: no answer for rank %u, psn %" PRIu32 ", %s\n", o->playing,
			rank, f.psn, ina_reason_name(v->reason, NULL));
	CHECK(m);
	if (m->pkt_len != len || memcmp(rte_pktmbuf_mtod(m, void *), bytes, len)) {
		fprintf(stderr,
			"%s: another answer for rank %u, psn %" PRIu32
			", %s: %u bytes, expected %zu\n",
			o->playing, rank, f.psn, ina_reason_name(v->reason, NULL), m->pkt_len, len);
		exit(1);
	}
	o->answers++;
	rte_pktmbuf_free(m);
}

void oracle_packet(struct oracle *o, unsigned port, const uint8_t *bytes, size_t len)
{
	struct ina_frame f;
	struct ina_verdict v = { 0 };
	uint64_t end;

	switch_rig_send(o->rig, port, bytes, len);
	o->packets++;
	for (end = ha_clock_now(&ha_clock_live) + RIG_TIME_LIMIT_MS * HA_NS_PER_MS;
	     seen_by_switch(o->rig) != o->packets; usleep(100))
		CHECK(ha_clock_now(&ha_clock_live) < end);
	if (ina_frame_decode(bytes, len, &f) != INA_FAULT_NONE) {
		o->others++;
		return;
	}
	ina_switch_step(&o->sw, ++o->now, &f, &v);
	if (v.reason == INA_REASON_NOT_HERE) {
		o->others++; /* it is the bridge's, which finds its own MAC address in it */
		return;
	}
	o->reason[v.reason]++;
	if (v.action == INA_ANSWER_ONE)
		expect_answer(o, &v, f.rank);
	for (unsigned i = 0; v.action == INA_ANSWER_ALL && i < ina_switch_ranks(&o->sw, &v); i++)
		expect_answer(o, &v, (uint8_t)i);
}

void oracle_nothing_more(struct oracle *o)
{
	for (unsigned p = 0; p < o->rig->nports; p++)
		CHECK(!switch_rig_receive(o->rig, p, p ? 0 : 20));
}

void oracle_check_counts(struct oracle *o)
{
	char name[96];

	for (unsigned i = 0; i < INA_REASONS; i++) {
		snprintf(name, sizeof(name), "hawser_switch_frames_total{reason=\"%s\"}",
			 ina_reason_name(i, NULL));
		if (switch_rig_metric(o->rig, name) != o->reason[i])
			fprintf(stderr, "%s\n", name);
		CHECK_INT(switch_rig_metric(o->rig, name), o->reason[i]);
	}
	CHECK_INT(switch_rig_metric(o->rig, "hawser_switch_answers_total"), o->answers);
	CHECK_INT(switch_rig_metric(o->rig, "hawser_switch_answers_nowhere_total"), 0);
	printf("%" PRIu64 " packets, %" PRIu64 " answers, %" PRIu64
	       " that are no frames or not ours\n",
	       o->packets, o->answers, o->others);
}
