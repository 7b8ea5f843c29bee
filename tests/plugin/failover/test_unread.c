/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC dies while its completion queue holds more than one poll takes (HA_NCCL_TEST_MAX_POLL):
 * what it has completed is in memory and counts, all of it. The rest was thrown away with the
 * queue: data that the sender took for delivered was missing, and the connection ended (data_lost).
 */
#include "base/check.h"
#include "tests/plugin/kill_nic.h"
#include "tests/plugin/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUTS 100

static struct pair p;

/* The receiver takes nothing meanwhile. */
static void send_all(void)
{
	char record[HA_RECORD_SIZE] = { 1 };

	for (int i = 0; i < PUTS; i++) {
		const struct ha_put put = { .record = record };
		struct ha_request *req = NULL;
		int done = 0;

		record[1] = (char)i;
		for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
			CHECK_INT(ha_put(p.send, &put, &req), 0);
			pair_idle(&p, k);
		}
		CHECK(req);
		for (int k = 0; !done && k < PAIR_TRIES_MAX; k++) {
			CHECK_INT(ha_test(req, &done, NULL), 0);
			pair_idle(&p, k);
		}
		CHECK(done); /* the peer's NIC has it */
	}
}

static void take_all(void)
{
	char record[HA_RECORD_SIZE];

	for (int i = 0; i < PUTS; i++) {
		bool got = false;

		for (int k = 0; !got && k < PAIR_TRIES_MAX; k++) {
			CHECK_INT(ha_take(p.recv, record, &got), 0);
			pair_idle(&p, k);
		}
		CHECK(got);
		CHECK_INT(record[1], i);
	}
}

int main(void)
{
	setenv("SOFTROCE_DEVICES", "127.142.42.0/24,127.142.43.0/24", 1);
	setenv("HA_NCCL_TEST_MAX_POLL", "8", 1);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	pair_open_one_sided(&p, 0);
	send_all();
	kill_first_nic();
	take_all();
	pair_close(&p);
	return 0;
}
