/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bridge.c - what a living ha-switch does with packets that are not for it, and with such that
 * nobody should send. Usage: test_switchd_bridge HA-SWITCH NAME */
#include "base/check.h"
#include "base/clock.h"
#include "ina/frame/bytes.h"
#include "ina/switch/switch.h"
#include "tests/ina/switch/switchd/rig.h"

#include <unistd.h>

#define PORTS 3

static struct switch_rig r;
static const uint8_t own[6] = { 2, 0, 10, 0, 0, 0xfe },
		     everybody[6] = { 255, 255, 255, 255, 255, 255 };

static void start_switch(const char *const *options)
{
	switch_rig_start(&r, options);
	switch_rig_connect(&r);
	switch_rig_await_up(&r);
}

static uint64_t read_count(const char *name)
{
	char full[96];

	snprintf(full, sizeof(full), "hawser_switch_%s_total", name);
	return switch_rig_metric(&r, full);
}

static void await_count(const char *name, uint64_t want)
{
	uint64_t end = ha_clock_now(&ha_clock_live) + RIG_TIME_LIMIT_MS * HA_NS_PER_MS;

	while (read_count(name) < want && ha_clock_now(&ha_clock_live) < end)
		usleep(1000);
	CHECK_INT(read_count(name), want);
}

/* Host h's address. */
static const uint8_t *address_of_host(unsigned h)
{
	static uint8_t mac[4][6];

	memcpy(mac[h % 4], (const uint8_t[6]) { 2, 1, 1, 1, 1, (uint8_t)h }, 6);
	return mac[h % 4];
}

static unsigned number;

/* An Ethernet frame with a number of its own in it. */
static void send_frame(unsigned port, const uint8_t *to, const uint8_t *from, unsigned type)
{
	uint8_t b[80] = { 0 };

	memcpy(b, to, 6);
	memcpy(b + 6, from, 6);
	ina_put16(b + 12, (uint16_t)type);
	ina_put32(b + 60, ++number);
	switch_rig_send(&r, port, b, sizeof(b));
}

/* It came there, whole, and nowhere else. mask: a bit for each port. */
static void expect_frame(unsigned mask)
{
	struct rte_mbuf *m;

	for (unsigned p = 0; p < PORTS; p++) {
		if (!(mask >> p & 1))
			continue;
		m = switch_rig_receive(&r, p, RIG_TIME_LIMIT_MS);
		CHECK(m);
		CHECK_INT(m->pkt_len, 80);
		CHECK_INT(ina_get32(rte_pktmbuf_mtod(m, uint8_t *) + 60), number);
		rte_pktmbuf_free(m);
	}
	for (unsigned p = 0; p < PORTS; p++)
		CHECK(!switch_rig_receive(&r, p, p ? 0 : 2));
}

/* ---- forwarding ---- */

static void frames_are_forwarded(void)
{
	static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 5 },
			     stp[6] = { 1, 0x80, 0xc2, 0, 0, 0 },
			     stp_last[6] = { 1, 0x80, 0xc2, 0, 0, 15 },
			     after[6] = { 1, 0x80, 0xc2, 0, 0, 16 };

	start_switch((const char *const[]) { "--cores=2", NULL });
	send_frame(0, address_of_host(1), address_of_host(0), 0x0800); /* nobody has seen host 1 */
	expect_frame(6);
	send_frame(1, address_of_host(0), address_of_host(1), 0x86dd);
	expect_frame(1);
	send_frame(0, address_of_host(1), address_of_host(0), 0x8100); /* with a tag */
	expect_frame(2);
	send_frame(2, address_of_host(0), address_of_host(1), 0x0800); /* host 1 has moved */
	expect_frame(1);
	send_frame(0, address_of_host(1), address_of_host(0), 0x0800);
	expect_frame(4);
	send_frame(1, everybody, address_of_host(3), 0x0806);
	expect_frame(5);
	send_frame(2, group, address_of_host(1), 0x0800);
	expect_frame(3);
	send_frame(2, after, address_of_host(1), 0x0800);
	expect_frame(3);
	send_frame(2, stp, address_of_host(1), 0x0027);
	send_frame(2, stp_last, address_of_host(1), 0x88cc);
	switch_rig_send(&r, 1, stp, 6); /* a runt */
	await_count("reserved", 3);
	expect_frame(0);
	send_frame(2, address_of_host(1), address_of_host(2), 0x0800); /* both behind port 2 */
	await_count("stayed", 1);
	expect_frame(0);
	send_frame(1, own, address_of_host(3), 0x0800);
	await_count("not_spoken", 1);
	expect_frame(0);
	/* A host is not learnt from an address that is a group's. */
	send_frame(0, everybody, group, 0x0800);
	expect_frame(6);
	await_count("flooded", 5);
	await_count("forwarded", 4);
	CHECK_INT(switch_rig_metric(&r, "hawser_switch_addresses"), 4);
}

