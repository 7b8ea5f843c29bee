/* SPDX-License-Identifier: BSD-3-Clause */
/* What a one-sided sender gives to its NICs, what it refuses, and when it posts nothing. */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/transfer/one_sided.h"
#include "plugin/transfer/suspect.h"
#include "tests/plugin/transfer/recorder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The peer has offered window 3: LARGE bytes. */
static struct ha_send *make_putter(struct ha_puts *puts)
{
	struct ha_send *s = make_sender();
	struct ha_peer_window *w;

	memset(puts, 0, sizeof(*puts));
	CHECK_INT(ha_puts_grow(puts, 3), 0);
	CHECK_INT(puts->nwindows, 8);
	for (unsigned i = 0; i < 8; i++)
		CHECK_INT(puts->window[i].size, 0);
	w = &puts->window[3];
	*w = (struct ha_peer_window) { .addr = THERE, .size = LARGE };
	for (unsigned i = 0; i < RAILS; i++)
		w->rkey[i] = rkey_of(i, 0);
	s->puts = puts;
	return s;
}

static struct ha_request *post_put(struct ha_send *s, uint32_t window, uint64_t offset, size_t size,
				   const void *record, int error)
{
	const struct ha_put p = { .window = window,
				  .offset = offset,
				  .data = data + offset,
				  .size = size,
				  .mr = &mr,
				  .record = record };
	struct ha_request *req;

	posted = 0;
	CHECK_INT(ha_put(s, &p, &req), error);
	CHECK(!atomic_load(&s->b.inside));
	return req;
}

static void end_puts(struct ha_send *s)
{
	free(s->puts->window);
	free_sender(s);
}

/* A table of windows by number keeps what it has; the new ones are not known yet. */
static void windows_are_found_room_for(void)
{
	struct ha_puts puts = { 0 };

	CHECK_INT(ha_puts_grow(&puts, 7), 0);
	CHECK_INT(puts.nwindows, 8);
	puts.window[7].size = 77;
	CHECK_INT(ha_puts_grow(&puts, 7), 0);
	CHECK_INT(puts.nwindows, 8);
	CHECK_INT(ha_puts_grow(&puts, 8), 0);
	CHECK_INT(puts.nwindows, 16);
	CHECK_INT(ha_puts_grow(&puts, 1000), 0);
	CHECK_INT(puts.nwindows, 1024);
	for (unsigned i = 0; i < puts.nwindows; i++) {
		CHECK_INT(puts.window[i].size, i == 7 ? 77 : 0);
		CHECK_INT(puts.window[i].rkey[0], 0);
	}
	free(puts.window);
}

static void puts_that_are_posted(void)
{
	static const char record[HA_RECORD_SIZE] = "record";
	const char *staged;
	struct ha_puts puts;
	struct ha_send *s = make_putter(&puts);

	staged = (char *)s->b.ring + HA_SEND_STAGED + sizeof(struct ha_board);
	CHECK(post_put(s, 3, 0, LARGE, NULL, 0)); /* all of the window */
	check_bytes(0, LARGE);
	CHECK_INT(s->head, 1);
	CHECK_INT(s->slot[0].held, 1);
	CHECK(post_put(s, 3, 4096, 100, record, 0));
	CHECK_INT(posted, 2);
	CHECK_INT(work[0].to, THERE + 4096);
	CHECK_INT(work[0].length, 100);
	CHECK_INT(work[1].imm, ha_imm_make(1, work[1].rail, s->slot[1].mask, true));
	CHECK_INT(work[1].to, RING + sizeof(struct ha_sizes));
	CHECK(!memcmp(staged + sizeof(struct ha_sizes), record, HA_RECORD_SIZE));
	CHECK_INT(s->slot[1].req.size, 100);
	CHECK_INT(s->slot[1].n, 1);
	CHECK_INT(s->slot[1].idx, 1);
	CHECK_INT(puts.slot[1].window, 3);
	CHECK_INT(puts.slot[1].offset, 4096);
	CHECK_INT(puts.slot[1].record[0], 'r');
	CHECK(post_put(s, 0, 0, 0, record, 0)); /* a record alone needs no window */
	CHECK_INT(posted, 1);
	CHECK_INT(work[0].length, sizeof(struct ha_sizes));
	puts.slot[3].record[0] = 'x'; /* of the slot's last message */
	CHECK(post_put(s, 3, LARGE - 1, 1, NULL, 0));
	CHECK_INT(puts.slot[3].record[0], 0);
	CHECK_INT(work[0].to, THERE + LARGE - 1);
	CHECK(post_put(s, 3, LARGE, 0, NULL, 0)); /* nothing, behind the last byte */
	CHECK_INT(posted, 1);
	CHECK_INT(work[0].num_sge, 0);
	end_puts(s);
}

