/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-xdp: ns a packet of the XDP switch, beside a program that only decodes and drops, in the
 * same run (BPF_PROG_TEST_RUN with repeat; root)
 *
 * Both programs make the next rank's contribution out of the frame first (addresses, checksum,
 * rank, slot, psn), so every packet is a new one: of n contributions n - 1 are added and dropped,
 * and the last becomes the answer. What the driver does is not in it, nor the copies to the other
 * ranks.
 * Usage: bench-xdp [REPEAT]
 */
#include "base/options.h"
#include "ina/switch/xdp/datapath.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDR 0x0a0000feu
#define ROUNDS 9

static uint32_t run_program(int program, const uint8_t *bytes, size_t len, int repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = bytes, .data_size_in = (uint32_t)len,
		    .repeat = repeat);

	if (bpf_prog_test_run_opts(program, &o)) {
		perror("bench-xdp: BPF_PROG_TEST_RUN");
		exit(1);
	}
	return o.duration;
}

static uint64_t read_counter(struct ina_xdp *x, unsigned which)
{
	uint64_t n[INA_XDP_COUNTERS] = { 0 };

	ina_xdp_count(x, n);
	return n[which];
}

/* One line. 0, or it could not be measured. */
static int measure_ranks(uint8_t ranks, int repeat)
{
	static const uint8_t words[INA_PAYLOAD_BYTES] = { 0, 1 };
	struct ina_group_config group = { .id = 1,
					  .ranks = ranks,
					  .workers = 1,
					  .extended = true,
					  .len = 64,
					  .epoch = 1,
					  .lease_until = UINT64_MAX };
	struct ina_xdp_settings s = {
		.addr = ADDR, .nslots = 64, .mac = { 2 }, .mac_set = 1, .bench_ranks = ranks
	};
	struct ina_frame f = { .dst = ADDR,
			       .extended = true,
			       .coll = INA_ALL_REDUCE,
			       .group = 1,
			       .epoch = 1,
			       .words = words };
	uint32_t drop = UINT32_MAX, whole = UINT32_MAX, ns;
	int port[INA_RANKS_MAX] = { 0 };
	uint8_t bytes[INA_FRAME_MAX];
	size_t len = ina_frame_encode(&f, bytes);
	struct ina_xdp *x;
	char why[600];
	uint64_t sums;

	for (uint32_t i = 0; i < ranks; i++)
		group.member[i].addr = 0x0a000001 + i;
	x = ina_xdp_open(&s, true, why, sizeof(why));
	if (!x || ina_xdp_install(x, &group, port)) {
		fprintf(stderr, "bench-xdp: %s\n", x ? ina_xdp_why(x) : why);
		return 1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		ns = run_program(ina_xdp_program(x, "bench_switch"), bytes, len,
				 repeat - repeat % ranks);
		whole = ns < whole ? ns : whole;
	}
	sums = read_counter(x, INA_XDP_REASONS_AT + INA_REASON_COMPLETE);
	for (int i = 0; i < ROUNDS; i++) {
		ns = run_program(ina_xdp_program(x, "bench_drop"), bytes, len, repeat);
		drop = ns < drop ? ns : drop;
	}
	printf("%2u ranks: decode and drop %4u ns, switch %4u ns a packet, %.2f times; %llu sums\n",
	       ranks, drop, whole, (double)whole / drop, (unsigned long long)sums);
	ina_xdp_close(x);
	return sums != (uint64_t)ROUNDS * (uint64_t)(repeat / ranks);
}

struct options {
	int repeat;
};

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "PACKETS", 0, NULL, "of a measurement (320000)", HA_NUMBER(repeat, 32, INT32_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-xdp",
	.about = "Nanoseconds a packet of the XDP switch, beside a program that only decodes and "
		 "drops.",
	.operands = operands,
};

int main(int argc, char **argv)
{
	struct options o = { .repeat = 320000 };
	int rc = ha_options_parse(&program, argc, argv, &o);

	if (rc)
		return rc - 1;
	for (uint8_t ranks = 2; ranks <= 32; ranks *= 2)
		rc |= measure_ranks(ranks, o.repeat);
	return rc;
}
