/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: what may be registered, addresses that differ from the buffer's, new keys after a
 * change. */
#include "tests/softroce/engine_pair.h"
#include <string.h>

static void registration_checks(struct pair *p)
{
	struct end *a = &p->end[0];
	struct sr_pd *pd;
	struct sr_mr *mr;
	uint32_t last = 0;
	int err;

	CHECK(!sr_mr_create(a->pd, a->buf, 0, 0, 0, &err) && err == -EINVAL);
	CHECK(!sr_mr_create(a->pd, a->buf, SIZE_MAX, 0, 0, &err) && err == -EINVAL);
	CHECK(!sr_mr_create(a->pd, a->buf, 100, UINT64_MAX - 10, 0, &err) && err == -EINVAL);
	CHECK(!sr_mr_create(a->pd, a->buf, 100, 0, IBV_ACCESS_REMOTE_WRITE, &err) &&
	      err == -EINVAL);
	CHECK(!sr_mr_create(a->pd, a->buf, 100, 0, IBV_ACCESS_REMOTE_ATOMIC, &err) &&
	      err == -EINVAL);
	CHECK(!sr_mr_create(a->pd, a->buf, 100, 0, 1 << 15, &err) && err == -EINVAL);
	CHECK(!sr_mr_create(a->pd, a->buf, 100, 0, IBV_ACCESS_ON_DEMAND, &err) &&
	      err == -EOPNOTSUPP);
	pd = sr_pd_create(a->nic, &err);
	for (int i = 0; i < 1000; i++) {
		mr = sr_mr_create(pd, a->buf, 100, 0,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, &err);
		CHECK(mr && !err);
		CHECK(sr_mr_lkey(mr) != last && sr_mr_lkey(mr) != 0);
		last = sr_mr_lkey(mr);
		CHECK_INT(sr_pd_destroy(pd), -EBUSY);
		CHECK_INT(sr_mr_destroy(mr), 0);
	}
	CHECK_INT(sr_pd_destroy(pd), 0);
}

static enum ibv_wc_status write_to(struct pair *p, uint64_t addr, uint32_t key, uint32_t len)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, len);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = key;
	CHECK_INT(post_wr(p, 0, &wr), 0);
	CHECK(wait_cq(p, p->end[0].scq, &wc, 1000000000));
	return wc.status;
}

static void reconnect_pair(struct pair *p)
{
	for (int e = 0; e < 2; e++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

		CHECK_INT(sr_qp_modify(p->end[e].qp, sr_memwire_now(p->mw), &attr, IBV_QP_STATE),
			  0);
	}
	pair_connect(p, IBV_QPS_RTS);
}

/* A region that starts at remote address `iova`: every byte of it can be reached, and not one
 * beside it. */
static void check_bounds(struct pair *p, uint64_t iova, uint64_t size)
{
	struct end *b = &p->end[1];
	uint8_t *at = b->buf + 5000;
	struct sr_mr *mr;
	int err;

	mr = sr_mr_create(b->pd, at, size, iova, ALL_ACCESS, &err);
	CHECK(mr && !err);
	memset(b->buf, 0, 10000 + size);
	memset(p->end[0].buf, 0x77, size + 1);
	CHECK_INT(write_to(p, iova, sr_mr_rkey(mr), (uint32_t)size), IBV_WC_SUCCESS);
	CHECK(at[0] == 0x77 && at[size - 1] == 0x77 && !at[-1] && !at[size]);
	CHECK_INT(write_to(p, iova + size - 1, sr_mr_rkey(mr), 1), IBV_WC_SUCCESS);
	/* nothing needs no right */
	CHECK_INT(write_to(p, iova + size, sr_mr_rkey(mr), 0), IBV_WC_SUCCESS);
	CHECK_INT(write_to(p, 12345, 0, 0), IBV_WC_SUCCESS);
	CHECK_INT(write_to(p, iova, sr_mr_rkey(mr), (uint32_t)size + 1), IBV_WC_REM_ACCESS_ERR);
	reconnect_pair(p);
	CHECK_INT(write_to(p, iova + size, sr_mr_rkey(mr), 1), IBV_WC_REM_ACCESS_ERR);
	reconnect_pair(p);
	CHECK_INT(write_to(p, iova - 1, sr_mr_rkey(mr), 1), IBV_WC_REM_ACCESS_ERR);
	reconnect_pair(p);
	CHECK_INT(write_to(p, iova - 1, sr_mr_rkey(mr), 2), IBV_WC_REM_ACCESS_ERR);
	reconnect_pair(p);
	CHECK(!at[-1] && !at[size]);
	CHECK_INT(sr_mr_destroy(mr), 0);
}

static void rereg_changes_region(struct pair *p)
{
	struct end *b = &p->end[1];
	uint32_t old;
	int err;
	struct sr_mr *mr =
		sr_mr_create(b->pd, b->buf, 100, (uintptr_t)b->buf, IBV_ACCESS_LOCAL_WRITE, &err);

	CHECK_INT(sr_mr_rereg(mr, 0, NULL, NULL, 0, 0), -EINVAL);
	CHECK_INT(sr_mr_rereg(mr, 1 << 9, NULL, NULL, 0, 0), -EINVAL);
	CHECK_INT(sr_mr_rereg(mr, IBV_REREG_MR_CHANGE_PD, p->end[0].pd, NULL, 0, 0), -EINVAL);
	CHECK_INT(sr_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      IBV_ACCESS_REMOTE_WRITE),
		  -EINVAL);
	old = sr_mr_rkey(mr);
	CHECK_INT(sr_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION,
			      NULL, b->buf + 200, 50, ALL_ACCESS),
		  0);
	CHECK_INT(write_to(p, address_of(b, 200), sr_mr_rkey(mr), 50), IBV_WC_SUCCESS);
	CHECK_INT(write_to(p, address_of(b, 200), old, 50), IBV_WC_REM_ACCESS_ERR);
	reconnect_pair(p);
	CHECK_INT(write_to(p, address_of(b, 0), sr_mr_rkey(mr), 1), IBV_WC_REM_ACCESS_ERR);
	reconnect_pair(p);
	sr_mr_destroy(mr);
}

int main(void)
{
	struct pair p;

	pair_open(&p, &default_options);
	pair_connect(&p, IBV_QPS_RTS);
	registration_checks(&p);
	check_bounds(&p, 1 << 20, 4096);
	check_bounds(&p, 1, 3000);
	check_bounds(&p, UINT64_MAX - 5000, 5000);
	check_bounds(&p, 0, 1); /* below zero lies the far end */
	rereg_changes_region(&p);
	pair_close(&p);
	return 0;
}
