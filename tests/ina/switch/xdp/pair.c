/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/switch/xdp/pair.h"

#include "base/check.h"
#include "ina/frame/bytes.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sched.h>

#define ROOM 2048

void pair_open(struct pair *p, uint32_t addr, const uint8_t mac[6])
{
	struct ina_xdp_settings s = { .addr = addr, .nslots = PAIR_SLOTS, .mac_set = 1 };
	char why[600];

	memset(p, 0, sizeof(*p));
	memcpy(s.mac, mac, 6);
	p->now = 1;
	ina_switch_init(&p->core, addr, mac, p->slot, PAIR_SLOTS);
	p->xdp = ina_xdp_open(&s, true, why, sizeof(why));
	if (!p->xdp)
		fprintf(stderr, "%s\n", why);
	CHECK(p->xdp);
	p->program = ina_xdp_program(p->xdp, "ina_switch");
	p->answer = ina_xdp_program(p->xdp, "ina_answer");
	CHECK(p->program >= 0 && p->answer >= 0);
}

void pair_close(struct pair *p)
{
	ina_xdp_close(p->xdp);
}

int pair_install(struct pair *p, const struct ina_group_config *c)
{
	int ifindex[INA_RANKS_MAX] = { 0 };
	const char *why;
	int err = ina_switch_install(&p->core, c, &why);

	CHECK_INT(ina_xdp_install(p->xdp, c, ifindex), err);
	return err;
}

void pair_lapse(struct pair *p, const struct ina_group_config *c)
{
	int err = ina_switch_renew(&p->core, c->id, c->epoch, p->now);

	CHECK_INT(ina_xdp_renew(p->xdp, c->id, c->epoch, 1), err);
}

void pair_remove(struct pair *p, const struct ina_group_config *c)
{
	CHECK_INT(ina_xdp_remove(p->xdp, c->id, c->epoch),
		  ina_switch_remove(&p->core, c->id, c->epoch));
}

/* A program on some bytes; they become what it has made of them. */
static uint32_t run_program(int program, uint8_t *bytes, size_t *len)
{
	uint8_t out[ROOM];
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = bytes, .data_size_in = (uint32_t)*len,
		    .data_out = out, .data_size_out = sizeof(out), .repeat = 1);

	CHECK_INT(bpf_prog_test_run_opts(program, &o), 0);
	memcpy(bytes, out, o.data_size_out);
	*len = o.data_size_out;
	return o.retval;
}

static void check_same(const struct pair *p, const char *what, const uint8_t *want, size_t want_len,
		       const uint8_t *got, size_t got_len)
{
	bool equal = want_len == got_len && !memcmp(want, got, want_len);

	if (equal)
		return;
	fprintf(stderr, "packet %llu, %s: %zu bytes wanted, %zu came\n",
		(unsigned long long)p->packets, what, want_len, got_len);
	for (size_t i = 0; i < want_len && i < got_len; i++)
		if (want[i] != got[i])
			fprintf(stderr, "  byte %zu: %02x, not %02x\n", i, got[i], want[i]);
	CHECK(equal);
}

static void answer_of_core(const struct pair *p, const struct ina_verdict *v, uint8_t rank,
			   uint8_t *bytes, size_t *len)
{
	struct ina_frame f;

	ina_switch_answer(&p->core, v, rank, &f);
	*len = ina_frame_encode(&f, bytes);
}

/* Copies of an answer leave on one CPU. */
static void pin_to_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
}

static void check_all(struct pair *p, const struct ina_verdict *v, const uint8_t *common,
		      size_t common_len)
{
	uint8_t want[INA_FRAME_MAX], got[ROOM];
	size_t want_len, got_len;

	if (!p->stays)
		pin_to_cpu();
	p->stays = true;
	for (uint8_t i = 0; i < ina_switch_ranks(&p->core, v); i++) {
		memcpy(got, common, common_len);
		got_len = common_len;
		answer_of_core(p, v, i, want, &want_len);
		CHECK_INT(run_program(p->answer, got, &got_len), XDP_PASS);
		check_same(p, "an answer to all", want, want_len, got, got_len);
		p->count[INA_XDP_ANSWERS]++;
	}
}

/* What the program is to do with the frame, by the core's word. */
static uint32_t derive_action(const struct pair *p, const uint8_t *bytes, enum ina_fault fault,
			      const struct ina_verdict *v)
{
	if (fault == INA_FAULT_NOT_OURS || fault == INA_FAULT_SHORT)
		return XDP_PASS;
	if (fault)
		return ina_get32(bytes + 30) == p->core.addr ? XDP_DROP : XDP_PASS;
	if (v->action == INA_ANSWER_ALL)
		return XDP_REDIRECT;
	if (v->action == INA_ANSWER_ONE)
		return XDP_TX;
	return v->reason == INA_REASON_NOT_HERE ? XDP_PASS : XDP_DROP;
}

struct ina_verdict pair_send(struct pair *p, const uint8_t *bytes, size_t len,
			     enum ina_fault *fault)
{
	struct ina_verdict v = { .action = INA_DROP };
	uint8_t got[ROOM], want[INA_FRAME_MAX];
	size_t got_len = len, want_len;
	uint32_t does, wanted;
	struct ina_frame f;

	p->packets++;
	p->now++;
	*fault = ina_frame_decode(bytes, len, &f);
	if (*fault == INA_FAULT_NONE)
		ina_switch_step(&p->core, p->now, &f, &v);
	p->count[*fault ? INA_XDP_FAULTS_AT + (unsigned)*fault
			: INA_XDP_REASONS_AT + (unsigned)v.reason]++;
	memcpy(got, bytes, len);
	wanted = derive_action(p, bytes, *fault, &v);
	does = run_program(p->program, got, &got_len);
	if (does != wanted)
		fprintf(stderr, "packet %llu: fault %s, reason %s\n",
			(unsigned long long)p->packets, ina_fault_name(*fault, NULL),
			ina_reason_name(v.reason, NULL));
	CHECK_INT(does, wanted);
	if (does == XDP_PASS) {
		check_same(p, "passed on", bytes, len, got, got_len);
	} else if (does == XDP_TX) {
		answer_of_core(p, &v, f.rank, want, &want_len);
		check_same(p, "the answer", want, want_len, got, got_len);
		p->count[INA_XDP_ANSWERS]++;
	} else if (does == XDP_REDIRECT) {
		check_all(p, &v, got, got_len);
	}
	return v;
}

void pair_check_counters(struct pair *p)
{
	uint64_t n[INA_XDP_COUNTERS];

	CHECK_INT(ina_xdp_count(p->xdp, n), 0);
	for (unsigned i = 0; i < INA_XDP_COUNTERS; i++) {
		if (n[i] != p->count[i])
			fprintf(stderr, "%s: %llu, not %llu\n", ina_xdp_counter_name(i, NULL),
				(unsigned long long)n[i], (unsigned long long)p->count[i]);
		CHECK(n[i] == p->count[i]);
	}
}
