/* SPDX-License-Identifier: BSD-3-Clause */
/* test_port.c - DPDK's ports: two ends of a net_memif in one process; each test is a process, for
 * DPDK starts once in one */
#include "base/clock.h"
#include "ina/frame/port/eal.h"
#include "ina/frame/port/idle.h"
#include "ina/frame/port/packet.h"
#include "ina/frame/port/spread.h"
#include "ina/frame/port/steer.h"
#include "ina/frame/port/tx.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static char server[96], client[200], why[256];
static struct rte_mempool *pool;
static struct ina_port a, b;

/* Both ends, before they meet. */
static void open_both_ports(unsigned queues)
{
	struct ina_eal_options o = { .program = "test",
				     .port = { server, client },
				     .nports = 2,
				     .threads = 1,
				     .memory_mb = 64 };
	struct ina_port_config c = { .rx_queues = queues, .tx_queues = queues };
	const char *dir = getenv("TMPDIR");

	snprintf(server, sizeof(server),
		 "net_memif0,role=server,socket=%s/ha-port-%d,socket-abstract=yes",
		 dir ? dir : "/tmp", getpid());
	snprintf(client, sizeof(client),
		 "net_memif1,role=client,socket=%s/ha-port-%d,socket-abstract=yes",
		 dir ? dir : "/tmp", getpid());
	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), 0);
	c.pool = pool = ina_pool_create("packets", 8192, why, sizeof(why));
	CHECK(pool);
	CHECK_INT(ina_port_open(&a, server, &c, why, sizeof(why)), 0);
	CHECK_INT(ina_port_open(&b, client, &c, why, sizeof(why)), 0);
}

/* When what has not come by then does not come. */
static uint64_t time_limit(void)
{
	return ha_clock_now(&ha_clock_live) + 60 * HA_NS_PER_S;
}

static void wait_up(void)
{
	uint64_t end = time_limit();

	while (!ina_port_up(&a) || !ina_port_up(&b)) {
		CHECK(ha_clock_now(&ha_clock_live) < end);
		usleep(1000);
	}
}

static void close_both_ports(void)
{
	ina_port_close(&b);
	ina_port_close(&a);
	CHECK_INT(rte_mempool_in_use_count(pool), 0);
	ina_eal_stop();
}

/* n packets; fewer if no more come. */
static unsigned receive_packets(const struct ina_port *p, uint16_t queue, struct rte_mbuf **m,
				unsigned n)
{
	uint64_t end = time_limit();
	struct ina_idle idle = { .us = 100 };
	unsigned got = 0;

	while (got < n && ha_clock_now(&ha_clock_live) < end) {
		unsigned one = ina_port_receive(p, queue, m + got, (uint16_t)(n - got));

		got += one;
		ina_idle_round(&idle, one);
	}
	return got;
}

static struct ina_frame make_frame(uint32_t psn, const uint8_t *words)
{
	return (struct ina_frame) { .dst_mac = { 2, 0, 0, 0, 0, 1 },
				    .src_mac = { 2, 0, 0, 0, 0, 2 },
				    .dst = 0x0a0000fe,
				    .src = 0x0a000001,
				    .worker = psn % 64,
				    .ecn = INA_ECT1,
				    .extended = psn & 1,
				    .coll = INA_ALL_REDUCE,
				    .group = 7,
				    .rank = 3,
				    .agg_addr = (uint16_t)psn,
				    .psn = psn,
				    .epoch = psn & 1 ? 9 : 0,
				    .words = words };
}

/* ---- tests ---- */