static void arp_request(uint8_t b[42], uint32_t for_whom)
{
	memcpy(b, everybody, 6);
	memcpy(b + 6, address_of_host(0), 6);
	memcpy(b + 12, (const uint8_t[10]) { 8, 6, 0, 1, 8, 0, 6, 4, 0, 1 }, 10);
	memcpy(b + 22, address_of_host(0), 6);
	ina_put32(b + 28, 0x0a000001);
	memset(b + 32, 0, 6);
	ina_put32(b + 38, for_whom);
}

/* Its own address answers; others' requests go on, and so do their answers. */
static void arp_is_answered(void)
{
	uint8_t b[42], expected[42];
	struct rte_mbuf *m;

	start_switch(NULL);
	arp_request(b, RIG_ADDR);
	switch_rig_send(&r, 0, b, sizeof(b));
	m = switch_rig_receive(&r, 0, RIG_TIME_LIMIT_MS);
	CHECK(m);
	memcpy(expected, address_of_host(0), 6);
	memcpy(expected + 6, own, 6);
	memcpy(expected + 12, (const uint8_t[10]) { 8, 6, 0, 1, 8, 0, 6, 4, 0, 2 }, 10);
	memcpy(expected + 22, own, 6);
	ina_put32(expected + 28, RIG_ADDR);
	memcpy(expected + 32, address_of_host(0), 6);
	ina_put32(expected + 38, 0x0a000001);
	CHECK_INT(m->pkt_len, 42);
	CHECK(!memcmp(rte_pktmbuf_mtod(m, void *), expected, 42));
	rte_pktmbuf_free(m);
	expect_frame(0);
	arp_request(b, RIG_ADDR + 1);
	switch_rig_send(&r, 0, b, sizeof(b));
	for (unsigned p = 1; p < PORTS; p++) {
		m = switch_rig_receive(&r, p, RIG_TIME_LIMIT_MS);
		CHECK(m && m->pkt_len == 42 && !memcmp(rte_pktmbuf_mtod(m, void *), b, 42));
		rte_pktmbuf_free(m);
	}
	expect_frame(0);
	await_count("arp", 1);
}

/* ---- frames of aggregation ---- */

/* Of IPv4; rte_raw_cksum() sums the bytes as they lie. */
static void put_checksum(uint8_t *b)
{
	uint16_t sum;

	memset(b + 24, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(b + 14, 20);
	memcpy(b + 24, &sum, 2);
}

static size_t make_contribution(uint8_t *b, uint8_t rank, uint32_t psn, uint32_t dst, int32_t value)
{
	uint8_t words[INA_PAYLOAD_BYTES];
	struct ina_frame f = { .src = 0x0a000001u + rank,
			       .dst = dst,
			       .ecn = INA_ECT1,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = 7,
			       .rank = rank,
			       .agg_addr = (uint16_t)(psn % 16),
			       .psn = psn,
			       .epoch = 1,
			       .words = words };

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, (uint32_t)value);
	memcpy(f.src_mac, address_of_host(rank), 6);
	memcpy(f.dst_mac, dst == RIG_ADDR ? own : address_of_host(2), 6);
	return ina_frame_encode(&f, b);
}

#define GROUP "group 7 slots 0 16 members 10.0.0.1 10.0.0.2\n"

/* What the switch itself says there, next. What others say it may still be bringing. */
static struct rte_mbuf *receive_answer(unsigned port)
{
	struct rte_mbuf *m;

	while ((m = switch_rig_receive(&r, port, RIG_TIME_LIMIT_MS)) &&
	       memcmp(rte_pktmbuf_mtod(m, uint8_t *) + 6, own, 6))
		rte_pktmbuf_free(m);
	CHECK(m);
	return m;
}

/* The sum of two ranks, at both. */
static void check_whole_sum(uint32_t psn)
{
	uint8_t b[INA_FRAME_MAX];
	struct ina_frame f;
	struct rte_mbuf *m;

	for (uint8_t rank = 0; rank < 2; rank++)
		switch_rig_send(&r, rank, b,
				make_contribution(b, rank, psn, RIG_ADDR,
						  1000 * (rank + 1) + (int32_t)psn));
	for (uint8_t rank = 0; rank < 2; rank++) {
		m = receive_answer(rank);
		CHECK_INT(ina_packet_decode(m, &f), INA_FAULT_NONE);
		CHECK(f.psn == psn && f.words && f.rank == rank);
		CHECK_INT((int32_t)ina_get32(f.words), 3000 + 2 * (int32_t)psn);
		rte_pktmbuf_free(m);
	}
}

