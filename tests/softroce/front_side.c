/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/softroce/front_side.h"
#include "tests/base/folder.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 128

struct parameters {
	union ibv_gid gid;
	uint32_t qpn, psn, rkey;
	uint64_t addr;
};

static char control_dir[64];

static void control_remove(void)
{
	folder_remove(control_dir);
}

void side_isolate(const char *devices)
{
	snprintf(control_dir, sizeof(control_dir), "/tmp/softroce-test-XXXXXX");
	CHECK(mkdtemp(control_dir));
	setenv("SOFTROCE_CONTROL", control_dir, 1);
	setenv("SOFTROCE_DEVICES", devices, 1);
	atexit(control_remove);
}

void side_open(struct side *side, int fd, const struct side_options *options)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 4, 4, 64 } };
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	int n;

	memset(side, 0, sizeof(*side));
	side->fd = fd;
	side->list = ibv_get_device_list(&n);
	CHECK(side->list && n > options->device);
	side->context = ibv_open_device(side->list[options->device]);
	CHECK(side->context);
	CHECK(!ibv_query_gid(side->context, 1, 0, &side->gid));
	side->pd = ibv_alloc_pd(side->context);
	side->channel = ibv_create_comp_channel(side->context);
	CHECK(side->pd && side->channel);
	side->cq = ibv_create_cq(side->context, 4 * DEPTH, side, side->channel, 0);
	CHECK(side->cq);
	side->size = options->size ? options->size : 65536;
	side->buf = calloc(1, side->size);
	side->mr = ibv_reg_mr(side->pd, side->buf, side->size, attr.qp_access_flags);
	CHECK(side->buf && side->mr);
	init.send_cq = init.recv_cq = side->cq;
	side->qp = ibv_create_qp(side->pd, &init);
	CHECK(side->qp);
	CHECK(!ibv_modify_qp(side->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void to_rts(struct side *side, const struct side_options *options,
		   const struct parameters *peer, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = options->mtu ? options->mtu : IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = peer->gid, .hop_limit = 64 } },
	};

	CHECK(!ibv_modify_qp(side->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = options->timeout ? options->timeout : 19, /* 17 s */
		.retry_cnt = options->retry_cnt ? options->retry_cnt : 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	CHECK(!ibv_modify_qp(side->qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

void side_connect(struct side *side, const struct side_options *options)
{
	struct parameters mine = { side->gid, side->qp->qp_num, 0xfffff0, side->mr->rkey,
				   (uintptr_t)side->buf },
			  peer;

	CHECK(send(side->fd, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine));
	CHECK(recv(side->fd, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	side->peer_addr = peer.addr;
	side->peer_rkey = peer.rkey;
	to_rts(side, options, &peer, mine.psn);
	side_meet(side);
}

void side_close(struct side *side)
{
	CHECK(!ibv_destroy_qp(side->qp));
	CHECK(!ibv_dereg_mr(side->mr));
	CHECK(!ibv_destroy_cq(side->cq));
	CHECK(!ibv_destroy_comp_channel(side->channel));
	CHECK(!ibv_dealloc_pd(side->pd));
	CHECK(!ibv_close_device(side->context));
	ibv_free_device_list(side->list);
	free(side->buf);
}

void side_post_recv(struct side *side, uint64_t wr_id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)side->buf + offset, len, side->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_recv(side->qp, &wr, &bad));
}

void side_post_send(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
		    uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)side->buf + offset, len, side->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { side->peer_addr + offset, side->peer_rkey },
	}, *bad;

	CHECK(!ibv_post_send(side->qp, &wr, &bad));
}

bool side_wait(struct side *side, struct ibv_wc *wc, int ms)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (;;) {
		int n = ibv_poll_cq(side->cq, 1, wc);

		CHECK(n >= 0);
		if (n)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 >=
		    ms)
			return false;
	}
}

void side_meet(struct side *side)
{
	char byte = 1;

	CHECK(send(side->fd, &byte, 1, MSG_NOSIGNAL) == 1);
	CHECK(recv(side->fd, &byte, 1, MSG_WAITALL) == 1);
}

void side_run(void (*one)(int fd), void (*two)(int fd))
{
	int fds[2], status;
	pid_t child;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(fds[0]);
		two(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	one(fds[0]);
	close(fds[0]);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}