/* What is encoded into an mbuf is what ina_frame_encode() writes, on both ends of the cable. */
static void frames_pass_unchanged(void)
{
	static uint8_t words[INA_PAYLOAD_BYTES], bytes[INA_FRAME_MAX];
	struct rte_mbuf *m[64];
	struct ina_frame f, g;
	struct ina_tx tx;

	open_both_ports(1);
	wait_up();
	CHECK(!memcmp(b.driver, "net_memif", 9));
	for (unsigned i = 0; i < sizeof(words); i++)
		words[i] = (uint8_t)(i * 7);
	CHECK_INT(ina_tx_open(&tx, &b, 0, 1, 64), 0);
	for (uint32_t psn = 0; psn < 64; psn++) {
		f = make_frame(psn, psn & 2 ? words : NULL);
		m[psn] = ina_packet_make(&b, pool, &f);
		CHECK(m[psn]);
		ina_tx_send(&tx, m[psn]);
	}
	CHECK(ina_tx_flush(&tx));
	CHECK_INT(tx.sent, 64);
	CHECK_INT(receive_packets(&a, 0, m, 64), 64);
	for (uint32_t psn = 0; psn < 64; psn++) {
		f = make_frame(psn, psn & 2 ? words : NULL);
		CHECK_INT(m[psn]->pkt_len, ina_frame_encode(&f, bytes));
		CHECK(!memcmp(rte_pktmbuf_mtod(m[psn], void *), bytes, m[psn]->pkt_len));
		CHECK_INT(ina_packet_decode(m[psn], &g), INA_FAULT_NONE);
		CHECK_INT(g.psn, psn);
		CHECK_INT(ina_packet_worker(m[psn]), psn % 64);
		rte_pktmbuf_free(m[psn]);
	}
	ina_tx_close(&tx);
	close_both_ports();
}

/* Several queues: what is sent to one comes from the same one. */
static void queues_are_separate(void)
{
	struct rte_mbuf *m[8];
	struct ina_tx tx;

	open_both_ports(3);
	wait_up();
	CHECK_INT(a.rx_queues, 3);
	CHECK_INT(b.tx_queues, 3);
	for (uint16_t q = 0; q < 3; q++) {
		CHECK_INT(ina_tx_open(&tx, &b, q, 3, 32), 0);
		CHECK(!tx.shared);
		for (uint32_t i = 0; i < 2u + q; i++) {
			struct ina_frame f = make_frame(100 * q + i, NULL);

			ina_tx_send(&tx, ina_packet_make(&b, pool, &f));
		}
		CHECK(ina_tx_flush(&tx));
		ina_tx_close(&tx);
		CHECK_INT(receive_packets(&a, q, m, 2u + q), 2 + q);
		for (uint32_t i = 0; i < 2u + q; i++) {
			struct ina_frame f;

			CHECK_INT(ina_packet_decode(m[i], &f), INA_FAULT_NONE);
			CHECK_INT(f.psn, 100 * q + i);
			rte_pktmbuf_free(m[i]);
		}
	}
	CHECK_INT(ina_tx_open(&tx, &b, 4, 5, 32), 0);
	CHECK(tx.shared);
	CHECK_INT(tx.queue, 1);
	ina_tx_close(&tx);
	close_both_ports();
}

/* With nobody at the other end nothing is kept for later. */
static void packets_drop_without_peer(void)
{
	struct ina_frame f = make_frame(1, NULL);
	struct ina_tx tx;

	open_both_ports(1);
	wait_up();
	ina_port_close(&b);
	for (uint64_t end = time_limit(); ina_port_linked(&a); usleep(1000))
		CHECK(ha_clock_now(&ha_clock_live) < end);
	CHECK_INT(ina_tx_open(&tx, &a, 0, 1, 128), 0);
	for (unsigned i = 0; i < 200; i++)
		ina_tx_send(&tx, ina_packet_make(&a, pool, &f));
	ina_tx_flush(&tx);
	CHECK_INT(ina_tx_depth(&tx), 0);
	CHECK_INT(tx.dropped, 200);
	ina_tx_close(&tx);
	ina_port_close(&a);
	CHECK_INT(rte_mempool_in_use_count(pool), 0);
	ina_eal_stop();
}

