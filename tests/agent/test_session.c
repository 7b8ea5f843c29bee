/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of the registration protocol, byte by byte. */
#include "agent/session.h"

#include "base/check.h"

#include <errno.h>
#include <unistd.h>

static struct mpib_hint_shm shm;
static struct ha_slots s;
static struct ha_session x;
static struct ha_session_counts counts;
static struct ha_owner *owner;

static void open_session(void)
{
	memset(&shm, 0, sizeof(shm));
	memset(&x, 0, sizeof(x));
	memset(&counts, 0, sizeof(counts));
	ha_slots_open(&s, &shm, 0);
	owner = ha_owner_get(&s, getpid(), 0);
}

static ssize_t feed_session(const void *data, size_t len)
{
	ssize_t n = ha_session_feed(&x, &s, owner, &counts, data, len);

	CHECK(ha_slots_consistent(&s));
	return n;
}

static void expect_answer(size_t size, uint32_t status, uint32_t slot)
{
	struct mpib_register_response r = { 0 };

	CHECK_INT(x.out_len, size);
	memcpy(&r, x.out, size);
	CHECK_INT(r.header.magic, MPIB_REG_MAGIC);
	CHECK_INT(r.header.length, size);
	CHECK_INT(r.header.type, MPIB_MSG_RESPONSE);
	CHECK_INT(r.header.reserved, 0);
	CHECK_INT(r.status, status);
	if (size == sizeof(r))
		CHECK_INT(r.hint_slot, slot);
	x.out_len = 0;
}

static struct mpib_register make_register(void)
{
	return (struct mpib_register) { .header = { MPIB_REG_MAGIC, 28, MPIB_MSG_REGISTER, 0 },
					.conn_id = 9,
					.sout_src_ip = 1,
					.sout_dst_ip = 2 };
}

static void whole_messages(void)
{
	struct mpib_register m = make_register();
	struct mpib_deregister bye = { { MPIB_REG_MAGIC, 12, MPIB_MSG_DEREGISTER, 0 }, 9 };

	open_session();
	CHECK_INT(feed_session(&m, sizeof(m)), sizeof(m));
	expect_answer(16, MPIB_STATUS_OK, 0);
	CHECK_INT(feed_session(&bye, sizeof(bye)), sizeof(bye));
	expect_answer(12, MPIB_STATUS_OK, 0);
	CHECK_INT(feed_session(&bye, sizeof(bye)), sizeof(bye));
	expect_answer(12, MPIB_STATUS_INVALID, 0);
	m.header.reserved = 77; /* is ignored */
	CHECK_INT(feed_session(&m, sizeof(m)), sizeof(m));
	expect_answer(16, MPIB_STATUS_OK, 0);
	CHECK_INT(counts.registered, 2);
	CHECK_INT(counts.deregistered, 1);
	CHECK_INT(counts.invalid, 1);
	ha_slots_close(&s);
}

/* The bytes on the wire, written out: magic, length, type, reserved, and the numbers behind,
 * little-endian. */
static void the_layout(void)
{
	static const uint8_t wire[28] = { 0x52, 0x49, 0x50, 0x4d, 28, 0, 1,  0, 0x34, 0x12,
					  0xcd, 0xab, 10,   0,    0,  1, 10, 0, 0,    2,
					  10,   1,    0,    1,    10, 1, 0,  2 };
	static const uint8_t answer[16] = { 0x52, 0x49, 0x50, 0x4d, 16, 0, 128, 0,
					    0,    0,    0,    0,    0,  0, 0,   0 };

	open_session();
	CHECK_INT(feed_session(wire, sizeof(wire)), sizeof(wire));
	CHECK_INT(x.out_len, sizeof(answer));
	CHECK(!memcmp(x.out, answer, sizeof(answer)));
	CHECK(!memcmp(&shm.entries[0].src_ip, wire + 12, 4));
	CHECK(!memcmp(&shm.entries[0].dst_ip, wire + 16, 4));
	CHECK_INT(s.slot[0].refs, 1);
	ha_slots_close(&s);
}

