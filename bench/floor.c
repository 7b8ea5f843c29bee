/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * floor.c - a net plugin that does nothing but what any receiver-driven one must
 *
 * For measurements only: libnccl-net-floor.so, version 10 of the interface. A message is one
 * receive taken from a queue that is refilled in portions, one clear-to-send written inline into
 * the sender's ring, one write with immediate, and polls of one completion queue. It checks
 * nothing, protects nothing, takes one buffer of a known size per receive, and ends the process
 * when anything fails. `ha perf --vs` takes turns with it: what a message costs here is the
 * NIC's, the kernel's and the interface's, so no plugin takes less on the same NIC.
 */
#include "plugin/nccl/abi/net_v10.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS NCCL_NET_MAX_REQUESTS
#define RECEIVES (2 * SLOTS)
#define PORTION SLOTS   /* receives that are given back at once */
#define SIGNAL_EVERY 16 /* one clear-to-send in so many asks for a completion */
#define DEPTH (2 * SLOTS)

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "floor: %s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, \
				strerror(errno));                                                  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* What a receive sends to the sender; `number` is 1 more than the receive's and is written last. */
struct clear_to_send {
	uint64_t addr;
	uint32_t rkey, number;
};

/* What the other end must know. */
struct card {
	union ibv_gid gid;
	uint64_t ring;
	uint32_t qpn, rkey;
};

struct end;

struct request {
	struct end *end;
	int done, size;
};

struct end {
	int fd; /* the connection that the cards go over */
	bool is_send;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *ring_mr;
	struct card peer;
	uint32_t head;                             /* number of the next message */
	uint32_t consumed;                         /* receives that are to be given back */
	volatile struct clear_to_send ring[SLOTS]; /* written by the peer, at the sender */
	struct request request[SLOTS];
	struct ibv_recv_wr portion[PORTION];
};

struct handle {
	uint16_t port;
	struct end *begun; /* by connect, until the peer's card is here */
};

static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid;
	char name[64];
} nic;

/* ---- the device ---- */

