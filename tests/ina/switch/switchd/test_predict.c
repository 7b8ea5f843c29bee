/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_predict.c - header prediction (ina/switch/switchd/predict.h) lets nothing pass that the slot
 * core would not, and changes no answer: a living ha-switch over memif beside the slot core in this
 * process (oracle.h), once the heads of all ranks are predicted
 *
 * Usage: test_switchd_predict HA-SWITCH bytes|moves|incarnations|traffic|marks [CORES]
 */
#include "base/check.h"
#include "ina/frame/bytes.h"
#include "tests/ina/switch/switchd/oracle.h"

#define RANKS 4
#define GROUP 7
/* of its first worker and of GROUP's second one the predictions lie in one place */
#define OTHER_GROUP 39
#define HEAD_MAX 52
#define PACKETS 1000 /* in traffic */
#define AT_ONCE 16   /* sums, where a queue is to become long */

static struct switch_rig r;
static struct oracle o;
static struct ina_group_config groups[2];
static uint32_t next_psn[2][2]; /* of group and worker */
static uint32_t dice = 1;

static uint32_t draw_random(uint32_t sides)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % sides;
}

/* ---- groups ---- */

static struct ina_group_config make_group(uint8_t id, bool extended, uint8_t workers, uint16_t base,
					  uint32_t len, uint32_t epoch)
{
	struct ina_group_config c = { .id = id,
				      .ranks = RANKS,
				      .workers = workers,
				      .extended = extended,
				      .base = base,
				      .len = len,
				      .epoch = epoch,
				      .lease_until = UINT64_MAX };

	for (unsigned i = 0; i < RANKS; i++) {
		c.member[i] = (struct ina_member) { .addr = INA_CASE_RANK + i };
		memcpy(c.member[i].mac, (const uint8_t[6]) { 2, 0, 10, 0, 0, (uint8_t)(i + 1) }, 6);
	}
	return c;
}

/* Both groups begin anew, here and there. */
static void install_groups(unsigned n)
{
	char text[1024];
	const char *why;
	size_t at = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct ina_group_config *c = &groups[i];

		CHECK_INT(ina_switch_install(&o.sw, c, &why), 0);
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "group %u epoch %u slots %u %u frames %s workers %u members",
				       c->id, c->epoch, c->base, c->len,
				       c->extended ? "extended" : "old", c->workers);
		for (unsigned k = 0; k < RANKS; k++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, " 10.0.0.%u", k + 1);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "\n");
	}
	memset(next_psn, 0, sizeof(next_psn));
	switch_rig_groups(&r, text);
	switch_rig_reload(&r);
}

/* ---- contributions ---- */

struct contribution {
	unsigned group, worker, rank;
	uint32_t psn;
	uint8_t exponent, flags, ecn;
	int32_t word; /* the first; then one more each */
};

static struct contribution make_plain(unsigned g, unsigned rank, uint32_t psn)
{
	return (struct contribution) { .group = g,
				       .rank = rank,
				       .psn = psn,
				       .exponent = 140,
				       .ecn = INA_ECT1,
				       .word = (int32_t)(1000 * rank + psn) };
}

static size_t make_packet(const struct contribution *what, uint8_t bytes[INA_FRAME_MAX])
{
	const struct ina_group_config *c = &groups[what->group];
	uint32_t each = c->len / c->workers;
	uint8_t words[INA_PAYLOAD_BYTES];
	struct ina_frame f = { .src = c->member[what->rank].addr,
			       .dst = INA_CASE_SWITCH,
			       .worker = (uint8_t)what->worker,
			       .ecn = what->ecn,
			       .extended = c->extended,
			       .coll = INA_ALL_REDUCE,
			       .group = c->id,
			       .rank = (uint8_t)what->rank,
			       .psn = what->psn,
			       .agg_addr =
				       (uint16_t)(c->base + what->worker * each + what->psn % each),
			       .words = words };

	if (c->extended) {
		f.epoch = c->epoch;
		f.exponent = what->exponent;
		f.flags = what->flags;
	}
	memcpy(f.src_mac, c->member[what->rank].mac, 6);
	memcpy(f.dst_mac, ina_case_mac, 6);
	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, (uint32_t)what->word + i);
	return ina_frame_encode(&f, bytes);
}

