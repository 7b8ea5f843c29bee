/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_incarnations.c - a living ha-switch with a living ha-controller: a group comes, both are
 * killed in turn and come back, the group ends
 *
 * Usage: test_switchd_incarnations HA-SWITCH HA-CONTROLLER
 */
#include "base/check.h"
#include "base/clock.h"
#include "ina/frame/bytes.h"
#include "tests/ina/controller/rig.h"
#include "tests/ina/switch/switchd/rig.h"

#include <signal.h>
#include <unistd.h>

#define RANKS 2

static struct switch_rig s;
static struct rig c;
static struct ha_ina_client *client;
static struct ha_ina_lease lease;
static char where[128];

static void start_switch(void)
{
	const char *options[] = { where, "--name=soft", "--serves=10.0.0.0/24", "--cores=2", NULL };

	switch_rig_start(&s, options);
}

static void await_metric(const char *name, uint64_t want)
{
	uint64_t end = ha_clock_now(&ha_clock_live) + RIG_TIME_LIMIT_MS * HA_NS_PER_MS;

	while (switch_rig_metric(&s, name) != want && ha_clock_now(&ha_clock_live) < end)
		usleep(10000);
	CHECK_INT(switch_rig_metric(&s, name), want);
}

static void send_contribution(uint8_t rank, uint32_t psn, uint32_t epoch)
{
	uint8_t words[INA_PAYLOAD_BYTES], b[INA_FRAME_MAX];
	struct ina_frame f = { .dst_mac = { 2, 0, 10, 0, 0, 0xfe },
			       .src_mac = { 2, 1, 1, 1, 1, rank },
			       .src = 0x0a000001u + rank,
			       .dst = RIG_ADDR,
			       .worker = psn % 2,
			       .ecn = INA_ECT1,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = lease.id,
			       .rank = rank,
			       .psn = psn,
			       .epoch = epoch,
			       .words = words };
	uint32_t each = lease.agg_len / 2;

	f.agg_addr = (uint16_t)(lease.agg_addr + f.worker * each + psn % each);
	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, 10 * psn + rank);
	switch_rig_send(&s, rank, b, ina_frame_encode(&f, b));
}

static struct ina_frame receive_answer(uint8_t rank, int32_t *word)
{
	struct rte_mbuf *m = switch_rig_receive(&s, rank, RIG_TIME_LIMIT_MS);
	struct ina_frame f;

	CHECK(m);
	CHECK_INT(ina_packet_decode(m, &f), INA_FAULT_NONE);
	CHECK_INT(f.rank, rank);
	if (f.words)
		*word = (int32_t)ina_get32(f.words);
	rte_pktmbuf_free(m);
	return f;
}

/* Both workers' first packets: the sums, at both ranks. */
static void check_whole_sum(uint32_t psn, uint32_t epoch)
{
	int32_t word = 0;

	for (uint8_t rank = 0; rank < RANKS; rank++)
		send_contribution(rank, psn, epoch);
	for (uint8_t rank = 0; rank < RANKS; rank++) {
		struct ina_frame f = receive_answer(rank, &word);

		CHECK(f.words && f.psn == psn && f.epoch == epoch);
		CHECK_INT(word, 20 * (int32_t)psn + 1);
	}
}

static void create_group(void)
{
	static const uint32_t member[] = { 0x0a000001, 0x0a000002 };
	struct ha_ina_group_spec w = { .member = member,
				       .members = RANKS,
				       .length = 64,
				       .least = 64,
				       .lease_ms = 600000,
				       .workers = 2,
				       .extended = true };
	uint64_t end = ha_clock_now(&ha_clock_live) + RIG_TIME_LIMIT_MS * HA_NS_PER_MS;

	do { /* until the switch has registered */
		CHECK_INT(ha_ina_client_create(client, &w, &lease), 0);
		usleep(50000);
	} while (!lease.id && ha_clock_now(&ha_clock_live) < end);
	CHECK(lease.id);
	CHECK_INT(lease.switch_address, RIG_ADDR);
	await_metric("hawser_switch_installs_total", 1);
}

/* The epoch that the group has now; the controller is asked as ranks ask. */
static uint32_t epoch_now(uint32_t above)
{
	uint64_t end = ha_clock_now(&ha_clock_live) + RIG_TIME_LIMIT_MS * HA_NS_PER_MS;
	struct ha_ina_heartbeat heartbeat;

	do {
		CHECK_INT(ha_ina_client_renew(client, &lease, 0, &heartbeat), 0);
		CHECK(heartbeat.live);
		usleep(20000);
	} while (heartbeat.epoch <= above && ha_clock_now(&ha_clock_live) < end);
	CHECK(heartbeat.epoch > above);
	return heartbeat.epoch;
}

static void controller_dies(void)
{
	rig_stop(&c, SIGKILL);
	check_whole_sum(2, lease.epoch);
	usleep(300000);
	rig_start(&c, NULL);
	rig_await(&c);
	usleep(1000000);
	check_whole_sum(3, lease.epoch);
	CHECK_INT(switch_rig_metric(&s, "hawser_switch_installs_total"), 1);
	CHECK_INT(switch_rig_metric(&s, "hawser_switch_ends_total"), 0);
}

/* With half a sum in it. What it knew is gone, the ranks learn so, and a new incarnation begins. */
static void switch_dies(void)
{
	uint32_t before = lease.epoch, now;
	int32_t word;
	struct ina_frame f;

	send_contribution(0, 4, before);
	switch_rig_stop(&s, SIGKILL);
	start_switch();
	switch_rig_await_up(&s);
	await_metric("hawser_switch_installs_total", 1);
	now = epoch_now(before);
	send_contribution(1, 4, before);
	f = receive_answer(1, &word);
	CHECK(f.flags & INA_F_ABORT && f.epoch == before && !f.words);
	check_whole_sum(0, now);
	check_whole_sum(1, now);
	lease.epoch = now;
}

static void ended_group_aborts(void)
{
	char message[192];
	int32_t word;

	CHECK_INT(ha_ina_client_destroy(client, lease.id, lease.switch_name, lease.key, message),
		  0);
	await_metric("hawser_switch_ends_total", 1);
	for (uint8_t rank = 0; rank < RANKS; rank++) {
		send_contribution(rank, 2, lease.epoch);
		CHECK(receive_answer(rank, &word).flags & INA_F_ABORT);
	}
	CHECK_INT(switch_rig_metric(&s, "hawser_switch_groups_over"), 1);
}

int main(int argc, char **argv)
{
	CHECK_INT(argc, 3);
	rig_make(&c, argv[2], "register any\nlate 1\n");
	snprintf(where, sizeof(where), "--controller=%s", c.address);
	switch_rig_make(&s, argv[1], RANKS);
	start_switch();
	rig_start(&c, NULL);
	rig_await(&c);
	switch_rig_connect(&s);
	switch_rig_await_up(&s);
	client = rig_client(&c, 30000, true);
	create_group();
	check_whole_sum(0, lease.epoch);
	check_whole_sum(1, lease.epoch);
	controller_dies();
	switch_dies();
	ended_group_aborts();
	ha_ina_client_close(client);
	switch_rig_end(&s);
	rig_stop(&c, SIGTERM);
	rig_remove(&c);
	return 0;
}
