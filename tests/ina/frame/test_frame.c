/* SPDX-License-Identifier: BSD-3-Clause */
/* test_frame.c - bytes of both frames as the tables of docs/ina.md have them, and each thing that
 * is refused */
#include "base/rng.h"
#include "ina/frame/bytes.h"
#include "ina/frame/frame.h"
#include "ina/frame/wire.h"
#include "tests/ina/switch/named.h"

#include <sys/mman.h>

#define IP 14
#define L4 34

static uint8_t words[INA_PAYLOAD_BYTES];

static struct ina_frame make_sample(bool extended, bool with_words)
{
	struct ina_frame f = {
		.dst_mac = { 2, 0, 0, 0, 0, 0xff },
		.src_mac = { 2, 0, 0, 0, 0, 7 },
		.dst = 0x0a0000fe,
		.src = 0x0a000007,
		.worker = 5,
		.ecn = INA_ECT1,
		.extended = extended,
		.coll = INA_REDUCE,
		.group = 9,
		.rank = 6,
		.root = 31,
		.agg_addr = 0x1234,
		.psn = 0xfedcba98,
		.words = with_words ? words : NULL,
	};

	if (extended) {
		f.flags = with_words ? INA_F_OVERFLOW : 0;
		f.exponent = with_words ? 140 : 0;
		f.epoch = 0x01020304;
	}
	for (unsigned i = 0; i < sizeof(words); i++)
		words[i] = (uint8_t)(i * 7 + 1);
	return f;
}

