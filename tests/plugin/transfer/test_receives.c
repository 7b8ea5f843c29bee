/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a receiver gives to its NICs, clear-to-send by clear-to-send: from where, to where, with
 * whose keys, and how often one of them says that it is done. And when it posts nothing.
 */
#include "tests/plugin/transfer/receiver.h"

#include "base/check.h"
#include "plugin/ctx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIGNALLED 32 /* one in so many */

static char memory[HA_MAX_RECVS][256];
static struct ha_mr known = { .rkey = { 11, 12, 13 } };

static int receive_buffers(struct ha_recv *c, int n, bool optional, struct ha_request **req)
{
	void *data[HA_MAX_RECVS + 1];
	size_t size[HA_MAX_RECVS + 1];
	int tag[HA_MAX_RECVS + 1], err;
	struct ha_mr *mr[HA_MAX_RECVS + 1];

	for (int m = 0; m < HA_MAX_RECVS + 1; m++) {
		data[m] = memory[m % HA_MAX_RECVS];
		size[m] = 100 + (size_t)m;
		tag[m] = 20 + m;
		mr[m] = m % 2 ? NULL : &known;
	}
	err = ha_irecv(c, n, data, size, tag, mr, optional, req);
	CHECK(!atomic_load(&c->b.inside));
	return err;
}

/* The last work request is the clear-to-send of receive `idx` of n buffers, over this rail. */
static void check_announcement(const struct ha_recv *c, uint64_t idx, unsigned n, unsigned rail,
			       const struct ha_mr *keys)
{
	const struct note *note = &notes[nnotes - 1];
	unsigned entry = (unsigned)(idx % HA_SLOTS);

	CHECK_INT(note->rail, rail);
	CHECK_INT(note->opcode, IBV_WR_RDMA_WRITE);
	CHECK_INT(note->length, n * sizeof(struct ha_cts));
	CHECK_INT(note->lkey, ring_lkey_of(rail));
	CHECK_INT(note->rkey, ring_rkey_of(rail));
	CHECK_INT(note->to, SENDER_RING + entry * HA_CTS_SLOT_SIZE);
	CHECK_INT(note->id, ha_wr_id(HA_WR_CTS, entry, c->b.rail[rail].sq_posted));
	for (unsigned m = 0; m < n; m++) {
		CHECK_INT(note->cts[m].addr, (uintptr_t)memory[m]);
		CHECK_INT(note->cts[m].size, 100 + m);
		CHECK_INT(note->cts[m].tag, 20 + m);
		CHECK_INT(note->cts[m].n, n);
		CHECK_INT(note->cts[m].idx, idx + 1);
		for (unsigned i = 0; i < NRAILS; i++)
			CHECK_INT(note->cts[m].rkey[i], m % 2 || !keys ? 0 : keys->rkey[i]);
	}
}

static void check_slot(const struct ha_recv *c, uint64_t idx, unsigned n, unsigned busy)
{
	const struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

	CHECK_INT(slot->idx, idx);
	CHECK_INT(slot->n, n);
	CHECK_INT(slot->busy, busy);
	CHECK_INT(slot->imm, ha_imm_identity(idx));
	CHECK_INT(slot->common, ha_imm_identity(idx));
	CHECK_INT(slot->seen | slot->missing | slot->sized | slot->cts_parked, 0);
	CHECK_INT(slot->bytes, 0);
	CHECK_INT(slot->req.kind, HA_REQ_RECV);
	CHECK_INT(slot->req.entry, idx % HA_SLOTS);
	CHECK(slot->req.bundle == &c->b);
}

/* Nothing of the slot's last receive is left. */
static void soil_slot(struct ha_recv_slot *slot)
{
	slot->n = 7;
	slot->seen = slot->missing = slot->sized = 1;
	slot->cts_rail = 2;
	slot->cts_parked = true;
	slot->bytes = 5;
	slot->req.done = 1;
}

/* What goes inline has one place for all slots; else each slot has its own, until the NIC has read
 * it. */
