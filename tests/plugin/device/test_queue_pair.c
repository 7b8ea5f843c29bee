/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What queue pairs and ring memory are made with: NCCL_IB_SL and NCCL_IB_PKEY reach every queue
 * pair, those for flushes too, and ring memory is never registered with relaxed ordering. The
 * software NIC has neither service levels nor partitions and writes in order, so the arguments of
 * the calls decide.
 */
#include "base/check.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"
#include "plugin/device/opening.h"
#include "plugin/device/rail.h"

#include <errno.h>
#include <string.h>

static struct world w;
static struct ha_listen *listener;
static struct ha_send *sender;
static struct ha_recv *receiver;
static char memory[4096] __attribute__((aligned(4096)));

static void forget_queue_pairs(void)
{
	for (int host = 0; host < 2; host++) {
		memset(&w.dummy[host].last_init, 0xee, sizeof(w.dummy[host].last_init));
		memset(&w.dummy[host].last_rtr, 0xee, sizeof(w.dummy[host].last_rtr));
	}
}

static void open_world(int sl, int pkey)
{
	world_prepare(&w);
	w.config.ib_sl = sl;
	w.config.ib_pkey = pkey;
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	/* A device without a PCI path has no relaxed ordering: topology says so, the test knows
	 * better. */
	atomic_store(&w.a->devices[0].relaxed, true);
	atomic_store(&w.b->devices[0].relaxed, true);
	forget_queue_pairs();
	world_connect(&w, &listener, &sender, &receiver);
}

static void close_world(void)
{
	ha_close_send(sender);
	ha_close_recv(receiver);
	ha_close_listen(listener);
	world_close(&w);
}

static void expect_queue_pair(int host, int sl, int pkey)
{
	CHECK_INT(w.dummy[host].last_rtr.ah_attr.sl, sl);
	CHECK_INT(w.dummy[host].last_init.pkey_index, pkey);
}

/* -1 is what the variable has when it is not set. */
static void test_path(int sl, int pkey)
{
	struct ha_mr *mr;

	open_world(sl, pkey);
	expect_queue_pair(0, sl > 0 ? sl : 0, pkey);
	expect_queue_pair(1, sl > 0 ? sl : 0, pkey);
	/* GPU memory makes the queue pair for flushes. */
	forget_queue_pairs();
	CHECK_INT(ha_reg_mr(&receiver->b, memory, sizeof(memory), HA_MEM_CUDA, 0, -1, 0, &mr), 0);
	CHECK_INT(w.dummy[0].flush_qps, 1);
	expect_queue_pair(0, sl > 0 ? sl : 0, pkey);
	CHECK_INT(ha_dereg_mr(&receiver->b, mr), 0);
	close_world();
}

/* A clear-to-send entry is complete when its last word is there: the devices would take relaxed
 * ordering, as buffers show. */
static void test_ring_memory(void)
{
	struct ha_mr *mr;

	open_world(-1, 0);
	for (int host = 0; host < 2; host++) {
		CHECK(w.dummy[host].mrs > 0);
		CHECK_INT(w.dummy[host].relaxed_mrs, 0);
	}
	CHECK_INT(ha_reg_mr(&sender->b, memory, sizeof(memory), HA_MEM_HOST, 0, -1, 0, &mr), 0);
	CHECK_INT(w.dummy[1].relaxed_mrs, 1);
	CHECK_INT(ha_dereg_mr(&sender->b, mr), 0);
	close_world();
}

/* The rings cannot be registered: what was reserved of the shared queue for the path is given back,
 * and nothing more. */
static void test_ring_refused(void)
{
	struct ha_opening *o;
	struct ha_rail *spare;
	uint32_t receivers, reserved;

	open_world(-1, 0);
	spare = &receiver->b.rail[receiver->b.nrails];
	o = w.a->devices[0].now;
	receivers = o->receivers;
	reserved = o->srq_reserved;
	CHECK(receivers > 0);
	w.dummy[0].mr_limit = w.dummy[0].mrs;
	lines_catch();
	for (int i = 0; i < 3; i++) {
		spare->index = (uint8_t)receiver->b.nrails;
		CHECK_INT(ha_rail_open(&receiver->b, spare, &w.a->devices[0]), -ENOMEM);
		CHECK(lines_contain("register the rings"));
		ha_rail_discard(&receiver->b, spare);
		ha_rail_unbind(spare);
		CHECK_INT(o->receivers, receivers);
		CHECK_INT(o->srq_reserved, reserved);
	}
	w.dummy[0].mr_limit = 0;
	close_world();
}

int main(void)
{
	test_path(-1, 0);
	test_path(0, 0);
	test_path(5, 3);
	test_path(15, 32767);
	test_ring_memory();
	test_ring_refused();
	printf("service level, partition and ordering: ok\n");
	return 0;
}
