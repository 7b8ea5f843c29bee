/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What anybody may say to a switch, in any order: the input is a list of 17-byte pieces, each a
 * frame, a tick of time, or something a controller says. Four ranks of one group keep to the rules
 * beside it; their sums must be right whatever else is said by others.
 */
#include "base/check.h"
#include "ina/frame/bytes.h"
#include "ina/switch/switch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLOTS 64u
#define RANKS 4u
#define LEN 8u

static struct ina_switch sw;
static struct ina_slot slot[SLOTS];
static uint64_t now;

static void make_group(struct ina_group_config *c, uint8_t id, uint16_t base, bool extended)
{
	*c = (struct ina_group_config) { .id = id,
					 .ranks = RANKS,
					 .workers = 1,
					 .extended = extended,
					 .base = base,
					 .len = LEN,
					 .epoch = 1,
					 .lease_until = UINT64_MAX };
	for (unsigned i = 0; i < RANKS; i++)
		c->member[i].addr = 100u * id + i;
}

/* Any frame but one from group 1's own addresses: nobody can be kept from lying in his own name. */
static void send_hostile_frame(const uint8_t *d)
{
	uint8_t words[INA_PAYLOAD_BYTES], bytes[INA_FRAME_MAX];
	struct ina_frame f = {
		.src = ina_get16(d),
		.dst = 1,
		.worker = d[2] & 63,
		.ecn = d[2] >> 6,
		.extended = d[3] & 1,
		.coll = 1 + (d[3] >> 1) % 5,
		.group = d[4] ? d[4] : 1,
		.rank = d[5] & 31,
		.root = d[6] & 31,
		.agg_addr = d[7] & 127,
		.psn = ina_get32(d + 8),
		.flags = d[3] & 1 ? d[12] : 0,
		.exponent = d[3] & 1 ? d[13] : 0,
		.epoch = d[3] & 1 ? d[14] & 3 : 0,
	};
	struct ina_verdict v;

	if (f.src >= 100 && f.src < 100 + RANKS)
		f.src = 1000;
	memset(words, d[15], sizeof(words));
	f.words = d[3] & 0x80 ? words : NULL;
	if (ina_frame_decode(bytes, ina_frame_encode(&f, bytes), &f) != INA_FAULT_NONE)
		return;
	ina_switch_step(&sw, now, &f, &v);
	CHECK((unsigned)v.reason < INA_REASONS);
	for (uint8_t i = 0; v.action != INA_DROP && i < ina_switch_ranks(&sw, &v); i++) {
		struct ina_frame a;

		ina_switch_answer(&sw, &v, i, &a);
		CHECK(ina_frame_decode(bytes, ina_frame_encode(&a, bytes), &a) == INA_FAULT_NONE);
	}
}

static void change_other_group(const uint8_t *d)
{
	struct ina_group_config c;
	const char *why = NULL;

	make_group(&c, d[1], ina_get16(d + 2), d[4] & 1);
	c.ranks = d[5];
	c.workers = d[6];
	c.len = ina_get16(d + 7);
	c.epoch = d[9];
	c.first_psn = ina_get32(d + 10);
	if (c.id == 1)
		return; /* group 1's own controller is no enemy */
	if (d[14] & 1)
		CHECK(!ina_switch_install(&sw, &c, &why) == !why);
	else if (d[14] & 2)
		ina_switch_remove(&sw, c.id, c.epoch);
	else
		ina_switch_renew(&sw, c.id, c.epoch, now + c.first_psn);
}

/* One of group 1's ranks goes on: its next packet, in turn; the last one's completes the sum. */
static void send_honest_frame(uint32_t turn)
{
	uint8_t words[INA_PAYLOAD_BYTES];
	uint32_t psn = turn / RANKS;
	struct ina_frame f = { .src = 100 + turn % RANKS,
			       .dst = 1,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = 1,
			       .rank = (uint8_t)(turn % RANKS),
			       .agg_addr = (uint16_t)(psn % LEN),
			       .psn = psn,
			       .epoch = 1 };
	struct ina_verdict v;

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, turn * (i + 1));
	f.words = words;
	ina_switch_step(&sw, now, &f, &v);
	CHECK(v.reason == (f.rank + 1 == RANKS ? INA_REASON_COMPLETE : INA_REASON_TAKEN));
	for (unsigned i = 0; v.action == INA_ANSWER_ALL && i < INA_WORDS; i++)
		CHECK(ina_get32(v.answer.words + 4 * i) == (4 * turn - 6) * (i + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t mac[6];
	struct ina_group_config c;
	uint32_t turn = 0;
	const char *why;

	now = 0;
	ina_switch_init(&sw, 1, mac, slot, SLOTS);
	make_group(&c, 1, 0, true);
	CHECK(!ina_switch_install(&sw, &c, &why));
	make_group(&c, 2, 8, false);
	CHECK(!ina_switch_install(&sw, &c, &why));
	for (; size >= 17; data += 17, size -= 17) {
		switch (data[0] % 4) {
		case 0:
			change_other_group(data + 1);
			break;
		case 1:
			now += data[1];
			break;
		default:
			send_hostile_frame(data + 1);
		}
		send_honest_frame(turn++);
	}
	return 0;
}
