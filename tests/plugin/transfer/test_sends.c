/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sender gives to its NICs: every byte of a message once, to where the receiver announced
 * it, with the keys of the rail that carries it, and one immediate for each stripe. And what it
 * does not post: without a receive, without keys, without room, into a slot that is in use.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/one_sided.h"
#include "plugin/transfer/suspect.h"
#include "tests/plugin/transfer/recorder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void one_on_one_rail(void)
{
	struct ha_send *s = make_sender();

	for (unsigned i = 0; i < 3; i++) {
		struct ha_request *req;
		size_t size = i == 1 ? 0 : 1000; /* an empty one between two others */

		CHECK(!send_member(s, 0, 1000)); /* nothing is announced */
		announce_receive(s, 1, 4096);
		CHECK(!send_member(s, 1, 1000)); /* another tag */
		req = send_member(s, 0, size);
		CHECK(req);
		CHECK_INT(req->size, size);
		CHECK_INT(s->head, i + 1);
		CHECK_INT(posted, 1);
		CHECK_INT(work[0].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
		CHECK_INT(work[0].num_sge, size ? 1 : 0);
		CHECK(work[0].flags & IBV_SEND_SIGNALED);
		CHECK_INT(work[0].imm, ha_imm_make(i, 0, 1, false));
		CHECK_INT(s->slot[i].pending, 1);
		CHECK_INT(s->slot[i].mask, 1);
		CHECK_INT(s->slot[i].held, 1);
		check_bytes(0, size);
	}
	free_sender(s);
}

/* No more than the receiver has room for. */
static void cut_to_the_receive(void)
{
	struct ha_send *s = make_sender();

	announce_receive(s, 1, 600);
	CHECK_INT(send_member(s, 0, 601)->size, 600);
	check_bytes(0, 600);
	free_sender(s);
}

static void over_all_rails(void)
{
	struct ha_send *s = make_sender();

	for (unsigned i = 0; i < 2; i++) {
		announce_receive(s, 1, LARGE);
		CHECK(send_member(s, 0, LARGE - 1));
		check_bytes(0, LARGE - 1);
		CHECK_INT(s->slot[i].pending, 3);
		CHECK_INT(s->slot[i].mask, 3);
	}
	free_sender(s);
}

/* Sends of a group come in any order; the last one posts all of them. */
static void a_group(uint64_t size)
{
	struct ha_send *s = make_sender();
	unsigned order[] = { 2, 0, 1 }, immediates = 0;
	struct ha_request *req[3];
	const struct ha_sizes *sizes =
		(const struct ha_sizes *)((char *)s->b.ring + HA_SEND_STAGED +
					  sizeof(struct ha_board));

	announce_receive(s, 3, LARGE);
	CHECK(!send_member(s, 5, 10)); /* a tag that none of them has */
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(posted, 0);
		req[i] = send_member(s, order[i], size - order[i]);
		CHECK(req[i]);
		CHECK_INT(req[i]->member, order[i]);
	}
	CHECK_INT(s->head, 1);
	CHECK_INT(s->slot[0].held, 7);
	for (unsigned m = 0; m < 3; m++) {
		CHECK_INT(sizes->size[m], size - m);
		check_bytes(m, size - m);
	}
	for (unsigned w = 0; w < posted; w++)
		if (work[w].opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
			immediates++;
			CHECK_INT(work[w].imm, ha_imm_make(0, work[w].rail, s->slot[0].mask, true));
			CHECK_INT(work[w].to, RING);
			CHECK_INT(work[w].length, sizeof(struct ha_sizes));
			CHECK_INT(work[w].rkey, 300 + work[w].rail);
			CHECK_INT(work[w].lkey, 400 + work[w].rail);
		}
	CHECK_INT(immediates, __builtin_popcount(s->slot[0].mask));
	CHECK_INT(s->slot[0].pending, s->slot[0].mask);
	free_sender(s);
}

/* A tag that is sent twice into a group finds no second buffer. */
static void the_same_tag_twice(void)
{
	struct ha_send *s = make_sender();

	announce_receive(s, 2, LARGE);
	CHECK(send_member(s, 1, 10));
	CHECK(!send_member(s, 1, 10));
	CHECK(send_member(s, 0, 10));
	CHECK_INT(s->head, 1);
	free_sender(s);
}

