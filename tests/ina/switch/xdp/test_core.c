/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The XDP program against the slot core, in the kernel (BPF_PROG_TEST_RUN; root): every vector,
 * packets at random, all sizes of a frame. Usage: test_xdp_core [NAME...]; HA_SEED sets the dice,
 * HA_PACKETS how many.
 */
#include "ina/frame/bytes.h"
#include "ina/switch/vectors/cases.h"
#include "tests/ina/switch/named.h"
#include "tests/ina/switch/xdp/pair.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct pair p;

/* ---- every vector ---- */

static void install_group(void *arg, const struct ina_group_config *group)
{
	CHECK_INT(pair_install(&p, group), 0);
}

static void end_lease(void *arg, const struct ina_group_config *group)
{
	pair_lapse(&p, group);
}

static void remove_group(void *arg, const struct ina_group_config *group)
{
	pair_remove(&p, group);
}

static void send_packet(void *arg, unsigned port, const uint8_t *bytes, size_t len)
{
	enum ina_fault fault;

	pair_send(&p, bytes, len, &fault);
}

static void cases_are_played(void)
{
	const struct ina_case_sink sink = { .install = install_group,
					    .lapse = end_lease,
					    .remove = remove_group,
					    .packet = send_packet };
	unsigned played = 0;
	uint64_t packets = 0;

	for (unsigned i = 0; i < 2 * ina_ncases; i++) {
		const struct ina_case *c = &ina_cases[i / 2];
		bool extended = i & 1;

		if (extended ? !c->extended : !c->old)
			continue;
		pair_open(&p, INA_CASE_SWITCH, ina_case_mac);
		c->run(&sink, extended);
		pair_check_counters(&p);
		packets += p.packets;
		pair_close(&p);
		played++;
	}
	CHECK_INT(played, 36);
	printf("%u cases, %llu packets\n", played, (unsigned long long)packets);
}

/* ---- packets at random ---- */

#define ADDR 0x0a0000feu
#define GROUPS 3u
#define WORKERS 2u
static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0xfe };

static uint64_t seed;

static uint32_t draw_random(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

/* A group that exists, and how far its workers are. */
struct job {
	struct ina_group_config c;
	uint32_t at[WORKERS];
};

static struct ina_group_config make_config(unsigned i, uint32_t epoch)
{
	static const uint8_t many[] = { 2, 3, 5, 31, 32 };
	struct ina_group_config c = { .id = (uint8_t)(1 + 100 * i),
				      .ranks = many[draw_random(5)],
				      .workers = (uint8_t)(1 + draw_random(WORKERS)),
				      .extended = draw_random(4),
				      .base = (uint16_t)(256 * i),
				      .len = 4u << draw_random(5),
				      .epoch = epoch,
				      .first_psn = draw_random(2) ? 0u - draw_random(40)
								  : draw_random(1000),
				      .lease_until = UINT64_MAX };

	for (unsigned r = 0; r < c.ranks; r++)
		c.member[r] = (struct ina_member) { 0x0a000100u * (i + 1) + r,
						    { 2, 0, (uint8_t)i, 0, 0, (uint8_t)r } };
	return c;
}

static void new_incarnation(struct job *j, unsigned i)
{
	j->c = make_config(i, j->c.epoch + 1 + draw_random(3));
	CHECK_INT(pair_install(&p, &j->c), 0);
	for (unsigned w = 0; w < WORKERS; w++)
		j->at[w] = j->c.first_psn;
}

static uint32_t random_word(void)
{
	switch (draw_random(6)) {
	case 0:
		return 0x7fffffff - draw_random(3);
	case 1:
		return 0x80000000u + draw_random(3);
	case 2:
		return draw_random(3) - 1;
	}
	return draw_random(UINT32_MAX);
}

/* The psn that is due, or one from around it. */
static uint32_t random_psn(uint32_t at, uint32_t each)
{
	switch (draw_random(8)) {
	case 0:
		return at + draw_random(each);
	case 1:
		return at - draw_random(2 * each + 1);
	case 2:
		return at + each - 1 + draw_random(3);
	case 3:
		return draw_random(20) ? at - each : draw_random(UINT32_MAX);
	}
	return at;
}

static uint8_t random_exponent(uint32_t psn)
{
	if (!draw_random(40))
		return (uint8_t)draw_random(256);
	return (uint8_t)(draw_random(3) ? 140 : 138 + draw_random(5 + psn % 40));
}

/* Mostly one whose contribution is missing, so that sums get whole. */
static uint8_t random_rank(const struct ina_group_config *c, unsigned worker, uint32_t psn)
{
	uint32_t each = c->len / c->workers;
	const struct ina_slot *s = &p.slot[c->base + worker * each + (psn & (each - 1))];
	uint8_t rank = (uint8_t)draw_random(c->ranks);

	for (unsigned i = 0; draw_random(8) && i < c->ranks && !s->done && s->seen >> rank & 1; i++)
		rank = (uint8_t)((rank + 1) % c->ranks);
	return rank;
}

static void random_macs(struct ina_frame *f)
{
	for (int i = 0; i < 6; i++) {
		f->src_mac[i] = (uint8_t)(2 * draw_random(128));
		f->dst_mac[i] = (uint8_t)(2 * draw_random(128));
	}
}

/* Flags and exponent; true when no words go with them. */
static bool random_extension(struct ina_frame *f, bool bare)
{
	if (!draw_random(8)) {
		f->flags = INA_F_PROBE;
		return true;
	}
	if (!draw_random(3000)) {
		f->flags = INA_F_ABORT;
		return true;
	}
	if (bare)
		return true;
	if (!draw_random(30))
		f->flags = draw_random(2) ? INA_F_OVERFLOW : INA_F_NONFINITE;
	f->exponent = random_exponent(f->psn);
	return false;
}

/* What a rank might send; now and then what none should. */
static struct ina_frame random_frame(const struct job *j, uint8_t *words)
{
	const struct ina_group_config *c = &j->c;
	struct ina_frame f = { .dst = ADDR,
			       .ecn = draw_random(20) ? INA_ECT1 : INA_CE,
			       .extended = c->extended,
			       .group = c->id };
	uint32_t each = c->len / c->workers;
	bool bare;

	f.worker = (uint8_t)draw_random(c->workers);
	f.psn = random_psn(j->at[f.worker], each);
	f.rank = random_rank(c, f.worker, f.psn);
	f.coll = (uint8_t)(1 + (draw_random(30) ? f.psn / 4 : draw_random(5)) % 5);
	f.root = (uint8_t)((draw_random(30) ? f.psn : draw_random(32)) % c->ranks);
	f.agg_addr = (uint16_t)(c->base + f.worker * each + (f.psn & (each - 1)));
	f.src = c->member[f.rank].addr;
	if (f.extended)
		f.epoch = c->epoch + (draw_random(50) ? 0 : draw_random(3) - 1);
	random_macs(&f);
	bare = !ina_coll_brings(f.coll, f.root, f.rank);
	if (f.extended)
		bare = random_extension(&f, bare);
	if (!draw_random(60))
		bare = !bare && !f.exponent && !f.flags;
	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, random_word());
	if (!bare)
		f.words = words;
	if (!draw_random(2000) && !f.flags && !f.exponent)
		f.extended = !f.extended;
	return f;
}

