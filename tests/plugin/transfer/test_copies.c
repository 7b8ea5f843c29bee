/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small sends that are complete when they are posted: the NIC gets a copy, which is kept for as
 * long as it may have to be sent again. Which ones these are, and which are not.
 */
#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "tests/plugin/transfer/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COPY_MAX 48
#define POLL_EVERY 16

static struct ha_send *make_copier(void)
{
	struct ha_send *s = make_sender();

	s->b.ctx->config.copy_max = COPY_MAX;
	ha_send_prepare(s);
	CHECK_INT(s->copy_max, COPY_MAX);
	for (unsigned i = 0; i < RAILS; i++)
		s->b.rail[i].max_inline = HA_COPY_SLOT_SIZE;
	memset(data, 'a', 1000);
	mr.type = HA_MEM_HOST;
	return s;
}

static struct ha_request *send_one(struct ha_send *s, size_t size)
{
	struct ha_request *req;

	announce_receive(s, 1, LARGE);
	req = send_member(s, 0, size);
	CHECK(req);
	CHECK_INT(posted, 1);
	return req;
}

static void check_copied(const struct ha_send *s, const struct ha_request *req, size_t size)
{
	const struct ha_send_slot *slot = &s->slot[req->entry];
	const char *copy = ha_send_copy(s, req->entry);

	CHECK(req->done);
	CHECK(slot->copied);
	CHECK_INT(slot->pending, 1);
	CHECK_INT(slot->mask, 1);
	CHECK_INT(work[0].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	CHECK_INT(work[0].flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	CHECK_INT(work[0].from, (uintptr_t)copy);
	CHECK_INT(work[0].length, size);
	CHECK_INT(work[0].to, THERE);
	CHECK_INT(work[0].rkey, rkey_of(0, 0));
	CHECK_INT(work[0].imm, ha_imm_make(slot->idx, 0, 1, false));
	CHECK_INT(work[0].id,
		  ha_wr_id(HA_WR_DATA, ha_wr_data_entry(req->entry, 0), s->b.rail[0].sq_posted));
	for (size_t i = 0; i < size; i++)
		CHECK_INT(copy[i], 'a');
}

static void small_ones(void)
{
	struct ha_send *s = make_copier();
	int done, size;

	for (size_t n = 1; n <= COPY_MAX; n += COPY_MAX - 1) {
		struct ha_request *req = send_one(s, n);

		check_copied(s, req, n);
		CHECK_INT(ha_test(req, &done, &size), 0);
		CHECK(done);
		CHECK_INT(size, n);
		CHECK_INT(s->slot[req->entry].held, 0);
		CHECK_INT(s->slot[req->entry].pending, 1); /* the slot waits for the NIC */
	}
	free_sender(s);
}

static void not_copied(struct ha_send *s, size_t size)
{
	struct ha_request *req = send_one(s, size);

	CHECK(!req->done);
	CHECK(!s->slot[req->entry].copied);
	CHECK_INT(work[0].flags, IBV_SEND_SIGNALED);
	if (size)
		CHECK_INT(work[0].from, (uintptr_t)data);
}

/* An empty one, a larger one, one that does not go inline, GPU memory, and one without a key for
 * the rail: as any other. */
static void those_that_are_not(void)
{
	struct ha_send *s = make_copier();

	not_copied(s, 0);
	not_copied(s, COPY_MAX + 1);
	check_copied(s, send_one(s, 8), 8);
	mr.type = HA_MEM_CUDA;
	not_copied(s, 8);
	mr.type = HA_MEM_HOST;
	s->b.rail[0].max_inline = 7;
	not_copied(s, 8);
	s->b.rail[0].max_inline = 8;
	check_copied(s, send_one(s, 8), 8);
	announce_receive(s, 1, LARGE)->rkey[0] = 0;
	CHECK(!send_member(s, 0, 8)->done);
	CHECK_INT(work[0].rail, 1);
	free_sender(s);

	s = make_sender(); /* the receiver's delivery count, or its count of puts, is waited for */
	s->b.ctx->config.copy_max = COPY_MAX;
	s->b.terms.flags |= HA_FLAG_ACK_MEMORY;
	ha_send_prepare(s);
	CHECK_INT(s->copy_max, 0);
	free_sender(s);
}

/* Nobody may wait for them, so posting polls. */
static void completions_are_taken(void)
{
	struct ha_send *s = make_copier();

	ha_policy_poll(&s->b, 1);
	polls = 0;
	for (unsigned i = 0; i < 3 * POLL_EVERY; i++) {
		check_copied(s, send_one(s, 8), 8);
		CHECK_INT(polls, i / POLL_EVERY + 1);
	}
	free_sender(s);
}

/* Those that were not yet carried, of the first so many. */
static void they_are_counted(void)
{
	struct ha_send *s = make_copier();

	for (unsigned i = 0; i < 5; i++)
		check_copied(s, send_one(s, 8), 8);
	not_copied(s, 100);
	CHECK_INT(ha_send_copies(s, 6), 5);
	CHECK_INT(ha_send_copies(s, 4), 4);
	CHECK_INT(ha_send_copies(s, 0), 0);
	s->slot[0].pending = s->slot[2].pending = 0;
	CHECK_INT(ha_send_copies(s, 6), 3);
	CHECK_INT(ha_send_copies(s, 4), 2);
	s->slot[HA_SLOTS - 1] = s->slot[1];
	CHECK_INT(ha_send_copies(s, 6), 4);
	free_sender(s);
}

/* Lost with its rail: the copy is sent again, with its own key, though the buffer was given
 * back. */
static void sent_again(void)
{
	struct ha_send *s = make_copier();
	struct ha_request *req = send_one(s, 8);
	uint64_t bytes = 0;

	memset(data, 'b', 1000);
	LIST_INIT(&s->b.registered.list);
	s->slot[0].parked = 1;
	s->b.active = 2;
	posted = 0;
	CHECK_INT(ha_send_replay(s, &s->slot[0], 0, &bytes), 0);
	CHECK_INT(bytes, 8);
	CHECK_INT(posted, 2);
	CHECK_INT(work[0].rail, 1);
	CHECK_INT(work[0].from, (uintptr_t)ha_send_copy(s, req->entry));
	CHECK_INT(work[0].lkey, 401);
	CHECK_INT(work[0].rkey, rkey_of(1, 0));
	free_sender(s);
}

static void refused_posts(void)
{
	static const int refusals[] = { EIO, -EIO };

	for (unsigned i = 0; i < 2; i++) {
		struct ha_send *s = make_copier();

		s->b.peer_closed = true; /* no event */
		atomic_store(&s->b.attention, HA_ATTN_DRIVE);
		announce_receive(s, 1, LARGE);
		refusal = refusals[i];
		CHECK(send_member(s, 0, 8)->done);
		CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
		refusal = 0;
		announce_receive(s, 1, LARGE);
		CHECK(send_member(s, 0, 8)->done);
		CHECK_INT(work[0].rail, 1);
		free_sender(s);
	}
}

int main(void)
{
	small_ones();
	those_that_are_not();
	completions_are_taken();
	they_are_counted();
	sent_again();
	refused_posts();
	return 0;
}