/* Frames of aggregation to another switch pass by. */
static void pass_by(void)
{
	uint8_t b[INA_FRAME_MAX];
	struct rte_mbuf *m;
	size_t len;

	switch_rig_groups(&r, GROUP);
	start_switch((const char *const[]) { "--cores=2", NULL });
	send_frame(2, everybody, address_of_host(2), 0x0800);
	expect_frame(3);
	len = make_contribution(b, 0, 0, RIG_ADDR + 1, 1);
	switch_rig_send(&r, 0, b, len);
	m = switch_rig_receive(&r, 2, RIG_TIME_LIMIT_MS);
	CHECK(m && m->pkt_len == len && !memcmp(rte_pktmbuf_mtod(m, void *), b, len));
	rte_pktmbuf_free(m);
	expect_frame(0);
	check_whole_sum(0);
}

static uint64_t dice = 88172645463325252u;

static uint32_t draw_random(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 16);
}

/* Bytes of any kind, most of them nearly a frame. Not from a rank's own address: nobody can be kept
 * from lying in his own name. */
static size_t make_rubbish(uint8_t *b)
{
	size_t len = make_contribution(b, (uint8_t)(draw_random() % 2), draw_random() % 40,
				       RIG_ADDR, (int32_t)draw_random());
	unsigned kind = draw_random() % 4;

	ina_put32(b + 26, 0x0b000000 + draw_random() % 8);
	put_checksum(b);
	if (kind == 0)
		for (size_t i = 0; i < len; i++)
			b[i] = (uint8_t)draw_random();
	for (unsigned n = kind == 1 ? 1 + draw_random() % 4 : 0; n; n--)
		b[14 + draw_random() % (len - 14)] = (uint8_t)draw_random();
	if (kind == 2)
		len = 1 + draw_random() % len;
	if (b[26] == 10 && b[27] == 0 && b[28] == 0)
		b[26] = 11;
	return len;
}

static uint64_t read_labeled_count(const char *format, const char *what)
{
	char name[96];

	snprintf(name, sizeof(name), format, what);
	return switch_rig_metric(&r, name);
}

/* Packets that have come to their end in some number, whatever it is. */
static uint64_t count_accounted(void)
{
	uint64_t n = read_count("not_spoken") + read_count("reserved") + read_count("flooded") +
		     read_count("forwarded") + read_count("stayed") + read_count("arp");

	for (unsigned i = 0; i < INA_REASONS; i++)
		n += read_labeled_count("hawser_switch_frames_total{reason=\"%s\"}",
					ina_reason_name(i, NULL));
	for (unsigned i = INA_FAULT_NONE + 1; i < INA_FAULTS; i++)
		n += read_labeled_count("hawser_switch_bad_frames_total{fault=\"%s\"}",
					ina_fault_name(i, NULL));
	return n;
}

/* 20,000 packets of rubbish between sums: the sums are right, the switch runs, and each packet is
 * somewhere in its numbers. */
static void rubbish_does_no_harm(void)
{
	uint8_t b[INA_FRAME_MAX];
	struct rte_mbuf *m;
	uint32_t sent = 0;
	uint64_t end;

	switch_rig_groups(&r, GROUP);
	start_switch((const char *const[]) { "--cores=2", NULL });
	for (uint32_t psn = 0; psn < 40; psn++) {
		for (unsigned i = 0; i < 500; i++, sent++) {
			switch_rig_send(&r, 2, b, make_rubbish(b));
			/* Whatever it took for somebody else's packets. */
			for (unsigned p = 0; p < 2; p++)
				while (ina_port_receive(&r.port[p], 0, &m, 1))
					rte_pktmbuf_free(m);
		}
		await_count("received", sent + 2 * psn);
		check_whole_sum(psn);
	}
	CHECK_INT(switch_rig_metric(&r, "hawser_switch_frames_total{reason=\"complete\"}"), 40);
	for (end = ha_clock_now(&ha_clock_live) + RIG_TIME_LIMIT_MS * HA_NS_PER_MS;
	     count_accounted() < sent + 80; usleep(1000))
		CHECK(ha_clock_now(&ha_clock_live) < end);
	CHECK_INT(count_accounted(), sent + 80);
	CHECK(read_labeled_count("hawser_switch_frames_total{reason=\"%s\"}", "wrong-address") >
	      1000);
	CHECK(read_labeled_count("hawser_switch_bad_frames_total{fault=\"%s\"}", "length") > 1000);
	CHECK(read_labeled_count("hawser_switch_bad_frames_total{fault=\"%s\"}", "checksum") > 100);
}

/* ---- congestion ---- */