static void where_they_are_written_from(void)
{
	for (unsigned n = 1; n <= HA_MAX_RECVS; n++)
		for (unsigned spare = 0; spare < 3; spare++) {
			struct ha_recv *c = make_receiver();
			uint32_t size = n * (uint32_t)sizeof(struct ha_cts);
			struct ha_request *req;

			c->b.rail[0].max_inline = size + spare - 1;
			for (unsigned idx = 0; idx < 2; idx++) {
				unsigned place = spare ? 0 : 1 + idx;

				soil_slot(&c->slot[idx]);
				CHECK_INT(receive_buffers(c, (int)n, false, &req), 0);
				CHECK(req == &c->slot[idx].req);
				CHECK(!req->done);
				check_announcement(c, idx, n, 0, &known);
				check_slot(c, idx, n, HA_SLOT_WIRE | HA_SLOT_HELD);
				CHECK_INT(notes[idx].flags, spare ? IBV_SEND_INLINE : 0);
				CHECK_INT(notes[idx].from, (uintptr_t)c->b.ring + HA_RECV_CTS +
								   place * HA_CTS_SLOT_SIZE);
				CHECK_INT(c->slot[idx].cts_rail, 0);
			}
			free_receiver(c);
		}
}

/* One in 32, or as MPIB's variable says, over whatever rail. */
static void some_are_signalled(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req;

	for (unsigned idx = 0; idx < 3 * SIGNALLED; idx++) {
		c->b.balance.first = (uint8_t)(idx % NRAILS);
		CHECK_INT(receive_buffers(c, 1, false, &req), 0);
		CHECK_INT(notes[idx].flags,
			  idx % SIGNALLED == SIGNALLED - 1 ? IBV_SEND_SIGNALED : 0);
		check_announcement(c, idx, 1, idx % NRAILS, &known);
		CHECK_INT(c->slot[idx].cts_rail, idx % NRAILS);
	}
	free_receiver(c);
	c = make_receiver();
	c->b.ctx->mpib.on = true;
	c->b.ctx->config.mpib_cts_signal_interval = 5;
	ha_recv_prepare(c);
	for (unsigned idx = 0; idx < 15; idx++) {
		CHECK_INT(receive_buffers(c, 1, false, &req), 0);
		CHECK_INT(notes[idx].flags, idx % 5 == 4 ? IBV_SEND_SIGNALED : 0);
	}
	free_receiver(c);
}

static void too_few_or_many(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req = &c->slot[0].req;

	CHECK_INT(receive_buffers(c, 0, false, &req), -EINVAL);
	CHECK(!req);
	CHECK_INT(receive_buffers(c, HA_MAX_RECVS + 1, false, &req), -EINVAL);
	CHECK_INT(receive_buffers(c, -1, false, &req), -EINVAL);
	CHECK_INT(nnotes, 0);
	CHECK_INT(c->head, 0);
	free_receiver(c);
}

static void not_now(struct ha_recv *c, unsigned idle)
{
	unsigned before = nnotes;
	uint64_t head = c->head;
	struct ha_request *req;

	data_queue[0].polls = 0;
	CHECK_INT(receive_buffers(c, 1, false, &req), 0);
	CHECK(!req);
	CHECK_INT(nnotes, before);
	CHECK_INT(c->head, head);
	CHECK_INT(c->b.poll.idle, idle);
	CHECK(data_queue[0].polls > 0); /* what completes may make room */
}

/* No rail, no room in its queue, a slot that is in use: not now. A completion that comes makes
 * room at once. */
