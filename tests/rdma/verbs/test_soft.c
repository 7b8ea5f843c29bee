/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The live table over the software NIC's library: every function that core uses, a message between
 * two queue pairs, and the filter between them.
 */
#include "rdma/verbs/dlopen.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>

#include "base/check.h"
#include "rdma/verbs/status.h"
#include "tests/base/lines.h"
#include "tests/rdma/verbs/filter.h"

#define SIZE 4096
#define TIME_LIMIT 10000 /* milliseconds until a completion that does not come is a failure */

/* A device with two queue pairs that are connected to each other. */
struct pair {
	const struct ha_verbs_ops *v;
	struct ibv_device **list;
	struct ibv_context *context;
	struct ha_verbs_hot hot;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[2]; /* 1 takes its receives from the shared queue */
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned char memory[2 * SIZE];
};

static struct pair p;

static void device_open(const struct ha_verbs_ops *v)
{
	struct ibv_device_attr device;
	struct ha_port_attr port;
	struct ibv_gid_entry entry = { 0 }, entries[8];
	uint64_t mbps;
	int n;

	p.v = v;
	CHECK_INT(v->device_list(v, &p.list, &n), 0);
	CHECK_INT(n, 2);
	CHECK_TEXT(p.list[0]->name, "soft0");
	CHECK_INT(v->open(v, p.list[0], &p.context), 0);
	CHECK_INT(v->hot(v, p.context, &p.hot), 0);
	CHECK_INT(v->query_device(v, p.context, &device), 0);
	CHECK(v->device_guid(v, p.list[0]) == be64toh(device.node_guid));
	CHECK(device.max_qp > 0 && device.phys_port_cnt == 1);
	CHECK_INT(v->query_port(v, p.context, 1, &port), 0);
	CHECK_INT(port.attr.state, IBV_PORT_ACTIVE);
	CHECK_INT(port.attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	CHECK_INT(port.active_speed_ex, 0);
	CHECK(v->query_port(v, p.context, 9, &port) < 0);
	n = v->query_port_speed(v, p.context, 1, &mbps);
	CHECK(n == -EOPNOTSUPP || (n == 0 && mbps > 0));
	CHECK_INT(v->query_gid(v, p.context, 1, 0, &p.gid), 0);
	CHECK_INT(v->query_gid_ex(v, p.context, 1, 0, &entry), 0);
	CHECK_INT(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	CHECK(!memcmp(&entry.gid, &p.gid, sizeof(p.gid)));
	CHECK_INT(v->query_gid_table(v, p.context, entries, 8, &n), 0);
	CHECK(n >= 1 && entries[0].gid_index == 0 && entries[0].port_num == 1);
	CHECK(!memcmp(&entries[0].gid, &p.gid, sizeof(p.gid)));
	CHECK(v->query_gid(v, p.context, 1, 9999, &p.gid) < 0);
	CHECK_INT(v->query_gid(v, p.context, 1, 0, &p.gid), 0);
}

static void objects_make(void)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	const struct ha_verbs_ops *v = p.v;
	const unsigned access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING;

	CHECK_INT(v->alloc_pd(v, p.context, &p.pd), 0);
	CHECK_INT(v->reg_mr(v, p.pd, p.memory, sizeof(p.memory), (uintptr_t)p.memory, access,
			    &p.mr),
		  0);
	CHECK_INT(v->create_comp_channel(v, p.context, &p.channel), 0);
	CHECK_INT(v->create_cq(v, p.context, 64, &p, p.channel, 0, &p.cq), 0);
	CHECK_INT(v->create_srq(v, p.pd, &srq, &p.srq), 0);
	CHECK_INT(v->query_srq(v, p.srq, &srq.attr), 0);
	CHECK(srq.attr.max_wr >= 16);
	init.send_cq = init.recv_cq = p.cq;
	CHECK_INT(v->create_qp(v, p.pd, &init, &p.qp[0]), 0);
	CHECK(init.cap.max_send_wr >= 16);
	init.srq = p.srq;
	CHECK_INT(v->create_qp(v, p.pd, &init, &p.qp[1]), 0);
}

static void qp_connect(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	const struct ha_verbs_ops *v = p.v;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_init_attr init;

	CHECK_INT(v->modify_qp(v, qp, &a,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS),
		  0);
	CHECK(v->modify_qp(v, qp, &(struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS }, IBV_QP_STATE) <
	      0);
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = peer->qp_num,
				   .min_rnr_timer = 12,
				   .max_dest_rd_atomic = 1 };
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = p.gid;
	a.ah_attr.grh.hop_limit = 64;
	CHECK_INT(v->modify_qp(v, qp, &a,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER),
		  0);
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1 };
	CHECK_INT(v->modify_qp(v, qp, &a,
			       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		  0);
	CHECK_INT(v->query_qp(v, qp, &a, IBV_QP_STATE, &init), 0);
	CHECK_INT(a.qp_state, IBV_QPS_RTS);
}

