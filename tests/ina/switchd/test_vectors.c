/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_vectors.c - every case of ina/vectors through a living ha-switch over memif, packet by packet, beside the slot core in this process: the same answers, byte
 * by byte, at the same ports, and at the end the same verdicts counted. Usage: test_switchd_vectors HA-SWITCH CORES
 */
#include "base/clock.h"
#include "ina/bytes.h"
#include "ina/vectors/cases.h"
#include "tests/base/check.h"
#include "tests/ina/switchd/rig.h"

#include <inttypes.h>
#include <unistd.h>

#define EPOCHS 100000u /* between the epochs of two cases: one switch plays them all */
#define EPOCH_AT 38

static struct switch_rig r;
static const char *now_playing;
static struct ina_switch sw; /* what it must do */
static struct ina_slot slot[INA_CASE_SLOTS];
static uint64_t now, reason[INA_REASONS], others, packets, answers;
static uint32_t epoch_offset;
static char group_line[512];

static uint64_t seen_by_switch(void)
{
	const char *page = switch_rig_page(&r);
	uint64_t n = 0;
	char name[96];

	for (unsigned i = 0; i < INA_REASONS; i++) {
		snprintf(name, sizeof(name), "hawser_switch_frames_total{reason=\"%s\"}", ina_reason_name(i, NULL));
		n += switch_rig_number(page, name);
	}
	for (unsigned i = INA_FAULT_NONE + 1; i < INA_FAULTS; i++) {
		snprintf(name, sizeof(name), "hawser_switch_bad_frames_total{fault=\"%s\"}", ina_fault_name(i, NULL));
		n += switch_rig_number(page, name);
	}
	return n + switch_rig_number(page, "hawser_switch_not_spoken_total") + switch_rig_number(page, "hawser_switch_reserved_total");
}

/* The port that the rank is behind has this, and next. */
static void expect(const struct ina_verdict *v, uint8_t rank)
{
	uint8_t bytes[INA_FRAME_MAX];
	struct rte_mbuf *m = switch_rig_receive(&r, rank % RIG_PORTS, RIG_PATIENCE_MS);
	struct ina_frame f;
	size_t len;

	ina_switch_answer(&sw, v, rank, &f);
	len = ina_frame_encode(&f, bytes);
	if (!m)
		fprintf(stderr, "%s: no answer for rank %u, psn %" PRIu32 ", %s\n", now_playing, rank, f.psn, ina_reason_name(v->reason, NULL));
	CHECK(m);
	if (m->pkt_len != len || memcmp(rte_pktmbuf_mtod(m, void *), bytes, len)) {
		fprintf(stderr, "%s: another answer for rank %u, psn %" PRIu32 ", %s: %u bytes, expected %zu\n", now_playing, rank, f.psn, ina_reason_name(v->reason, NULL),
			m->pkt_len, len);
		exit(1);
	}
	answers++;
	rte_pktmbuf_free(m);
}

static void packet(void *arg, unsigned port, const uint8_t *given, size_t len)
{
	uint8_t bytes[2048];
	struct ina_frame f;
	struct ina_verdict v = { 0 };
	uint64_t end;

	memcpy(bytes, given, len);
	if (len >= EPOCH_AT + 4 && bytes[23] == INA_PROTOCOL_EXTENDED)
		ina_put32(bytes + EPOCH_AT, ina_get32(bytes + EPOCH_AT) + epoch_offset);
	switch_rig_send(&r, port, bytes, len);
	packets++;
	for (end = ha_clock_now(&ha_clock_live) + RIG_PATIENCE_MS * HA_NS_PER_MS; seen_by_switch() != packets; usleep(100))
		CHECK(ha_clock_now(&ha_clock_live) < end);
	if (ina_frame_decode(bytes, len, &f) != INA_FAULT_NONE) {
		others++;
		return;
	}
	ina_switch_step(&sw, ++now, &f, &v);
	if (v.reason == INA_REASON_NOT_HERE) {
		others++; /* it is the bridge's, which finds its own MAC address in it */
		return;
	}
	reason[v.reason]++;
	if (v.action == INA_ANSWER_ONE)
		expect(&v, f.rank);
	for (unsigned i = 0; v.action == INA_ANSWER_ALL && i < ina_switch_ranks(&sw, &v); i++)
		expect(&v, (uint8_t)i);
}