static void nothing_is_posted(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_rail *r = &c->b.rail[0];
	struct ha_request *req;

	c->b.active = 0;
	not_now(c, 1);
	c->b.active = 7;
	r->sq_posted = r->sq_retired + r->sq_depth;
	not_now(c, 2);
	r->sq_retired++;
	CHECK_INT(receive_buffers(c, 1, false, &req), 0);
	CHECK(req);
	not_now(c, 3);
	add_completion(&data_queue[0],
		       (struct ibv_wc) { .opcode = IBV_WC_RDMA_WRITE,
					 .wr_id = ha_wr_id(HA_WR_CTS, 0, r->sq_posted) });
	CHECK_INT(receive_buffers(c, 1, false, &req), 0);
	CHECK(req);
	CHECK_INT(ha_rail_outstanding(r), 1);
	c->slot[2].busy = HA_SLOT_HELD;
	not_now(c, 4);
	c->slot[2].busy = HA_SLOT_WIRE;
	add_immediate(0, ha_imm_make(0, 0, 1, false), 10);
	not_now(c, 5);
	atomic_store(&c->b.attention, HA_ATTN_HELD);
	CHECK_INT(receive_buffers(c, 1, false, &req), 0);
	CHECK(!req);
	free_receiver(c);
}

/* The data alone shows it to the application; HA_NCCL_POLL_ALWAYS: it must ask all the same. */
static void optional_receives(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req;

	CHECK_INT(receive_buffers(c, 1, true, &req), 0);
	CHECK(req->done);
	check_slot(c, 0, 1, HA_SLOT_WIRE | HA_SLOT_HELD | HA_SLOT_OPTIONAL);
	c->b.poll.always = true;
	CHECK_INT(receive_buffers(c, 1, true, &req), 0);
	CHECK(!req->done);
	check_slot(c, 1, 1, HA_SLOT_WIRE | HA_SLOT_HELD);
	c->b.poll.always = false;
	CHECK_INT(receive_buffers(c, 2, true, &req), 0); /* a group is no other case */
	CHECK(req->done);
	free_receiver(c);
}

/* Nobody tests them for their data, so posting polls, when more than 32 are ahead. */
static void far_ahead(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req;

	for (unsigned idx = 0; idx < HA_REFILL + 3; idx++) {
		CHECK_INT(receive_buffers(c, 1, true, &req), 0);
		CHECK(req);
		CHECK_INT(data_queue[0].polls, idx > HA_REFILL ? idx - HA_REFILL : 0);
	}
	free_receiver(c);
}

/* The fence of a rail that takes no work finds out that this one did not arrive. */
static void refused_posts(void)
{
	static const int refusals[] = { EIO, -EIO };

	for (unsigned i = 0; i < 2; i++) {
		struct ha_recv *c = make_receiver();
		struct ha_request *req;

		post_refusal = refusals[i];
		CHECK_INT(receive_buffers(c, 1, false, &req), 0);
		CHECK(req);
		CHECK_INT(c->head, 1);
		CHECK_INT(c->b.rail[0].state, HA_RAIL_FENCING);
		CHECK_INT(c->b.active, 6);
		free_receiver(c);
	}
}

/* After a fence the same is written again, over the rail that is first now; without the keys of a
 * buffer that has been given back meanwhile. */
static void written_again(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_recv_slot *slot = &c->slot[1];
	struct ha_request *req;

	for (unsigned i = 0; i < 2; i++)
		CHECK_INT(receive_buffers(c, 3, false, &req), 0);
	slot->cts_parked = true;
	c->b.balance.first = 2;
	c->b.active = 0;
	CHECK_INT(ha_recv_replay(c, slot), -EAGAIN);
	c->b.active = 4;
	c->b.rail[2].sq_posted = c->b.rail[2].sq_depth;
	CHECK_INT(ha_recv_replay(c, slot), -EAGAIN);
	CHECK(slot->cts_parked);
	CHECK_INT(nnotes, 2);
	c->b.rail[2].sq_posted--;
	LIST_INSERT_HEAD(&c->b.registered.list, &known, link);
	CHECK_INT(ha_recv_replay(c, slot), 0);
	CHECK(!slot->cts_parked);
	CHECK_INT(slot->cts_rail, 2);
	CHECK_INT(nnotes, 3);
	check_announcement(c, 1, 3, 2, &known);
	c->b.rail[2].sq_retired = c->b.rail[2].sq_posted;
	LIST_INIT(&c->b.registered.list);
	CHECK_INT(ha_recv_replay(c, slot), 0);
	check_announcement(c, 1, 3, 2, NULL);
	CHECK(!pthread_mutex_trylock(&c->b.registered.list_lock));
	pthread_mutex_unlock(&c->b.registered.list_lock);
	free_receiver(c);
}