/* Only its first line is here: what belongs to the second is of an older receive. */
static void half_a_group_is_announced(void)
{
	struct ha_send *s = make_sender();
	struct ha_cts *cts = announce_receive(s, 2, LARGE);

	cts[1].idx = 0;
	CHECK(!send_member(s, 1, 10));
	CHECK(send_member(s, 0, 10));
	cts[1].idx = 1;
	CHECK(send_member(s, 1, 10));
	free_sender(s);
}

static void slots_in_use(void)
{
	struct ha_send *s = make_sender();

	for (unsigned n = 1; n <= 2; n++) {
		announce_receive(s, n, LARGE);
		s->slot[s->head].held = 1; /* its request has not been tested to its end */
		CHECK(!send_member(s, 0, 10));
		s->slot[s->head].held = 0;
		s->slot[s->head].pending = 2; /* a stripe is on its way */
		CHECK(!send_member(s, 0, 10));
		s->slot[s->head].pending = 0;
		CHECK_INT(posted, 0);
		for (unsigned m = 0; m < n; m++)
			CHECK(send_member(s, m, 10));
		CHECK_INT(s->head, n);
	}
	free_sender(s);
}

static void a_group_of_too_many(void)
{
	unsigned wrong[] = { 0, HA_MAX_RECVS + 1 };

	for (unsigned i = 0; i < 2; i++) {
		struct ha_send *s = make_sender();

		announce_receive(s, 1, LARGE)->n = (uint8_t)wrong[i];
		atomic_store(&s->b.attention, HA_ATTN_DRIVE); /* there is no loop to wake */
		CHECK(!send_member(s, 0, 10));
		CHECK_INT(s->b.abort->error, -EPROTO);
		free_sender(s);
	}
}

/* The rail of small messages has no keys: another one carries; none has: it is asked for. */
static void without_keys(void)
{
	struct ha_send *s = make_sender();
	struct ha_cts *cts = announce_receive(s, 1, LARGE);
	struct ha_mr none = { .type = HA_MEM_HOST };

	for (unsigned i = 0; i < 2; i++) { /* of the group that had the slot before */
		s->more[i][0].size = 10;
		s->more[i][0].mr = &none;
	}
	cts->rkey[0] = 0;
	CHECK(send_member(s, 0, 1000));
	CHECK_INT(s->slot[0].mask, 2);
	check_bytes(0, 1000);

	cts = announce_receive(s, 1, LARGE);
	cts->rkey[1] = 0;
	mr.lkey[0] = 0; /* the peer has sent keys for a rail that we have none on */
	atomic_store(&s->b.attention, HA_ATTN_DRIVE);
	CHECK(!send_member(s, 0, 1000));
	CHECK(!send_member(s, 0, LARGE));
	CHECK_INT(s->b.registered.wanted, 1);
	CHECK_INT(posted, 0);
	CHECK(send_member(s, 0, 0)); /* an empty one needs none */

	cts = announce_receive(s, 1, LARGE);
	cts->rkey[0] = 0;
	mr.lkey[1] = 0;
	s->b.registered.wanted = 0;
	atomic_store(&s->b.attention, 0);
	atomic_store(&s->b.ctx->round.called, true); /* there is no loop to wake */
	CHECK(!send_member(s, 0, 1000));
	CHECK_INT(s->b.registered.wanted, 2);
	CHECK_INT(atomic_load(&s->b.attention), HA_ATTN_DRIVE);
	atomic_store(&s->b.attention, 0);
	CHECK(!send_member(s, 0, 1000)); /* asked for already */
	CHECK_INT(atomic_load(&s->b.attention), 0);
	free_sender(s);
}

static void without_room(void)
{
	struct ha_send *s = make_sender();

	s->b.rail[0].sq_posted = s->b.rail[0].sq_depth;
	announce_receive(s, 1, LARGE);
	CHECK(!send_member(s, 0, 10));
	CHECK(!send_member(s, 0, LARGE));
	CHECK_INT(posted, 0);
	s->b.rail[0].sq_retired++;
	CHECK(send_member(s, 0, LARGE));
	check_bytes(0, LARGE);

	announce_receive(s, 2, LARGE);
	s->b.rail[0].sq_retired = s->b.rail[0].sq_posted - 1022; /* it takes two more */
	CHECK(send_member(s, 0, 10));
	CHECK(!send_member(s, 1, 10)); /* two buffers and the lengths are three */
	CHECK_INT(posted, 0);
	s->b.rail[0].sq_retired++;
	CHECK(send_member(s, 1, 10));
	CHECK_INT(posted, 3);
	free_sender(s);

	/* each rail needs room of its own */
	for (unsigned full = 0; full < RAILS; full++) {
		s = make_sender();
		announce_receive(s, 2, LARGE);
		CHECK(send_member(s, 0, LARGE));
		s->b.rail[full].sq_posted = s->b.rail[full].sq_depth - 2;
		CHECK(!send_member(s, 1, LARGE));
		CHECK_INT(posted, 0);
		s->b.rail[full].sq_retired++;
		CHECK(send_member(s, 1, LARGE));
		CHECK_INT(posted, 6);
		free_sender(s);
	}
}