static void messages_in_pieces_and_in_heaps(void)
{
	struct mpib_register m[200];

	open_session();
	m[0] = make_register();
	for (size_t i = 0; i < sizeof(m[0]); i++) {
		CHECK_INT(x.out_len, 0);
		CHECK_INT(feed_session((char *)&m[0] + i, 1), 1);
	}
	expect_answer(16, MPIB_STATUS_OK, 0);
	for (int i = 0; i < 200; i++) {
		m[i] = make_register();
		m[i].conn_id = (uint32_t)i;
	}
	CHECK_INT(feed_session(m, sizeof(m)), sizeof(m));
	CHECK_INT(x.out_len, 200 * 16);
	CHECK_INT(s.nregistrations, 200);
	ha_slots_close(&s);
}

static void no_answer_is_lost_for_want_of_room(void)
{
	struct mpib_register m[HA_SESSION_OUT / 16 + 50];
	size_t n = sizeof(m) / sizeof(m[0]), used = 0, answers = 0;

	open_session();
	for (size_t i = 0; i < n; i++) {
		m[i] = make_register();
		m[i].conn_id = (uint32_t)i;
	}
	while (used < sizeof(m)) {
		ssize_t took = feed_session((char *)m + used, sizeof(m) - used);

		CHECK(took > 0);
		used += (size_t)took;
		CHECK(x.out_len <= HA_SESSION_OUT);
		answers += x.out_len / 16;
		x.out_len = 0;
	}
	feed_session(NULL, 0);
	answers += x.out_len / 16;
	CHECK_INT(answers, n);
	ha_slots_close(&s);
}

static void hang_up(uint32_t magic, uint16_t length)
{
	struct mpib_msg_header h = { magic, length, MPIB_MSG_REGISTER, 0 };

	open_session();
	CHECK_INT(feed_session(&h, sizeof(h)), -EPROTO);
	CHECK_INT(x.out_len, 0);
	ha_slots_close(&s);
}

static void bad_message_is_skipped(uint8_t type, uint16_t length, size_t answer)
{
	uint8_t data[HA_SESSION_MESSAGE] = { 0 };
	struct mpib_msg_header h = { MPIB_REG_MAGIC, length, type, 0 };
	struct mpib_register m = make_register();

	open_session();
	memcpy(data, &h, sizeof(h));
	CHECK_INT(feed_session(data, length), length);
	expect_answer(answer, MPIB_STATUS_INVALID, MPIB_NO_SLOT);
	CHECK_INT(feed_session(&m, sizeof(m)), sizeof(m)); /* and what comes behind is understood */
	expect_answer(16, MPIB_STATUS_OK, 0);
	ha_slots_close(&s);
}

int main(void)
{
	whole_messages();
	the_layout();
	messages_in_pieces_and_in_heaps();
	no_answer_is_lost_for_want_of_room();
	hang_up(MPIB_REG_MAGIC + 1, 28);
	hang_up(MPIB_HINT_MAGIC, 28);
	hang_up(0, 0);
	hang_up(MPIB_REG_MAGIC, 7);
	hang_up(MPIB_REG_MAGIC, HA_SESSION_MESSAGE + 1);
	hang_up(MPIB_REG_MAGIC, 65535);
	bad_message_is_skipped(MPIB_MSG_REGISTER, 27, 16);
	bad_message_is_skipped(MPIB_MSG_REGISTER, 29, 16);
	bad_message_is_skipped(MPIB_MSG_REGISTER, 8, 16);
	bad_message_is_skipped(MPIB_MSG_DEREGISTER, 28, 12);
	bad_message_is_skipped(MPIB_MSG_DEREGISTER, 8, 12);
	bad_message_is_skipped(MPIB_MSG_RESPONSE, 16, 12);
	bad_message_is_skipped(0, 8, 12);
	bad_message_is_skipped(77, HA_SESSION_MESSAGE, 12);
	return 0;
}
