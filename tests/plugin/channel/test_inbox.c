/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer has sent on a socket waits for the driver: in order, a limited number, and the news
 * that it has ended the connection in any case, since that is sent once.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/channel/inbox.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/ctx.h"
#include "plugin/transfer/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 64

static struct ha_ctx ctx = { .clock = &ha_clock_live };
static unsigned ntaken;
static union ha_message taken[KEPT + 2];

static void record_message(struct ha_bundle *b, const union ha_message *m)
{
	(void)b;
	CHECK(ntaken < sizeof(taken) / sizeof(taken[0]));
	taken[ntaken++] = *m;
}

static struct ha_bundle *make_bundle(void)
{
	struct ha_send *s = calloc(1, sizeof(*s));

	CHECK(s);
	s->b.ctx = &ctx;
	s->b.schedule.due = UINT64_MAX;
	STAILQ_INIT(&s->b.link.inbox);
	ntaken = 0;
	return &s->b;
}

static void put_message(struct ha_bundle *b, enum ha_msg_type type, uint32_t epoch)
{
	union ha_message m = { .cause = { .rail = { .header = { HA_MSG_MAGIC, 1, (uint16_t)type,
								sizeof(m.cause), 0 },
						    .epoch = epoch },
					  .error = 7 } };

	ha_inbox_put(b, &m);
	memset(&m, 0x55, sizeof(m)); /* a copy was made */
}

static void in_order(void)
{
	struct ha_bundle *b = make_bundle();

	for (uint32_t i = 0; i < 3; i++)
		put_message(b, HA_MSG_RAIL_DOWN, i);
	CHECK_INT(b->schedule.due, 0); /* the driver looks at once */
	ha_inbox_read(b, record_message);
	CHECK_INT(ntaken, 3);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_INT(taken[i].rail.epoch, i);
		CHECK_INT(taken[i].cause.error, 7);
	}
	ha_inbox_read(b, record_message); /* once */
	CHECK_INT(ntaken, 3);
	free(b);
}

/* More than that nobody could mean. ABORT still gets in, once. */
static void not_too_many(void)
{
	struct ha_bundle *b = make_bundle();

	for (uint32_t i = 0; i < KEPT + 3; i++)
		put_message(b, HA_MSG_RAIL_DOWN, i);
	put_message(b, HA_MSG_ABORT, 1000);
	put_message(b, HA_MSG_ABORT, 1001);
	ha_inbox_read(b, record_message);
	CHECK_INT(ntaken, KEPT + 1);
	CHECK_INT(taken[KEPT - 1].rail.epoch, KEPT - 1);
	CHECK_INT(taken[KEPT].header.type, HA_MSG_ABORT);
	CHECK_INT(taken[KEPT].rail.epoch, 1000);
	put_message(b, HA_MSG_RAIL_DOWN, 5); /* there is room again */
	put_message(b, HA_MSG_RAIL_DOWN, 6);
	ha_inbox_drop(b); /* the connection ends */
	CHECK_INT(b->link.inbox_count, 0);
	ha_inbox_read(b, record_message);
	CHECK_INT(ntaken, KEPT + 1);
	free(b);
}

/* ---- a socket that takes nothing ---- */

static size_t accepts; /* bytes that the socket takes at once */
static char sent[256];
static size_t nsent;

static ssize_t take_some(struct ha_oob_conn *conn, const void *data, size_t size)
{
	size_t n = size < accepts ? size : accepts;

	(void)conn;
	CHECK(nsent + n <= sizeof(sent));
	memcpy(sent + nsent, data, n);
	nsent += n;
	return (ssize_t)n;
}

/* It is full without saying so: what it has not taken is kept, and sent when it takes more. */
static void nothing_is_taken(void)
{
	static const struct ha_oob_ops oob = { .send = take_some };
	struct ha_ctx own = { .clock = &ha_clock_live, .oob.ops = &oob, .loop = { .fd = -1 } };
	struct ha_stream s = { .ctx = &own };
	struct ha_msg_bye m = { .header = { HA_MSG_MAGIC, 1, HA_MSG_BYE, sizeof(m), 0 },
				.done = 12 };

	CHECK_INT(ha_stream_put(&s, &m), -EAGAIN);
	CHECK(ha_stream_busy(&s));
	CHECK_INT(ha_stream_put(&s, &m), -EBUSY); /* not in the middle of another */
	CHECK_INT(ha_stream_flush(&s), -EAGAIN);
	accepts = 7;
	CHECK_INT(ha_stream_flush(&s), 0);
	CHECK(!ha_stream_busy(&s));
	CHECK_INT(nsent, sizeof(m));
	CHECK(!memcmp(sent, &m, sizeof(m)));
	free(s.out);
}

int main(void)
{
	in_order();
	not_too_many();
	nothing_is_taken();
	return 0;
}
