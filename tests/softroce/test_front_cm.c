/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager by the commands that librdmacm gives the kernel: connections, refusals,
 * datagrams, channels that close, a wire that loses, and foreign senders. */
#include "base/clock.h"
#include "base/rng.h"
#include "softroce/cm/command.h"
#include "softroce/cm/mad.h"
#include "softroce/cm/manager.h"
#include "softroce/control.h"
#include "tests/softroce/cm_commands.h"
#include "tests/softroce/front_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PORT 7471

static union ibv_gid gids[2]; /* of soft0 and soft1 */

/* ---- a listener and a connection to it ---- */

struct pair {
	int server, client; /* channels */
	uint32_t listener, active, passive;
};

static int channel_open(void)
{
	int fd = softroce_cm_open();

	CHECK(fd >= 0);
	return fd;
}

static struct pair pair_open(uint16_t ps)
{
	struct pair p = { .server = channel_open(), .client = channel_open() };

	p.listener = id_create(p.server, 1, ps);
	CHECK(!id_bind(p.server, p.listener, make_address(&gids[0], PORT)) &&
	      !id_listen(p.server, p.listener));
	p.active = id_create(p.client, 2, ps);
	return p;
}

static void pair_close(struct pair *p)
{
	CHECK(!softroce_cm_close(p->client) && !softroce_cm_close(p->server));
	CHECK(softroce_cm_close(p->client) == -1);
}

/* From soft1 to the listener on soft0, which does not learn of it here. */
static void send_request(struct pair *p)
{
	CHECK(!id_bind(p->client, p->active, make_address(&gids[1], 0)));
	id_resolve(p->client, p->active, 2, make_address(&gids[0], PORT));
	CHECK(!id_connect(p->client, p->active, 0x111111, "may I?"));
}

/* Up to the request's arrival. */
static struct rdma_ucm_event_resp deliver_request(struct pair *p)
{
	struct rdma_ucm_event_resp event;

	send_request(p);
	event = expect(p->server, SR_CM_CONNECT_REQUEST, 1);
	p->passive = event.id;
	return event;
}

static void connect_asked(struct pair *p, struct rdma_ucm_event_resp event)
{
	CHECK(!strcmp((char *)event.param.conn.private_data, "may I?"));
	CHECK(event.param.conn.responder_resources == 2 && event.param.conn.initiator_depth == 3);
	CHECK(event.param.conn.qp_num == 0x111111);
	CHECK(!id_accept(p->server, p->passive, 3, 0x222222, "do"));
	event = expect(p->client, SR_CM_CONNECT_RESPONSE, 2);
	CHECK(!strcmp((char *)event.param.conn.private_data, "do"));
	CHECK(event.param.conn.responder_resources == 3 && event.param.conn.initiator_depth == 2);
	CHECK(!id_accept(p->client, p->active, 0, 0, NULL));
	expect(p->server, SR_CM_ESTABLISHED, 3);
}

static void connect_both(struct pair *p)
{
	connect_asked(p, deliver_request(p));
}

static void queue_pairs_fit(const struct pair *p)
{
	struct ib_uverbs_qp_attr a = id_attr(p->client, p->active, IBV_QPS_RTR);
	struct ib_uverbs_qp_attr b = id_attr(p->server, p->passive, IBV_QPS_RTR);
	struct ib_uverbs_qp_attr as = id_attr(p->client, p->active, IBV_QPS_RTS);
	struct ib_uverbs_qp_attr bs = id_attr(p->server, p->passive, IBV_QPS_RTS);

	CHECK(a.dest_qp_num == 0x222222 && b.dest_qp_num == 0x111111);
	CHECK(a.rq_psn == bs.sq_psn && b.rq_psn == as.sq_psn && a.path_mtu == b.path_mtu);
	CHECK(!memcmp(a.ah_attr.grh.dgid, &gids[0], 16) &&
	      !memcmp(b.ah_attr.grh.dgid, &gids[1], 16));
	CHECK(a.max_dest_rd_atomic == 3 && as.max_rd_atomic == 2 && b.max_dest_rd_atomic == 2 &&
	      bs.max_rd_atomic == 3);
	CHECK(as.retry_cnt == 5 && bs.retry_cnt == 5 && as.rnr_retry == 4 && bs.rnr_retry == 6);
	CHECK(id_attr(p->client, p->active, IBV_QPS_INIT).qp_access_flags & IBV_ACCESS_REMOTE_READ);
}

