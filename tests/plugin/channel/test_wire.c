/* SPDX-License-Identifier: BSD-3-Clause */
/* What another machine sent: sound messages pass, and each way of being unsound is seen. */
#include "plugin/channel/wire.h"

#include "base/check.h"

#include <errno.h>

static struct ha_msg_hello compose_hello(unsigned rails)
{
	struct ha_msg_hello h = {
		.header = { HA_MSG_MAGIC, HA_WIRE_VERSION, HA_MSG_HELLO,
			    (uint32_t)(offsetof(struct ha_msg_hello, rail) +
				       rails * sizeof(h.rail[0])),
			    0 },
		.nonce = 7,
		.ring_addr = 4096,
		.version = 1,
		.version_min = 1,
		.nrails = (uint16_t)rails,
		.slots = HA_SLOTS,
		.host = "host",
	};

	for (unsigned i = 0; i < rails; i++)
		h.rail[i] = (struct ha_wire_rail) {
			.qp = { .qpn = 17, .psn = 1, .mtu = 5, .link_layer = 2 }, .name = "nic0:1"
		};
	return h;
}

#define REJECTS(change)                                                         \
	do {                                                                    \
		struct ha_msg_hello h = compose_hello(2);                       \
		change;                                                         \
		CHECK_INT(ha_wire_check_message(&h, h.header.length), -EPROTO); \
	} while (0)

static void hellos_are_checked(void)
{
	for (unsigned n = 1; n <= HA_MAX_RAILS; n++) {
		struct ha_msg_hello h = compose_hello(n);

		CHECK_INT(ha_wire_check_message(&h, h.header.length), 0);
		h.header.type = HA_MSG_WELCOME;
		CHECK_INT(ha_wire_check_message(&h, h.header.length), 0);
		for (size_t len = 0; len < h.header.length; len++)
			CHECK_INT(ha_wire_check_message(&h, len), -EPROTO);
	}
	REJECTS(h.header.magic++);
	REJECTS(h.header.version = 0);
	REJECTS(h.header.version = HA_WIRE_VERSION + 1);
	REJECTS(h.header.type = 0);
	REJECTS(h.header.type = HA_MSG_TYPES);
	REJECTS(h.header.length = (uint32_t)offsetof(struct ha_msg_hello, rail));
	REJECTS(h.header.length--);
	REJECTS(h.header.length = HA_MSG_MAX + sizeof(struct ha_wire_rail));
	REJECTS(h.header.length = 0);
	REJECTS(h.header.length = (uint32_t)offsetof(struct ha_msg_hello, rail); h.nrails = 0);
	REJECTS(h.nrails = 1);
	REJECTS(h.nrails = 3);
	REJECTS(h.slots = 0);
	REJECTS(h.ring_addr = 0);
	REJECTS(h.version_min = 2);
	REJECTS(memset(h.host, 'x', sizeof(h.host)));
	REJECTS(memset(h.rail[1].name, 'x', sizeof(h.rail[1].name)));
	REJECTS(h.rail[1].qp.qpn = 1);
	REJECTS(h.rail[1].qp.qpn = 1 << 24);
	REJECTS(h.rail[0].qp.psn = 1 << 24);
	REJECTS(h.rail[0].qp.mtu = 0);
	REJECTS(h.rail[0].qp.mtu = 6);
	REJECTS(h.rail[0].qp.link_layer = 3);
}

#define ACCEPTS(change)                                                   \
	do {                                                              \
		struct ha_msg_hello h = compose_hello(2);                 \
		change;                                                   \
		CHECK_INT(ha_wire_check_message(&h, h.header.length), 0); \
	} while (0)

/* The last values that can be. */
static void limits_of_fields(void)
{
	ACCEPTS(h.rail[1].qp.qpn = 2);
	ACCEPTS(h.rail[1].qp.qpn = (1 << 24) - 1);
	ACCEPTS(h.rail[1].qp.psn = (1 << 24) - 1);
	ACCEPTS(h.rail[1].qp.psn = 0);
	ACCEPTS(h.rail[1].qp.mtu = 1);
	ACCEPTS(h.rail[1].qp.link_layer = 1);
	ACCEPTS(h.version = 9); /* newer, for the negotiation */
	REJECTS(h.rail[1].qp.link_layer = 0);
	REJECTS(h.rail[1].qp.qpn = 0);
	ACCEPTS(memset(h.host, 'x', sizeof(h.host) - 1));
}