/* HA_NCCL_POLL_ALWAYS: who finds no receive polls, unless somebody else on this NIC has since. */
static void polls_while_it_waits(void)
{
	struct ha_send *s = make_sender();
	struct ha_device device = { .polls = 5 };

	s->b.rail[0].dev = &device;
	ha_policy_poll(&s->b, 1);
	s->polls_seen = 5;
	polls = 0;
	CHECK(!send_member(s, 0, 10)); /* memory alone would show it */
	CHECK_INT(polls, 0);
	s->b.poll.always = true;
	CHECK(!send_member(s, 0, 10));
	CHECK_INT(polls, 1);
	CHECK_INT(s->polls_seen, 6); /* its own */
	CHECK(!send_member(s, 0, 10));
	CHECK_INT(polls, 2);
	atomic_store(&device.polls, 9); /* somebody's */
	CHECK(!send_member(s, 0, 10));
	CHECK_INT(polls, 2);
	CHECK_INT(s->polls_seen, 9);
	CHECK(!send_member(s, 0, 10));
	CHECK_INT(polls, 3);
	CHECK_INT(s->b.poll.idle, 5);
	free_sender(s);
}

static void without_a_rail(void)
{
	struct ha_send *s = make_sender();

	s->b.active = 0;
	ha_policy_update(&s->b);
	announce_receive(s, 1, LARGE);
	CHECK(!send_member(s, 0, 10));
	CHECK_INT(posted, 0);
	CHECK_INT(s->b.poll.idle, 1);
	free_sender(s);
}

/* A queue pair that takes no work is as good as one that loses it: the message counts as posted,
 * and the fence finds out. */
static void refused_posts(void)
{
	size_t sizes[] = { 10, LARGE };

	for (unsigned i = 0; i < 2; i++) {
		struct ha_send *s = make_sender();

		s->b.peer_closed = true; /* no event */
		atomic_store(&s->b.attention, HA_ATTN_DRIVE);
		announce_receive(s, 1, LARGE);
		refusal = EIO;
		CHECK(send_member(s, 0, sizes[i]));
		CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
		CHECK_INT(s->b.rail[1].state, i ? HA_RAIL_FENCING : HA_RAIL_UP);
		CHECK_INT(s->slot[0].pending, i ? 3 : 1);
		free_sender(s);
	}
}

/* Payloads that one work request may not carry together with their immediate. */
static void adaptive_routing(void)
{
	for (int routing = -1; routing <= 1; routing++)
		for (uint8_t layer = IBV_LINK_LAYER_INFINIBAND; layer <= IBV_LINK_LAYER_ETHERNET;
		     layer++) {
			struct ha_send *s = make_sender();
			bool apart =
				routing > 0 || (routing < 0 && layer == IBV_LINK_LAYER_INFINIBAND);

			s->b.ctx->config.ib_adaptive_routing = routing;
			s->b.ctx->config.ib_ar_threshold = 8192;
			s->b.rail[0].setup.peer.qp.link_layer = layer;
			ha_send_prepare_rail(s, &s->b.rail[0]);
			announce_receive(s, 1, LARGE);
			CHECK(send_member(s, 0, 8192));
			CHECK_INT(posted, 1);
			announce_receive(s, 1, LARGE);
			CHECK(send_member(s, 0, 8193));
			CHECK_INT(posted, apart ? 2 : 1);
			check_bytes(0, 8193);
			free_sender(s);
		}
}

/* An empty probe goes before a message that is measured; both ends of the measurement are known by
 * their completions (balance/gate.h). */