static ncclResult_t floor_init(ncclDebugLogger_t logger, ncclProfilerCallback_t profiler)
{
	struct ibv_device **list;

	(void)logger;
	(void)profiler;
	if (nic.context)
		return ncclSuccess;
	list = ibv_get_device_list(NULL);
	MUST(list && list[0]);
	nic.context = ibv_open_device(list[0]);
	MUST(nic.context && !ibv_query_gid(nic.context, 1, 0, &nic.gid));
	nic.pd = ibv_alloc_pd(nic.context);
	MUST(nic.pd);
	snprintf(nic.name, sizeof(nic.name), "%s", ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	return ncclSuccess;
}

static ncclResult_t floor_devices(int *ndev)
{
	*ndev = 1;
	return ncclSuccess;
}

static ncclResult_t floor_properties(int dev, ncclNetProperties_v10_t *props)
{
	(void)dev;
	*props = (ncclNetProperties_v10_t) {
		.name = nic.name,
		.ptrSupport = NCCL_PTR_HOST,
		.speed = 100000,
		.port = 1,
		.maxComms = 1024,
		.maxRecvs = 1,
		.vProps = { .ndevs = 1 },
		.maxP2pBytes = MAX_NET_SIZE,
		.maxCollBytes = MAX_NET_SIZE,
	};
	return ncclSuccess;
}

/* ---- connections ---- */

static void give_receives(struct end *e)
{
	struct ibv_recv_wr *bad;

	MUST(!ibv_post_recv(e->qp, e->portion, &bad));
}

static struct end *end_open(int fd, bool is_send)
{
	struct end *e = calloc(1, sizeof(*e));
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { DEPTH, RECEIVES, 1, 1,
						  sizeof(struct clear_to_send) } };

	MUST(e);
	e->fd = fd;
	e->is_send = is_send;
	e->cq = ibv_create_cq(nic.context, DEPTH + RECEIVES, NULL, NULL, 0);
	MUST(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(nic.pd, &init);
	e->ring_mr = ibv_reg_mr(nic.pd, (void *)e->ring, sizeof(e->ring),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(e->qp && e->ring_mr);
	for (unsigned i = 0; i < SLOTS; i++)
		e->request[i].end = e;
	for (unsigned i = 0; i + 1 < PORTION; i++)
		e->portion[i].next = &e->portion[i + 1];
	return e;
}

static void end_connect(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e->peer.gid, .hop_limit = 64 } },
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = e->peer.qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.timeout = 18, /* 1 s: a busy machine is no dead peer */
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	MUST(!ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	give_receives(e);
	give_receives(e);
	attr.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void card_send(const struct end *e)
{
	struct card card = { nic.gid, (uintptr_t)e->ring, e->qp->qp_num, e->ring_mr->rkey };

	MUST(send(e->fd, &card, sizeof(card), 0) == sizeof(card));
}

/* A card is far smaller than a segment: it is here, or it is not. */
static bool card_receive(struct end *e)
{
	ssize_t n = recv(e->fd, &e->peer, sizeof(e->peer), MSG_DONTWAIT);

	MUST(n == sizeof(e->peer) || (n < 0 && errno == EAGAIN));
	return n > 0;
}

static ncclResult_t floor_listen(int dev, void *handle, void **listen_comm)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(at);
	struct handle *h = handle;
	struct end *e = calloc(1, sizeof(*e));

	(void)dev;
	MUST(e);
	e->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	MUST(!bind(e->fd, (struct sockaddr *)&at, sizeof(at)) && !listen(e->fd, 64));
	MUST(!getsockname(e->fd, (struct sockaddr *)&at, &length));
	memset(h, 0, sizeof(*h));
	h->port = at.sin_port;
	*listen_comm = e;
	return ncclSuccess;
}

static struct end *connect_begin(const struct handle *h)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = h->port,
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct end *e;

	MUST(!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	e = end_open(fd, true);
	card_send(e);
	return e;
}

static ncclResult_t floor_connect(int dev, ncclNetCommConfig_v10_t *config, void *handle,
				  void **send_comm, ncclNetDeviceHandle_v10_t **dev_comm)
{
	struct handle *h = handle;

	(void)dev;
	(void)config;
	(void)dev_comm;
	*send_comm = NULL;
	if (!h->begun)
		h->begun = connect_begin(h);
	if (!card_receive(h->begun))
		return ncclSuccess;
	end_connect(h->begun);
	*send_comm = h->begun;
	return ncclSuccess;
}

static ncclResult_t floor_accept(void *listen_comm, void **recv_comm,
				 ncclNetDeviceHandle_v10_t **dev_comm)
{
	struct end *e;
	int fd = accept(((struct end *)listen_comm)->fd, NULL, NULL);

	(void)dev_comm;
	*recv_comm = NULL;
	if (fd < 0)
		return ncclSuccess;
	e = end_open(fd, false);
	while (!card_receive(e))
		; /* it was sent before anything else */
	end_connect(e);
	card_send(e);
	*recv_comm = e;
	return ncclSuccess;
}

static ncclResult_t floor_close(void *comm)
{
	struct end *e = comm;

	if (e->qp)
		MUST(!ibv_destroy_qp(e->qp) && !ibv_destroy_cq(e->cq) && !ibv_dereg_mr(e->ring_mr));
	close(e->fd);
	free(e);
	return ncclSuccess;
}

/* ---- memory ---- */

static ncclResult_t floor_reg(void *comm, void *data, size_t size, int type, void **mhandle)
{
	(void)comm;
	(void)type;
	*mhandle = ibv_reg_mr(nic.pd, data, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(*mhandle);
	return ncclSuccess;
}

static ncclResult_t floor_dereg(void *comm, void *mhandle)
{
	(void)comm;
	MUST(!ibv_dereg_mr(mhandle));
	return ncclSuccess;
}

/* ---- messages ---- */

/* The immediate is the message's number; so is wr_id of what is sent, 0 of a clear-to-send. */
static void poll_end(struct end *e)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(e->cq, 4, wc);

	for (int i = 0; i < n; i++) {
		struct request *r;

		MUST(wc[i].status == IBV_WC_SUCCESS);
		if (wc[i].opcode & IBV_WC_RECV) {
			r = &e->request[wc[i].imm_data % SLOTS];
			r->size = (int)wc[i].byte_len;
			r->done = 1;
			if (++e->consumed == PORTION) {
				e->consumed = 0;
				give_receives(e);
			}
		} else if (e->is_send) {
			e->request[wc[i].wr_id % SLOTS].done = 1;
		}
	}
}

static ncclResult_t floor_isend(void *comm, void *data, size_t size, int tag, void *mhandle,
				void *phandle, void **request)
{
	struct end *e = comm;
	volatile struct clear_to_send *cts = &e->ring[e->head % SLOTS];
	struct ibv_sge sge = { (uintptr_t)data, (uint32_t)size, ((struct ibv_mr *)mhandle)->lkey };
	struct ibv_send_wr wr = { .wr_id = e->head,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = e->head },
			   *bad;

	(void)tag;
	(void)phandle;
	*request = NULL;
	if (__atomic_load_n(&cts->number, __ATOMIC_ACQUIRE) != e->head + 1) {
		poll_end(e); /* which moves the packets of a software NIC */
		return ncclSuccess;
	}
	wr.wr.rdma.remote_addr = cts->addr;
	wr.wr.rdma.rkey = cts->rkey;
	e->request[e->head % SLOTS].done = 0;
	e->request[e->head % SLOTS].size = (int)size;
	MUST(!ibv_post_send(e->qp, &wr, &bad));
	*request = &e->request[e->head++ % SLOTS];
	return ncclSuccess;
}

static ncclResult_t floor_irecv(void *comm, int n, void **data, size_t *sizes, int *tags,
				void **mhandles, void **phandles, void **request)
{
	struct end *e = comm;
	uint32_t slot = e->head % SLOTS;
	struct clear_to_send cts = { (uintptr_t)data[0], ((struct ibv_mr *)mhandles[0])->rkey,
				     e->head + 1 };
	struct ibv_sge sge = { (uintptr_t)&cts, sizeof(cts), 0 };
	bool signalled = e->head % SIGNAL_EVERY == 0;
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | (signalled ? IBV_SEND_SIGNALED : 0),
		.wr.rdma = { e->peer.ring + slot * sizeof(cts), e->peer.rkey },
	}, *bad;

	(void)sizes;
	(void)tags;
	(void)phandles;
	MUST(n == 1);
	e->request[slot].done = 0;
	MUST(!ibv_post_send(e->qp, &wr, &bad));
	*request = &e->request[slot];
	e->head++;
	return ncclSuccess;
}

static ncclResult_t floor_iflush(void *comm, int n, void **data, int *sizes, void **mhandles,
				 void **request)
{
	(void)comm;
	(void)n;
	(void)data;
	(void)sizes;
	(void)mhandles;
	*request = NULL; /* host memory */
	return ncclSuccess;
}

static ncclResult_t floor_test(void *request, int *done, int *sizes)
{
	struct request *r = request;

	if (!r->done)
		poll_end(r->end);
	*done = r->done;
	if (r->done && sizes)
		*sizes = r->size;
	return ncclSuccess;
}

__attribute__((visibility("default"))) extern const ncclNet_v10_t ncclNetPlugin_v10;
const ncclNet_v10_t ncclNetPlugin_v10 = {
	.name = "floor",
	.init = floor_init,
	.devices = floor_devices,
	.getProperties = floor_properties,
	.listen = floor_listen,
	.connect = floor_connect,
	.accept = floor_accept,
	.regMr = floor_reg,
	.deregMr = floor_dereg,
	.isend = floor_isend,
	.irecv = floor_irecv,
	.iflush = floor_iflush,
	.test = floor_test,
	.closeSend = floor_close,
	.closeRecv = floor_close,
	.closeListen = floor_close,
};