static void other_messages_are_checked(void)
{
	struct ha_msg_refuse refuse = { { HA_MSG_MAGIC, 1, HA_MSG_REFUSE, sizeof(refuse), 0 },
					5,
					"no" };
	struct ha_msg_ready ready = { { HA_MSG_MAGIC, 1, HA_MSG_READY, sizeof(ready), 0 }, 7 };
	struct ha_msg_bye bye = { { HA_MSG_MAGIC, 1, HA_MSG_BYE, sizeof(bye), 0 }, 9 };

	CHECK_INT(ha_wire_check_message(&refuse, sizeof(refuse)), 0);
	CHECK_INT(ha_wire_check_message(&ready, sizeof(ready)), 0);
	CHECK_INT(ha_wire_check_message(&bye, sizeof(bye)), 0);
	bye.header.length++;
	CHECK_INT(ha_wire_check_message(&bye, sizeof(bye)), -EPROTO);
	memset(refuse.text, 'x', sizeof(refuse.text));
	CHECK_INT(ha_wire_check_message(&refuse, sizeof(refuse)), -EPROTO);
}

/* A header says its type's length, and no other; what has no type is not a message. */
static void lengths_are_checked(void)
{
	static const uint32_t of_type[HA_MSG_TYPES] = {
		[HA_MSG_REFUSE] = 96,        [HA_MSG_READY] = 24,        [HA_MSG_BYE] = 24,
		[HA_MSG_RAIL_DOWN] = 40,     [HA_MSG_RAIL_FENCED] = 176, [HA_MSG_RAIL_ACK] = 32,
		[HA_MSG_RAIL_OFFER] = 112,   [HA_MSG_RAIL_ANSWER] = 112, [HA_MSG_RAIL_KEYS] = 448,
		[HA_MSG_RAIL_KEYS_ACK] = 40, [HA_MSG_ABORT] = 40,        [HA_MSG_RAIL_BACK] = 32,
		[HA_MSG_FOR] = 24,           [HA_MSG_WINDOWS] = 472,     [HA_MSG_WINDOWS_ACK] = 40,
		[HA_MSG_RAIL_ASK] = 40,      [HA_MSG_RAIL_ALIVE] = 40,
	};

	for (uint16_t type = HA_MSG_REFUSE; type < HA_MSG_TYPES; type++)
		for (uint32_t length = 0; length <= HA_MSG_MAX + 8; length++) {
			struct ha_msg_header h = { HA_MSG_MAGIC, 1, type, length, 0 };

			CHECK_INT(ha_wire_check_header(&h), length == of_type[type] ? 0 : -EPROTO);
		}
	for (uint32_t length = 0; length <= HA_MSG_MAX; length++) {
		struct ha_msg_header h = { HA_MSG_MAGIC, 1, 0, length, 0 };

		CHECK_INT(ha_wire_check_header(&h), -EPROTO);
	}
}

#define RAIL(type, size)                                    \
	{                                                   \
		{ HA_MSG_MAGIC, 1, type, size, 0 }, 7, 1, 3 \
	}