static void mend_checksum(uint8_t *b)
{
	uint32_t sum = 0;

	ina_put16(b + IP + 10, 0);
	for (int i = 0; i < 20; i += 2)
		sum += ina_get16(b + IP + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	ina_put16(b + IP + 10, (uint16_t)~sum);
}

static void check_same(const struct ina_frame *a, const struct ina_frame *b)
{
	CHECK(!memcmp(a->dst_mac, b->dst_mac, 6) && !memcmp(a->src_mac, b->src_mac, 6));
	CHECK(a->dst == b->dst && a->src == b->src && a->worker == b->worker && a->ecn == b->ecn);
	CHECK(a->extended == b->extended && a->coll == b->coll && a->group == b->group &&
	      a->rank == b->rank);
	CHECK(a->root == b->root && a->agg_addr == b->agg_addr && a->psn == b->psn);
	CHECK(a->flags == b->flags && a->exponent == b->exponent && a->epoch == b->epoch);
	CHECK(!a->words == !b->words);
	CHECK(!a->words || !memcmp(a->words, b->words, INA_PAYLOAD_BYTES));
}

/* NetCCL's layout, byte by byte. */
static void old_bytes(void)
{
	static const uint8_t expected[L4 + 10] = {
		2,    0,    0,    0,    0,          0xff,     2,         0,    0,    0,    0,
		7,    0x08, 0x00, 0x45, 5 << 2 | 1, 286 >> 8, 286 & 255, 0,    0,    0x40, 0,
		64,   254,  0x24, 0xa4, 10,         0,        0,         7,    10,   0,    0,
		0xfe, 2,    9,    6,    31,         0x12,     0x34,      0xfe, 0xdc, 0xba, 0x98,
	};
	struct ina_frame f = make_sample(false, true), g;
	uint8_t b[INA_FRAME_MAX];

	CHECK_INT(ina_frame_encode(&f, b), 300);
	for (unsigned i = 0; i < sizeof(expected); i++)
		if (i < IP + 10 || i > IP + 11)
			CHECK_INT(b[i], expected[i]);
	CHECK(!memcmp(b + sizeof(expected), words, sizeof(words)));
	CHECK_INT(ina_frame_decode(b, 300, &g), INA_FAULT_NONE);
	CHECK(g.words == b + 44);
	check_same(&f, &g);
}

static void extended_bytes(void)
{
	static const uint8_t expected[18] = {
		1,  INA_F_OVERFLOW, 140,  0,    1,    2,    3,    4, 2, 9, 6,
		31, 0x12,           0x34, 0xfe, 0xdc, 0xba, 0x98,
	};
	struct ina_frame f = make_sample(true, true), g;
	uint8_t b[INA_FRAME_MAX];

	CHECK_INT(ina_frame_encode(&f, b), INA_FRAME_MAX);
	CHECK_INT(INA_FRAME_MAX, 308);
	CHECK_INT(b[IP + 9], 253);
	CHECK_INT(ina_get16(b + IP + 2), 294);
	CHECK(!memcmp(b + L4, expected, sizeof(expected)));
	CHECK(!memcmp(b + L4 + 18, words, sizeof(words)));
	CHECK_INT(ina_frame_decode(b, sizeof(b), &g), INA_FAULT_NONE);
	check_same(&f, &g);
}

/* Header-only frames; Ethernet pads them to 60 bytes, and the padding is nobody's. */
static void bare_frames_are_padded(void)
{
	for (int extended = 0; extended < 2; extended++) {
		struct ina_frame f = make_sample(extended, false), g;
		uint8_t b[INA_FRAME_MAX];
		size_t len = ina_frame_encode(&f, b);

		CHECK_INT(len, extended ? 52 : 44);
		memset(b + len, 0xee, sizeof(b) - len);
		CHECK_INT(ina_frame_decode(b, 64, &g), INA_FAULT_NONE); /* with a check sequence */
		CHECK_INT(ina_frame_decode(b, 65, &g), INA_FAULT_LENGTH);
		CHECK_INT(ina_frame_decode(b, 60, &g), INA_FAULT_NONE);
		check_same(&f, &g);
		CHECK_INT(ina_frame_decode(b, len, &g), INA_FAULT_NONE);
		check_same(&f, &g);
	}
}

/* The IPv4 example that is worked out in many texts: 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8
 * 00c7. */
static void checksum_of_known_header(void)
{
	static const uint8_t ip[20] = { 0x45, 0, 0,   0x73, 0, 0, 0x40, 0,   0x40, 254,
					0,    0, 192, 168,  0, 1, 192,  168, 0,    199 };
	struct ina_frame f = make_sample(false, false);
	uint8_t b[INA_FRAME_MAX];

	f.src = 0xc0a80001;
	f.dst = 0xc0a800c7;
	f.worker = 0;
	f.ecn = 0;
	ina_frame_encode(&f, b);
	CHECK(!memcmp(b + IP + 12, ip + 12, 8));
	/* That example has length 0x73 and protocol 17, ours 30 and 254: one's complement, so the
	 * difference carries over. */
	CHECK_INT(ina_get16(b + IP + 10), 0xb861 + 0x73 - 30 - (254 - 17));
}

static enum ina_fault decode_changed(bool extended, bool with_words, unsigned at, uint8_t value,
				     bool mended)
{
	struct ina_frame f = make_sample(extended, with_words), g;
	uint8_t b[INA_FRAME_MAX];
	size_t len = ina_frame_encode(&f, b);

	b[at] = value;
	if (mended)
		mend_checksum(b);
	return ina_frame_decode(b, len, &g);
}

/* One thing is wrong, all else is right, the checksum too. */
static void wrong_frames_are_refused(void)
{
	for (int e = 0; e < 2; e++) {
		unsigned at = L4 + (e ? 8 : 0);

		CHECK_INT(decode_changed(e, true, 12, 0x86, true),
			  INA_FAULT_NOT_OURS); /* Ethernet type */
		CHECK_INT(decode_changed(e, true, 13, 0x06, true), INA_FAULT_NOT_OURS); /* ARP */
		CHECK_INT(decode_changed(e, true, IP + 9, 17, true), INA_FAULT_NOT_OURS);
		CHECK_INT(decode_changed(e, true, IP, 0x46, true), INA_FAULT_IP); /* options */
		CHECK_INT(decode_changed(e, true, IP, 0x65, true), INA_FAULT_IP); /* version 6 */
		CHECK_INT(decode_changed(e, true, IP + 8, 0, true), INA_FAULT_IP);
		CHECK_INT(decode_changed(e, true, IP + 6, 0, true), INA_FAULT_FRAGMENT); /* no DF */
		/* more fragments */
		CHECK_INT(decode_changed(e, true, IP + 6, 0x60, true), INA_FAULT_FRAGMENT);
		CHECK_INT(decode_changed(e, true, IP + 6, 0xc0, true),
			  INA_FAULT_FRAGMENT); /* reserved */
		CHECK_INT(decode_changed(e, true, IP + 7, 1, true),
			  INA_FAULT_FRAGMENT); /* offset */
		CHECK_INT(decode_changed(e, true, IP + 3, 0, true), INA_FAULT_LENGTH);
		CHECK_INT(decode_changed(e, true, IP + 2, 0, true), INA_FAULT_LENGTH);
		CHECK_INT(decode_changed(e, false, IP + 2, 1, true),
			  INA_FAULT_LENGTH); /* passes the end */
		CHECK_INT(decode_changed(e, true, IP + 10, 0, false), INA_FAULT_CHECKSUM);
		CHECK_INT(decode_changed(e, true, at, 0, false), INA_FAULT_COLLECTIVE);
		CHECK_INT(decode_changed(e, true, at, 6, false), INA_FAULT_COLLECTIVE);
		/* group 0 means: fall back */
		CHECK_INT(decode_changed(e, true, at + 1, 0, false), INA_FAULT_RANGE);
		CHECK_INT(decode_changed(e, true, at + 2, 32, false), INA_FAULT_RANGE);
		CHECK_INT(decode_changed(e, true, at + 3, 255, false), INA_FAULT_RANGE);
	}
	/* An extended frame is not an old one with 8 bytes of something. */
	CHECK_INT(decode_changed(true, true, IP + 9, 254, true), INA_FAULT_LENGTH);
	CHECK_INT(decode_changed(false, true, IP + 9, 253, true), INA_FAULT_LENGTH);
	CHECK_INT(decode_changed(true, true, L4, 2, false), INA_FAULT_VERSION);
	CHECK_INT(decode_changed(true, true, L4, 0, false), INA_FAULT_VERSION);
	CHECK_INT(decode_changed(true, true, L4 + 3, 1, false), INA_FAULT_FLAGS);
	CHECK_INT(decode_changed(true, true, L4 + 1, 0x80, false), INA_FAULT_FLAGS);
	/* an exponent of nothing */
	CHECK_INT(decode_changed(true, false, L4 + 2, 1, false), INA_FAULT_FLAGS);
}

/* Every combination of flags, with and without words. */
static void flags_are_checked(void)
{
	for (unsigned v = 0; v < 512; v++) {
		bool with_words = v & 256;
		unsigned fl = v & 255, bare = fl & INA_F_BARE;
		enum ina_fault fault = decode_changed(true, with_words, L4 + 1, (uint8_t)fl, false);
		bool sound;

		if (with_words)
			sound = !bare && !(fl & 0x80);
		else
			sound = fl == 0 || fl == INA_F_ANSWER || fl == INA_F_ABORT ||
				fl == (INA_F_ABORT | INA_F_ANSWER) || fl == INA_F_PROBE ||
				fl == (INA_F_HELD | INA_F_ANSWER) ||
				fl == (INA_F_NEED | INA_F_ANSWER);
		/* make_sample() gives words an exponent, which they may have, and nothing none. */
		CHECK_INT(fault == INA_FAULT_NONE, sound);
		if (!sound)
			CHECK(fault == INA_FAULT_FLAGS || fault == INA_FAULT_WORDS);
	}
}

/* Cut short anywhere: never taken, and nothing behind the end is read (the address sanitizer
 * watches the heap block). */
static void cut_frames_are_refused(void)
{
	for (int v = 0; v < 4; v++) {
		struct ina_frame f = make_sample(v & 1, v & 2), g;
		uint8_t b[INA_FRAME_MAX];
		size_t len = ina_frame_encode(&f, b);

		for (size_t n = 0; n < len; n++) {
			uint8_t *heap = malloc(n ? n : 1);
			enum ina_fault fault;

			memcpy(heap, b, n);
			fault = ina_frame_decode(heap, n, &g);
			CHECK_INT(fault, n < L4 ? INA_FAULT_SHORT : INA_FAULT_LENGTH);
			free(heap);
		}
	}
}

/* No single bit of the IPv4 header can turn unseen. */
static void one_bit(void)
{
	struct ina_frame f = make_sample(true, true), g;
	uint8_t b[INA_FRAME_MAX];
	size_t len = ina_frame_encode(&f, b);

	for (unsigned bit = IP * 8; bit < L4 * 8; bit++) {
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(ina_frame_decode(b, len, &g) != INA_FAULT_NONE);
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* Whatever can be encoded comes back as it was. */
static void round_trip(void)
{
	struct sr_rng rng = { 1 };

	for (int n = 0; n < 20000; n++) {
		struct ina_frame f = make_sample(sr_rng_below(&rng, 2), sr_rng_below(&rng, 2)), g;
		uint8_t b[INA_FRAME_MAX];

		f.dst = (uint32_t)sr_rng_next(&rng);
		f.src = (uint32_t)sr_rng_next(&rng);
		f.worker = (uint8_t)sr_rng_below(&rng, INA_WORKERS_MAX);
		f.ecn = (uint8_t)sr_rng_below(&rng, 4);
		f.coll = (uint8_t)(1 + sr_rng_below(&rng, 5));
		f.group = (uint8_t)(1 + sr_rng_below(&rng, 255));
		f.rank = (uint8_t)sr_rng_below(&rng, 32);
		f.root = (uint8_t)sr_rng_below(&rng, 32);
		f.agg_addr = (uint16_t)sr_rng_next(&rng);
		f.psn = (uint32_t)sr_rng_next(&rng);
		if (f.extended)
			f.epoch = (uint32_t)sr_rng_next(&rng);
		CHECK_INT(ina_frame_decode(b, ina_frame_encode(&f, b), &g), INA_FAULT_NONE);
		check_same(&f, &g);
	}
}

/* ---- held against the same, written byte by byte ---- */

#define ROOM 4096

static uint32_t slow_sum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] * 256 + header[i + 1];
	while (sum > 0xffff)
		sum = sum % 0x10000 + sum / 0x10000;
	return sum;
}

static enum ina_fault slow_length(const uint8_t *b, size_t len)
{
	uint32_t total = (uint32_t)b[IP + 2] * 256 + b[IP + 3];
	size_t bare = b[IP + 9] == 253 ? 38 : 30;

	if ((total != bare && total != bare + 256) || IP + total > len)
		return INA_FAULT_LENGTH;
	return len > IP + total + 4 && len > 64 ? INA_FAULT_LENGTH : INA_FAULT_NONE;
}

/* The fault of a frame's bytes by the tables of docs/ina.md: nothing is looked at at once, nothing
 * is taken for granted. */
static enum ina_fault slow_ip(const uint8_t *b, size_t len)
{
	if (len < IP)
		return INA_FAULT_SHORT;
	if (b[12] != 0x08 || b[13] != 0x00)
		return INA_FAULT_NOT_OURS;
	if (len < L4)
		return INA_FAULT_SHORT;
	if (b[IP + 9] != 253 && b[IP + 9] != 254)
		return INA_FAULT_NOT_OURS;
	if (b[IP] != 0x45 || b[IP + 8] == 0)
		return INA_FAULT_IP;
	if (slow_sum(b + IP) != 0xffff)
		return INA_FAULT_CHECKSUM;
	if (b[IP + 6] != 0x40 || b[IP + 7] != 0)
		return INA_FAULT_FRAGMENT;
	return slow_length(b, len);
}

static enum ina_fault slow_flags(uint8_t fl, uint8_t exponent, bool with_words)
{
	static const uint8_t alone[] = { INA_F_ABORT, INA_F_PROBE, INA_F_HELD, INA_F_NEED };
	bool answer = fl & INA_F_ANSWER;
	unsigned set = 0;

	for (size_t i = 0; i < sizeof(alone); i++)
		set += (fl & alone[i]) != 0;
	if (fl & 0x80 || set > 1)
		return INA_FAULT_FLAGS;
	if ((fl & INA_F_PROBE && answer) || (fl & (INA_F_HELD | INA_F_NEED) && !answer))
		return INA_FAULT_FLAGS;
	if (with_words)
		return set ? INA_FAULT_WORDS : INA_FAULT_NONE;
	return exponent || fl & (INA_F_OVERFLOW | INA_F_NONFINITE) ? INA_FAULT_FLAGS
								   : INA_FAULT_NONE;
}

static enum ina_fault slow_fault(const uint8_t *b, size_t len)
{
	enum ina_fault fault = slow_ip(b, len);
	const uint8_t *at = b + L4;

	if (fault)
		return fault;
	if (b[IP + 9] == 253) {
		if (at[0] != 1)
			return INA_FAULT_VERSION;
		if (at[3])
			return INA_FAULT_FLAGS;
		fault = slow_flags(at[1], at[2], b[IP + 2]);
		if (fault)
			return fault;
		at += 8;
	}
	if (at[0] < 1 || at[0] > 5)
		return INA_FAULT_COLLECTIVE;
	return at[1] == 0 || at[2] > 31 || at[3] > 31 ? INA_FAULT_RANGE : INA_FAULT_NONE;
}

static void slow_extension(const uint8_t *b, const struct ina_frame *f, bool extended)
{
	CHECK_INT(f->flags, extended ? b[L4 + 1] : 0);
	CHECK_INT(f->exponent, extended ? b[L4 + 2] : 0);
	CHECK_INT(f->epoch, extended ? ina_get32(b + L4 + 4) : 0);
}

/* Its fields as they stand in the bytes. */
static void slow_fields(const uint8_t *b, const struct ina_frame *f)
{
	bool extended = b[IP + 9] == 253;
	const uint8_t *at = b + L4 + (extended ? 8 : 0);

	CHECK(!memcmp(f->dst_mac, b, 6) && !memcmp(f->src_mac, b + 6, 6));
	CHECK(f->extended == extended && f->worker == b[IP + 1] / 4 && f->ecn == b[IP + 1] % 4);
	CHECK(f->src == ina_get32(b + IP + 12) && f->dst == ina_get32(b + IP + 16));
	slow_extension(b, f, extended);
	CHECK(f->coll == at[0] && f->group == at[1] && f->rank == at[2] && f->root == at[3]);
	CHECK(f->agg_addr == at[4] * 256 + at[5] && f->psn == ina_get32(at + 6));
	CHECK(f->words == (b[IP + 2] ? at + 10 : NULL));
}

/* ROOM bytes of which none behind the last may be touched. */
static uint8_t *map_guarded(void)
{
	uint8_t *room =
		mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(room != MAP_FAILED && !mprotect(room + ROOM, ROOM, PROT_NONE));
	return room;
}

static struct ina_frame any_frame(struct sr_rng *rng)
{
	bool extended = sr_rng_below(rng, 2), with_words = sr_rng_below(rng, 4);
	struct ina_frame f = make_sample(extended, with_words);

	for (unsigned i = 0; i < 6; i++) {
		f.dst_mac[i] = (uint8_t)sr_rng_next(rng);
		f.src_mac[i] = (uint8_t)sr_rng_next(rng);
	}
	f.dst = (uint32_t)sr_rng_next(rng);
	f.src = (uint32_t)sr_rng_next(rng);
	f.worker = (uint8_t)sr_rng_below(rng, INA_WORKERS_MAX);
	f.ecn = (uint8_t)sr_rng_below(rng, 4);
	f.coll = (uint8_t)(1 + sr_rng_below(rng, 5));
	f.group = (uint8_t)(1 + sr_rng_below(rng, 255));
	f.rank = (uint8_t)sr_rng_below(rng, 32);
	f.root = (uint8_t)sr_rng_below(rng, 32);
	f.agg_addr = (uint16_t)sr_rng_next(rng);
	f.psn = (uint32_t)sr_rng_next(rng);
	f.epoch = extended ? (uint32_t)sr_rng_next(rng) : 0;
	f.exponent = extended && with_words ? (uint8_t)sr_rng_next(rng) : 0;
	return f;
}

/* Sound still, with a checksum whose carries come once in thousands of millions of headers by
 * chance: at the top of 64 bits, or a sum that is all ones at 32. */
static void make_carry(struct sr_rng *rng, uint8_t *b)
{
	uint8_t *ip = b + IP;
	uint64_t sum = 0;
	uint32_t first;

	if (sr_rng_below(rng, 2)) {
		memcpy(&first, ip + 4, sizeof(first));
		first = UINT32_MAX - first - (uint32_t)sr_rng_below(rng, 2);
		memcpy(ip + 12, &first, sizeof(first));
		mend_checksum(b);
		return;
	}
	ina_put16(ip + 10, (uint16_t)sr_rng_next(rng));
	for (int i = 0; i < 16; i += 4)
		sum += ina_get32(ip + i);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	ina_put32(ip + 16, ~(uint32_t)sum);
}

/* A few bytes of the headers become others: anything, a neighbour, or what is right elsewhere. */
static void mutate_headers(struct sr_rng *rng, uint8_t *b, size_t len)
{
	static const uint8_t likely[] = { 0,   1,   2,  0x08, 0x40,      0x45,     253,
					  254, 255, 38, 30,   294 & 255, 286 & 255 };

	for (unsigned n = (unsigned)sr_rng_below(rng, 4); n && len; n--) {
		uint8_t *at = b + (sr_rng_below(rng, 8) ? 12 + sr_rng_below(rng, 44)
							: sr_rng_below(rng, len));

		if (at >= b + len)
			continue;
		switch (sr_rng_below(rng, 3)) {
		case 0:
			*at = (uint8_t)sr_rng_next(rng);
			break;
		case 1:
			*at ^= (uint8_t)(1u << sr_rng_below(rng, 8));
			break;
		case 2:
			*at = likely[sr_rng_below(rng, sizeof(likely))];
			break;
		}
	}
	if (len >= L4 && sr_rng_below(rng, 4))
		mend_checksum(b);
}

/* What looks at eight bytes at a time and takes most frames by one branch says of every frame,
 * sound or not, what the tables say: at any address, cut anywhere. */
static void decode_bytewise(void)
{
	struct sr_rng rng = { 2 };
	uint8_t *room = map_guarded();
	unsigned seen[INA_FAULTS] = { 0 }, longer = 0;

	for (int n = 0; n < 200000; n++) {
		struct ina_frame f = any_frame(&rng), g;
		uint8_t b[INA_FRAME_MAX + 80], *at;
		size_t len = ina_frame_encode(&f, b);
		enum ina_fault fault;

		if (!sr_rng_below(&rng, 4))
			make_carry(&rng, b);
		if (!sr_rng_below(&rng, 4)) {
			for (size_t i = 0; i < 80; i++)
				b[len + i] = (uint8_t)sr_rng_next(&rng);
			len = sr_rng_below(&rng, 2) ? len + sr_rng_below(&rng, 24)
						    : sr_rng_below(&rng, len + 80);
		}
		mutate_headers(&rng, b, len);
		at = room + ROOM - len - (sr_rng_below(&rng, 2) ? sr_rng_below(&rng, 8) : 0);
		memcpy(at, b, len);
		fault = slow_fault(at, len);
		CHECK_INT(ina_frame_decode(at, len, &g), fault);
		seen[fault]++;
		longer += !fault && len > ina_wire_bytes(&g);
		if (!fault)
			slow_fields(at, &g);
	}
	for (int i = 0; i < INA_FAULTS; i++)
		CHECK(seen[i] >= 20);
	CHECK(seen[INA_FAULT_NONE] >= 20000 && longer >= 1000); /* sound ones by both ways */
	munmap(room, 2 * ROOM);
}

static size_t slow_encode(const struct ina_frame *f, uint8_t *b)
{
	uint8_t *ip = b + IP, *at = b + L4;
	size_t len = L4 + (f->extended ? 18 : 10);

	memset(b, 0, len);
	memcpy(b, f->dst_mac, 6);
	memcpy(b + 6, f->src_mac, 6);
	b[12] = 8;
	ip[0] = 0x45;
	ip[1] = (uint8_t)(f->worker * 4 + f->ecn);
	ina_put16(ip + 2, (uint16_t)(len - IP + (f->words ? 256 : 0)));
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = f->extended ? 253 : 254;
	ina_put32(ip + 12, f->src);
	ina_put32(ip + 16, f->dst);
	if (f->extended) {
		at[0] = 1;
		at[1] = f->flags;
		at[2] = f->exponent;
		ina_put32(at + 4, f->epoch);
		at += 8;
	}
	at[0] = f->coll;
	at[1] = f->group;
	at[2] = f->rank;
	at[3] = f->root;
	ina_put16(at + 4, f->agg_addr);
	ina_put32(at + 6, f->psn);
	return len;
}

/* And what makes them: each byte, and none behind them, with IPv4's checksum and without. */
static void encode_bytewise(void)
{
	struct sr_rng rng = { 3 };
	uint8_t *room = map_guarded();

	for (int n = 0; n < 50000; n++) {
		struct ina_frame f = any_frame(&rng);
		uint8_t expected[INA_FRAME_MAX], *at;
		size_t head = slow_encode(&f, expected);
		bool with_checksum = sr_rng_below(&rng, 2);

		at = room + ROOM - head - sr_rng_below(&rng, 8);
		memset(at - 1, 0xa5, (size_t)(room + ROOM - at + 1));
		CHECK_INT(ina_wire_encode_head(&f, with_checksum, at), head);
		if (with_checksum)
			mend_checksum(expected);
		CHECK(!memcmp(at, expected, head) && at[-1] == 0xa5);
		for (const uint8_t *rest = at + head; rest < room + ROOM; rest++)
			CHECK_INT(*rest, 0xa5);
	}
	munmap(room, 2 * ROOM);
}

/* Who brings words and who gets some, by the definition of each collective. */
static void who_brings_and_gets(void)
{
	static const struct {
		uint8_t coll;
		bool root_brings, other_brings, root_gets, other_gets;
	} is[] = {
		{ INA_ALL_REDUCE, true, true, true, true },
		{ INA_REDUCE, true, true, true, false },
		{ INA_BROADCAST, true, false, false, true },
		{ INA_REDUCE_SCATTER, true, true, true, false },
		{ INA_ALL_GATHER, true, false, false, true },
	};

	for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		CHECK_INT(ina_coll_brings(is[i].coll, 3, 3), is[i].root_brings);
		CHECK_INT(ina_coll_brings(is[i].coll, 3, 4), is[i].other_brings);
		CHECK_INT(ina_coll_gets(is[i].coll, 3, 3), is[i].root_gets);
		CHECK_INT(ina_coll_gets(is[i].coll, 3, 4), is[i].other_gets);
	}
}

static void faults_have_names(void)
{
	const char *help;

	for (int i = 0; i < INA_FAULTS; i++)
		CHECK(strcmp(ina_fault_name((enum ina_fault)i, &help), "?") && *help);
	CHECK_TEXT(ina_fault_name(INA_FAULTS, &help), "?");
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "old_bytes", old_bytes },
		{ "extended_bytes", extended_bytes },
		{ "bare", bare_frames_are_padded },
		{ "checksum", checksum_of_known_header },
		{ "refused", wrong_frames_are_refused },
		{ "flags", flags_are_checked },
		{ "cut", cut_frames_are_refused },
		{ "one_bit", one_bit },
		{ "round_trip", round_trip },
		{ "decode_bytewise", decode_bytewise },
		{ "encode_bytewise", encode_bytewise },
		{ "collectives", who_brings_and_gets },
		{ "names", faults_have_names },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
