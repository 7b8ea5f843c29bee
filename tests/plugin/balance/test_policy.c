/* SPDX-License-Identifier: BSD-3-Clause */
/* The split of a message over rails: every byte on exactly one rail, aligned, by weight, no empty
 * stripe. */
#include "plugin/balance/policy.h"

#include "base/check.h"
#include "plugin/balance/share.h"
#include "plugin/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ha_bundle b;

static void set_rails(unsigned n, const uint16_t *weight, unsigned active)
{
	b.nrails = (uint8_t)n;
	b.active = (uint8_t)active;
	for (unsigned i = 0; i < n; i++) {
		b.rail[i].index = (uint8_t)i;
		b.balance.weight[i] = weight[i];
	}
	ha_policy_update(&b);
}

/* Ranges follow each other from 0 to size without gap, inner ends are aligned; returns the number
 * of stripes. */
static unsigned check_stripes(uint64_t size)
{
	unsigned mask = ha_policy_mask(&b, 0, size), n = 0;
	uint64_t at = 0;

	CHECK(mask && (mask & ~b.active) == 0);
	for (unsigned i = 0; i < b.nrails; i++) {
		struct ha_range r;

		if (!(mask >> i & 1))
			continue;
		r = ha_policy_range(b.balance.weight, mask, i, size);
		CHECK(r.offset == at);
		at += r.length;
		CHECK(at == size || at % HA_STRIPE_ALIGN == 0);
		CHECK(r.length || size == 0);
		n++;
	}
	CHECK(at == size);
	return n;
}

static void test_small_on_one_rail(void)
{
	set_rails(3, (uint16_t[]) { 300, 424, 300 }, 7);
	CHECK(check_stripes(0) == 1 && check_stripes(1) == 1 &&
	      check_stripes(HA_GATE_FIRST - 1) == 1);
	CHECK(ha_policy_mask(&b, 0, 8) == 2); /* the heaviest */
	b.active = 5;
	ha_policy_update(&b);
	CHECK(ha_policy_mask(&b, 0, 8) == 1);
}

static void test_every_size_and_weight(void)
{
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		uint16_t w[HA_MAX_RAILS];
		unsigned n = 1 + seed % HA_MAX_RAILS, active;
		uint64_t size;

		for (unsigned i = 0; i < HA_MAX_RAILS; i++) {
			seed = seed * 1664525u + 1013904223u;
			w[i] = (uint16_t)(seed >> 16 & (seed >> 12 & 1 ? 1023 : 0));
		}
		seed = seed * 1664525u + 1013904223u;
		active = (seed >> 8) & ((1u << n) - 1);
		set_rails(n, w, active ? active : 1);
		size = (uint64_t)seed << (seed >> 28);
		check_stripes(size);
		check_stripes(size % 300000);
	}
}

static void test_shares_follow_weights(void)
{
	set_rails(2, (uint16_t[]) { 768, 256 }, 3);
	CHECK(check_stripes(1 << 20) == 2);
	CHECK(ha_policy_range(b.balance.weight, 3, 0, 1 << 20).length == 768 << 10);
	set_rails(2, (uint16_t[]) { 1024, 0 }, 3);
	CHECK(check_stripes(1 << 20) == 1 && ha_policy_mask(&b, 0, 1 << 20) == 1);
	b.active = 2;
	ha_policy_update(&b); /* the weighted rail is down: the standby carries everything */
	CHECK(check_stripes(1 << 20) == 1 && ha_policy_mask(&b, 0, 1 << 20) == 2);
	set_rails(2, (uint16_t[]) { 1023, 1 }, 3);
	/* a 64-byte share rounds to nothing: one rail, no empty write */
	CHECK(check_stripes(HA_GATE_FIRST) == 1);
	CHECK(check_stripes(5ull << 30) == 2);
}

/* Two rails on one device and three on another: one of each carries a stripe, and all have their
 * turn. */
