/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations: shared, counted, kept only on request, relaxed where the device can, given back
 * when connections end. */
#include "plugin/device/mr.h"

#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/device/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <errno.h>

static struct world w;
static struct ha_listen *listen;
static struct ha_send *send;
static struct ha_recv *recv;

static void open_connection(int keep, bool relaxed)
{
	world_prepare(&w);
	w.config.mr_cache_entries = keep;
	w.config.ib_pci_relaxed_ordering = relaxed ? 2 : 0;
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	world_connect(&w, &listen, &send, &recv);
}

static struct ha_mr *register_memory(void *data, size_t size, unsigned flags)
{
	struct ha_mr *mr;

	CHECK_INT(ha_reg_mr(&send->b, data, size, HA_MEM_HOST, 0, -1, flags, &mr), 0);
	CHECK(mr->lkey[0] && mr->rkey[0]);
	return mr;
}

static void count_is(unsigned used, unsigned kept)
{
	unsigned u, k;

	ha_mr_cache_count(send->b.rail[0].dev->now->mr_cache, &u, &k);
	CHECK_INT(u, used);
	CHECK_INT(k, kept);
}

static char memory[16 * 4096] __attribute__((aligned(4096)));

/* The same pages are one registration, whatever part of them is named; other pages, another
 * ordering are others. */
static void same_pages_are_shared(void)
{
	struct ha_mr *a, *b, *c, *d, *e;

	open_connection(0, false);
	a = register_memory(memory, 4096, 0);
	b = register_memory(memory + 100, 200, 0);
	CHECK_INT(a->lkey[0], b->lkey[0]);
	count_is(1, 0);
	c = register_memory(memory + 4000, 200, 0); /* two pages */
	d = register_memory(memory, 4097, 0);       /* the same two */
	CHECK_INT(c->lkey[0], d->lkey[0]);
	e = register_memory(memory, 4096, HA_MR_FORCE_SO);
	CHECK(e->lkey[0] != a->lkey[0] && c->lkey[0] != a->lkey[0]);
	count_is(3, 0);
	CHECK_INT(ha_dereg_mr(&send->b, a), 0);
	count_is(3, 0);
	CHECK_INT(ha_dereg_mr(&send->b, b), 0);
	count_is(2, 0); /* nothing is kept */
	CHECK_INT(ha_dereg_mr(&send->b, NULL), 0);
	/* c, d and e are not given back: the connection's end does it. */
	world_close(&w);
}

static void kept_on_request(void)
{
	struct ha_mr *mr[4];
	uint32_t key;

	open_connection(2, false);
	for (int i = 0; i < 4; i++)
		mr[i] = register_memory(memory + i * 4096, 4096, 0);
	key = mr[3]->lkey[0];
	for (int i = 0; i < 4; i++)
		ha_dereg_mr(&send->b, mr[i]);
	count_is(0, 2); /* pages 3 and 2, the last used */
	mr[3] = register_memory(memory + 3 * 4096, 4096, 0);
	CHECK_INT(mr[3]->lkey[0], key);
	count_is(1, 1);
	mr[0] = register_memory(memory, 4096, 0); /* page 0 had to go */
	count_is(2, 1);
	ha_dereg_mr(&send->b, mr[3]);
	ha_dereg_mr(&send->b, mr[0]);
	count_is(0, 2);
	/* When memory is short, what is kept goes first. */
	w.dummy[1].mr_limit = w.dummy[1].mrs;
	mr[1] = register_memory(memory + 4096, 4096, 0);
	count_is(1, 1);
	w.dummy[1].mr_limit = w.dummy[1].mrs - 1;
	CHECK_INT(ha_reg_mr(&send->b, memory + 5 * 4096, 4096, HA_MEM_HOST, 0, -1, 0, &mr[2]),
		  -ENOMEM);
	count_is(1, 0);
	world_close(&w);
}

static void relaxed_where_possible(void)
{
	struct ha_mr *mr;

	open_connection(0, true);
	/* A software NIC has no PCI: topology says so, the test knows better. */
	atomic_store(&send->b.rail[0].dev->relaxed, true);
	register_memory(memory, 4096, 0);
	CHECK(w.dummy[1].last_access & IBV_ACCESS_RELAXED_ORDERING);
	register_memory(memory, 4096, HA_MR_FORCE_SO);
	CHECK(!(w.dummy[1].last_access & IBV_ACCESS_RELAXED_ORDERING));
	w.dummy[1].refused_access = IBV_ACCESS_RELAXED_ORDERING;
	w.dummy[1].refused_error = -EINVAL;
	mr = register_memory(memory + 4096, 4096, 0);
	CHECK(mr->lkey[0] && !atomic_load(&send->b.rail[0].dev->relaxed));
	CHECK(lines_contain("refuses memory with relaxed ordering"));
	/* Other errors are no reason to try without. */
	atomic_store(&send->b.rail[0].dev->relaxed, true);
	w.dummy[1].refused_error = -EFAULT;
	CHECK_INT(ha_reg_mr(&send->b, memory + 8192, 4096, HA_MEM_HOST, 0, -1, 0, &mr), -EFAULT);
	CHECK(lines_contain("cannot register 4096 bytes of host memory"));
	world_close(&w);
}

/* GPU memory: never kept, dma-bufs by address, and a receiver prepares its flushes. */
static void gpu_memory_is_not_kept(void)
{
	struct ha_mr *a, *b;

	open_connection(8, false);
	CHECK_INT(ha_reg_mr(&recv->b, memory + 10, 100, HA_MEM_CUDA, 4096 + 10, 5, 0, &a), 0);
	CHECK_INT(w.dummy[0].last_offset, 4096); /* back to the page, as the address */
	CHECK_INT(w.dummy[0].flush_qps, 1);
	CHECK(recv->b.rail[0].flush.qp && recv->b.rail[0].flush.cq);
	CHECK_INT(ha_reg_mr(&recv->b, memory + 20, 100, HA_MEM_CUDA, 0, 6, 0, &b), 0);
	CHECK_INT(a->rkey[0], b->rkey[0]);
	CHECK_INT(w.dummy[0].flush_qps, 1);
	ha_dereg_mr(&recv->b, a);
	ha_dereg_mr(&recv->b, b);
	CHECK_INT(ha_reg_mr(&recv->b, memory + 4096 + 10, 100, HA_MEM_CUDA, 8192, 5, 0, &a), 0);
	CHECK_INT(w.dummy[0].last_offset, 8192); /* was the page's already */
	/* A sender has nothing to flush. */
	CHECK_INT(ha_reg_mr(&send->b, memory, 100, HA_MEM_CUDA, 0, -1, 0, &b), 0);
	CHECK_INT(w.dummy[1].flush_qps, 0);
	ha_dereg_mr(&send->b, b);
	count_is(0, 0);
	CHECK_INT(ha_reg_mr(&send->b, memory, 0, HA_MEM_HOST, 0, -1, 0, &b), -EINVAL);
	CHECK_INT(ha_reg_mr(&send->b, memory, 8, 77, 0, -1, 0, &b), -EINVAL);
	world_close(&w);
}

int main(void)
{
	lines_catch();
	same_pages_are_shared();
	kept_on_request();
	relaxed_where_possible();
	gpu_memory_is_not_kept();
	return 0;
}
