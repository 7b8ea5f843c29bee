/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_put.c - what one put costs the thread that posts it, by the host compiler: bench-gpu-put, and
 * bench-gpu-put-plain without protection
 *
 * Arguments: how many puts; how many share a doorbell. post_put() is what is measured:
 * bench/gpu-instructions counts its instructions by callgrind; without it the program prints
 * nanoseconds per put. The NIC is stepped outside of it.
 */
#include "base/options.h"
#include "gpu/device/hawser_gpu.h"
#include "gpu/failover/soft_path.h"

#include <stdio.h>
#include <stdlib.h>

void post_put(struct ha_gpu_conn *c, uint64_t remote, const void *local, unsigned how);

__attribute__((noinline)) void post_put(struct ha_gpu_conn *c, uint64_t remote, const void *local,
					unsigned how)
{
	if (ha_gpu_put_nbi(c, remote, local, 64, how, HA_GPU_FOREVER) != HA_GPU_DONE)
		abort();
}

static void connect_qp(struct soft_qp *q, const struct soft_qp *peer)
{
	struct soft_path path = { .qp = q,
				  .peer_qpn = peer->qpn,
				  .peer_address = peer->nic->number };

	if (soft_path_ops.connect(&path, 0))
		abort();
}

static void measure_puts(unsigned long puts, unsigned long batch)
{
	struct soft_fabric *f = soft_fabric_open(2, 1 << 20);
	struct soft_qp_attr attr = { .nwqes = 1024 };
	struct ha_gpu_conn *c = soft_alloc(f, sizeof(*c));
	struct soft_qp *qp[2] = { soft_qp_create(&f->nic[0], &attr),
				  soft_qp_create(&f->nic[1], &attr) };
	uint8_t *memory = soft_alloc(f, 8192);
	uint32_t keys[2] = { ha_gpu_be32(soft_mr_register(&f->nic[0], memory, 8192, true)),
			     ha_gpu_be32(soft_mr_register(&f->nic[1], memory, 8192, true)) };
	uint64_t spent = 0, start;

	c->scratch = (uint64_t *)memory;
	c->nwqes = 1024;
	c->proof_every = 64;
	c->chunk = 13;
	c->local = c->remote = (uint64_t)(uintptr_t)memory;
	c->local_bytes = c->remote_bytes = 8192;
	soft_path_describe(qp[0], &c->path[0]);
	c->path[0].lkey = &keys[0];
	c->path[0].rkey = &keys[1];
	c->path[0].scratch_key = keys[0];
	c->path[0].mailbox = c->remote;
	c->path[0].mailbox_key = keys[1];
	ha_gpu_use_path(c, 0);
	connect_qp(qp[0], qp[1]);
	connect_qp(qp[1], qp[0]);
	for (unsigned long i = 0; i < puts; i += batch) {
		start = ha_gpu_now();
		for (unsigned long j = 1; j <= batch; j++)
			post_put(c, c->remote + 4096, memory + 64, j < batch ? HA_GPU_LATER : 0);
		spent += ha_gpu_now() - start;
		while (soft_nic_step(&f->nic[0]))
			;
		ha_gpu_poll(c);
	}
	if (f->nic[0].count.errors)
		abort();
	printf("%.1f ns per put\n", (double)spent / (double)puts);
	soft_fabric_close(f);
}

struct arguments {
	unsigned puts, batch;
};

#define HA_TARGET struct arguments

static const struct ha_option operands[] = {
	{ "PUTS", 0, NULL, "how many (10000)", HA_NUMBER(puts, 1, 1u << 30) },
	{ "BATCH", 0, NULL, "how many share a doorbell (1)", HA_NUMBER(batch, 1, 1u << 30) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-gpu-put",
	.about = "What one put of the GPU device library costs the thread that posts it.",
	.operands = operands,
};

int main(int argc, char **argv)
{
	struct arguments arguments = { .puts = 10000, .batch = 1 };
	int stop = ha_options_parse(&program, argc, argv, &arguments);

	if (stop)
		return stop - 1;
	measure_puts(arguments.puts, arguments.batch);
	return 0;
}