static void addresses_fit(const struct pair *p)
{
	struct rdma_ucm_query_route_resp a = id_route(p->client, p->active),
					 b = id_route(p->server, p->passive);

	CHECK(a.num_paths == 1 && b.num_paths == 1 && a.node_guid && b.node_guid &&
	      a.node_guid != b.node_guid);
	CHECK(!memcmp(&a.src_addr, &b.dst_addr, sizeof(a.src_addr)));
	CHECK(!memcmp(&a.dst_addr, &b.src_addr, sizeof(a.dst_addr)));
	CHECK(!memcmp(a.ib_route[0].dgid, &gids[0], 16) &&
	      !memcmp(b.ib_route[0].dgid, &gids[1], 16));
}

static void test_connection(void)
{
	struct pair p = pair_open(RDMA_PS_TCP);

	connect_both(&p);
	queue_pairs_fit(&p);
	addresses_fit(&p);
	CHECK(!id_disconnect(p.client, p.active));
	expect(p.client, SR_CM_DISCONNECTED, 2);
	expect(p.server, SR_CM_DISCONNECTED, 3);
	/* as programs do; there is nothing left to say */
	CHECK(!id_disconnect(p.server, p.passive));
	nothing_more(p.client);
	nothing_more(p.server);
	CHECK(id_destroy(p.client, p.active) == 4 && id_destroy(p.server, p.passive) == 2);
	CHECK(id_destroy(p.server, p.listener) == 1);
	pair_close(&p);
}

/* ---- what does not come about ---- */

static void test_rejected(void)
{
	struct pair p = pair_open(RDMA_PS_TCP);
	struct rdma_ucm_reject cmd = { .private_data = "no", .private_data_len = 3 };
	struct rdma_ucm_event_resp event;
	uint32_t other = id_create(p.client, 4, RDMA_PS_TCP);

	deliver_request(&p);
	cmd.id = p.passive;
	CHECK(!write_command(p.server, RDMA_USER_CM_CMD_REJECT, &cmd, sizeof(cmd), 0));
	event = expect(p.client, SR_CM_REJECTED, 2);
	CHECK(event.status == SR_REJ_CONSUMER &&
	      !strcmp((char *)event.param.conn.private_data, "no"));
	id_resolve(p.client, other, 4, make_address(&gids[0], PORT + 1)); /* where nobody listens */
	CHECK(!id_connect(p.client, other, 5, ""));
	CHECK(expect(p.client, SR_CM_REJECTED, 4).status == SR_REJ_NO_SERVICE);
	pair_close(&p);
}

/* A request comes before its listener. */
static void test_early(void)
{
	struct pair p = { .server = channel_open(), .client = channel_open() };
	struct pollfd either[2] = { { p.client, POLLIN, 0 }, { p.server, POLLIN, 0 } };

	p.active = id_create(p.client, 2, RDMA_PS_TCP);
	id_resolve(p.client, p.active, 2, make_address(&gids[0], PORT));
	CHECK(!id_connect(p.client, p.active, 5, ""));
	p.listener = id_create(p.server, 1, RDMA_PS_TCP);
	CHECK(!id_bind(p.server, p.listener, make_address(&gids[0], PORT)) &&
	      !id_listen(p.server, p.listener));
	/* Refused when this took longer than a moment: a busy machine. */
	CHECK(poll(either, 2, WAIT_MS) > 0);
	if (either[0].revents)
		CHECK(expect(p.client, SR_CM_REJECTED, 2).status == SR_REJ_NO_SERVICE);
	else
		expect(p.server, SR_CM_CONNECT_REQUEST, 1);
	pair_close(&p);
}

