/* SPDX-License-Identifier: BSD-3-Clause */
/* test_layout.c - what is taken of headers, requests and messages, and what is not; the book of the
 * copy buffer */
#include "base/rng.h"
#include "ina/host/shm/buffer.h"
#include "ina/host/shm/message.h"
#include "tests/ina/switch/named.h"

#include <errno.h>

static void headers_are_checked(void)
{
	struct ina_shm_header h;
	const char *why;
	uint32_t segments = 0;

	ina_shm_header_fill(&h, 32);
	CHECK_INT(ina_shm_header_check(&h, ina_shm_bytes(32), &segments, &why), 0);
	CHECK_INT(segments, 32);
	CHECK_INT(ina_shm_header_check(&h, ina_shm_bytes(32) - 1, &segments, &why), -EPROTO);
	/* Any byte that is another one. */
	for (size_t i = 0; i < sizeof(h); i++) {
		uint8_t *byte = (uint8_t *)&h + i;

		*byte ^= 0x40;
		CHECK_INT(ina_shm_header_check(&h, ina_shm_bytes(32), &segments, &why), -EPROTO);
		*byte ^= 0x40;
	}
	ina_shm_header_fill(&h, 0);
	CHECK_INT(ina_shm_header_check(&h, ina_shm_bytes(0), &segments, &why), -EPROTO);
}

static struct ina_shm_request make_good_request(void)
{
	return (struct ina_shm_request) {
		.coll = HA_INA_ALL_REDUCE, .type = HA_INA_FLOAT32, .bytes = 1024, .offset = 256
	};
}

static int check_request(struct ina_shm_request r)
{
	const char *why;

	return ina_shm_request_check(&r, 4u << 20, &why);
}

static void requests_are_checked(void)
{
	struct ina_shm_request r = make_good_request();

	CHECK_INT(check_request(r), 0);
#define BAD(field, value)        \
	r = make_good_request(); \
	r.field = value;         \
	CHECK_INT(check_request(r), -EPROTO)
	BAD(coll, 0);
	BAD(coll, HA_INA_BARRIER);
	BAD(type, HA_INA_BYTES);
	BAD(type, 3);
	BAD(root, 1); /* all-reduce has none */
	BAD(bytes, 0);
	BAD(bytes, 1022);
	BAD(bytes, HA_INA_SEGMENT + 4);
	BAD(offset, 128);
	BAD(offset, 4u << 20);
	BAD(offset, (4u << 20) - 768);
	BAD(offset, UINT64_MAX - 255);
	BAD(offset, UINT64_MAX - 1023);
	r = make_good_request();
	r.offset = (4u << 20) - 1024;
	CHECK_INT(check_request(r), 0);
	r.bytes = 1028; /* its last block would be outside */
	CHECK_INT(check_request(r), -EPROTO);
	r = make_good_request();
	r.coll = HA_INA_BROADCAST;
	r.type = HA_INA_BYTES;
	r.bytes = 1;
	r.root = 31;
	CHECK_INT(check_request(r), 0);
	r.root = 32;
	CHECK_INT(check_request(r), -EPROTO);
}

static int check_message(const struct ina_shm_message *m, size_t bytes, bool from_client)
{
	const char *why = NULL;
	int err = ina_shm_message_check(m, bytes, from_client, &why);

	CHECK(!err || why);
	return err;
}

static void messages_are_checked(void)
{
	struct ina_shm_message m = { .type = INA_SHM_CREATE,
				     .create = { .ranks = 2, .name = "job 7" } };

	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), 0);
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type) - 1, true), -EPROTO);
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type) + 1, true), -EPROTO);
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), false), -EPROTO);
	CHECK_INT(check_message(&m, 0, true), -EPROTO);
	m.create.ranks = 1;
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), -EPROTO);
	m.create.ranks = 33;
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), -EPROTO);
	m.create.ranks = 32;
	m.create.name[2] = '\n';
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), -EPROTO);
	memset(m.create.name, 'x', sizeof(m.create.name)); /* no end */
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), -EPROTO);
	m = (struct ina_shm_message) { .type = INA_SHM_STATE, .state = { .result = -ECANCELED } };
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), false), 0);
	m.state.result = 0;
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), false), -EPROTO);
	m = (struct ina_shm_message) { .type = INA_SHM_JOINED, .joined = { 0, 2, 2 } };
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), false), -EPROTO);
	m = (struct ina_shm_message) { .type = INA_SHM_LEAVE, .leave = { 7, -ECANCELED } };
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), 0);
	m.leave.result = 0;
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), 0);
	m.leave.result = 1;
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), -EPROTO);
	m.leave.result = INT32_MIN;
	CHECK_INT(check_message(&m, ina_shm_message_bytes(m.type), true), -EPROTO);
	for (uint32_t type = 0; type < 40; type++)
		CHECK_INT(!!ina_shm_message_bytes(type), type >= 1 && type < INA_SHM_TYPES);
}

