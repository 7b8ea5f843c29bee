/* SPDX-License-Identifier: BSD-3-Clause */
/* Port down and up, one-way black holes, a new address, the death of the device: events, states,
 * what still works. */
#include "tests/softroce/engine_pair.h"
#include <string.h>

static void post_write(struct pair *p, uint64_t id)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, 5000);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, id, &list, 1);

	set_remote_address(&wr, &p->end[1], 0);
	CHECK_INT(post_wr(p, 0, &wr), 0);
}

/* A short flap is survived, a long one is not. */
static void flap_link(int which, uint64_t down_ns, enum ibv_wc_status status)
{
	struct ibv_port_attr port;
	struct pair p;

	pair_open(&p, &default_options); /* eight times 4.2 ms */
	pair_connect(&p, IBV_QPS_RTS);
	sr_memwire_cut(p.end[which].port, true);
	sr_nic_query_port(p.end[which].nic, &port);
	CHECK(port.state == IBV_PORT_DOWN && port.phys_state == 3);
	CHECK_INT(p.end[which].events[0], IBV_EVENT_PORT_ERR);
	CHECK(!p.end[which].objects[0]);
	sr_memwire_cut(p.end[which].port, true); /* no second event */
	post_write(&p, 1);
	run_for(&p, down_ns);
	sr_memwire_cut(p.end[which].port, false);
	sr_nic_query_port(p.end[which].nic, &port);
	CHECK(port.state == IBV_PORT_ACTIVE && port.phys_state == 5);
	CHECK_INT(p.end[which].n_events, 2);
	CHECK_INT(p.end[which].events[1], IBV_EVENT_PORT_ACTIVE);
	CHECK(sr_nic_counters(p.end[which].nic)->dropped_link_down > 0);
	expect_status(&p, p.end[0].scq, 1, status);
	pair_close(&p);
}

static void black_hole(int which, bool tx)
{
	struct sr_faults *f;
	struct pair p;

	pair_open(&p, &default_options);
	pair_connect(&p, IBV_QPS_RTS);
	f = sr_memwire_faults(p.end[which].port);
	*(tx ? &f->tx.blackhole : &f->rx.blackhole) = 1;
	post_write(&p, 1);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK_INT(p.end[0].n_events + p.end[1].n_events, 0); /* silent */
	/* The write has landed if it was the way back that was cut. */
	CHECK_INT(sr_nic_counters(p.end[1].nic)->rcvd_pkts > 0, which == 1 ? tx : !tx);
	pair_close(&p);
}

static void new_address(void)
{
	union ibv_gid gid;
	struct pair p;

	pair_open(&p, &default_options);
	pair_connect(&p, IBV_QPS_RTS);
	gid = p.end[1].gid;
	gid.raw[15] = 99;
	sr_memwire_set_gid(p.mw, p.end[1].nic, 0, &gid);
	sr_nic_set_gid(p.end[1].nic, 0, &gid); /* the same again: no event */
	sr_nic_set_gid(p.end[1].nic, SR_GIDS, &gid);
	CHECK_INT(p.end[1].n_events, 1);
	CHECK_INT(p.end[1].events[0], IBV_EVENT_GID_CHANGE);
	post_write(&p, 1);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	p.end[1].gid = gid;
	for (int e = 0; e < 2; e++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

		CHECK_INT(sr_qp_modify(p.end[e].qp, 0, &attr, IBV_QP_STATE), 0);
	}
	pair_connect(&p, IBV_QPS_RTS);
	post_write(&p, 2);
	expect_status(&p, p.end[0].scq, 2, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* After its death nothing comes out of a NIC: no packet, no completion, no event; what is asked of
 * it fails with -EIO. */
static void killed_nic_is_silent(void)
{
	struct ibv_srq_init_attr srq = { .attr = { 1, 1, 0 } };
	struct sr_qp_init init = { .type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_port_attr port;
	struct pair p;
	struct end *a;
	int err;

	pair_open(&p, &default_options);
	pair_connect(&p, IBV_QPS_RTS);
	a = &p.end[0];
	init.send_cq = init.recv_cq = a->scq;
	post_write(&p, 1);
	post_write(&p, 2);
	run_for(&p, 1000);
	sr_memwire_kill(a->port);
	sr_memwire_kill(a->port);
	CHECK_INT(a->n_events, 1);
	CHECK_INT(a->events[0], IBV_EVENT_DEVICE_FATAL);
	CHECK_INT(sr_nic_deadline(a->nic), UINT64_MAX);
	run_for(&p, 10000000000ull);
	CHECK(sr_cq_empty(a->scq));
	CHECK_INT(sr_qp_modify(a->qp, 0, &attr, IBV_QP_STATE), -EIO);
	CHECK_INT(sr_qp_post_send(a->qp, 0, &wr, &bad), -EIO);
	CHECK(bad == &wr);
	CHECK_INT(sr_qp_post_recv(a->qp, &recv, &bad_recv), -EIO);
	CHECK(!sr_pd_create(a->nic, &err) && err == -EIO);
	CHECK(!sr_mr_create(a->pd, a->buf, 1, 0, 0, &err) && err == -EIO);
	CHECK_INT(sr_mr_rereg(a->mr, 1, NULL, a->buf, 1, 0), -EIO);
	CHECK(!sr_cq_create(a->nic, 1, NULL, &err) && err == -EIO);
	CHECK_INT(sr_cq_resize(a->scq, 100), -EIO);
	CHECK(!sr_qp_create(a->pd, &init, &err) && err == -EIO);
	CHECK(!sr_srq_create(a->pd, &srq, NULL, &err) && err == -EIO);
	sr_nic_set_link(a->nic, true);
	CHECK_INT(a->n_events, 1);
	sr_nic_query_port(a->nic, &port);
	CHECK_INT(port.state, IBV_PORT_DOWN);
	CHECK(!sr_nic_progress(a->nic, sr_memwire_now(p.mw), 0));
	CHECK_INT(sr_qp_destroy(a->qp), 0);
	CHECK_INT(sr_cq_destroy(a->scq), 0);
	CHECK_INT(sr_mr_destroy(a->mr), 0);
	pair_close(&p);
}

static void device_is_described(void)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct pair p;

	pair_open(&p, &default_options);
	sr_nic_query_device(p.end[0].nic, &attr);
	CHECK(attr.max_qp >= 16384 && attr.max_sge == SR_MAX_SGE && attr.phys_port_cnt == 1);
	CHECK_INT(attr.max_qp_rd_atom, 16);
	CHECK(attr.node_guid && attr.atomic_cap == IBV_ATOMIC_GLOB);
	sr_nic_query_port(p.end[0].nic, &port);
	CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET && port.active_mtu == IBV_MTU_4096);
	CHECK_INT(port.max_msg_sz, 1u << 31);
	pair_close(&p);
}

int main(void)
{
	for (int which = 0; which < 2; which++) {
		flap_link(which, 20000000, IBV_WC_SUCCESS);
		flap_link(which, 40000000, IBV_WC_RETRY_EXC_ERR);
		black_hole(which, true);
		black_hole(which, false);
	}
	new_address();
	killed_nic_is_silent();
	device_is_described();
	return 0;
}