static void test_turns(void)
{
	static struct ha_device *const first = (struct ha_device *)&b,
				       *const second = (struct ha_device *)(&b + 1);
	unsigned used = 0, small = 0;

	b.balance.ndata = 5;
	for (unsigned i = 0; i < 5; i++)
		b.rail[i].dev = i < 2 ? first : second;
	ha_policy_turns(&b, false);
	CHECK(b.balance.turns && b.balance.lead[1] == 0 && b.balance.lead[2] == 2 &&
	      b.balance.lead[4] == 2);
	set_rails(5, (uint16_t[]) { 256, 256, 768, 768, 768 }, 31);
	for (uint64_t idx = 0; idx < 6; idx++) {
		unsigned mask = ha_policy_mask(&b, idx, 1 << 20);

		CHECK(mask == (1u << idx % 2 | 4u << idx % 3));
		CHECK(ha_policy_range(b.balance.weight, mask, (unsigned)__builtin_ctz(mask),
				      1 << 20)
			      .length == 256 << 10);
		used |= mask;
		mask = ha_policy_mask(&b, idx, 8);
		CHECK(mask == 4u << idx % 3); /* on the heavier device alone */
		small |= mask;
	}
	CHECK(used == 31 && small == 28);
	b.active = 31 & ~8u; /* one of the three fails: the other two take turns */
	ha_policy_update(&b);
	CHECK(ha_policy_mask(&b, 0, 8) == 4 && ha_policy_mask(&b, 1, 8) == 16 &&
	      ha_policy_mask(&b, 2, 8) == 4);
	CHECK(!ha_policy_one_device(&b, 31) && ha_policy_one_device(&b, 28) &&
	      ha_policy_one_device(&b, 0));
	memset(&b, 0, sizeof(b));
}

/* Four rails on one device, and every message over all of them, as long as each has 128 bytes of
 * it. */
static void test_split(void)
{
	b.balance.ndata = 4;
	for (unsigned i = 0; i < 4; i++)
		b.rail[i].dev = (struct ha_device *)&b;
	ha_policy_turns(&b, true);
	ha_gate_join(&b, false);
	CHECK(!b.balance.turns && b.balance.lead[3] == 0);
	set_rails(4, (uint16_t[]) { 1024, 1024, 1024, 1024 }, 15);
	for (uint64_t idx = 0; idx < 4; idx++) {
		CHECK(ha_policy_mask(&b, idx, 1 << 20) == 15);
		CHECK(ha_policy_range(b.balance.weight, 15, (unsigned)idx, 1 << 20).length ==
		      256 << 10);
	}
	CHECK(check_stripes(1 << 20) == 4 && check_stripes(512) == 4 && check_stripes(100) == 1);
	b.active = 7; /* a rail is being made anew: the others carry all of it */
	ha_policy_update(&b);
	CHECK(check_stripes(1 << 20) == 3);
	memset(&b, 0, sizeof(b));
}

/* The table of the MPIB design: SUP's part of 1 MiB, by parts per 1024. */
static void test_mpib_examples(void)
{
	static const struct {
		unsigned sup_bw, mask;
		uint64_t sup, sout;
	} examples[] = {
		{ 0, 1, 0, 1048576 },       { 256, 3, 262144, 786432 }, { 512, 3, 524288, 524288 },
		{ 768, 3, 786432, 262144 }, { 1024, 2, 1048576, 0 },
	};

	for (unsigned i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		unsigned mask;

		set_rails(2,
			  (uint16_t[]) { (uint16_t)(1024 - examples[i].sup_bw),
					 (uint16_t)examples[i].sup_bw },
			  3);
		mask = ha_policy_mask(&b, 0, 1 << 20);
		CHECK(mask == examples[i].mask);
		CHECK(!(mask & 1) || ha_policy_range(b.balance.weight, mask, 0, 1 << 20).length ==
					     examples[i].sout);
		CHECK(!(mask & 2) || ha_policy_range(b.balance.weight, mask, 1, 1 << 20).length ==
					     examples[i].sup);
	}
}

/* The hint of the device pair at rails 0 and 1, as advice.c takes it. */
static void set_hint(unsigned sup_bw, bool gated)
{
	memset(&b, 0, sizeof(b));
	b.balance.ndata = 2;
	b.balance.lead[1] = 1;
	b.balance.moves = true;
	b.balance.advised.on = true;
	b.balance.advised.gated = gated;
	b.balance.advised.hint = HA_HINT_OK;
	set_rails(2, (uint16_t[]) { (uint16_t)(1024 - sup_bw), (uint16_t)sup_bw }, 3);
}

static uint64_t sup_bytes(uint64_t size)
{
	unsigned mask = ha_policy_mask(&b, 0, size);

	check_stripes(size);
	return mask & 2 ? ha_policy_range(b.balance.weight, mask, 1, size).length : 0;
}