static void measured_message(unsigned members)
{
	struct ha_send *s = make_sender();
	unsigned timed = 0;

	s->b.balance.gate.on = true;
	s->b.balance.gate.wanted = 1;
	s->b.balance.gate.tries = 9;
	announce_receive(s, members, LARGE);
	for (unsigned m = 0; m < members; m++)
		CHECK(send_member(s, m, LARGE));
	CHECK_INT(work[0].id, ha_wr_id(HA_WR_PROBE, 0, 1));
	CHECK(s->b.balance.gate.data_out);
	CHECK_INT(s->b.balance.gate.length, members * (uint64_t)LARGE / 2);
	for (unsigned w = 1; w < posted; w++) {
		bool here = work[w].rail == work[0].rail;

		if (work[w].opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			continue;
		CHECK_INT(work[w].id, ha_wr_id(here ? HA_WR_TIMED : HA_WR_DATA,
					       ha_wr_data_entry(0, work[w].rail),
					       s->b.rail[work[w].rail].sq_posted));
		timed += here;
	}
	CHECK_INT(timed, 1);
	free_sender(s);
}

/* It is looked at, to be measured, and stays on one rail all the same. */
static void below_the_gate(void)
{
	struct ha_send *s = make_sender();

	s->b.balance.gate.on = true;
	s->b.balance.gate.wanted = 1;
	s->b.balance.gate.tries = 9;
	ha_gate_apply(&s->b);
	CHECK_INT(s->b.balance.stripe_min, 0);
	announce_receive(s, 1, LARGE);
	CHECK(send_member(s, 0, HA_GATE_FIRST - 1));
	CHECK_INT(s->slot[0].mask, 1);
	check_bytes(0, HA_GATE_FIRST - 1);
	announce_receive(s, 1, LARGE);
	CHECK(send_member(s, 0, HA_GATE_FIRST));
	CHECK_INT(s->slot[1].mask, 3);
	free_sender(s);
}

/* What the agent says counts from the next message on: the hint, and that there is one. */
static void advice_is_followed(void)
{
	static struct mpib_hint_shm hints;
	static const struct {
		uint32_t slot, sup_bw;
	} says[] = { { MPIB_NO_SLOT, 0 }, { 0, 256 }, { 0, 768 }, { MPIB_NO_SLOT, 0 }, { 0, 768 } };
	struct ha_send *s = make_sender();
	struct ha_advised *d = &s->b.balance.advised;

	s->b.balance.share[0] = s->b.balance.share[1] = d->without[0] = d->without[1] = 512;
	d->on = true;
	d->sup = 2;
	d->hint = d->reported = HA_HINT_NONE;
	atomic_store(&s->b.ctx->advice.hints.shm, &hints);
	for (unsigned i = 0; i < 5; i++) {
		bool none = says[i].slot == MPIB_NO_SLOT;

		atomic_store(&d->flow.slot, says[i].slot);
		mpib_hint_put(&hints.entries[0], says[i].sup_bw, 0, 0);
		atomic_store(&s->b.attention, HA_ATTN_DRIVE);
		announce_receive(s, 1, LARGE);
		CHECK(send_member(s, 0, LARGE));
		CHECK_INT(d->hint, none ? HA_HINT_NONE : HA_HINT_OK);
		CHECK_INT(s->b.balance.weight[1], none ? 512 : says[i].sup_bw);
		CHECK_INT(d->sup_bw, says[i].sup_bw);
		check_bytes(0, LARGE);
		CHECK_INT(work[posted - 1].length, LARGE / 1024 * s->b.balance.weight[1]);
	}
	free_sender(s);
}

/* What was posted again is reported with the failure that made it necessary. */
static void replay_is_counted(void)
{
	struct ha_send *s = make_sender();
	struct ha_compare *compare = &s->b.failover->ctl[1].compare;

	announce_receive(s, 1, LARGE);
	CHECK(send_member(s, 0, LARGE));
	compare->unreported = true;
	s->slot[0].parked = 3;
	s->b.failover->parked = 2;
	s->b.abort->held = -EIO; /* the connection may be about to end: nothing is */
	ha_replay(&s->b);
	CHECK_INT(s->slot[0].parked, 3);
	s->b.abort->held = 0;
	ha_replay(&s->b);
	CHECK_INT(s->slot[0].parked, 0);
	CHECK_INT(s->b.failover->parked, 0);
	CHECK_INT(compare->replayed_requests, 1);
	CHECK_INT(compare->replayed_bytes, LARGE);
	CHECK_INT(s->b.failover->ctl[0].compare.replayed_requests, 0);
	free_sender(s);
}

static void complete_work(struct ha_send *s, enum ibv_wc_status status, enum ibv_wc_opcode opcode,
			  uint64_t id)
{
	arriving = (struct ibv_wc) { .status = status, .opcode = opcode, .wr_id = id };
	arrivals = 1;
	ha_bundle_poll(&s->b);
	CHECK_INT(arrivals, 0);
}

/* A message is sent when all its stripes are; that makes room in their queues. */
static void completions_make_room(void)
{
	struct ha_send *s = make_sender();
	struct ha_request *req;
	int done, size = 0;

	announce_receive(s, 1, LARGE);
	req = send_member(s, 0, LARGE);
	CHECK(req && posted == 2);
	complete_work(s, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, work[1].id);
	CHECK_INT(s->slot[0].pending, 1);
	CHECK_INT(ha_rail_outstanding(&s->b.rail[0]), 0); /* the poll asked rail 0 first */
	CHECK_INT(ha_test(req, &done, &size), 0);
	CHECK(!done);
	complete_work(s, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, work[0].id);
	CHECK_INT(ha_test(req, &done, &size), 0);
	CHECK(done);
	CHECK_INT(size, LARGE);
	CHECK_INT(s->slot[0].held, 0);
	free_sender(s);
}

/* All sends of a group are complete when the last stripe is; each is handed back by itself. */
static void completions_of_a_group(void)
{
	struct ha_send *s = make_sender();
	struct ha_request *req[3];
	int done, size;

	announce_receive(s, 3, LARGE);
	for (unsigned m = 0; m < 3; m++)
		req[m] = send_member(s, m, 10 + m);
	CHECK_INT(s->slot[0].mask, 1);
	for (unsigned m = 0; m < 3; m++) {
		CHECK_INT(ha_test(req[m], &done, &size), 0);
		CHECK(!done);
	}
	complete_work(s, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, work[posted - 1].id);
	for (unsigned m = 0; m < 3; m++) {
		CHECK_INT(ha_test(req[m], &done, &size), 0);
		CHECK(done);
		CHECK_INT(size, 10 + m);
		CHECK_INT(s->slot[0].held, 7 & ~((2 << m) - 1));
	}
	announce_receive(s, 1, LARGE);
	req[0] = send_member(s, 0, 10);
	complete_work(s, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, work[0].id);
	CHECK_INT(ha_test(req[0], &done, NULL), 0); /* nobody asks for its size */
	CHECK(done);
	free_sender(s);
}

/* What ends no message: a marker says that the queue is drained; data for a sender is a defect. */
static void other_completions(void)
{
	struct ha_send *s = make_sender();

	atomic_store(&s->b.attention, HA_ATTN_DRIVE);
	s->b.peer_closed = true; /* no event */
	announce_receive(s, 1, LARGE);
	CHECK(send_member(s, 0, 10));
	complete_work(s, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, ha_wr_id(HA_WR_CONTROL, 0, 1));
	CHECK_INT(s->slot[0].pending, 1);
	complete_work(s, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE, work[0].id);
	CHECK_INT(s->b.rail[0].loss.marker, HA_MARKER_NONE);
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->slot[0].pending, 1);
	s->b.active = 3;
	complete_work(s, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE, ha_wr_id(HA_WR_MARKER, 0, 2));
	CHECK(s->b.rail[0].loss.marker == HA_MARKER_BACK ||
	      s->b.rail[1].loss.marker == HA_MARKER_BACK);
	CHECK_INT(s->b.abort->error, 0);
	free_sender(s);

	s = make_sender();
	atomic_store(&s->b.attention, HA_ATTN_DRIVE);
	complete_work(s, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, 0);
	CHECK_INT(s->b.abort->error, -EPROTO);
	free_sender(s);
}