static void test_nobody_there(void)
{
	int fd = channel_open();
	uint32_t id = id_create(fd, 2, RDMA_PS_TCP), far = id_create(fd, 3, RDMA_PS_TCP);
	struct rdma_ucm_resolve_ip cmd = { .id = far };
	union ibv_gid nobody = gids[0];

	nobody.raw[15] = 250; /* in soft0's subnet */
	id_resolve(fd, id, 2, make_address(&nobody, PORT));
	CHECK(!id_connect(fd, id, 5, ""));
	CHECK((int)expect(fd, SR_CM_UNREACHABLE, 2).status == -ETIMEDOUT);
	nobody.raw[12] = 192; /* 192.x: no device leads there */
	nobody.raw[13] = 0;
	nobody.raw[14] = 2;
	cmd.dst_addr = make_address(&nobody, PORT);
	CHECK(!write_command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &cmd, sizeof(cmd), 0));
	CHECK((int)expect(fd, SR_CM_ADDR_ERROR, 3).status == -ENODEV);
	CHECK(!softroce_cm_close(fd));
}

/* A channel that is closed without rdma_disconnect still disconnects the peer. */
static void test_channels_close(void)
{
	struct pair p = pair_open(RDMA_PS_TCP);
	uint32_t second;

	connect_both(&p);
	CHECK(!softroce_cm_close(p.server));
	expect(p.client, SR_CM_DISCONNECTED, 2);
	p.server = channel_open();
	p.listener = id_create(p.server, 1, RDMA_PS_TCP);
	CHECK(!id_bind(p.server, p.listener, make_address(&gids[0], PORT)) &&
	      !id_listen(p.server, p.listener));
	second = id_create(p.client, 5, RDMA_PS_TCP);
	id_resolve(p.client, second, 5, make_address(&gids[0], PORT));
	CHECK(!id_connect(p.client, second, 5, ""));
	CHECK(poll(&(struct pollfd) { p.server, POLLIN, 0 }, 1, WAIT_MS) == 1);
	CHECK(!softroce_cm_close(p.server)); /* with a request that nobody has read */
	CHECK(expect(p.client, SR_CM_REJECTED, 5).status == SR_REJ_CONSUMER);
	CHECK(!softroce_cm_close(p.client));
}

static atomic_bool returned;
static atomic_int reader; /* its thread's number, from just before its call */

static void *wait_for_event(void *arg)
{
	struct rdma_ucm_event_resp resp;
	struct rdma_ucm_get_event cmd = { .response = (uintptr_t)&resp };

	atomic_store(&reader, (int)syscall(SYS_gettid));
	(void)write_command(*(int *)arg, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd),
			    sizeof(resp));
	atomic_store(&returned, true);
	return NULL;
}

static bool is_polling(long number)
{
#ifdef SYS_poll
	if (number == SYS_poll)
		return true;
#endif
	return number == SYS_ppoll;
}

/* It has met the channel and sleeps in poll(), not at a lock before: on a busy machine that takes
 * as long as it takes. */
static void await_reader(void)
{
	char path[64];
	long number = -1;
	FILE *f;

	while (!atomic_load(&reader))
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", atomic_load(&reader));
	for (int ms = 0; !is_polling(number) && ms < WAIT_MS; ms++) {
		usleep(1000);
		f = fopen(path, "re");
		CHECK(f);
		if (fscanf(f, "%ld", &number) != 1)
			number = -1; /* "running" */
		fclose(f);
	}
	CHECK(is_polling(number));
}

/* As in the kernel: who waits for an event of a channel that another thread closes waits on (rping
 * calls a return a failure). */