/* With somebody who does not read packets wait, then drop; when he reads again, they go on. */
static void packets_wait_for_reader(void)
{
	struct ina_frame f = make_frame(1, NULL);
	struct rte_mbuf *m[64];
	struct ina_tx tx;
	uint64_t got = 0, end;
	unsigned n;

	open_both_ports(1);
	wait_up();
	/* a client of memif gives its peer buffers when it polls, not before */
	CHECK_INT(ina_port_receive(&b, 0, m, 1), 0);
	CHECK_INT(ina_tx_open(&tx, &a, 0, 1, 128), 0);
	for (unsigned i = 0; i < 4000; i++)
		ina_tx_send(&tx, ina_packet_make(&a, pool, &f));
	CHECK(!ina_tx_flush(&tx));
	CHECK_INT(ina_tx_depth(&tx), 128);
	CHECK_INT(tx.sent + tx.dropped + 128, 4000);
	CHECK(tx.dropped > 0);
	for (end = time_limit(); got < tx.sent || ina_tx_depth(&tx); ina_tx_flush(&tx)) {
		n = ina_port_receive(&b, 0, m, 64);
		CHECK(n || ha_clock_now(&ha_clock_live) < end);
		got += n;
		rte_pktmbuf_free_bulk(m, n);
	}
	CHECK_INT(ina_port_receive(&b, 0, m, 64), 0);
	CHECK_INT(ina_tx_depth(&tx), 0);
	CHECK_INT(got, tx.sent);
	ina_tx_close(&tx);
	close_both_ports();
}

static unsigned others;

static void count_other(void *arg, struct rte_mbuf *m)
{
	others++;
	rte_pktmbuf_free(m);
}

/* Nobody steers: each worker's packets reach its ring in order; the rest, other workers' too, go
 * elsewhere; a full ring drops. */
static void packets_are_spread(void)
{
	static struct ina_spreader w;
	struct ina_spread s;
	struct rte_mbuf *m[64];
	struct ina_frame f;
	struct ina_tx tx;
	unsigned n = 0;

	open_both_ports(1);
	wait_up();
	CHECK_INT(ina_spread_open(&s, "spread", 3, 32, false), 0);
	w.spread = &s;
	CHECK_INT(ina_tx_open(&tx, &b, 0, 1, 512), 0);
	for (uint32_t psn = 0; psn < 256; psn++) {
		f = make_frame(psn, NULL);
		m[0] = ina_packet_make(&b, pool, &f);
		if (psn % 64 == 9)
			rte_pktmbuf_mtod(m[0], uint8_t *)[12] = 0x86; /* no IPv4 */
		ina_tx_send(&tx, m[0]);
		if (psn % 32 == 31) {
			ina_tx_flush(&tx);
			for (uint64_t end = time_limit();
			     n <= psn && ha_clock_now(&ha_clock_live) < end;)
				n += ina_spread_burst(&w, &a, 0, count_other, NULL);
		}
	}
	CHECK_INT(n, 256);
	CHECK_INT(w.passed, 12);
	CHECK_INT(others, 244);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(ina_spread_depth(&s, i), 4);
		CHECK_INT(ina_spread_receive(&s, i, m, 64), 4);
		for (uint32_t k = 0; k < 4; k++) {
			CHECK_INT(ina_packet_decode(m[k], &f), 0);
			CHECK_INT(f.psn, 64 * k + i);
			rte_pktmbuf_free(m[k]);
		}
	}
	for (unsigned i = 0; i < 40; i++)
		ina_spreader_put(&w, 1, ina_packet_make(&b, pool, &f));
	ina_spreader_flush(&w);
	CHECK_INT(w.dropped, 8);
	ina_spread_close(&s);
	ina_tx_close(&tx);
	close_both_ports();
}