static void send_contribution(const struct contribution *what)
{
	uint8_t bytes[INA_FRAME_MAX];
	size_t len = make_packet(what, bytes);

	oracle_packet(&o, o.port[what->rank], bytes, len);
}

static void send_plain(unsigned g, unsigned rank, uint32_t psn)
{
	struct contribution what = make_plain(g, rank, psn);

	send_contribution(&what);
}

/* One sum of all, after which their heads are predicted. */
static void send_whole_sum(unsigned g)
{
	uint32_t psn = next_psn[g][0]++;

	for (unsigned i = 0; i < RANKS; i++)
		send_plain(g, i, psn);
}

static uint64_t read_predicted(void)
{
	return switch_rig_metric(&r, "hawser_switch_predicted_total");
}

/* A second sum goes as predicted, all of it. */
static void sum_as_predicted(unsigned g)
{
	uint64_t before = read_predicted();

	send_whole_sum(g);
	CHECK_INT(read_predicted() - before, RANKS);
}

/* ---- one byte that is not as it was ---- */

static void fix_checksum(uint8_t *ip)
{
	uint32_t s = 0;

	ip[10] = ip[11] = 0;
	for (unsigned i = 0; i < INA_IP_BYTES; i += 2)
		s += ina_get16(ip + i);
	s = (s & 0xffff) + (s >> 16);
	ina_put16(ip + 10, (uint16_t) ~((s & 0xffff) + (s >> 16)));
}

/* Type, protocol and destination make it a packet for others (test_bridge.c). */
static bool is_for_others(unsigned at)
{
	return at == 12 || at == 13 || at == INA_ETHERNET_BYTES + 9 ||
	       (at >= INA_ETHERNET_BYTES + 16 && at < INA_ETHERNET_BYTES + INA_IP_BYTES);
}

/* Then what it should have been, so that the rank is where it was; then the others; and the head is
 * still predicted. */
static void other_byte(unsigned at, uint8_t flip, bool fix)
{
	uint32_t psn = next_psn[0][0]++;
	struct contribution what = make_plain(0, 0, psn);
	uint8_t bytes[INA_FRAME_MAX];
	size_t len = make_packet(&what, bytes);

	bytes[at] ^= flip;
	if (fix)
		fix_checksum(bytes + INA_ETHERNET_BYTES);
	oracle_packet(&o, o.port[0], bytes, len);
	for (unsigned i = 0; i < RANKS; i++)
		send_plain(0, i, psn);
}

static void other_length(int more)
{
	uint32_t psn = next_psn[0][0]++;
	struct contribution what = make_plain(0, 0, psn);
	uint8_t bytes[INA_FRAME_MAX + 8] = { 0 };
	size_t len = make_packet(&what, bytes);

	oracle_packet(&o, o.port[0], bytes, (size_t)((int)len + more));
	for (unsigned i = 0; i < RANKS; i++)
		send_plain(0, i, psn);
}

static void play_bytes(bool extended, uint8_t flip)
{
	unsigned head = extended ? HEAD_MAX : HEAD_MAX - INA_EXTENSION_BYTES;

	oracle_forget(&o);
	groups[0] = make_group(GROUP, extended, 1, 0, 128, groups[0].epoch + 1);
	install_groups(1);
	send_whole_sum(0);
	sum_as_predicted(0);
	for (unsigned at = 0; at < head; at++) {
		bool ip = at >= INA_ETHERNET_BYTES && at < INA_ETHERNET_BYTES + INA_IP_BYTES;

		if (is_for_others(at))
			continue;
		if (ip)
			other_byte(at, flip, true);
		other_byte(at, flip, false);
	}
	other_length(4);
	other_length(1);
	other_length(-1);
	other_length(-INA_PAYLOAD_BYTES);
	send_whole_sum(0);
	sum_as_predicted(0);
	oracle_nothing_more(&o);
}