/* Each rank says something that is not taken: now the switch knows where it is, as it does in a running job. */
static void introduce(const struct ina_group_config *c)
{
	for (unsigned i = 0; i < c->ranks; i++) {
		struct ina_frame f = { .src = c->member[i].addr, .dst = INA_CASE_SWITCH, .ecn = INA_ECT1, .extended = c->extended, .coll = INA_ALL_REDUCE, .group = c->id,
				       .rank = (uint8_t)i, .psn = c->first_psn, .agg_addr = (uint16_t)(c->base + c->len), .epoch = c->extended ? c->epoch - epoch_offset : 0 };
		uint8_t bytes[INA_FRAME_MAX];

		memcpy(f.src_mac, c->member[i].mac, 6);
		memcpy(f.dst_mac, ina_case_mac, 6);
		packet(NULL, i % RIG_PORTS, bytes, ina_frame_encode(&f, bytes));
	}
}

static void install(void *arg, const struct ina_group_config *group)
{
	struct ina_group_config c = *group;
	const char *why;
	size_t at;

	c.epoch += epoch_offset;
	CHECK_INT(ina_switch_install(&sw, &c, &why), 0);
	at = (size_t)snprintf(group_line, sizeof(group_line), "group %u epoch %" PRIu32 " slots %u %u frames %s workers %u first %" PRIu32 " members", c.id, c.epoch, c.base,
			      c.len, c.extended ? "extended" : "old", c.workers, c.first_psn);
	for (unsigned i = 0; i < c.ranks; i++)
		at += (size_t)snprintf(group_line + at, sizeof(group_line) - at, " 10.0.0.%u", i + 1);
	switch_rig_groups(&r, group_line);
	switch_rig_reload(&r);
	introduce(&c);
}

static void lapse(void *arg, const struct ina_group_config *group)
{
	ina_switch_renew(&sw, group->id, group->epoch + epoch_offset, now);
	switch_rig_groups(&r, "# it has ended\n");
	switch_rig_reload(&r);
}

static void nothing_more(void)
{
	for (unsigned p = 0; p < RIG_PORTS; p++)
		CHECK(!switch_rig_receive(&r, p, p ? 0 : 20));
}

static void play(const struct ina_case *c, bool extended)
{
	static const struct ina_case_sink sink = { install, lapse, packet, NULL };

	now_playing = c->name;
	ina_switch_init(&sw, INA_CASE_SWITCH, ina_case_mac, slot, INA_CASE_SLOTS);
	memset(slot, 0, sizeof(slot));
	c->run(&sink, extended);
	nothing_more();
	epoch_offset += EPOCHS;
}

int main(int argc, char **argv)
{
	char cores[32], name[96];
	const char *options[] = { "--mac=02:00:00:00:00:fe", "--slots=256", cores, NULL };

	CHECK_INT(argc, 3);
	snprintf(cores, sizeof(cores), "--cores=%s", argv[2]);
	switch_rig_make(&r, argv[1], RIG_PORTS);
	switch_rig_start(&r, options);
	switch_rig_connect(&r);
	switch_rig_await_up(&r);
	for (unsigned i = 0; i < ina_ncases; i++) {
		if (ina_cases[i].old)
			play(&ina_cases[i], false);
		if (ina_cases[i].extended)
			play(&ina_cases[i], true);
	}
	for (unsigned i = 0; i < INA_REASONS; i++) {
		snprintf(name, sizeof(name), "hawser_switch_frames_total{reason=\"%s\"}", ina_reason_name(i, NULL));
		now_playing = name;
		if (switch_rig_metric(&r, name) != reason[i])
			fprintf(stderr, "%s\n", name);
		CHECK_INT(switch_rig_metric(&r, name), reason[i]);
	}
	CHECK_INT(switch_rig_metric(&r, "hawser_switch_answers_total"), answers);
	CHECK_INT(switch_rig_metric(&r, "hawser_switch_answers_nowhere_total"), 0);
	printf("%" PRIu64 " packets, %" PRIu64 " answers, %" PRIu64 " that are no frames or not ours\n", packets, answers, others);
	CHECK(packets > 500 && answers > 500 && others > 5);
	switch_rig_end(&r);
	return 0;
}