static bool can_receive(struct ha_recv *c, char *at, size_t bytes)
{
	void *data[2] = { at, memory[6] };
	size_t size[2] = { bytes, 1 };
	struct ha_mr *mr[2] = { NULL, NULL };
	int tag[2] = { 1, 2 };
	struct ha_request *req;

	CHECK_INT(ha_irecv(c, 2, data, size, tag, mr, false, &req), 0);
	return req != NULL;
}

/* Part of a receive's data may come once more: its buffers are not posted again before. */
static void buffers_in_doubt(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req;

	CHECK_INT(receive_buffers(c, 2, true, &req), 0); /* 100 and 101 bytes of two memories */
	CHECK_INT(receive_buffers(c, 4, true, &req), 0); /* of no interest */
	c->slot[0].busy |= HA_SLOT_DOUBT;
	atomic_store(&c->b.attention, HA_ATTN_DOUBT);
	CHECK(!can_receive(c, memory[0] + 99, 50));
	CHECK(can_receive(c, memory[0] + 100, 156));
	CHECK(!can_receive(c, memory[0] + 100, 157)); /* a byte of the next */
	CHECK(!can_receive(c, memory[1] + 100, 1));
	CHECK(can_receive(c, memory[1] + 101, 1));
	CHECK(can_receive(c, memory[2], 256));
	CHECK_INT(atomic_load(&c->b.attention), HA_ATTN_DOUBT);
	c->slot[0].busy &= (uint8_t)~HA_SLOT_DOUBT;
	CHECK(can_receive(c, memory[0], 50));
	CHECK_INT(atomic_load(&c->b.attention), 0); /* nothing is in doubt any more */
	c->slot[HA_SLOTS - 1] = c->slot[0];
	c->slot[HA_SLOTS - 1].busy = HA_SLOT_DOUBT;
	atomic_store(&c->b.attention, HA_ATTN_DOUBT);
	CHECK(!can_receive(c, memory[0], 50));
	free_receiver(c);
}

/* The connection has an error: it is returned, also to who may not enter; after a close in order
 * receives are taken, as long as there are slots. */
static void after_the_end(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_request *req;

	c->b.error = -EIO;
	atomic_store(&c->b.attention, HA_ATTN_ERROR);
	CHECK_INT(receive_buffers(c, 1, false, &req), -EIO);
	CHECK(!req);
	atomic_store(&c->b.attention, HA_ATTN_ERROR | HA_ATTN_HELD);
	CHECK_INT(receive_buffers(c, 1, false, &req), -EIO);
	CHECK(!req);
	c->b.abort->quiet = true;
	CHECK_INT(receive_buffers(c, 1, false, &req), 0);
	CHECK(!req);
	atomic_store(&c->b.attention, HA_ATTN_ERROR);
	c->head = 5;
	c->slot[6].busy = HA_SLOT_HELD;
	for (unsigned i = 0; i < HA_SLOTS - 1; i++) {
		unsigned entry = (i ? i + 6 : 5) % HA_SLOTS;

		c->slot[entry].req.done = 1;
		CHECK_INT(receive_buffers(c, 1, false, &req), 0);
		CHECK(req == &c->slot[entry].req);
		CHECK_INT(c->slot[entry].busy, HA_SLOT_HELD);
		CHECK(!req->done);
	}
	CHECK_INT(receive_buffers(c, 1, false, &req), -EIO);
	CHECK_INT(c->head, 5);
	CHECK_INT(nnotes, 0);
	free_receiver(c);
}

int main(void)
{
	where_they_are_written_from();
	some_are_signalled();
	too_few_or_many();
	nothing_is_posted();
	optional_receives();
	far_ahead();
	refused_posts();
	written_again();
	buffers_in_doubt();
	after_the_end();
	return 0;
}