/* Bytes that lie. */
static size_t spoil_bytes(uint8_t *bytes, size_t len)
{
	switch (draw_random(6)) {
	case 0:
		return 14 + draw_random((uint32_t)len - 13);
	case 1:
		bytes[12 + draw_random(2)] ^= (uint8_t)(1 + draw_random(255));
		break;
	case 2:
		bytes[14 + draw_random(20)] ^= (uint8_t)(1 + draw_random(255));
		break;
	default:
		bytes[34 + draw_random(18) % (uint32_t)(len - 34)] ^=
			(uint8_t)(1u << draw_random(8));
	}
	return len;
}

static void put_checksum(uint8_t *b)
{
	uint32_t sum = 0;

	ina_put16(b + 24, 0);
	for (int i = 14; i < 34; i += 2)
		sum += ina_get16(b + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ina_put16(b + 24, (uint16_t)~sum);
}

static void send_random_frame(struct job *jobs)
{
	unsigned i = draw_random(GROUPS);
	struct job *j = &jobs[i];
	uint8_t words[INA_PAYLOAD_BYTES], bytes[INA_FRAME_MAX + 64] = { 0 };
	struct ina_frame f = random_frame(j, words);
	size_t len = ina_frame_encode(&f, bytes);
	struct ina_verdict v;
	enum ina_fault fault;

	if (!draw_random(25)) {
		len = spoil_bytes(bytes, len);
		if (len >= 34 && draw_random(3))
			put_checksum(bytes);
	} else if (!draw_random(6)) {
		if (len < 60)
			len = 60; /* padded */
		len += draw_random(3) ? 0 : draw_random(6);
	}
	v = pair_send(&p, bytes, len, &fault);
	if (!fault && v.reason == INA_REASON_COMPLETE)
		j->at[f.worker] = v.answer.psn + 1;
	if (!draw_random(4000))
		pair_lapse(&p, &j->c);
	if ((p.core.group[j->c.id].over && !draw_random(20)) || !draw_random(6000))
		new_incarnation(j, i);
}

static void random_packets(void)
{
	static struct job jobs[GROUPS];
	const char *s = getenv("HA_SEED"), *n = getenv("HA_PACKETS");
	uint64_t first = s ? strtoull(s, NULL, 0) : 1, packets = n ? strtoull(n, NULL, 0) : 150000;
	uint64_t least = UINT64_MAX;

	seed = first;
	memset(jobs, 0, sizeof(jobs));
	pair_open(&p, ADDR, mac);
	for (unsigned i = 0; i < GROUPS; i++)
		new_incarnation(&jobs[i], i);
	for (uint64_t k = 0; k < packets; k++)
		send_random_frame(jobs);
	pair_check_counters(&p);
	/* It meant something: each fault and each reason came. */
	for (unsigned i = INA_FAULT_NOT_OURS; i < INA_XDP_OWN_AT; i++) {
		if (!p.count[i])
			printf("never: %s\n", ina_xdp_counter_name(i, NULL));
		least = p.count[i] < least ? p.count[i] : least;
	}
	printf("seed %llu: %llu packets, %llu answers, %llu sums\n", (unsigned long long)first,
	       (unsigned long long)packets, (unsigned long long)p.count[INA_XDP_ANSWERS],
	       (unsigned long long)p.count[INA_XDP_REASONS_AT + INA_REASON_COMPLETE]);
	CHECK(least);
	pair_close(&p);
}

/* ---- several CPUs in one slot ---- */

#define RANKS 4u
#define PSNS 3000u
#define EACH 4u

static struct ina_group_config shared;
static atomic_uint whole[PSNS]; /* sums that were handed out to all */
static atomic_uint again, taken, held;

static void send_at_once(uint8_t rank, uint32_t psn)
{
	uint8_t bytes[2048], words[INA_PAYLOAD_BYTES], out[2048];
	struct ina_frame f = { .src = shared.member[rank].addr,
			       .dst = ADDR,
			       .ecn = INA_ECT1,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = 9,
			       .rank = rank,
			       .agg_addr = (uint16_t)(psn % EACH),
			       .psn = psn,
			       .epoch = 1,
			       .words = words };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = bytes, .data_out = out,
		    .data_size_out = sizeof(out), .repeat = 1);

	for (uint32_t i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, psn * 64 + i + rank * 1000000);
	o.data_size_in = (uint32_t)ina_frame_encode(&f, bytes);
	CHECK_INT(bpf_prog_test_run_opts(p.program, &o), 0);
	if (o.retval == XDP_DROP) {
		atomic_fetch_add(&taken, 1);
		return;
	}
	if (o.retval == XDP_TX && out[35] == (INA_F_ANSWER | INA_F_HELD)) {
		atomic_fetch_add(&held, 1);
		return;
	}
	CHECK(o.retval == XDP_REDIRECT || o.retval == XDP_TX);
	CHECK_INT(o.data_size_out, INA_FRAME_MAX);
	CHECK_INT(out[35], INA_F_ANSWER);
	CHECK_INT(ina_get32(out + 48), psn);
	for (uint32_t i = 0; i < INA_WORDS; i++)
		CHECK_INT(ina_get32(out + INA_FRAME_MAX - INA_PAYLOAD_BYTES + 4 * i),
			  RANKS * (psn * 64 + i) + 6 * 1000000);
	atomic_fetch_add(o.retval == XDP_TX ? &again : &whole[psn], 1);
}