/* MPIB's document: the share of SUP, rounded down to 128 bytes, of a message of any size. */
static void test_hint_counts_for_every_size(void)
{
	for (unsigned sup_bw = 0; sup_bw <= 1024; sup_bw += 64) {
		set_hint(sup_bw, false);
		for (uint64_t size = 0; size <= 256 << 10; size += 128) {
			CHECK(sup_bytes(size) == (size * sup_bw / 1024 & ~(uint64_t)127));
			CHECK(b.balance.stripe_min == 0); /* the next hint must be seen, too */
		}
	}
	set_hint(256, false);
	CHECK(sup_bytes(8) == 0 && sup_bytes(384) == 0 && sup_bytes(512) == 128);
	set_hint(1024, false);
	CHECK(sup_bytes(8) == 8);
}

/* No hint to follow: the gate is what it is without an agent, but every message looks for a
 * hint. */
static void test_gate_without_a_hint(void)
{
	set_hint(768, false);
	b.balance.advised.hint = HA_HINT_NONE;
	ha_policy_update(&b);
	CHECK(b.balance.stripe_min == 0);
	CHECK(sup_bytes(HA_GATE_FIRST - 128) == HA_GATE_FIRST - 128 &&
	      sup_bytes(HA_GATE_FIRST) == HA_GATE_FIRST / 4 * 3);
}

/* HA_NCCL_AGENT_GATE=1: what lies below the gate goes over SOUT, whatever the hint says, and takes
 * turns there. */
static void test_gate_that_overrides_the_hint(void)
{
	static struct ha_device *const sout = (struct ha_device *)&b,
				       *const sup = (struct ha_device *)(&b + 1);
	unsigned small = 0;

	for (unsigned sup_bw = 0; sup_bw <= 1024; sup_bw += 256) {
		set_hint(sup_bw, true);
		CHECK(b.balance.stripe_min == HA_GATE_FIRST && b.balance.first == 0);
		CHECK(sup_bytes(8) == 0 && sup_bytes(HA_GATE_FIRST - 1) == 0);
		CHECK(sup_bytes(HA_GATE_FIRST) == HA_GATE_FIRST / 1024 * sup_bw);
	}
	b.active = 2;
	ha_policy_update(&b);
	CHECK(b.balance.first == 1); /* SOUT is down */
	set_hint(1024, true);
	b.balance.ndata = 4;
	for (unsigned i = 0; i < 4; i++)
		b.rail[i].dev = i < 2 ? sout : sup;
	ha_policy_turns(&b, false);
	set_rails(4, (uint16_t[]) { 0, 0, 1024, 1024 }, 15);
	for (uint64_t idx = 0; idx < 4; idx++)
		small |= ha_policy_mask(&b, idx, 8);
	CHECK(small == 3 && ha_policy_mask(&b, 0, HA_GATE_FIRST) == 4);
}

/*
 * Three data rails and a spare that carries. One data rail is back and stands by for it; when the
 * spare is lost while the others come back, all three do their share. Seed 16940 of
 * `switch,silent-switch` left the first without.
 */
static void test_shares_return_with_the_spare_lost(void)
{
	memset(&b, 0, sizeof(b));
	b.nrails = 4;
	b.balance.ndata = 3;
	for (unsigned i = 0; i < 4; i++) {
		b.rail[i].index = (uint8_t)i;
		b.balance.share[i] = i < 3 ? 341 : 0;
	}
	b.balance.weight[3] = 1024;
	b.active = 1 << 0 | 1 << 3;
	ha_share_roles(&b);
	CHECK(!b.balance.weight[0] && b.balance.weight[3] == 1024);
	b.balance.weight[1] = b.balance.weight[2] = 341;
	b.active = 1 << 0 | 1 << 1 | 1 << 2;
	ha_share_roles(&b);
	CHECK(b.balance.weight[0] == 341 && b.balance.weight[1] == 341);
	CHECK(b.balance.weight[2] == 341 && !b.balance.weight[3]);
}

int main(void)
{
	test_hint_counts_for_every_size();
	test_gate_without_a_hint();
	test_gate_that_overrides_the_hint();
	memset(&b, 0, sizeof(b));
	test_split();
	test_mpib_examples();
	test_turns();
	test_small_on_one_rail();
	test_every_size_and_weight();
	test_shares_follow_weights();
	test_shares_return_with_the_spare_lost();
	return 0;
}
