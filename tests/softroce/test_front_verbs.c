/* SPDX-License-Identifier: BSD-3-Clause */
/* The smaller verbs: memory (also dma-buf and re-registration), shared receive queues and their
 * limit event, resizing, queries, names, and the calls that this NIC refuses. */
#include "tests/softroce/front_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

static const struct side_options options;

static void register_memory(struct side *side)
{
	int fd = memfd_create("like a dma-buf", 0);
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *other = ibv_alloc_pd(side->context);
	struct ibv_mr *mr;

	CHECK(fd >= 0 && !ftruncate(fd, 16384) && page != MAP_FAILED && other);
	mr = ibv_reg_dmabuf_mr(side->pd, 5000, 1000, 0x777000, fd,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr && mr->length == 1000);
	CHECK(!ibv_dereg_mr(mr));
	/* Nothing of a file beyond its end, where touching it would be fatal. */
	CHECK(!ibv_reg_dmabuf_mr(side->pd, 16384 - 4096, 4097, 0, fd, 0) && errno == EINVAL);
	/* A position says where in the file the buffer begins. */
	CHECK(lseek(fd, 12288, SEEK_SET) == 12288);
	CHECK(!ibv_reg_dmabuf_mr(side->pd, 1, 4096, 0, fd, 0) && errno == EINVAL);
	mr = ibv_reg_dmabuf_mr(side->pd, 0, 4096, 0, fd, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && !ibv_dereg_mr(mr));
	CHECK(!ibv_reg_dmabuf_mr(side->pd, 0, 4096, 0, 9999, 0) && errno == EBADF);
	CHECK(!ibv_reg_dmabuf_mr(side->pd, 0, 4096, 0, side->context->async_fd, 0) &&
	      errno == EOPNOTSUPP); /* not to be mapped */
	mr = ibv_reg_mr(side->pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK(!ibv_rereg_mr(mr,
			    IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
				    IBV_REREG_MR_CHANGE_ACCESS,
			    other, page, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	CHECK(mr->length == 8192 && mr->pd == other);
	CHECK(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 8192, 0) ==
	      IBV_REREG_MR_ERR_INPUT);
	CHECK(ibv_dealloc_pd(other) == EBUSY);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(other));
	CHECK(!munmap(page + 4096, 4096));
	/* half of it is gone */
	CHECK(!ibv_reg_mr(side->pd, page, 8192, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
	mr = ibv_reg_mr(side->pd, page, 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr && !ibv_dereg_mr(mr));
	CHECK(!ibv_reg_mr(side->pd, page, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	mr = ibv_reg_mr(side->pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
	CHECK(!mr || !ibv_dereg_mr(mr));
	munmap(page, 4096);
	close(fd);
}

static void query_device(struct side *side)
{
	struct ibv_gid_entry entries[8], entry;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	union ibv_gid gid;
	__be16 pkey;

	CHECK(ibv_query_gid_table(side->context, entries, 8, 0) == 1);
	CHECK(entries[0].gid_type == IBV_GID_TYPE_ROCE_V2 &&
	      !memcmp(&entries[0].gid, &side->gid, 16) && entries[0].ndev_ifindex);
	CHECK(ibv_query_gid_table(side->context, entries, 0, 0) == -EINVAL);
	CHECK(!ibv_query_gid_ex(side->context, 1, 0, &entry, 0) &&
	      !memcmp(&entry, &entries[0], sizeof(entry)));
	CHECK(ibv_query_gid_ex(side->context, 1, 1, &entry, 0) == ENODATA);
	CHECK(ibv_query_gid_ex(side->context, 2, 0, &entry, 0) == EINVAL);
	CHECK(ibv_query_gid_ex(side->context, 1, 0, &entry, 1) == EOPNOTSUPP);
	CHECK(!ibv_query_gid(side->context, 1, 1, &gid) && !gid.global.interface_id);
	CHECK(ibv_query_gid(side->context, 1, 99, &gid) == -1 && errno == EINVAL);
	CHECK(!ibv_query_pkey(side->context, 1, 0, &pkey) && pkey == htons(0xffff));
	CHECK(ibv_query_pkey(side->context, 1, 1, &pkey) == -1);
	CHECK(ibv_get_pkey_index(side->context, 1, htons(0xffff)) == 0 &&
	      ibv_get_pkey_index(side->context, 1, htons(3)) == -1);
	CHECK(ibv_get_device_index(side->context->device) == -1);
	CHECK(!ibv_query_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	CHECK(attr.qp_state == IBV_QPS_INIT && init.send_cq == side->cq &&
	      init.recv_cq == side->cq && init.qp_type == IBV_QPT_RC);
	CHECK(!ibv_query_qp_data_in_order(side->qp, IBV_WR_RDMA_WRITE, 0));
	CHECK(!ibv_resize_cq(side->cq, 2000) && side->cq->cqe >= 2000);
	CHECK(ibv_resize_cq(side->cq, -1) != 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE) == EINVAL &&
	      side->qp->state == IBV_QPS_INIT);
}

static void refuse_calls(struct side *side)
{
	struct ibv_ece ece = { .vendor_id = 1 };
	struct ibv_ah_attr ah = { 0 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET,
					 .send_cq = side->cq,
					 .recv_cq = side->cq,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_cq_init_attr_ex cq = { .cqe = 4, .comp_mask = 1 << 9 };
	struct ibv_wc wc = { 0 };
	uint8_t mac[6];
	uint16_t vlan;

	CHECK(ibv_query_ece(side->qp, &ece) == EOPNOTSUPP && !ece.vendor_id);
	ece.vendor_id = 5;
	CHECK(ibv_set_ece(side->qp, &ece) == EOPNOTSUPP);
	CHECK(!ibv_create_ah(side->pd, &ah) && errno == EINVAL); /* to nowhere */
	CHECK(ibv_init_ah_from_wc(side->context, 1, &wc, NULL, &ah) == -1);
	CHECK(!ibv_create_ah_from_wc(side->pd, &wc, NULL, 1));
	CHECK(ibv_attach_mcast(side->qp, &side->gid, 0) == EOPNOTSUPP &&
	      ibv_detach_mcast(side->qp, &side->gid, 0) == EOPNOTSUPP);
	CHECK(ibv_resolve_eth_l2_from_gid(side->context, &ah, mac, &vlan) == EOPNOTSUPP);
	CHECK(!ibv_import_pd(side->context, 0) && !ibv_import_mr(side->pd, 0) &&
	      !ibv_import_dm(side->context, 0));
	CHECK(!ibv_create_qp(side->pd, &init) && errno == EOPNOTSUPP);
	init.qp_type = IBV_QPT_RC;
	init.send_cq = NULL;
	CHECK(!ibv_create_qp(side->pd, &init) && errno == EINVAL);
	CHECK(!ibv_create_cq_ex(side->context, &cq) && errno == EOPNOTSUPP);
	CHECK(!ibv_create_cq(side->context, 0, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!ibv_create_cq(side->context, 1, NULL, NULL, 100000) && errno == EINVAL);
}

static void enum_names(void)
{
	CHECK(!strcmp(ibv_port_state_str(IBV_PORT_ACTIVE), "active") &&
	      !strcmp(ibv_port_state_str(99), "unknown"));
	CHECK(!strcmp(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter") &&
	      !strcmp(ibv_node_type_str(-1), "unknown"));
	CHECK(!strcmp(ibv_event_type_str(IBV_EVENT_PORT_ERR), "port error"));
	for (int rate = 0; rate < 30; rate++) {
		int mult = ibv_rate_to_mult(rate), mbps = ibv_rate_to_mbps(rate);

		CHECK(mult <= 0 || mult_to_ibv_rate(mult) == (enum ibv_rate)rate);
		CHECK(mbps <= 0 || mbps_to_ibv_rate(mbps) == (enum ibv_rate)rate);
	}
	CHECK(mult_to_ibv_rate(7) == IBV_RATE_MAX && mbps_to_ibv_rate(7) == IBV_RATE_MAX);
}

static struct ibv_qp *qp_on_srq(struct side *side, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 4, 0, 1, 0, 0 },
					 .send_cq = side->cq,
					 .recv_cq = side->cq,
					 .srq = srq };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(side->pd, &init);

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

/* Two queue pairs of one process connected to each other; the receiver on a shared receive queue
 * with a limit. */
static void loop_connect(struct ibv_qp *a, struct ibv_qp *b, union ibv_gid gid)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = b->qp_num,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid } }
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 19,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1 };

	CHECK(!ibv_modify_qp(a, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	CHECK(!ibv_modify_qp(a, &rts,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void event_expect(struct side *side, enum ibv_event_type type, void *object)
{
	struct pollfd pfd = { .fd = side->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	CHECK(poll(&pfd, 1, 10000) == 1);
	CHECK(!ibv_get_async_event(side->context, &event));
	CHECK(event.event_type == type && event.element.qp == object);
	ibv_ack_async_event(&event);
}

static void shared_queue(struct side *side)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(side->pd, &init);
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_sge sge = { (uintptr_t)side->buf, 64, side->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *receiver;
	struct ibv_wc wc;

	CHECK(srq && init.attr.max_wr >= 16);
	receiver = qp_on_srq(side, srq);
	for (int i = 0; i < 3; i++)
		CHECK(!ibv_post_srq_recv(srq, &recv, &bad_recv));
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 2);
	CHECK(ibv_destroy_srq(srq) == EBUSY);
	loop_connect(side->qp, receiver, side->gid);
	loop_connect(receiver, side->qp, side->gid);
	for (int i = 0; i < 2; i++) {
		side_post_send(side, IBV_WR_SEND, i, 128, 64);
		for (int n = 0; n < 2; n++)
			CHECK(side_wait(side, &wc, 10000) && wc.status == IBV_WC_SUCCESS);
	}
	event_expect(side, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	CHECK(!ibv_modify_qp(receiver, &error, IBV_QP_STATE));
	event_expect(side, IBV_EVENT_QP_LAST_WQE_REACHED, receiver);
	CHECK(!ibv_destroy_qp(receiver));
	CHECK(!ibv_destroy_srq(srq));
}

int main(void)
{
	struct side side;

	side_isolate("127.66.0.0/24");
	enum_names();
	side_open(&side, -1, &options);
	register_memory(&side);
	query_device(&side);
	refuse_calls(&side);
	shared_queue(&side);
	side_close(&side);
	return 0;
}