static void test_closed_under_a_reader(void)
{
	int fd = channel_open(), kept = fd, other;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, wait_for_event, &kept));
	await_reader();
	CHECK(!eventfd_write(fd, 1)); /* it is about to look, and finds nothing */
	CHECK(!softroce_cm_close(fd));
	usleep(50000);
	CHECK(!atomic_load(&returned));
	other = channel_open(); /* with the same number, as a rule: not its channel */
	usleep(20000);
	CHECK(!atomic_load(&returned));
	CHECK(!pthread_cancel(thread) && !pthread_join(thread, NULL));
	CHECK(!softroce_cm_close(other));
}

static void spin_until(int64_t at_ns)
{
	while (ha_monotonic_ns() < at_ns)
		;
}

/* The same at each moment of its look at the channel: the first 80 us. */
static void test_closed_while_it_looks(void)
{
	for (int i = 0; i < 200; i++) {
		int fd = channel_open(), kept = fd;
		pthread_t thread;

		atomic_store(&reader, 0);
		CHECK(!pthread_create(&thread, NULL, wait_for_event, &kept));
		await_reader();
		CHECK(!eventfd_write(fd, 1));
		spin_until(ha_monotonic_ns() + i * 400);
		CHECK(!softroce_cm_close(fd));
		usleep(500);
		CHECK(!pthread_cancel(thread) && !pthread_join(thread, NULL));
		CHECK(!atomic_load(&returned));
	}
}

static void test_migrate(void)
{
	struct pair p = pair_open(RDMA_PS_TCP);
	struct rdma_ucm_migrate_resp resp = { .events_reported = 99 };
	struct rdma_ucm_migrate_id cmd = { .response = (uintptr_t)&resp, .fd = (uint32_t)p.server };
	int to = channel_open();

	id_resolve(p.client, p.active, 2, make_address(&gids[0], PORT));
	CHECK(!id_connect(p.client, p.active, 0x111111, "may I?"));
	CHECK(poll(&(struct pollfd) { p.server, POLLIN, 0 }, 1, WAIT_MS) == 1);
	cmd.id = p.listener;
	CHECK(!write_command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &cmd, sizeof(cmd), sizeof(resp)));
	CHECK(resp.events_reported == 0);
	nothing_more(p.server);
	p.passive = expect(to, SR_CM_CONNECT_REQUEST, 1).id;
	CHECK(id_accept(p.server, p.passive, 3, 7, "") == -ENOENT); /* it went with its listener */
	CHECK(!id_accept(to, p.passive, 3, 7, ""));
	expect(p.client, SR_CM_CONNECT_RESPONSE, 2);
	CHECK(!softroce_cm_close(to));
	expect(p.client, SR_CM_REJECTED, 2);
	pair_close(&p);
}

/* ---- datagrams ---- */

static void test_datagrams(void)
{
	struct pair p = pair_open(RDMA_PS_UDP);
	struct rdma_ucm_event_resp event = deliver_request(&p);
	struct ib_uverbs_qp_attr attr;

	CHECK(!strcmp((char *)event.param.ud.private_data, "may I?"));
	attr = id_attr(p.server, p.passive, IBV_QPS_INIT);
	CHECK(attr.qkey == SR_CM_QKEY && (attr.qp_attr_mask & IBV_QP_QKEY));
	CHECK(!id_accept(p.server, p.passive, 3, 0x333333, "here"));
	event = expect(p.client, SR_CM_ESTABLISHED, 2);
	CHECK(event.param.ud.qp_num == 0x333333 && event.param.ud.qkey == SR_CM_QKEY);
	CHECK(!strcmp((char *)event.param.ud.private_data, "here"));
	CHECK(event.param.ud.ah_attr.is_global &&
	      !memcmp(event.param.ud.ah_attr.grh.dgid, &gids[0], 16));
	nothing_more(p.server);
	pair_close(&p);
	p = pair_open(RDMA_PS_UDP);
	deliver_request(&p);
	id_destroy(p.server, p.passive);
	CHECK(expect(p.client, SR_CM_UNREACHABLE, 2).status == SR_SIDR_REJECT);
	pair_close(&p);
}