/* About a rail: one that can be, and counts that fit the message. */
static void rail_messages_are_checked(void)
{
	struct ha_msg_cause down = { RAIL(HA_MSG_RAIL_DOWN, sizeof(down)), 4, 0 };
	struct ha_msg_fenced fenced = { RAIL(HA_MSG_RAIL_FENCED, sizeof(fenced)),
					{ .base = 10, .head = 10 + HA_SLOTS } };
	struct ha_msg_rail ack = RAIL(HA_MSG_RAIL_ACK, sizeof(ack)),
			   back = RAIL(HA_MSG_RAIL_BACK, sizeof(back));
	struct ha_msg_incarnation offer = {
		RAIL(HA_MSG_RAIL_OFFER, sizeof(offer)),
		{ .qp = { .qpn = 17, .psn = 1, .mtu = 5, .link_layer = 2 }, .name = "nic0:1" }
	};
	struct ha_msg_keys keys = { RAIL(HA_MSG_RAIL_KEYS, sizeof(keys)), .n = HA_KEYS_MAX };
	struct ha_msg_sign ask = { RAIL(HA_MSG_RAIL_ASK, sizeof(ask)), .number = 1 };

	CHECK_INT(ha_wire_check_message(&down, sizeof(down)), 0);
	CHECK_INT(ha_wire_check_message(&ask, sizeof(ask)), 0);
	CHECK_INT(ha_wire_check_message(&ask, sizeof(ask) - 8), -EPROTO);
	CHECK_INT(ha_wire_check_message(&fenced, sizeof(fenced)), 0);
	CHECK_INT(ha_wire_check_message(&ack, sizeof(ack)), 0);
	CHECK_INT(ha_wire_check_message(&back, sizeof(back)), 0);
	CHECK_INT(ha_wire_check_message(&offer, sizeof(offer)), 0);
	CHECK_INT(ha_wire_check_message(&keys, sizeof(keys)), 0);
	CHECK_INT(ha_wire_check_message(&keys, sizeof(keys) - 8), -EPROTO);
	down.rail.rail = HA_MAX_RAILS - 1;
	CHECK_INT(ha_wire_check_message(&down, sizeof(down)), 0);
	down.rail.rail = HA_MAX_RAILS;
	CHECK_INT(ha_wire_check_message(&down, sizeof(down)), -EPROTO);
	fenced.state.head++; /* more than a window */
	CHECK_INT(ha_wire_check_message(&fenced, sizeof(fenced)), -EPROTO);
	fenced.state.head = 9;
	CHECK_INT(ha_wire_check_message(&fenced, sizeof(fenced)), -EPROTO);
	fenced.state.head = 10; /* nothing under way */
	CHECK_INT(ha_wire_check_message(&fenced, sizeof(fenced)), 0);
	memset(offer.end.name, 'x', sizeof(offer.end.name));
	CHECK_INT(ha_wire_check_message(&offer, sizeof(offer)), -EPROTO);
	offer.end.name[sizeof(offer.end.name) - 1] = 0;
	CHECK_INT(ha_wire_check_message(&offer, sizeof(offer)), 0);
	offer.end.qp.qpn = 0;
	CHECK_INT(ha_wire_check_message(&offer, sizeof(offer)), -EPROTO);
	keys.n++;
	CHECK_INT(ha_wire_check_message(&keys, sizeof(keys)), -EPROTO);
}

/* The peer's windows of memory: as many as fit, each inside the address space. */
static void windows_are_checked(void)
{
	struct ha_msg_windows windows = { RAIL(HA_MSG_WINDOWS, sizeof(windows)),
					  .n = HA_WINDOWS_SENT };
	struct ha_msg_windows_ack windows_ack = { RAIL(HA_MSG_WINDOWS_ACK, sizeof(windows_ack)) };

	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), 0);
	CHECK_INT(ha_wire_check_message(&windows_ack, sizeof(windows_ack)), 0);
	windows.window[17].window = HA_WINDOWS_MAX;
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), -EPROTO);
	windows.window[17].window = HA_WINDOWS_MAX - 1;
	windows.window[17].addr = UINT64_MAX - 10;
	windows.window[17].size = 11; /* it would end before it begins */
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), -EPROTO);
	windows.window[17].size = 10; /* the last byte of all */
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), 0);
	windows.window[17].size = 11;
	windows.n--;
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), 0);
	windows.next = HA_WINDOWS_MAX;
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), 0);
	windows.next = HA_WINDOWS_MAX + 1;
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), -EPROTO);
	windows.next = 0;
	windows.window[0].window = HA_WINDOWS_MAX;
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), -EPROTO);
	windows.n = 0; /* none is looked at */
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), 0);
	windows.window[0].window = 0;
	windows.n = HA_WINDOWS_SENT + 1;
	CHECK_INT(ha_wire_check_message(&windows, sizeof(windows)), -EPROTO);
	windows_ack.rail.rail = HA_MAX_RAILS;
	CHECK_INT(ha_wire_check_message(&windows_ack, sizeof(windows_ack)), -EPROTO);
}