static void puts_that_cannot_be(void)
{
	static const char empty[HA_RECORD_SIZE];
	struct ha_request *req;
	struct ha_puts puts;
	struct ha_send *s = make_putter(&puts);

	CHECK(!post_put(s, 3, 1, LARGE, NULL, -ERANGE));
	CHECK(!post_put(s, 3, LARGE + 1, 1, NULL, -ERANGE));
	CHECK(!post_put(s, 3, 0, 8, empty, -EINVAL)); /* its first byte says that there is one */
	CHECK_INT(ha_put(s, &(struct ha_put) { .window = 3, .size = 8, .data = data }, &req),
		  -EINVAL); /* no registration */
	CHECK(!req);
	CHECK_INT(posted, 0);
	CHECK_INT(s->slot[0].n, 0);
	CHECK_INT(s->head, 0);
	s->b.error = -EIO;
	atomic_store(&s->b.attention, HA_ATTN_ERROR);
	CHECK(!post_put(s, 3, 0, 8, NULL, -EIO));
	CHECK_INT(s->head, 0);
	atomic_store(&s->b.attention, HA_ATTN_ERROR | HA_ATTN_HELD);
	CHECK(!post_put(s, 3, 0, 8, NULL, -EIO)); /* also while the driver is inside */
	s->b.error = 0;
	atomic_store(&s->b.attention, HA_ATTN_DRIVE); /* there is work, and no error */
	CHECK(post_put(s, 3, 0, 8, NULL, 0));
	s->puts = NULL; /* two-sided */
	CHECK(!post_put(s, 3, 0, 8, NULL, -EINVAL));
	s->puts = &puts;
	end_puts(s);
}

static void puts_not_now(void)
{
	static const char record[HA_RECORD_SIZE] = "record";
	struct ha_puts puts;
	struct ha_send *s = make_putter(&puts);

	CHECK(!post_put(s, 2, 0, 8, NULL, 0)); /* a window that the peer has not sent */
	CHECK(!post_put(s, 8, 0, 8, NULL, 0));
	s->slot[0].held = 1;
	CHECK(!post_put(s, 3, 0, 8, NULL, 0));
	s->slot[0].held = 0;
	s->slot[0].pending = 1;
	CHECK(!post_put(s, 3, 0, 8, NULL, 0));
	s->slot[0].pending = 0;
	s->b.active = 0;
	CHECK(!post_put(s, 3, 0, 8, NULL, 0));
	CHECK_INT(s->slot[0].n, 0); /* a fence must not count it */
	CHECK(!post_put(s, 3, 0, 8, record, 0));
	CHECK_INT(s->slot[0].n, 0);
	s->b.active = 3;
	s->head = HA_SLOTS; /* so many are under way, and none is taken */
	CHECK(!post_put(s, 3, 0, 8, NULL, 0));
	CHECK_INT(s->b.poll.idle, 7);
	CHECK_INT(posted, 0);
	ha_bundle_board(&s->b)->heartbeat[1].count = 1;
	CHECK(post_put(s, 3, 0, 8, NULL, 0));
	CHECK(!post_put(s, 3, 0, 8, NULL, 0));
	end_puts(s);
}

/* After a fence: to where its window is, with the keys of the rail that carries it now. */
static void puts_again(void)
{
	static const char record[HA_RECORD_SIZE] = "record";
	struct ha_puts puts;
	struct ha_send *s = make_putter(&puts);
	uint64_t bytes = 0;

	CHECK(post_put(s, 3, 4096, 1000, record, 0));
	s->slot[0].parked = 1;
	s->b.active = 2;
	puts.window[3].rkey[1] = 77;
	posted = 0;
	CHECK_INT(ha_send_replay(s, &s->slot[0], 0, &bytes), 0);
	CHECK_INT(bytes, 1000);
	CHECK_INT(posted, 2);
	CHECK_INT(work[0].rail, 1);
	CHECK_INT(work[0].to, THERE + 4096);
	CHECK_INT(work[0].rkey, 77);
	CHECK_INT(work[1].imm, ha_imm_make(0, 0, 1, true));
	end_puts(s);
}

/* Where the shares follow the rates or an agent's hint, a put is looked at as a send is. */
static void puts_that_are_shared(void)
{
	static const char record[HA_RECORD_SIZE] = "record";
	static struct mpib_hint_shm hints;
	struct ha_puts puts;
	struct ha_send *s = make_putter(&puts);
	struct ha_advised *d;

	s->b.balance.adaptive.on = true;
	CHECK(post_put(s, 3, 0, LARGE, record, 0));
	CHECK_INT(s->b.balance.adaptive.out[0] + s->b.balance.adaptive.out[1], LARGE);
	end_puts(s);

	s = make_putter(&puts);
	d = &s->b.balance.advised;
	s->b.balance.share[0] = s->b.balance.share[1] = d->without[0] = d->without[1] = 512;
	d->on = true;
	d->sup = 2;
	d->hint = d->reported = HA_HINT_NONE;
	atomic_store(&s->b.ctx->advice.hints.shm, &hints);
	atomic_store(&d->flow.slot, 0);
	mpib_hint_put(&hints.entries[0], 256, 0, 0);
	atomic_store(&s->b.attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	CHECK(post_put(s, 3, 0, LARGE, record, 0));
	CHECK_INT(d->hint, HA_HINT_OK);
	CHECK_INT(s->b.balance.weight[1], 256);
	end_puts(s);
}

int main(void)
{
	windows_are_found_room_for();
	puts_that_are_posted();
	puts_that_cannot_be();
	puts_not_now();
	puts_again();
	puts_that_are_shared();
	return 0;
}