/* ---- a wire that loses ---- */

static struct sr_faults wanted;

static void faults_put(struct sr_faults *faults, void *arg)
{
	*faults = wanted;
}

static void faults_set(const char *device, struct sr_faults faults)
{
	struct sr_control_entry *list;
	char selector[64];
	int n;

	wanted = faults;
	snprintf(selector, sizeof(selector), "%s:%d", device, (int)getpid());
	list = sr_control_list(selector, &n);
	CHECK(list && n == 1 && !sr_control_change(list, faults_put, NULL));
	free(list);
}

static void set_loss(uint32_t drop_ppm)
{
	faults_set("soft0",
		   (struct sr_faults) { .tx = { .drop_ppm = drop_ppm, .dup_ppm = 200000 } });
	faults_set("soft1",
		   (struct sr_faults) { .tx = { .drop_ppm = drop_ppm, .dup_ppm = 200000 } });
}

/* Requests are said twenty times, BYE messages six times: if all six were lost (of 30 %, once in
 * 340 runs of four), the peer would never know. */
static void test_loss(void)
{
	struct pair p = pair_open(RDMA_PS_TCP);

	for (int i = 0; i < 4; i++) {
		set_loss(300000);
		connect_both(&p);
		set_loss(50000);
		CHECK(!id_disconnect(p.client, p.active));
		expect(p.client, SR_CM_DISCONNECTED, 2);
		expect(p.server, SR_CM_DISCONNECTED, 3);
		nothing_more(p.server);
		CHECK(id_destroy(p.client, p.active) == 4 && id_destroy(p.server, p.passive) == 2);
		p.active = id_create(p.client, 2, RDMA_PS_TCP);
	}
	faults_set("soft0", (struct sr_faults) { 0 });
	faults_set("soft1", (struct sr_faults) { 0 });
	pair_close(&p);
}

/* ---- foreign senders ---- */

struct foreign {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
};