/* Half a message, one of another number or length: the sum says so. */
static void board_sums_are_checked(void)
{
	struct ha_board_message message = { .number = 3, .length = 40 }, half;

	for (unsigned i = 0; i < message.length; i++)
		message.body[i] = (uint8_t)(i * 7 + 1);
	message.check = ha_wire_board_sum(&message);
	CHECK(message.check == UINT64_C(0x5a928e89d9c96782)); /* the same in every version */
	for (unsigned i = 0; i < message.length; i++) {
		half = message;
		half.body[i] ^= 1;
		CHECK(ha_wire_board_sum(&half) != half.check);
	}
	half = message;
	half.number++;
	CHECK(ha_wire_board_sum(&half) != half.check);
	half = message;
	half.length--;
	CHECK(ha_wire_board_sum(&half) != half.check);
	half = message;
	half.body[message.length] ^= 1; /* what an older message has left behind it */
	CHECK(ha_wire_board_sum(&half) == half.check);
	message.length = HA_BOARD_BODY; /* the last byte of a full one counts, too */
	half = message;
	half.body[HA_BOARD_BODY - 1] ^= 1;
	CHECK(ha_wire_board_sum(&half) != ha_wire_board_sum(&message));
	half.length = UINT32_MAX; /* looks at nothing beyond the body */
	CHECK(ha_wire_board_sum(&half) != half.check);
}

static struct ha_wire_handle good_handle(void)
{
	return (struct ha_wire_handle) {
		.magic = HA_WIRE_MAGIC,
		.version = 1,
		.version_min = 1,
		.nonce = 3,
		.oob = { .family = 4, .port = 9, .ip = { 10, 0, 0, 1 } },
		.qp = { .qpn = 17, .psn = 1, .mtu = 3, .link_layer = 1 },
	};
}

static void handle_is(struct ha_wire_handle h, const char *part)
{
	char bytes[HA_HANDLE_MAX + 1] = { 0 };
	const char *why;
	int err;

	memcpy(bytes + 1, &h, sizeof(h)); /* NCCL aligns it to nothing */
	err = ha_wire_check_handle(bytes + 1, &why);
	CHECK_INT(err, part ? -EPROTO : 0);
	CHECK(part ? strstr(why, part) != NULL : why == NULL);
}

static void handles_are_checked(void)
{
	struct ha_wire_handle h = good_handle();

	handle_is(h, NULL);
	h.version = 9; /* newer, but it can still use ours */
	handle_is(h, NULL);
	h.version_min = 9;
	handle_is(h, "version");
	h = good_handle();
	h.version = 0;
	handle_is(h, "version");
	h = good_handle();
	h.magic = 0;
	handle_is(h, "another plugin");
	h = good_handle();
	h.oob.family = 6;
	handle_is(h, NULL);
	h.version_min = HA_WIRE_VERSION + 1; /* and no older one */
	h.version = HA_WIRE_VERSION + 1;
	handle_is(h, "version");
	h = good_handle();
	h.version = 0;
	h.version_min = 0;
	handle_is(h, "version");
	h = good_handle();
	h.oob.family = 5;
	handle_is(h, "out-of-band address");
	h = good_handle();
	h.oob.port = 0;
	handle_is(h, "out-of-band address");
	h = good_handle();
	h.qp.qpn = 0;
	handle_is(h, "queue pair");
}

int main(void)
{
	hellos_are_checked();
	limits_of_fields();
	other_messages_are_checked();
	lengths_are_checked();
	rail_messages_are_checked();
	windows_are_checked();
	board_sums_are_checked();
	handles_are_checked();
	return 0;
}
