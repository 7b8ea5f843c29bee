/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_vectors.c - every case of ina/switch/vectors through a living ha-switch over memif, beside
 * the slot core in this process (oracle.h)
 *
 * Usage: test_switchd_vectors HA-SWITCH CORES
 */
#include "base/check.h"
#include "ina/frame/bytes.h"
#include "tests/ina/switch/switchd/oracle.h"

#include <inttypes.h>

#define EPOCHS 100000u /* between the epochs of two cases: one switch plays them all */
#define EPOCH_AT 38

static struct switch_rig r;
static struct oracle o;
static uint32_t epoch_offset;
static char group_line[512];

static void play_packet(void *arg, unsigned port, const uint8_t *given, size_t len)
{
	uint8_t bytes[2048];

	memcpy(bytes, given, len);
	if (len >= EPOCH_AT + 4 && bytes[23] == INA_PROTOCOL_EXTENDED)
		ina_put32(bytes + EPOCH_AT, ina_get32(bytes + EPOCH_AT) + epoch_offset);
	oracle_packet(&o, port, bytes, len);
}

/* Each rank says something that is not taken: now the switch knows where it is, as it does in a
 * running job. */
static void introduce_ranks(const struct ina_group_config *c)
{
	for (unsigned i = 0; i < c->ranks; i++) {
		struct ina_frame f = { .src = c->member[i].addr,
				       .dst = INA_CASE_SWITCH,
				       .ecn = INA_ECT1,
				       .extended = c->extended,
				       .coll = INA_ALL_REDUCE,
				       .group = c->id,
				       .rank = (uint8_t)i,
				       .psn = c->first_psn,
				       .agg_addr = (uint16_t)(c->base + c->len),
				       .epoch = c->extended ? c->epoch - epoch_offset : 0 };
		uint8_t bytes[INA_FRAME_MAX];

		memcpy(f.src_mac, c->member[i].mac, 6);
		memcpy(f.dst_mac, ina_case_mac, 6);
		play_packet(NULL, i % RIG_PORTS, bytes, ina_frame_encode(&f, bytes));
	}
}

static void install_group(void *arg, const struct ina_group_config *group)
{
	struct ina_group_config c = *group;
	const char *why;
	size_t at;

	c.epoch += epoch_offset;
	CHECK_INT(ina_switch_install(&o.sw, &c, &why), 0);
	at = (size_t)snprintf(group_line, sizeof(group_line),
			      "group %u epoch %" PRIu32
			      " slots %u %u frames %s workers %u first %" PRIu32 " members",
			      c.id, c.epoch, c.base, c.len, c.extended ? "extended" : "old",
			      c.workers, c.first_psn);
	for (unsigned i = 0; i < c.ranks; i++)
		at += (size_t)snprintf(group_line + at, sizeof(group_line) - at, " 10.0.0.%u",
				       i + 1);
	switch_rig_groups(&r, group_line);
	switch_rig_reload(&r);
	introduce_ranks(&c);
}

static void end_lease(void *arg, const struct ina_group_config *group)
{
	ina_switch_renew(&o.sw, group->id, group->epoch + epoch_offset, o.now);
	switch_rig_groups(&r, "# it has ended\n");
	switch_rig_reload(&r);
}

/* The living switch learns of it by the next group's file, in which it is not any more. */
static void remove_group(void *arg, const struct ina_group_config *group)
{
	CHECK_INT(ina_switch_remove(&o.sw, group->id, group->epoch + epoch_offset), 0);
}

static void play_case(const struct ina_case *c, bool extended)
{
	static const struct ina_case_sink sink = { .install = install_group,
						   .lapse = end_lease,
						   .remove = remove_group,
						   .packet = play_packet };

	o.playing = c->name;
	oracle_forget(&o);
	c->run(&sink, extended);
	oracle_nothing_more(&o);
	epoch_offset += EPOCHS;
}

int main(int argc, char **argv)
{
	char cores[32];
	const char *options[] = { "--mac=02:00:00:00:00:fe", "--slots=256", cores, NULL };

	CHECK_INT(argc, 3);
	snprintf(cores, sizeof(cores), "--cores=%s", argv[2]);
	oracle_open(&o, &r, argv[1], options);
	for (unsigned i = 0; i < ina_ncases; i++) {
		if (ina_cases[i].old)
			play_case(&ina_cases[i], false);
		if (ina_cases[i].extended)
			play_case(&ina_cases[i], true);
	}
	oracle_check_counts(&o);
	CHECK(o.packets > 500 && o.answers > 500 && o.others > 5);
	switch_rig_end(&r);
	return 0;
}