/* The connection has an error: it is returned, also to who may not enter; after a close in order
 * sends are taken for ever. */
static void after_the_end(void)
{
	struct ha_send *s = make_sender();
	struct ha_request *req;
	int done, size;

	announce_receive(s, 1, LARGE);
	req = send_member(s, 0, 10);
	atomic_store(&s->b.attention, HA_ATTN_DRIVE);
	CHECK_INT(ha_test(req, &done, &size), 0);
	CHECK(!done);
	s->slot[0].pending = 0;
	req->done = 1;
	CHECK_INT(ha_test(req, &done, &size), 0);
	CHECK(done);
	CHECK_INT(size, 10);
	CHECK_INT(s->slot[0].held, 0);
	s->head = 0;
	announce_receive(s, 1, LARGE);
	s->b.error = -EIO;
	atomic_store(&s->b.attention, HA_ATTN_ERROR);
	CHECK_INT(ha_isend(s, data, 10, 7, &mr, &req), -EIO);
	CHECK(!req);
	atomic_store(&s->b.attention, HA_ATTN_ERROR | HA_ATTN_HELD);
	CHECK_INT(ha_isend(s, data, 10, 7, &mr, &req), -EIO);
	CHECK(!req);
	atomic_store(&s->b.attention, HA_ATTN_HELD);
	CHECK_INT(ha_isend(s, data, 10, 7, &mr, &req), 0);
	CHECK(!req);

	s->b.abort->quiet = true;
	atomic_store(&s->b.attention, HA_ATTN_ERROR);
	s->slot[0].held = 1;
	s->slot[1].pending = 1;
	s->slot[2].open = 1;
	for (unsigned i = 3; i < HA_SLOTS; i++) {
		CHECK_INT(ha_isend(s, data, 10, 7, &mr, &req), 0);
		CHECK(req == &s->slot[i].req);
		CHECK_INT(s->slot[i].held, 1);
		CHECK_INT(s->slot[i].n, 1);
		CHECK(!req->done);
	}
	CHECK_INT(ha_isend(s, data, 10, 7, &mr, &req), -EIO); /* nobody tests them */
	CHECK_INT(s->head, 0);
	CHECK_INT(posted, 0);
	free_sender(s);
}