/* One line that says what to do. */
static void wrong_options_are_refused(void)
{
	struct ina_eal_options o = {
		.program = "test", .port = { "eth0" }, .nports = 1, .threads = 1, .memory_mb = 64
	};
	struct ina_port_config c = { 0 };

	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "eth0: neither"));
	o.port[0] = "net_af_packet0,iface=there-is-none";
	o.cpus = "0-";
	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "numbers and ranges"));
	o.cpus = "1000";
	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "processor 1000"));
	o.cpus = NULL;
	o.threads = 0;
	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), -EINVAL);
	o.threads = 1;
	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), 0);
	c.pool = ina_pool_create("packets", 1024, why, sizeof(why));
	CHECK(c.pool);
	CHECK_INT(ina_port_open(&a, o.port[0], &c, why, sizeof(why)), -ENODEV);
	CHECK(strstr(why, "no such port"));
	CHECK(!ina_pool_create("many", 10000000, why, sizeof(why)));
	CHECK(strstr(why, "no memory for 10000000 packets"));
	ina_eal_stop();
}

/* Closed before, while and after they meet: DPDK's memif does not like that, and the port sees to
 * it. */
static void half_way(void)
{
	open_both_ports(1);
	close_both_ports();
}

/*
 * The driver's recvmsg() is ours: so often, the thread that sets a client up sleeps between the
 * last word of its server and what it does then, for longer than the client waits before it dials
 * again.
 */
#define MEMIF_CONNECTED 7 /* type of that message, its first two bytes */
static _Atomic int sleeps;

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n = syscall(SYS_recvmsg, fd, m, flags);
	uint16_t type = 0;

	if (n >= 2 && m->msg_iovlen && m->msg_iov[0].iov_len >= 2)
		memcpy(&type, m->msg_iov[0].iov_base, 2);
	if (type == MEMIF_CONNECTED && atomic_load(&sleeps) > 0) {
		atomic_fetch_sub(&sleeps, 1);
		usleep(2300000);
	}
	return n;
}

/* A client that is set up slowly was dialled again meanwhile, and the thread that set it up found
 * its memory gone. */
static void dialled_meanwhile(void)
{
	struct rte_mbuf *m[4];
	struct ina_tx tx;
	struct ina_frame f = make_frame(1, NULL);

	sleeps = 1;
	open_both_ports(1);
	wait_up();
	CHECK_INT(atomic_load(&sleeps), 0);
	CHECK_INT(ina_tx_open(&tx, &b, 0, 1, 32), 0);
	for (unsigned i = 0; i < 4; i++)
		ina_tx_send(&tx, ina_packet_make(&b, pool, &f));
	CHECK(ina_tx_flush(&tx));
	CHECK_INT(receive_packets(&a, 0, m, 4), 4);
	rte_pktmbuf_free_bulk(m, 4);
	ina_tx_close(&tx);
	close_both_ports();
}

/* And closed meanwhile. */
static void closed_meanwhile(void)
{
	sleeps = 1;
	open_both_ports(1);
	for (uint64_t end = time_limit(); atomic_load(&sleeps); usleep(1000)) {
		CHECK(ha_clock_now(&ha_clock_live) < end);
		ina_port_up(&b);
	}
	close_both_ports();
}

#define ANSWER_AFTER_NS HA_NS_PER_S

/* Connections that wait for this listener. */
static unsigned count_waiting(int listener)
{
	unsigned n = 0;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		n++;
		close(fd);
	}
	return n;
}

/* A server that does not come to answer for a second, because its machine is busy, was dialled
 * again ten times: it aborted at the first connection that it found given up. */