/* ---- the buffer ---- */

#define SEGMENTS 8u
#define PARTS 64

static struct ina_shm_segment segment[SEGMENTS];

struct part {
	uint64_t offset;
	uint32_t bytes, owner;
};

/* Random owners take and give in random order: no two parts overlap, nobody has more than his
 * share, at the end all is free. */
static void buffer_parts_do_not_overlap(void)
{
	struct sr_rng rng = { 7 };
	struct ina_shm_buffer b;
	struct part part[PARTS];
	unsigned parts = 0, taken = 0;

	ina_shm_buffer_init(&b, segment, SEGMENTS);
	for (unsigned round = 0; round < 200000; round++) {
		struct part p = { .owner = (uint32_t)sr_rng_below(&rng, 4) };

		p.bytes = 1 + (uint32_t)(sr_rng_below(&rng, 2) ? sr_rng_below(&rng, HA_INA_SEGMENT)
							       : sr_rng_below(&rng, 5000));
		if (parts < PARTS && sr_rng_below(&rng, 2) &&
		    ina_shm_buffer_take(&b, p.owner, 2, p.bytes, &p.offset)) {
			CHECK(p.offset % INA_SHM_BLOCK == 0 &&
			      p.offset + ina_shm_blocks(p.bytes) <=
				      (uint64_t)SEGMENTS * HA_INA_SEGMENT);
			for (unsigned i = 0; i < parts; i++) {
				CHECK(p.offset >= part[i].offset + ina_shm_blocks(part[i].bytes) ||
				      part[i].offset >= p.offset + ina_shm_blocks(p.bytes));
				CHECK(part[i].owner == p.owner ||
				      part[i].offset / HA_INA_SEGMENT != p.offset / HA_INA_SEGMENT);
			}
			part[parts++] = p;
			taken++;
		} else if (parts) {
			unsigned i = (unsigned)sr_rng_below(&rng, parts);

			ina_shm_buffer_give(&b, part[i].offset, part[i].bytes);
			part[i] = part[--parts];
		}
	}
	CHECK(taken > 50000);
	while (parts--)
		ina_shm_buffer_give(&b, part[parts].offset, part[parts].bytes);
	for (unsigned i = 0; i < SEGMENTS; i++)
		CHECK_INT(segment[i].out, 0);
}

/* One that never gives back holds its share, and the others go round it for ever; whole segments
 * come in the buffer's order. */
static void buffer_held(void)
{
	struct ina_shm_buffer b;
	uint64_t held, at, last = 0;

	ina_shm_buffer_init(&b, segment, 3);
	CHECK(ina_shm_buffer_take(&b, 1, 1, 4, &held));
	CHECK_INT(held, 0);
	CHECK(!ina_shm_buffer_take(&b, 1, 1, HA_INA_SEGMENT, &at));
	for (unsigned i = 0; i < 100; i++) {
		CHECK(ina_shm_buffer_take(&b, 2, 2, HA_INA_SEGMENT, &at));
		CHECK(at / HA_INA_SEGMENT == 1 + i % 2 && at != last);
		last = at;
		ina_shm_buffer_give(&b, at, HA_INA_SEGMENT);
	}
	CHECK(!ina_shm_buffer_take(&b, 2, 2, HA_INA_SEGMENT + 1, &at));
	CHECK(!ina_shm_buffer_take(&b, 2, 2, 0, &at));
	ina_shm_buffer_give(&b, held, 4);
	CHECK(ina_shm_buffer_take(&b, 1, 1, HA_INA_SEGMENT, &at));
}

static const struct named_test tests[] = {
	{ "header", headers_are_checked },    { "request", requests_are_checked },
	{ "messages", messages_are_checked }, { "buffer", buffer_parts_do_not_overlap },
	{ "buffer_held", buffer_held },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