/* After a fence a stripe goes over the rail that has the most weight for its load. */
static void replay_by_weight(void)
{
	struct ha_send *s = make_sender();
	uint64_t bytes = 0;

	announce_receive(s, 1, LARGE);
	CHECK(send_member(s, 0, LARGE));
	s->more[0][0].size = 77; /* of a group that had the slot before */
	for (unsigned carrier = 0; carrier < 2; carrier++) {
		uint64_t half = LARGE / 2;

		posted = 0;
		s->slot[0].parked = 3; /* the other stripe has a turn of its own, */
		s->slot[0].moved = 1;  /* or had it */
		s->b.rail[!carrier].sq_posted += 10;
		s->b.rail[carrier].sq_posted += 1000; /* done, and no load */
		s->b.rail[carrier].sq_retired = s->b.rail[carrier].sq_posted;
		CHECK_INT(ha_send_replay(s, &s->slot[0], 1, &bytes), 0);
		s->b.rail[!carrier].sq_posted -= 10;
		CHECK_INT(bytes, (carrier + 1) * half);
		CHECK_INT(s->slot[0].parked, 1);
		CHECK_INT(s->slot[0].moved, 3);
		CHECK_INT(s->slot[0].carrier[1], carrier);
		CHECK_INT(posted, 2);
		CHECK_INT(work[0].rail, carrier);
		CHECK_INT(work[0].to, THERE + half);
		CHECK_INT(work[0].length, half);
		CHECK_INT(work[0].rkey, rkey_of(carrier, 0));
		CHECK_INT(work[1].imm, ha_imm_make(0, 1, 3, true));
	}
	posted = 0;
	s->slot[0].parked = 2;
	mr.lkey[0] = mr.lkey[1] = 0; /* no keys: it stays where it is */
	CHECK_INT(ha_send_replay(s, &s->slot[0], 1, &bytes), -EAGAIN);
	mr.lkey[0] = lkey_of(0);
	s->b.rail[0].sq_retired = s->b.rail[0].sq_posted - 1023; /* no room for two */
	CHECK_INT(ha_send_replay(s, &s->slot[0], 1, &bytes), -EAGAIN);
	s->b.rail[0].sq_retired++;
	LIST_REMOVE(&mr, link); /* the buffer has been given back */
	CHECK_INT(ha_send_replay(s, &s->slot[0], 1, &bytes), -EAGAIN);
	CHECK_INT(posted, 0);
	CHECK_INT(s->slot[0].parked, 2);
	LIST_INSERT_HEAD(&s->b.registered.list, &mr, link);
	CHECK_INT(ha_send_replay(s, &s->slot[0], 1, &bytes), 0);
	free_sender(s);
}

int main(void)
{
	one_on_one_rail();
	cut_to_the_receive();
	over_all_rails();
	a_group(10);
	a_group(LARGE);
	the_same_tag_twice();
	half_a_group_is_announced();
	slots_in_use();
	a_group_of_too_many();
	without_keys();
	without_room();
	polls_while_it_waits();
	without_a_rail();
	refused_posts();
	adaptive_routing();
	measured_message(1);
	measured_message(2);
	below_the_gate();
	advice_is_followed();
	completions_make_room();
	completions_of_a_group();
	other_completions();
	after_the_end();
	replay_by_weight();
	replay_is_counted();
	return 0;
}
