/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data path end to end over the software NIC: one context, a sender and a receiver in one
 * process, one to several rails. Random sizes, groups, tags out of order, requests tested out of
 * order, empty messages, truncation, optional receives, pieces larger than a work request, slots
 * used round and round. Every byte is compared; bytes behind a message must not change.
 */
#include "tests/plugin/pair.h"

#include "base/check.h"
#include "plugin/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF (1u << 20)
static uint8_t *src, *dst;
static struct ha_mr *src_mr, *dst_mr;
static uint64_t rng = 88172645463325252ull;

static uint64_t draw_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	return rng ^= rng << 17;
}

static void fill_random(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)draw_random();
}

static struct ha_request *recv_now(struct pair *p, int n, void **data, size_t *sizes, int *tags,
				   bool optional)
{
	struct ha_request *req = NULL;
	struct ha_mr *mrs[HA_MAX_RECVS];

	for (int i = 0; i < n; i++)
		mrs[i] = dst_mr;
	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK(ha_irecv(p->recv, n, data, sizes, tags, mrs, optional, &req) == 0);
		pair_idle(p, k);
	}
	CHECK(req);
	return req;
}

static struct ha_request *send_now(struct pair *p, void *data, size_t size, int tag)
{
	struct ha_request *req = NULL;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK(ha_isend(p->send, data, size, tag, src_mr, &req) == 0);
		pair_idle(p, k);
	}
	CHECK(req);
	return req;
}

static void finish_request(struct pair *p, struct ha_request *req, int *sizes)
{
	int done = 0;

	for (int k = 0; !done && k < PAIR_TRIES_MAX; k++) {
		CHECK(ha_test(req, &done, sizes) == 0);
		pair_idle(p, k);
	}
	CHECK(done);
}

/* One message of `size` bytes into room for `room`. */
static void transfer_one(struct pair *p, size_t size, size_t room)
{
	size_t got = size < room ? size : room;
	void *data[1] = { dst + 64 };
	int tag = (int)(draw_random() & 0x7fffffff), sent = -1, received = -1;
	struct ha_request *r, *s;

	fill_random(src, size);
	memset(dst, 0xa5, room + 128);
	r = recv_now(p, 1, data, &room, &tag, false);
	s = send_now(p, src, size, tag);
	finish_request(p, r, &received);
	finish_request(p, s, &sent);
	CHECK(sent == (int)got && received == (int)got);
	CHECK(!memcmp(dst + 64, src, got));
	for (size_t i = 0; i < 64; i++)
		CHECK(dst[i] == 0xa5 && dst[64 + got + i] == 0xa5);
}

