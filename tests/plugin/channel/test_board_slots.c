/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages wait in memory that the NIC reads: a slot is not written again before the NIC is
 * done with it. */
#include "base/check.h"
#include "plugin/connect/ctx.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/bundle.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <string.h>

static struct world w;
static struct ha_listen *listen;
static struct ha_send *send;
static struct ha_recv *recv;

/* A connection over one device, whose NIC completes nothing by itself. */
static void begin(void)
{
	world_prepare(&w);
	w.config.enable_backup = true;
	strcpy(w.config.ib_hca, "=dummy0"); /* no standby: nothing else is said */
	lines_catch();
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	world_connect(&w, &listen, &send, &recv);
}

static void end(void)
{
	ha_close_send(send);
	ha_close_recv(recv);
	ha_close_listen(listen);
	world_close(&w);
}

/* Something that goes over the rail as well as over the socket. */
static void say(struct ha_bundle *b)
{
	b->failover.ctl[0].out.sent |= HA_SEND(RAIL_KEYS_ACK);
	b->failover.ctl[0].out.due |= HA_SEND(RAIL_KEYS_ACK);
	ha_messages_send(b, ha_clock_now(w.a->clock));
	CHECK(!b->failover.ctl[0].out.due); /* taken by one at least */
}

/* Overwritten under the NIC: found by ThreadSanitizer between a driver that repeats itself and the
 * software NIC that does so, too. */
static void not_under_the_nic(void)
{
	struct ha_board_message before[HA_BOARD_SLOTS], *staged;
	struct ha_bundle *b;
	uint32_t posted;

	begin();
	b = &recv->b;
	staged = ha_bundle_staged_board(b)->mail[0];
	posted = b->rail[0].sq_posted;
	for (unsigned n = 1; n <= HA_BOARD_SLOTS; n++) {
		say(b);
		CHECK_INT(b->rail[0].sq_posted, posted + n);
	}
	memcpy(before, staged, sizeof(before));
	for (unsigned n = 0; n < 2 * HA_BOARD_SLOTS; n++)
		say(b); /* by the socket alone */
	CHECK(!memcmp(before, staged, sizeof(before)));
	CHECK_INT(b->rail[0].sq_posted, posted + HA_BOARD_SLOTS);
	/* The first is done, so that there is room for one more. */
	b->rail[0].sq_retired = posted + 1;
	say(b);
	say(b);
	CHECK_INT(b->rail[0].sq_posted, posted + HA_BOARD_SLOTS + 1);
	CHECK_INT(staged[0].number, HA_BOARD_SLOTS + 1);
	CHECK(!memcmp(&before[1], &staged[1], sizeof(before[1])));
	end();
}

int main(void)
{
	not_under_the_nic();
	return 0;
}