static void changed_bytes_are_noticed(void)
{
	static const uint8_t flips[] = { 0x01, 0x02, 0x08, 0x80 };

	for (unsigned i = 0; i < sizeof(flips); i++) {
		play_bytes(true, flips[i]);
		play_bytes(false, flips[i]);
	}
}

/* ---- a rank moves ---- */

static void ranks_move_between_ports(void)
{
	groups[0] = make_group(GROUP, true, 1, 0, 128, 1);
	oracle_forget(&o);
	install_groups(1);
	for (unsigned i = 0; i < 12; i++) {
		send_whole_sum(0);
		sum_as_predicted(0);
		o.port[i % RANKS] = RANKS + draw_random(RIG_PORTS - RANKS);
	}
	oracle_nothing_more(&o);
}

/* ---- the group's incarnation ends ---- */

static void abort_by(unsigned rank)
{
	const struct ina_group_config *c = &groups[0];
	struct ina_frame f = { .src = c->member[rank].addr,
			       .dst = INA_CASE_SWITCH,
			       .ecn = INA_ECT1,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = c->id,
			       .rank = (uint8_t)rank,
			       .agg_addr = c->base,
			       .epoch = c->epoch,
			       .flags = INA_F_ABORT };
	uint8_t bytes[INA_FRAME_MAX];

	memcpy(f.src_mac, c->member[rank].mac, 6);
	memcpy(f.dst_mac, ina_case_mac, 6);
	oracle_packet(&o, o.port[rank], bytes, ina_frame_encode(&f, bytes));
}

static void incarnations_follow_each_other(void)
{
	groups[0] = make_group(GROUP, true, 1, 0, 64, 1);
	oracle_forget(&o);
	for (unsigned incarnation = 0; incarnation < 4; incarnation++) {
		install_groups(1);
		send_whole_sum(0);
		sum_as_predicted(0);
		if (incarnation % 2) { /* others are as predicted, and late */
			abort_by(incarnation % RANKS);
			send_whole_sum(0);
		}
		groups[0].epoch++;
		if (incarnation == 2)
			groups[0].base = 128; /* the same heads, other slots */
	}
	install_groups(1);
	groups[0].epoch--; /* from the incarnation before */
	send_whole_sum(0);
	groups[0].epoch++;
	send_whole_sum(0);
	sum_as_predicted(0);
	oracle_nothing_more(&o);
}

/* ---- everything at once ---- */

static void any_packet(void)
{
	unsigned g = draw_random(3) == 0, worker = g ? 0 : draw_random(2);
	uint32_t *psn = &next_psn[g][worker];
	struct contribution what = make_plain(g, draw_random(RANKS), *psn);

	what.worker = worker;
	if (!draw_random(8) && *psn)
		what.psn -= 1 + draw_random(*psn < 3 ? *psn : 3);
	if (!draw_random(12))
		what.exponent = (uint8_t)(138 + draw_random(5));
	if (!draw_random(20))
		what.ecn = INA_CE;
	if (!draw_random(25))
		what.flags = draw_random(2) ? INA_F_OVERFLOW : INA_F_NONFINITE;
	if (!draw_random(6))
		what.word = draw_random(2) ? INT32_MAX - 70 : INT32_MIN + 5;
	send_contribution(&what);
}

/* So that there is a next one. */
static void finish_all(void)
{
	for (unsigned g = 0; g < 2; g++)
		for (unsigned w = 0; w < groups[g].workers; w++) {
			for (unsigned i = 0; i < RANKS; i++) {
				struct contribution what = make_plain(g, i, next_psn[g][w]);

				what.worker = w;
				send_contribution(&what);
			}
			next_psn[g][w]++;
		}
}