static void test_sizes(struct pair *p)
{
	static const size_t sizes[] = { 0,    1,    7,     8,     127,   128,    129,    4095,
					4096, 4097, 65535, 65536, 65537, 262144, 1000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		transfer_one(p, sizes[i], sizes[i]);
	transfer_one(p, 5000, 100); /* a receive that is too small gets what fits */
	transfer_one(p, 100, 5000);
	for (int i = 0; i < 300; i++) {
		size_t n = draw_random() % 200000;

		transfer_one(p, n, n + draw_random() % 3);
	}
}

/* Groups of n with shuffled send order; both sides tested in any order. */
static void test_groups(struct pair *p)
{
	for (int round = 0; round < 300; round++) {
		int n = 1 + (int)(draw_random() % HA_MAX_RECVS), tags[HA_MAX_RECVS],
		    order[HA_MAX_RECVS], got[HA_MAX_RECVS];
		size_t sizes[HA_MAX_RECVS], each = BUF / HA_MAX_RECVS, sent[HA_MAX_RECVS];
		void *data[HA_MAX_RECVS];
		struct ha_request *r, *s[HA_MAX_RECVS];

		for (int i = 0; i < n; i++) {
			tags[i] = i * 3 + 7;
			order[i] = i;
			sent[i] = draw_random() % (draw_random() & 1 ? 300 : each);
			sizes[i] = sent[i] + draw_random() % 2;
			data[i] = dst + (size_t)i * each;
			fill_random(src + (size_t)i * each, sent[i]);
		}
		for (int i = n - 1; i > 0; i--) {
			int j = (int)(draw_random() % (unsigned)(i + 1)), t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		r = recv_now(p, n, data, sizes, tags, false);
		for (int i = 0; i < n; i++)
			s[order[i]] = send_now(p, src + (size_t)order[i] * each, sent[order[i]],
					       tags[order[i]]);
		for (int i = n - 1; i >= 0; i--)
			finish_request(p, s[i], NULL);
		finish_request(p, r, got);
		for (int i = 0; i < n; i++) {
			CHECK(got[i] == (int)sent[i]);
			CHECK(!memcmp(data[i], src + (size_t)i * each, sent[i]));
		}
	}
}

/* A send whose tag no posted buffer has is "not now", and does not disturb the one that has. */
static void test_tags(struct pair *p)
{
	int tags[2] = { 5, 6 }, got[2];
	size_t sizes[2] = { 8, 8 };
	void *data[2] = { dst, dst + 8 };
	struct ha_request *r = recv_now(p, 2, data, sizes, tags, false), *a, *b, *none;

	a = send_now(p, src, 8, 6);
	CHECK(ha_isend(p->send, src, 8, 6, src_mr, &none) == 0 && !none); /* taken */
	CHECK(ha_isend(p->send, src, 8, 7, src_mr, &none) == 0 && !none); /* unknown */
	b = send_now(p, src + 8, 8, 5);
	finish_request(p, r, got);
	finish_request(p, a, NULL);
	finish_request(p, b, NULL);
	CHECK(!memcmp(dst + 8, src, 8) && !memcmp(dst, src + 8, 8));
}

/* All slots in flight, then no more; then twice round the ring with requests tested backwards. */
static void test_ring_full(struct pair *p)
{
	static struct ha_request *r[HA_SLOTS], *s[HA_SLOTS];

	for (int round = 0; round < 2; round++) {
		struct ha_request *none;
		struct ha_mr *mr = dst_mr;
		void *data[1] = { dst };
		size_t size = 16;
		int tag = 1;

		fill_random(src, HA_SLOTS * 16);
		for (int i = 0; i < HA_SLOTS; i++) {
			data[0] = dst + i * 16;
			r[i] = recv_now(p, 1, data, &size, &tag, false);
		}
		CHECK(ha_irecv(p->recv, 1, data, &size, &tag, &mr, false, &none) == 0 && !none);
		for (int i = 0; i < HA_SLOTS; i++)
			s[i] = send_now(p, src + i * 16, 16, 1);
		for (int i = HA_SLOTS - 1; i >= 0; i--) {
			finish_request(p, r[i], NULL);
			finish_request(p, s[i], NULL);
		}
		CHECK(!memcmp(dst, src, HA_SLOTS * 16));
	}
}

/* Complete at once towards the caller; the slots come back all the same, and the data is there in
 * the end. */
static void test_optional(struct pair *p)
{
	int tag = 9;

	for (int i = 0; i < 3 * HA_SLOTS; i++) {
		size_t size = 8;
		void *data[1] = { dst };
		int done = 0;
		uint64_t want = draw_random();
		struct ha_request *r = recv_now(p, 1, data, &size, &tag, true), *s;

		/* The driver may be inside for a moment. */
		for (int k = 0; !done && k < PAIR_TRIES_MAX; k++) {
			CHECK(ha_test(r, &done, NULL) == 0);
			pair_idle(p, done ? 0 : k);
		}
		CHECK(done);
		memcpy(src, &want, 8);
		s = send_now(p, src, 8, tag);
		finish_request(p, s, NULL);
		for (int k = 0; *(volatile uint64_t *)dst != want && k < PAIR_TRIES_MAX; k++)
			pair_idle(p, k);
		CHECK(*(volatile uint64_t *)dst == want);
	}
}

/* As if the NIC could carry 10,000 bytes per work request only. */
static void test_pieces(struct pair *p)
{
	struct ha_bundle *b = (struct ha_bundle *)p->send;

	for (unsigned i = 0; i < b->nrails; i++)
		b->rail[i].max_msg = b->rail[i].single_max = 10000;
	for (int i = 0; i < 50; i++)
		transfer_one(p, draw_random() % 700000, 700000);
	test_groups(p);
}

int main(int argc, char **argv)
{
	int nmore = argc > 1 ? atoi(argv[1]) - 1 : 0;
	struct pair p;

	/* receives complete before their data, as on hardware */
	setenv("HA_NCCL_POLL_ALWAYS", "0", 1);
	pair_open(&p, nmore);
	CHECK(((struct ha_bundle *)p.send)->balance.ndata == nmore + 1 &&
	      ((struct ha_bundle *)p.recv)->balance.ndata == nmore + 1);
	src = pair_alloc(BUF + 4096);
	dst = pair_alloc(BUF + 4096);
	CHECK(ha_reg_mr((struct ha_bundle *)p.send, src, BUF + 4096, HA_MEM_HOST, 0, -1, 0,
			&src_mr) == 0);
	CHECK(ha_reg_mr((struct ha_bundle *)p.recv, dst, BUF + 4096, HA_MEM_HOST, 0, -1, 0,
			&dst_mr) == 0);
	test_sizes(&p);
	test_groups(&p);
	test_tags(&p);
	test_ring_full(&p);
	test_optional(&p);
	test_pieces(&p);
	CHECK(ha_dereg_mr((struct ha_bundle *)p.send, src_mr) == 0 &&
	      ha_dereg_mr((struct ha_bundle *)p.recv, dst_mr) == 0);
	pair_close(&p);
	printf("%d rail%s: ok\n", nmore + 1, nmore ? "s" : "");
	return 0;
}