static void server_is_slow(void)
{
	struct ina_eal_options o = {
		.program = "test", .port = { client }, .nports = 1, .threads = 1, .memory_mb = 64
	};
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ina_port_config c = { 0 };
	const char *dir = getenv("TMPDIR");
	uint64_t end;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/ha-slow-%d", dir ? dir : "/tmp", getpid());
	snprintf(client, sizeof(client), "net_memif0,role=client,socket=%s,socket-abstract=no",
		 at.sun_path);
	CHECK(listener >= 0 && !bind(listener, (struct sockaddr *)&at, sizeof(at)) &&
	      !listen(listener, 100));
	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), 0);
	c.pool = pool = ina_pool_create("packets", 8192, why, sizeof(why));
	CHECK(pool);
	CHECK_INT(ina_port_open(&b, client, &c, why, sizeof(why)), 0);
	end = ha_clock_now(&ha_clock_live) + ANSWER_AFTER_NS;
	do {
		CHECK(!ina_port_up(&b));
		usleep(1000);
	} while (ha_clock_now(&ha_clock_live) < end);
	CHECK_INT(count_waiting(listener), 1);
	unlink(at.sun_path);
	close(listener);
	ina_port_close(&b);
	ina_eal_stop();
}

/* memif has no flow rules, and says so; so would a device with too few queues. */
static void no_steering(void)
{
	open_both_ports(2);
	wait_up();
	CHECK_INT(ina_steer_open(&a, 0, 2, why, sizeof(why)), -ENOTSUP);
	CHECK(strstr(why, "net_memif0 (net_memif) cannot steer by DSCP"));
	CHECK_INT(ina_steer_open(&a, 0, 3, why, sizeof(why)), -ENOTSUP);
	CHECK(strstr(why, "has 2 queues, 3 are needed"));
	ina_steer_close(&a);
	close_both_ports();
}

static int get_processor(void *arg)
{
	return sched_getcpu();
}

/* More threads than processors share them; DPDK has left no files behind that another process
 * meets. */
static void threads_share_processors(void)
{
	struct ina_eal_options o = { .program = "test", .threads = 6, .memory_mb = 32 };
	unsigned lcore, n = 0;

	CHECK_INT(ina_eal_start(&o, why, sizeof(why)), 0);
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		CHECK_INT(lcore, ++n);
		CHECK_INT(rte_eal_remote_launch(get_processor, NULL, lcore), 0);
	}
	CHECK_INT(n, 5);
	for (lcore = 1; lcore < 6; lcore++)
		CHECK(rte_eal_wait_lcore(lcore) >= 0);
	ina_eal_unbind_thread();
	CHECK(access("/var/run/dpdk/rte/config", F_OK));
	CHECK(access("/var/run/dpdk/rte/mp_socket", F_OK));
	ina_eal_stop();
}

/* On a shared processor: yields until it has had nothing for so long, then sleeps, as long as that
 * says; and begins anew with work. */
static void idle_thread_sleeps(void)
{
	struct ina_idle i = { .us = 5000, .shared = true };
	uint64_t from = ha_clock_now(&ha_clock_live), before;

	ina_idle_round(&i, false);
	CHECK(i.since >= from);
	from = i.since;
	do {
		before = ha_clock_now(&ha_clock_live);
		ina_idle_round(&i, false);
	} while (before - from < 20 * HA_NS_PER_MS);
	CHECK_INT(i.since, from);
	/* an eighth of 20 ms would be more */
	CHECK(ha_clock_now(&ha_clock_live) - before >= HA_IDLE_SLEEP_MAX_NS);
	ina_idle_round(&i, true);
	before = ha_clock_now(&ha_clock_live);
	ina_idle_round(&i, false);
	CHECK(i.since >= before);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "frames", frames_pass_unchanged },
		{ "queues", queues_are_separate },
		{ "gone", packets_drop_without_peer },
		{ "again", packets_wait_for_reader },
		{ "spread", packets_are_spread },
		{ "refused", wrong_options_are_refused },
		{ "half_way", half_way },
		{ "dialled_meanwhile", dialled_meanwhile },
		{ "closed_meanwhile", closed_meanwhile },
		{ "server_is_slow", server_is_slow },
		{ "no_steering", no_steering },
		{ "processors", threads_share_processors },
		{ "idle", idle_thread_sleeps },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