static size_t make_datagram(uint8_t *b, unsigned tos)
{
	memset(b, 0, 80);
	memcpy(b, address_of_host(1), 6);
	memcpy(b + 6, address_of_host(0), 6);
	memcpy(b + 12, (const uint8_t[4]) { 8, 0, 0x45, (uint8_t)tos }, 4);
	ina_put16(b + 16, 66);
	b[22] = 64;
	b[23] = 17;
	ina_put32(b + 26, 0x0a000001);
	ina_put32(b + 30, 0x0a000002);
	put_checksum(b);
	return 80;
}

/* Somebody does not read: from MIN packets on what can be marked is marked, with a right checksum,
 * the rest is dropped. What is marked was not before. */
static void full_queue_marks(void)
{
	uint8_t b[80];
	uint64_t end;
	struct rte_mbuf *m;
	unsigned marked = 0, passed = 0, dropped;

	start_switch((const char *const[]) { "--mark=32,128,0.5", "--queue=1024", NULL });
	send_frame(1, everybody, address_of_host(1), 0x0800);
	expect_frame(5);
	end = ha_clock_now(&ha_clock_live) + RIG_TIME_LIMIT_MS * HA_NS_PER_MS;
	for (unsigned i = 0; i < 1800; i++)
		switch_rig_send(&r, 0, b, make_datagram(b, i % 10 ? INA_ECT0 : INA_NOT_ECT));
	await_count("received", 1801);
	/* or a few more: those of the last burst may not be in it yet */
	dropped = (unsigned)read_count("wred_dropped");
	CHECK(dropped > 20);
	while (passed + dropped < 1800) {
		const uint8_t *ip;

		m = switch_rig_receive(&r, 1, 100);
		if (!m) {
			CHECK(ha_clock_now(&ha_clock_live) < end);
			dropped = (unsigned)read_count("wred_dropped");
			continue;
		}
		ip = rte_pktmbuf_mtod(m, uint8_t *) + 14;
		CHECK_INT((uint16_t)~rte_raw_cksum(ip, 20), 0);
		CHECK((ip[1] & 3) != INA_ECT1);
		marked += (ip[1] & 3) == INA_CE;
		passed++;
		if (passed < 900)
			CHECK((ip[1] & 3) != INA_CE); /* the memif's own ring was free */
		rte_pktmbuf_free(m);
	}
	CHECK_INT(passed + dropped, 1800);
	CHECK(!switch_rig_receive(&r, 1, 20));
	await_count("marked", marked);
	CHECK(marked > 300);
}

/* ---- groups ---- */

static void send_contribution(uint8_t rank)
{
	uint8_t words[INA_PAYLOAD_BYTES] = { rank }, b[INA_FRAME_MAX];
	struct ina_frame f = { .src = 0x0a000001u + rank,
			       .dst = RIG_ADDR,
			       .ecn = INA_ECT1,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = 5,
			       .rank = rank,
			       .epoch = 2,
			       .words = words };

	memcpy(f.dst_mac, own, 6);
	memcpy(f.src_mac, address_of_host(rank), 6);
	switch_rig_send(&r, rank, b, ina_frame_encode(&f, b));
}

/* A new incarnation that cannot be leaves the present one as it is, with all that is known of its
 * ranks. */
static void refused_incarnation(void)
{
	switch_rig_groups(&r, "group 5 epoch 2 slots 0 16 members 10.0.0.1 10.0.0.2\n");
	start_switch((const char *const[]) { "--cores=2", NULL });
	send_contribution(0);
	await_count("received", 1);
	switch_rig_groups(&r, "group 5 epoch 1 slots 0 16 members 10.0.0.1 10.0.0.2\n");
	switch_rig_reload(&r);
	send_contribution(1);
	for (unsigned rank = 0; rank < 2; rank++) {
		struct rte_mbuf *m = switch_rig_receive(&r, rank, RIG_TIME_LIMIT_MS);

		CHECK(m);
		CHECK(!memcmp(rte_pktmbuf_mtod(m, uint8_t *), address_of_host(rank), 6));
		rte_pktmbuf_free(m);
	}
	await_count("answers", 2);
	CHECK_INT(read_count("answers_nowhere"), 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = { { "forward", frames_are_forwarded },
		      { "arp", arp_is_answered },
		      { "pass_by", pass_by },
		      { "hostile", rubbish_does_no_harm },
		      { "marks", full_queue_marks },
		      { "refused_incarnation", refused_incarnation } };
	size_t i = 0;

	CHECK_INT(argc, 3);
	while (i < sizeof(tests) / sizeof(tests[0]) && strcmp(tests[i].name, argv[2]))
		i++;
	CHECK(i < sizeof(tests) / sizeof(tests[0]));
	switch_rig_make(&r, argv[1], PORTS);
	tests[i].run();
	switch_rig_end(&r);
	return 0;
}