static void foreign_open(struct foreign *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 64, 1, 1, 1, 300 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = SR_MAD_QKEY };
	struct ibv_ah_attr to = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .dgid = gids[0], .hop_limit = 64 } };

	s->context = ibv_open_device(list[1]);
	ibv_free_device_list(list);
	s->pd = ibv_alloc_pd(s->context);
	init.send_cq = init.recv_cq = s->cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	s->qp = ibv_create_qp(s->pd, &init);
	s->ah = ibv_create_ah(s->pd, &to);
	CHECK(s->context && s->pd && s->cq && s->qp && s->ah);
	CHECK(!ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void foreign_close(struct foreign *s)
{
	CHECK(!ibv_destroy_ah(s->ah) && !ibv_destroy_qp(s->qp) && !ibv_destroy_cq(s->cq) &&
	      !ibv_dealloc_pd(s->pd));
	CHECK(!ibv_close_device(s->context));
}

static void foreign_send(struct foreign *s, const uint8_t *bytes, uint32_t len)
{
	struct ibv_sge list = { (uintptr_t)bytes, len, 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &list,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
					.wr.ud = { s->ah, 1, SR_MAD_QKEY } };
	struct ibv_wc wc;

	CHECK(!ibv_post_send(s->qp, &wr, &bad));
	while (!ibv_poll_cq(s->cq, 1, &wc))
		;
	CHECK(wc.status == IBV_WC_SUCCESS);
}

/* Any message with good and bad numbers, and some bytes of it changed. */
static uint32_t make_random_mad(struct sr_rng *rng, uint8_t bytes[SR_MAD_LEN])
{
	struct sr_mad mad = { .type = SR_MAD_REQ + sr_rng_below(rng, 9) };

	mad.tid = sr_rng_below(rng, 3);
	mad.local_id = sr_rng_below(rng, 4);
	mad.remote_id = sr_rng_below(rng, 4);
	mad.service = (uint64_t)RDMA_PS_TCP << 16 | (PORT + sr_rng_below(rng, 2));
	mad.qpn = sr_rng_below(rng, 1u << 24);
	mad.path.mtu = sr_rng_below(rng, 16);
	mad.transport = sr_rng_below(rng, 4);
	sr_mad_encode(&mad, bytes);
	for (unsigned n = (unsigned)sr_rng_below(rng, 4); n; n--)
		bytes[sr_rng_below(rng, SR_MAD_LEN)] = (uint8_t)sr_rng_below(rng, 256);
	return sr_rng_below(rng, 8) ? SR_MAD_LEN : (uint32_t)sr_rng_below(rng, SR_MAD_LEN);
}

/* The starting PSN in a message is where its receiver shall begin to send, as the kernel's
 * connection manager has it; here of a request that comes from elsewhere. */
static void test_starting_psn(void)
{
	struct pair p = pair_open(RDMA_PS_TCP);
	struct sr_mad req = { .type = SR_MAD_REQ,
			      .tid = 1,
			      .local_id = 77,
			      .service = (uint64_t)RDMA_PS_TCP << 16 | PORT,
			      .qpn = 0x111111,
			      .psn = 0x654321,
			      .path.pkey = 0xffff,
			      .path.mtu = IBV_MTU_1024,
			      .responder_resources = 1,
			      .initiator_depth = 1 };
	struct rdma_ucm_event_resp event;
	uint8_t bytes[SR_MAD_LEN];
	struct foreign foreign;

	memcpy(req.path.sgid, &gids[1], 16);
	memcpy(req.path.dgid, &gids[0], 16);
	req.data[1] = 0x40; /* IP addresses in front of the private data: annex A11.6 */
	memcpy(req.data + 16, gids[1].raw + 12, 4);
	memcpy(req.data + 32, gids[0].raw + 12, 4);
	foreign_open(&foreign);
	sr_mad_encode(&req, bytes);
	foreign_send(&foreign, bytes, sizeof(bytes));
	event = expect(p.server, SR_CM_CONNECT_REQUEST, 1);
	CHECK(event.param.conn.qp_num == 0x111111);
	CHECK(id_attr(p.server, event.id, IBV_QPS_RTS).sq_psn == 0x654321);
	CHECK(id_attr(p.server, event.id, IBV_QPS_RTR).rq_psn != 0x654321);
	foreign_close(&foreign);
	pair_close(&p);
}

static void test_foreign(void)
{
	struct pair p = pair_open(RDMA_PS_TCP);
	struct sr_rng rng = { .state = 7 };
	struct rdma_ucm_event_resp event;
	struct foreign foreign;
	unsigned requests = 0;

	foreign_open(&foreign);
	for (int i = 0; i < 5000; i++) {
		uint8_t bytes[SR_MAD_LEN];

		foreign_send(&foreign, bytes, make_random_mad(&rng, bytes));
		if (i % 64 == 0) { /* the listener's program is there */
			while (poll(&(struct pollfd) { p.server, POLLIN, 0 }, 1, 1) == 1) {
				CHECK(!event_try(p.server, &event) &&
				      event.event == SR_CM_CONNECT_REQUEST);
				id_destroy(p.server, event.id);
				requests++;
			}
		}
	}
	CHECK(requests > 0);
	foreign_close(&foreign);
	CHECK(!softroce_cm_close(p.server)); /* with whatever is left */
	p.server = channel_open();
	p.listener = id_create(p.server, 1, RDMA_PS_TCP);
	CHECK(!id_bind(p.server, p.listener, make_address(&gids[0], PORT)) &&
	      !id_listen(p.server, p.listener));
	send_request(&p);
	event = expect(p.server, SR_CM_CONNECT_REQUEST, 1);
	/* foreign senders' packets that were still on their way */
	while (strcmp((char *)event.param.conn.private_data, "may I?")) {
		id_destroy(p.server, event.id);
		event = expect(p.server, SR_CM_CONNECT_REQUEST, 1);
	}
	p.passive = event.id;
	connect_asked(&p, event);
	pair_close(&p);
}

/* ---- commands that make no sense ---- */

static void test_commands(void)
{
	int fd = channel_open(), other = channel_open();
	uint32_t id = id_create(fd, 1, RDMA_PS_TCP), second = id_create(fd, 2, RDMA_PS_TCP);
	struct rdma_ucm_disconnect cmd = { .id = 99999 };
	struct rdma_ucm_create_id create = { .ps = 7 };
	struct rdma_ucm_cmd_hdr hdr = { .cmd = 99 };
	union ibv_gid far = gids[0];
	uint8_t tos = 32;
	struct rdma_ucm_set_option option = {
		.optval = (uintptr_t)&tos, .id = id, .optname = RDMA_OPTION_ID_TOS, .optlen = 1
	};

	far.raw[15] = 99;
	CHECK(write_command(fd, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0) == -ENOENT);
	cmd.id = id;
	CHECK(write_command(fd, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0) == -EINVAL);
	CHECK(write_command(other, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0) == -ENOENT);
	CHECK(write_command(fd, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), 0) ==
	      -EPROTONOSUPPORT);
	CHECK(write_command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &cmd, sizeof(cmd), 0) == -EOPNOTSUPP);
	CHECK(softroce_cm_write(fd, &hdr, sizeof(hdr)) == -1 && errno == EINVAL);
	CHECK(softroce_cm_write(fd, &hdr, 3) == -1 && errno == EINVAL);
	hdr = (struct rdma_ucm_cmd_hdr) { RDMA_USER_CM_CMD_CREATE_ID, 1000, 0 };
	CHECK(softroce_cm_write(fd, &hdr, sizeof(hdr)) == -1 && errno == EINVAL);
	CHECK(id_connect(fd, id, 1, "") == -EINVAL);
	CHECK(id_bind(fd, id, make_address(&far, PORT)) == -EADDRNOTAVAIL);
	CHECK(!id_bind(fd, id, make_address(&gids[0], PORT)));
	CHECK(id_bind(fd, id, make_address(&gids[0], PORT)) == -EINVAL);
	CHECK(id_bind(fd, second, make_address(&gids[0], PORT)) == -EADDRINUSE);
	CHECK(!id_bind(fd, second, make_address(&gids[1], PORT)));
	CHECK(!write_command(fd, RDMA_USER_CM_CMD_SET_OPTION, &option, sizeof(option), 0));
	option.level = RDMA_OPTION_IB;
	CHECK(write_command(fd, RDMA_USER_CM_CMD_SET_OPTION, &option, sizeof(option), 0) ==
	      -ENOSYS);
	nothing_more(fd);
	CHECK(!softroce_cm_close(fd) && !softroce_cm_close(other) &&
	      softroce_cm_close(other) == -1);
}

static void gids_read(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0] && list[1]);
	for (int i = 0; i < 2; i++) {
		struct ibv_context *context = ibv_open_device(list[i]);

		CHECK(context && !ibv_query_gid(context, 1, 0, &gids[i]) &&
		      !ibv_close_device(context));
	}
	ibv_free_device_list(list);
}

int main(void)
{
	side_isolate("127.150.0.0/24,127.150.1.0/24");
	gids_read();
	test_connection();
	test_rejected();
	test_early();
	test_nobody_there();
	test_channels_close();
	test_closed_under_a_reader();
	test_closed_while_it_looks();
	test_migrate();
	test_datagrams();
	test_loss();
	test_starting_psn();
	test_foreign();
	test_commands();
	return 0;
}