/* A rank: never more than half of the slots in flight, and everything twice now and then. */
static void *rank_runs(void *arg)
{
	uint8_t rank = (uint8_t)(uintptr_t)arg;
	uint32_t mine = 1 + rank;

	for (uint32_t psn = 0; psn < PSNS; psn++) {
		for (uint64_t i = 0; psn >= EACH / 2 && !atomic_load(&whole[psn - EACH / 2]); i++) {
			CHECK(i < 20000000); /* a contribution was lost */
			sched_yield();
		}
		send_at_once(rank, psn);
		mine = mine * 1103515245 + 12345;
		if (mine >> 16 & 1)
			send_at_once(rank, psn);
	}
	return NULL;
}

static void two_cpus(void)
{
	pthread_t thread[RANKS];
	int ifindex[RANKS] = { 0 };

	pair_open(&p, ADDR, mac);
	shared = (struct ina_group_config) { .id = 9,
					     .ranks = RANKS,
					     .workers = 1,
					     .extended = true,
					     .len = EACH,
					     .epoch = 1,
					     .lease_until = UINT64_MAX };
	for (unsigned r = 0; r < RANKS; r++)
		shared.member[r].addr = 0x0a000001 + r;
	CHECK_INT(ina_xdp_install(p.xdp, &shared, ifindex), 0);
	for (uintptr_t r = 0; r < RANKS; r++)
		CHECK(!pthread_create(&thread[r], NULL, rank_runs, (void *)r));
	for (unsigned r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
	for (unsigned i = 0; i < PSNS; i++)
		CHECK_INT(whole[i], 1);
	CHECK_INT(taken, (RANKS - 1) * PSNS);
	printf("%u sums, each handed out once; %u asked for again, %u held\n", PSNS, again, held);
	pair_close(&p);
}

static const struct named_test tests[] = {
	{ "vectors", cases_are_played },
	{ "random", random_packets },
	{ "two_cpus", two_cpus },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
