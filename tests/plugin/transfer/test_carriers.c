/* SPDX-License-Identifier: BSD-3-Clause */
/* What carries a request, as a profiler gets it: each stripe of a send, the clear-to-send of a
 * receive; what is over, and what is lost until another rail carries it. */
#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "tests/plugin/ends.h"
#include "tests/plugin/transfer/recorder.h"

#include <errno.h>
#include <stdlib.h>

static struct ha_device port[RAILS];
static struct ha_carried list[HA_MAX_RAILS];

static void name_rails(struct ha_bundle *b)
{
	for (unsigned i = 0; i < RAILS; i++) {
		port[i].index = (int)(5 + i);
		b->rail[i].dev = &port[i];
		b->rail[i].setup.qp_num = 50 + i;
		b->rail[i].epoch = 70 + i;
	}
}

static void check_carried(const struct ha_bundle *b, unsigned at, unsigned rail, uint64_t bytes,
			  bool over, bool lost)
{
	const struct ha_carried *c = &list[at];

	CHECK_INT(c->dev, 5 + rail);
	CHECK_INT(c->qp_num, 50 + rail);
	CHECK_INT(c->epoch, 70 + rail);
	CHECK_INT(c->rail, rail);
	CHECK_INT(c->bytes, bytes);
	CHECK_INT(c->over, over);
	CHECK_INT(c->lost, lost);
	CHECK_INT(c->wr_id >> 32, b->rail[rail].sq_posted);
}

static int ask(struct ha_request *req)
{
	int n = ha_carried(req, 0, list);

	CHECK(!atomic_load(&req->bundle->inside));
	return n;
}

static struct ha_send *make_named(void)
{
	struct ha_send *s = make_sender();

	name_rails(&s->b);
	return s;
}

static void a_send_on_one_rail(void)
{
	struct ha_send *s = make_named();
	struct ha_request *req;

	announce_receive(s, 1, LARGE);
	req = send_member(s, 0, 1000);
	CHECK_INT(ask(req), 1);
	check_carried(&s->b, 0, 0, 1000, false, false);
	CHECK_INT(list[0].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	CHECK_INT(list[0].wr_id, work[0].id);
	s->b.rail[0].state = HA_RAIL_FENCING;
	CHECK_INT(ask(req), 1);
	check_carried(&s->b, 0, 0, 1000, false, true);
	s->b.rail[0].state = HA_RAIL_UP;
	s->slot[0].pending = 0;
	CHECK_INT(ask(req), 1);
	check_carried(&s->b, 0, 0, 1000, true, false);
	free_sender(s);
}

/* Stripes are called after the rail that they were cut for, whoever carries them now. */
static void a_send_on_two_rails(void)
{
	const uint64_t half = LARGE / 2;
	struct ha_send *s = make_named();
	struct ha_request *req;

	announce_receive(s, 1, LARGE);
	req = send_member(s, 0, LARGE);
	CHECK_INT(ask(req), 2);
	check_carried(&s->b, 0, 0, half, false, false);
	check_carried(&s->b, 1, 1, half, false, false);
	CHECK_INT(list[0].wr_id, work[0].id);
	CHECK_INT(list[1].wr_id, work[1].id);
	s->slot[0].pending = 2;
	CHECK_INT(ask(req), 2);
	check_carried(&s->b, 0, 0, half, true, false);
	check_carried(&s->b, 1, 1, half, false, false);
	s->slot[0].parked = 2;
	CHECK_INT(ask(req), 2);
	check_carried(&s->b, 0, 0, half, true, false);
	check_carried(&s->b, 1, 1, half, false, true);
	s->slot[0].parked = 0;
	s->slot[0].moved = 2;
	s->slot[0].carrier[1] = 0;
	CHECK_INT(ask(req), 2);
	check_carried(&s->b, 1, 0, half, false, false);
	CHECK_INT((uint32_t)list[1].wr_id, (uint32_t)work[1].id); /* its own place all the same */
	s->slot[0].settled = 2;
	CHECK_INT(ask(req), 2);
	check_carried(&s->b, 1, 0, half, true, false);
	s->slot[0].settled = 0;
	s->slot[0].pending = 3;
	req->done = 1;
	CHECK_INT(ask(req), 2);
	check_carried(&s->b, 0, 0, half, true, false);
	check_carried(&s->b, 1, 0, half, true, false);
	free_sender(s);
}

/* A group that is not posted yet, a connection that has ended or that the driver is in, a flush. */
static void cannot_be_asked(void)
{
	struct ha_send *s = make_named();
	struct ha_request *req, flush = { .kind = HA_REQ_FLUSH, .bundle = &s->b };

	announce_receive(s, 2, LARGE);
	req = send_member(s, 0, 1000);
	s->slot[0].mask = 1; /* of the slot's last message */
	CHECK_INT(ask(req), -EAGAIN);
	s->slot[0].mask = 0;
	CHECK(send_member(s, 1, 1000));
	CHECK_INT(ask(req), 1);
	s->b.error = -EIO;
	CHECK_INT(ask(req), -EAGAIN);
	s->b.error = 0;
	CHECK_INT(ask(&flush), -EAGAIN);
	atomic_store(&s->b.attention, HA_ATTN_HELD);
	CHECK_INT(ask(req), -EAGAIN);
	atomic_store(&s->b.attention, 0);
	s->slot[0].mask = 0;
	CHECK_INT(ask(req), -EAGAIN);
	free_sender(s);
}

static void a_receive(void)
{
	struct ha_recv *c = new_recv();
	struct ha_recv_slot *slot = &c->slot[3];

	CHECK(c);
	c->b.nrails = RAILS;
	name_rails(&c->b);
	for (unsigned i = 0; i < RAILS; i++) {
		c->b.rail[i].index = (uint8_t)i;
		c->b.rail[i].state = HA_RAIL_UP;
		c->b.rail[i].sq_posted = 90 + i;
	}
	slot->req = (struct ha_request) { .kind = HA_REQ_RECV, .entry = 3, .bundle = &c->b };
	slot->more = c->more[3];
	slot->n = 2;
	slot->cts_rail = 1;
	slot->busy = HA_SLOT_WIRE;
	slot->buf.size = 10;
	slot->more[0].size = 11;
	slot->more[1].size = 12; /* of the slot's last receive */
	for (unsigned buffer = 0; buffer < 3; buffer++) {
		CHECK_INT(ha_carried(&slot->req, buffer, list), 1);
		check_carried(&c->b, 0, 1, buffer < 2 ? 10 + buffer : 0, false, false);
		CHECK_INT(list[0].opcode, IBV_WR_RDMA_WRITE);
		CHECK_INT(list[0].wr_id, ha_wr_id(HA_WR_CTS, 3, 91));
	}
	slot->cts_parked = true;
	CHECK_INT(ask(&slot->req), 1);
	check_carried(&c->b, 0, 1, 10, false, true);
	slot->cts_parked = false;
	c->b.rail[1].state = HA_RAIL_DOWN;
	slot->busy = HA_SLOT_HELD;
	CHECK_INT(ask(&slot->req), 1);
	check_carried(&c->b, 0, 1, 10, true, true);
	free(c);
}

int main(void)
{
	a_send_on_one_rail();
	a_send_on_two_rails();
	cannot_be_asked();
	a_receive();
	return 0;
}
