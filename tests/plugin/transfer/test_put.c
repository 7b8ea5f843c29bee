/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided connections end to end over the software NIC, one to several rails: puts of random
 * sizes at random offsets, with and without records, more of them than slots; windows that are
 * offered late; puts beyond a window; a put into nothing. Records come once, in order, behind the
 * data of their own put and of every put before it.
 */
#include "tests/plugin/pair.h"

#include "base/check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUF (8u << 20)
#define LATE 40 /* more windows than one message holds */

struct record {
	uint8_t kind;
	uint8_t reserved[7];
	uint64_t number;
	uint64_t puts; /* that went before it */
	uint64_t unused[5];
};
static_assert(sizeof(struct record) == HA_RECORD_SIZE, "what a put brings");

static struct pair p;
static uint8_t *src, *dst;
static struct ha_mr *src_mr, *dst_mr;
static uint64_t records_sent, records_seen;
static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* What has been put: each byte of the window as it must be once all puts so far are in. */
static uint8_t *expected;

static bool take_one(void)
{
	struct record r;
	bool got;

	CHECK_INT(ha_take(p.recv, &r, &got), 0);
	if (!got)
		return false;
	CHECK_INT(r.kind, 7);
	CHECK_INT(r.number, records_seen);
	records_seen++;
	return true;
}

static struct ha_request *put_now(const struct ha_put *put)
{
	struct ha_request *req = NULL;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_put(p.send, put, &req), 0);
		if (!req && !take_one())
			pair_idle(&p, k);
	}
	CHECK(req);
	return req;
}

/* The driver may be inside: the call says nothing then, and is made again. */
static void expect_refused(const struct ha_put *put, int error)
{
	struct ha_request *req;
	int err = 0;

	for (int k = 0; !err && k < PAIR_TRIES_MAX; k++) {
		err = ha_put(p.send, put, &req);
		CHECK(!req);
		pair_idle(&p, k);
	}
	CHECK_INT(err, error);
}

static void take_all(void)
{
	for (int k = 0; records_seen < records_sent && k < PAIR_TRIES_MAX; k++)
		if (!take_one())
			pair_idle(&p, k);
	CHECK_INT(records_seen, records_sent);
}

static void put_random(size_t most, bool with_record)
{
	struct record r = { .kind = 7, .number = records_sent };
	size_t size = next_random() % (most + 1), from = next_random() % (BUF - size + 1),
	       to = next_random() % (BUF - size + 1);

	pair_finish(&p, put_now(&(struct ha_put) { .data = src + from,
						   .size = size,
						   .mr = src_mr,
						   .window = 3,
						   .offset = to,
						   .record = with_record ? &r : NULL }));
	memcpy(expected + to, src + from, size);
	records_sent += with_record;
}

/* A record says that everything before it is there. */
static void test_random(void)
{
	static const size_t most[] = { 0, 1, 64, 4096, 100000, 3u << 20 };

	for (unsigned round = 0; round < 60; round++) {
		for (unsigned i = next_random() % 12; i > 0; i--)
			put_random(most[next_random() % 6], next_random() % 2);
		put_random(most[round % 6], true);
		take_all();
		CHECK(!memcmp(dst, expected, BUF));
	}
}

/* Nobody takes: the sender stops in time, and goes on when somebody does. */
static void test_room(void)
{
	struct record r = { .kind = 7 };
	struct ha_request *req[1000], *one;
	unsigned n = 0;

	for (int k = 0; k < 3000; k++) {
		struct ha_put put = { .record = &r };

		r.number = records_sent;
		CHECK_INT(ha_put(p.send, &put, &one), 0);
		if (one) {
			CHECK(n < 1000);
			req[n++] = one;
			records_sent++;
		}
	}
	CHECK(n >= 64);
	CHECK(n <= 128);
	take_all();
	while (n--)
		pair_finish(&p, req[n]);
	for (unsigned i = 0; i < 1000; i++)
		put_random(16, i % 3 == 0);
	put_random(16, true);
	take_all();
	CHECK(!memcmp(dst, expected, BUF));
}

static void test_windows(void)
{
	uint8_t *memory = pair_alloc(LATE * 4096);
	struct ha_mr *mr[LATE];
	struct ha_request *req;
	struct ha_put put = { .data = src, .size = 100, .mr = src_mr, .window = 10 };

	CHECK_INT(ha_put(p.send, &put, &req), 0);
	CHECK(!req); /* nobody has offered it */
	for (uint32_t i = 0; i < LATE; i++) {
		CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, memory + i * 4096, 4096,
				    HA_MEM_HOST, 0, -1, 0, &mr[i]),
			  0);
		CHECK_INT(ha_offer(p.recv, 10 + i, mr[i]), 0);
	}
	for (uint32_t i = 0; i < LATE; i++) {
		put.window = 10 + LATE - 1 - i;
		put.offset = i;
		pair_finish(&p, put_now(&put));
	}
	put_random(16, true);
	take_all();
	for (uint32_t i = 0; i < LATE; i++)
		CHECK(!memcmp(memory + (LATE - 1 - i) * 4096 + i, src, 100));
	put.offset = 4000;
	expect_refused(&put, -ERANGE);
	put.offset = UINT64_MAX - 50;
	expect_refused(&put, -ERANGE);
	put.record = "";
	expect_refused(&put, -EINVAL); /* a record begins with something */
	for (uint32_t i = 0; i < LATE; i++) {
		ha_withdraw(p.recv, 10 + i);
		CHECK_INT(ha_dereg_mr((struct ha_bundle *)p.recv, mr[i]), 0);
	}
}

int main(int argc, char **argv)
{
	pair_open_one_sided(&p, argc > 1 ? atoi(argv[1]) - 1 : 0);
	src = pair_alloc(BUF);
	dst = pair_alloc(BUF);
	expected = pair_alloc(BUF);
	for (size_t i = 0; i < BUF; i++)
		src[i] = (uint8_t)next_random();
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.send, src, BUF, HA_MEM_HOST, 0, -1, 0, &src_mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, dst, BUF, HA_MEM_HOST, 0, -1, 0, &dst_mr),
		  0);
	CHECK_INT(ha_offer(p.recv, 3, dst_mr), 0);
	test_windows();
	test_random();
	test_room();
	pair_close(&p);
	return 0;
}