static void random_traffic_is_equal(void)
{
	groups[0] = make_group(GROUP, true, 2, 0, 128, 1);
	groups[1] = make_group(OTHER_GROUP, false, 1, 128, 64, 1);
	oracle_forget(&o);
	install_groups(2);
	for (unsigned i = 0; i < PACKETS; i++) {
		any_packet();
		if (i % 16 == 15)
			finish_all();
	}
	oracle_nothing_more(&o);
	CHECK(read_predicted() > o.packets / 4);
}

/* ---- a queue becomes too long ---- */

static const uint8_t *word_at(const struct ina_frame *f, unsigned i)
{
	return f->words + 4 * i;
}

/* Of some sum, the right one; is it marked? */
static bool is_marked(unsigned rank, uint32_t first, uint32_t seen[RANKS])
{
	struct rte_mbuf *m = switch_rig_receive(&r, o.port[rank], RIG_TIME_LIMIT_MS);
	struct ina_frame f;
	bool marked;

	CHECK(m);
	CHECK_INT(ina_packet_decode(m, &f), INA_FAULT_NONE);
	CHECK(f.rank == rank && f.words && f.psn - first < AT_ONCE &&
	      !(seen[rank] >> (f.psn - first) & 1));
	seen[rank] |= 1u << (f.psn - first);
	for (unsigned i = 0; i < INA_WORDS; i++)
		CHECK_INT(ina_get32(word_at(&f, i)), 6000 + RANKS * (f.psn + i));
	marked = f.ecn == INA_CE;
	CHECK(marked || f.ecn == INA_ECT1);
	rte_pktmbuf_free(m);
	return marked;
}

static void predicted_packets_are_marked(void)
{
	uint32_t first, seen[RANKS] = { 0 };
	unsigned marked = 0;
	uint64_t before;

	groups[0] = make_group(GROUP, true, 1, 0, 128, 1);
	oracle_forget(&o);
	install_groups(1);
	send_whole_sum(0);
	before = read_predicted();
	first = next_psn[0][0];
	for (unsigned i = 0; i < RANKS * AT_ONCE; i++) {
		struct contribution what = make_plain(0, i / AT_ONCE, first + i % AT_ONCE);
		uint8_t packet[INA_FRAME_MAX];

		switch_rig_send(&r, o.port[what.rank], packet, make_packet(&what, packet));
	}
	for (unsigned i = 0; i < RANKS * AT_ONCE; i++)
		marked += is_marked(i / AT_ONCE, first, seen);
	CHECK_INT(read_predicted() - before, RANKS * AT_ONCE);
	CHECK_INT(switch_rig_metric(&r, "hawser_switch_marked_total"), marked);
	printf("%u of %u answers marked\n", marked, RANKS * AT_ONCE);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool alone; /* the oracle knows nothing of it */
	} tests[] = { { "bytes", changed_bytes_are_noticed, false },
		      { "moves", ranks_move_between_ports, false },
		      { "incarnations", incarnations_follow_each_other, false },
		      { "traffic", random_traffic_is_equal, false },
		      { "marks", predicted_packets_are_marked, true } };
	const char *options[] = { "--mac=02:00:00:00:00:fe", "--slots=256", NULL, NULL, NULL };
	char cores[32];

	CHECK(argc >= 3);
	snprintf(cores, sizeof(cores), "--cores=%s", argc > 3 ? argv[3] : "1");
	options[2] = cores;
	if (!strcmp(argv[2], "marks"))
		options[3] = "--mark=0,1,1";
	oracle_open(&o, &r, argv[1], options);
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(tests[i].name, argv[2])) {
			o.playing = argv[2];
			tests[i].run();
			if (!tests[i].alone)
				oracle_check_counts(&o);
			switch_rig_end(&r);
			return 0;
		}
	fprintf(stderr, "no test is called '%s'\n", argv[2]);
	return 2;
}