static void pair_open(const struct ha_verbs_ops *v)
{
	memset(&p, 0, sizeof(p));
	device_open(v);
	objects_make();
	qp_connect(p.qp[0], p.qp[1]);
	qp_connect(p.qp[1], p.qp[0]);
}

static void pair_close(void)
{
	const struct ha_verbs_ops *v = p.v;

	CHECK_INT(v->dealloc_pd(v, p.pd), -EBUSY);
	CHECK_INT(v->destroy_qp(v, p.qp[0]), 0);
	CHECK_INT(v->destroy_qp(v, p.qp[1]), 0);
	CHECK_INT(v->destroy_srq(v, p.srq), 0);
	CHECK_INT(v->destroy_cq(v, p.cq), 0);
	CHECK_INT(v->destroy_comp_channel(v, p.channel), 0);
	CHECK_INT(v->dereg_mr(v, p.mr), 0);
	CHECK_INT(v->dealloc_pd(v, p.pd), 0);
	CHECK_INT(v->close(v, p.context), 0);
	v->device_list_free(v, p.list);
}

/* Waits on the channel, as a sleeping thread does, until `n` completions are there. */
static void completions_wait(struct ibv_wc *wc, int n)
{
	struct pollfd fd = { .fd = p.channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *owner;
	int got = 0;

	while (got < n) {
		int more = p.hot.poll_cq(p.cq, n - got, wc + got);

		CHECK(more >= 0);
		got += more;
		if (more)
			continue;
		CHECK_INT(p.hot.req_notify_cq(p.cq, 0), 0);
		more = p.hot.poll_cq(p.cq, n - got, wc + got); /* what came before the request */
		CHECK(more >= 0);
		got += more;
		if (got == n)
			break;
		CHECK_INT(poll(&fd, 1, TIME_LIMIT), 1);
		CHECK_INT(p.v->get_cq_event(p.v, p.channel, &cq, &owner), 0);
		CHECK(cq == p.cq && owner == &p);
		p.v->ack_cq_events(p.v, cq, 1);
	}
}

static void message_send(uint64_t id)
{
	struct ibv_sge to = { (uintptr_t)p.memory + SIZE, SIZE, p.mr->lkey };
	struct ibv_sge from = { (uintptr_t)p.memory, SIZE, p.mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = id + 100, .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = id,
				    .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_send;

	CHECK_INT(p.hot.post_srq_recv(p.srq, &recv, &bad_recv), 0);
	CHECK_INT(p.hot.post_send(p.qp[0], &send, &bad_send), 0);
}

static void a_message_arrives(void)
{
	struct ibv_wc wc[2];

	for (int i = 0; i < SIZE; i++)
		p.memory[i] = (unsigned char)(i * 7 + 1);
	message_send(1);
	completions_wait(wc, 2);
	CHECK_INT(wc[0].status, IBV_WC_SUCCESS);
	CHECK_INT(wc[1].status, IBV_WC_SUCCESS);
	CHECK_INT(wc[0].wr_id + wc[1].wr_id, 102);
	CHECK(!memcmp(p.memory, p.memory + SIZE, SIZE));
}

static void what_is_optional_is_reported(void)
{
	struct ibv_ece ece = { 0 };
	struct ibv_mr *mr;
	int rc = p.v->query_ece(p.v, p.qp[0], &ece);

	CHECK(rc == 0 || rc == -EOPNOTSUPP);
	rc = p.v->set_ece(p.v, p.qp[0], &ece);
	CHECK(rc <= 0);
	CHECK(p.v->reg_dmabuf_mr(p.v, p.pd, 0, SIZE, 0, -1, IBV_ACCESS_LOCAL_WRITE, &mr) < 0);
	rc = p.v->fork_init(p.v);
	CHECK(rc <= 0);
}

/* A queue pair in error with a shared receive queue says when it took its last receive. */
static void events_come_without_waiting(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct pollfd fd = { .fd = p.context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	CHECK_INT(ha_verbs_events_nonblock(p.context), 0);
	CHECK_INT(p.v->get_async_event(p.v, p.context, &event), -EAGAIN);
	CHECK_INT(p.v->modify_qp(p.v, p.qp[1], &a, IBV_QP_STATE), 0);
	CHECK_INT(poll(&fd, 1, TIME_LIMIT), 1);
	CHECK_INT(p.v->get_async_event(p.v, p.context, &event), 0);
	CHECK_TEXT(ha_verbs_event_name(event.event_type), "last receive of a queue pair taken");
	CHECK(event.element.qp == p.qp[1]);
	p.v->ack_async_event(p.v, &event);
	CHECK_INT(p.v->get_async_event(p.v, p.context, &event), -EAGAIN);
}

/* The second completion that the caller sees is spoilt; the data and the NIC are not. */
static void the_filter_spoils_a_completion(const struct ha_verbs_ops *library)
{
	struct ha_verbs_filter *filter;
	struct ibv_wc wc[2];

	CHECK_INT(ha_verbs_filter_create(library, &filter), 0);
	pair_open(ha_verbs_filter_ops(filter));
	CHECK_INT(ha_verbs_filter_completion_error(filter, 2, 1, IBV_WC_RETRY_EXC_ERR), 0);
	message_send(5);
	completions_wait(wc, 2);
	CHECK_INT(wc[0].status, IBV_WC_SUCCESS);
	CHECK_INT(wc[1].status, IBV_WC_RETRY_EXC_ERR);
	CHECK_INT(ha_verbs_filter_fail(filter, HA_FILTER_alloc_pd, 1, 1, -ENOMEM), 0);
	CHECK_INT(p.v->alloc_pd(p.v, p.context, &p.pd), -ENOMEM);
	pair_close();
	ha_verbs_filter_destroy(filter);
}

/* Both libraries in one process, whichever comes first: the system's stays the system's. */
static void the_system_library_is_another_one(const struct ha_verbs_ops *soft)
{
	struct ha_verbs_ops *system;
	struct ibv_device **list = NULL;
	int n = 0, rc;

	lines_catch();
	rc = ha_verbs_open_library("system", &system);
	if (rc) {
		CHECK_INT(rc, -ENOENT); /* not installed here */
		return;
	}
	CHECK(strcmp(system->name, soft->name));
	rc = system->device_list(system, &list, &n);
	for (int i = 0; i < n; i++)
		CHECK(strncmp(list[i]->name, "soft", 4));
	if (!rc)
		system->device_list_free(system, list);
	ha_verbs_close_library(system);
}

int main(int argc, char **argv)
{
	struct ha_verbs_ops *v;

	CHECK_INT(argc, 2);
	CHECK_INT(ha_verbs_open_library(argv[1], &v), 0);
	the_system_library_is_another_one(v);
	pair_open(v);
	a_message_arrives();
	what_is_optional_is_reported();
	events_come_without_waiting();
	pair_close();
	the_filter_spoils_a_completion(v);
	ha_verbs_close_library(v);
	return 0;
}
