/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bootstrap with virtual time and a network in memory: byte by byte, damaged at each byte, cut
 * at each byte, unauthenticated peers of every kind, peers that never answer, ends in every state.
 * Nothing may be left over, ever.
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/connect/accept.h"
#include "plugin/connect/pending.h"
#include "plugin/ctx.h"
#include "plugin/failover/protection.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <errno.h>
#include <unistd.h>

static struct world w;
static char handle[2 * HA_HANDLE_MAX]; /* room for a copy: a second connector */

struct ends {
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;
	int error; /* of connect */
};

static struct ha_wire_handle the_handle(void)
{
	struct ha_wire_handle h;

	memcpy(&h, handle, sizeof(h));
	return h;
}

static void advance_ends(struct ends *e, const struct ha_comm_opts *opts, const void *at)
{
	if (!e->send && !e->error)
		e->error = ha_connect(w.b, 0, opts, at, &e->send);
	if (!e->recv)
		CHECK_INT(ha_accept(e->listen, &e->recv), 0);
}

/* Until both are there, or connect fails, or so many virtual seconds have passed. */
static struct ends connect_ends(const struct ha_comm_opts *a, const struct ha_comm_opts *b,
				int seconds)
{
	struct ends e = { 0 };

	CHECK_INT(ha_listen(w.a, 0, a, handle, &e.listen), 0);
	for (int i = 0; i < seconds * 100 && !e.error && !(e.send && e.recv); i++) {
		advance_ends(&e, b, handle);
		if (i >= 50 && !w.net.stall)
			w.clock.now += 10 * HA_NS_PER_MS;
	}
	return e;
}

static void close_ends(struct ends *e)
{
	if (e->send)
		ha_close_send(e->send);
	if (e->recv)
		ha_close_recv(e->recv);
	if (e->listen)
		ha_close_listen(e->listen);
}

static void check_connected(const struct ends *e, int nrails)
{
	CHECK_INT(e->error, 0);
	CHECK(e->send && e->recv);
	CHECK_INT(e->send->b.nrails, nrails);
	CHECK_INT(e->recv->b.nrails, nrails);
	CHECK(e->send->b.peer_ring == (uintptr_t)e->recv->b.ring &&
	      e->recv->b.peer_ring == (uintptr_t)e->send->b.ring);
	for (int i = 0; i < nrails; i++) {
		CHECK_INT(e->send->b.rail[i].setup.peer.qp.qpn, e->recv->b.rail[i].qp->qp_num);
		CHECK_INT(e->recv->b.rail[i].setup.peer.qp.qpn, e->send->b.rail[i].qp->qp_num);
		CHECK_INT(e->send->b.rail[i].qp->state, IBV_QPS_RTS);
		CHECK_INT(e->recv->b.rail[i].qp->state, IBV_QPS_RTS);
		CHECK_INT(e->send->b.rail[i].ring_rkey, e->recv->b.rail[i].setup.ring_mr->rkey);
		CHECK_INT(e->recv->b.rail[i].ring_rkey, e->send->b.rail[i].setup.ring_mr->rkey);
	}
	CHECK_INT(e->send->b.active, (1 << nrails) - 1);
}

static void one_rail_each(void)
{
	struct ends e;

	world_open(&w);
	e = connect_ends(NULL, NULL, 1);
	check_connected(&e, 1);
	CHECK_INT(w.dummy[1].last_rtr.path_mtu, IBV_MTU_4096);
	CHECK_INT(w.dummy[1].last_rtr.min_rnr_timer, 12);
	CHECK_INT(w.dummy[1].last_rts.rnr_retry, 7);
	CHECK_INT(w.dummy[1].last_rts.timeout, 14);
	CHECK_INT(w.dummy[1].last_rts.retry_cnt, 7);
	CHECK_INT(w.dummy[1].last_rtr.ah_attr.is_global, 1);
	CHECK_INT(w.dummy[1].last_rtr.ah_attr.grh.traffic_class, 0);
	CHECK(lines_contain("connected: protocol 1"));
	close_ends(&e);
	world_close(&w);
}

/* Several rails: as many as the poorer end has; the rest of the richer one's goes. */
static void rails_of_the_poorer_end(void)
{
	struct ha_comm_opts two = { .traffic_class = 96, .nmore = 1, .more = { 1 } };
	struct ha_comm_opts bad = { .nmore = 1, .more = { 9 } };
	struct ends e;
	char other[HA_HANDLE_MAX];

	world_open(&w);
	e = connect_ends(&two, &two, 1);
	check_connected(&e, 2);
	CHECK_INT(w.dummy[1].last_rtr.ah_attr.grh.traffic_class, 96);
	close_ends(&e);
	e = connect_ends(&two, NULL, 1);
	check_connected(&e, 1);
	close_ends(&e);
	e = connect_ends(NULL, &two, 1);
	check_connected(&e, 1);
	close_ends(&e);
	CHECK_INT(ha_listen(w.a, 0, &bad, other, &e.listen), -EINVAL);
	bad.nmore = -1;
	CHECK_INT(ha_listen(w.a, 0, &bad, other, &e.listen), -EINVAL);
	bad.nmore = HA_MAX_RAILS;
	CHECK_INT(ha_connect(w.b, 0, &bad, handle, &e.send), 0);
	ha_ctx_progress(w.b);
	CHECK_INT(ha_connect(w.b, 0, &bad, handle, &e.send), -EINVAL);
	CHECK_INT(ha_listen(w.a, 7, NULL, other, &e.listen), -EINVAL);
	world_close(&w);
}

/* What NCCL is given of a device. */
static void properties_of_a_device(void)
{
	struct ha_dev_props p;

	world_open(&w);
	CHECK_INT(ha_ctx_ndevices(w.a), 2);
	CHECK_INT(ha_ctx_device(w.a, 2, &p), -EINVAL);
	CHECK_INT(ha_ctx_device(w.a, -1, &p), -EINVAL);
	CHECK_INT(ha_ctx_device(w.a, 1, &p), 0);
	CHECK_TEXT(p.name, "dummy1");
	CHECK(!p.pci_path && p.guid == 2 && p.port == 1 && p.speed_mbps > 0);
	CHECK(p.ptr_support & HA_MEM_HOST && !p.reg_is_global);
	CHECK_INT(p.max_comms, 227);
	CHECK_INT(p.max_recvs, 8);
	CHECK(p.max_p2p_bytes >= 1u << 31);
	world_close(&w);
}

/* Any pieces, any pauses. */
static void any_pieces_and_pauses(void)
{
	for (unsigned piece = 1; piece < 100; piece += piece < 20 ? 1 : 13)
		for (unsigned stall = 0; stall < 4; stall += 2) {
			struct ends e;

			world_open(&w);
			w.net.piece = piece;
			w.net.stall = stall;
			e = connect_ends(NULL, NULL, 30);
			check_connected(&e, 1);
			close_ends(&e);
			world_close(&w);
		}
}

/* Two connectors at one listener, at the same time, in the same process; and one more after the
 * first has closed. */
static void two_connectors_at_once(void)
{
	struct ends one = { 0 }, two = { 0 };
	uint32_t qpn;

	world_open(&w);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &one.listen), 0);
	memcpy(handle + HA_HANDLE_MAX, handle, HA_HANDLE_MAX);
	two.listen = one.listen;
	for (int i = 0; i < 100 && !(one.send && two.send && one.recv && two.recv); i++) {
		advance_ends(&one, NULL, handle);
		advance_ends(&two, NULL, handle + HA_HANDLE_MAX);
	}
	CHECK(one.send && two.send && one.recv && two.recv);
	/* The first took the queue pair in the handle, WELCOME named another to the second. */
	qpn = the_handle().qp.qpn;
	CHECK((one.send->b.rail[0].setup.peer.qp.qpn == qpn) +
		      (two.send->b.rail[0].setup.peer.qp.qpn == qpn) ==
	      1);
	CHECK(one.send->b.rail[0].setup.peer.qp.qpn != two.send->b.rail[0].setup.peer.qp.qpn);
	ha_close_send(one.send);
	one.send = NULL;
	for (int i = 0; i < 100 && !one.send; i++) {
		advance_ends(&one, NULL, handle);
		ha_ctx_progress(w.a);
	}
	CHECK(one.send);
	two.listen = NULL;
	close_ends(&two);
	close_ends(&one); /* the third's other end was never accepted */
	world_close(&w);
}

/* One bit of one byte wrong, anywhere: refused, dropped or (in a text or a reserved field) not
 * noticed; never worse. */
static void one_bit_wrong_anywhere(void)
{
	uint64_t total;
	struct ends e;

	world_open(&w);
	e = connect_ends(NULL, NULL, 1);
	check_connected(&e, 1);
	total = w.net.bytes;
	close_ends(&e);
	world_close(&w);
	for (uint64_t at = 1; at <= total; at++)
		for (int bit = 0; bit < 8; bit += 7) {
			world_open(&w);
			w.net.flip_at = at;
			w.net.flip = (uint8_t)(1u << bit);
			e = connect_ends(NULL, NULL, 90);
			CHECK(e.error || (e.send && w.net.bytes >= at));
			close_ends(&e);
			world_close(&w);
		}
}

/* The stream ends at any byte, in order or not: connect says so at once. */
static void stream_ends_at_any_byte(void)
{
	uint64_t total;
	struct ends e;

	world_open(&w);
	e = connect_ends(NULL, NULL, 1);
	total = w.net.bytes;
	close_ends(&e);
	world_close(&w);
	for (uint64_t at = 1; at < total; at++)
		for (int reset = 0; reset < 2; reset++) {
			world_open(&w);
			w.net.cut_at = at;
			w.net.cut_error = reset ? -ECONNRESET : 0;
			e = connect_ends(NULL, NULL, 5);
			/* With READY under way the connector may have what it needs. */
			CHECK(e.error == -ECONNRESET ||
			      (e.send && at > total - sizeof(struct ha_msg_ready)));
			CHECK(!e.recv);
			close_ends(&e);
			world_close(&w);
		}
}

/* The listener's answers to whoever is not a peer. */
static void unknown_peers(void)
{
	struct ha_msg_header half = { HA_MSG_MAGIC, 1, HA_MSG_HELLO, 168, 0 };
	struct ha_msg_bye bye = { { HA_MSG_MAGIC, 1, HA_MSG_BYE, sizeof(bye), 0 }, 0 };
	struct ha_wire_handle h;
	struct ha_oob_conn *s[5];
	struct ends e = { 0 };
	char byte;

	world_open(&w);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &e.listen), 0);
	h = the_handle();
	for (int i = 0; i < 5; i++)
		s[i] = oob_mem_dial(&w.net, &h.oob);
	oob_mem_ops.send(s[0], "GET / HTTP/1.0\r\n\r\n", 18);
	oob_mem_ops.send(s[1], &half, sizeof(half));
	oob_mem_ops.send(s[2], &bye, sizeof(bye));
	oob_mem_ops.close(s[3]);
	lines_catch();
	world_run(&w, 1000);
	CHECK(lines_contain("does not use hawser's protocol") &&
	      lines_contain("its first message is no HELLO"));
	CHECK(lines_contain("it disconnected before it identified itself"));
	CHECK_INT(oob_mem_ops.recv(s[0], &byte, 1), 0); /* closed */
	CHECK_INT(oob_mem_ops.recv(s[1], &byte, 1), -EAGAIN);
	world_run(&w, 10000);
	CHECK_INT(oob_mem_ops.recv(s[1], &byte, 1), 0);
	CHECK_INT(oob_mem_ops.recv(s[4], &byte, 1), 0);
	CHECK(lines_contain("it sent nothing for 10 s"));
	CHECK_INT(e.listen->unauthenticated, 0);
	for (int i = 0; i < 100 && !(e.send && e.recv); i++)
		advance_ends(&e, NULL, handle);
	check_connected(&e, 1);
	for (int i = 0; i < 5; i++)
		if (i != 3)
			oob_mem_ops.close(s[i]);
	close_ends(&e);
	world_close(&w);
}

/* A thousand silent incoming connections: bounded, few lines, and a peer still gets through. */
static void a_thousand_silent_peers(void)
{
	static struct ha_oob_conn *s[1000];
	struct ha_wire_handle h;
	struct ends e = { 0 };

	world_open(&w);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &e.listen), 0);
	h = the_handle();
	lines_catch();
	for (int i = 0; i < 1000; i++) {
		s[i] = oob_mem_dial(&w.net, &h.oob);
		if (i % 50 == 0) {
			ha_ctx_progress(w.a);
			CHECK(e.listen->unauthenticated <= 64);
		}
	}
	for (int i = 0; i < 100 && !(e.send && e.recv); i++)
		advance_ends(&e, NULL, handle);
	check_connected(&e, 1);
	CHECK(lines_warnings() <= 10 && lines_contain("sent nothing"));
	world_run(&w, 12000);
	h.oob.port = the_handle().oob.port;
	oob_mem_ops.close(oob_mem_dial(&w.net, &h.oob));
	world_run(&w, 1000);
	CHECK(lines_contain("more connections from peers that did not authenticate"));
	for (int i = 0; i < 1000; i++)
		oob_mem_ops.close(s[i]);
	close_ends(&e);
	world_close(&w);
}

static struct ha_msg_hello a_hello(uint64_t nonce)
{
	struct ha_msg_hello m = {
		.header = { HA_MSG_MAGIC, 1, HA_MSG_HELLO, offsetof(struct ha_msg_hello, rail[1]),
			    0 },
		.nonce = nonce,
		.ring_addr = 4096,
		.version = 1,
		.version_min = 1,
		.nrails = 1,
		.slots = HA_SLOTS,
		.pid = 77,
		.host = "elsewhere",
		.rail = { { .qp = { .qpn = 5, .mtu = 2, .link_layer = IBV_LINK_LAYER_ETHERNET },
			    .name = "x:1" } },
	};

	return m;
}

static struct ha_msg_hello welcome; /* the last one, if that was the answer */

/* Say HELLO as a peer of another make; the type of the answer, 0 = none. `refusal` gets a REFUSE's
 * text. */
static int send_hello(struct ha_msg_hello m, char *refusal)
{
	struct ha_wire_handle h = the_handle();
	struct ha_oob_conn *s = oob_mem_dial(&w.net, &h.oob);
	union {
		struct ha_msg_header header;
		struct ha_msg_refuse refuse;
		struct ha_msg_hello welcome;
	} answer = { 0 };

	oob_mem_ops.send(s, &m, m.header.length);
	world_run(&w, 100);
	oob_mem_ops.recv(s, &answer, sizeof(answer));
	snprintf(refusal, 80, "%s", answer.header.type == HA_MSG_REFUSE ? answer.refuse.text : "");
	welcome = answer.welcome;
	oob_mem_ops.close(s);
	world_run(&w, 100);
	return answer.header.type;
}

/* What the listener makes of peers that are not quite like us. */
static void peers_unlike_us(void)
{
	struct ha_listen *listen;
	struct ha_msg_hello m;
	char text[80];

	world_open(&w);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &listen), 0);
	m = a_hello(listen->nonce);
	CHECK_INT(send_hello(m, text), HA_MSG_WELCOME);
	CHECK_INT(w.dummy[0].last_rtr.path_mtu, IBV_MTU_512); /* the smaller one */
	m.version = 7; /* from the future, but it still has ours */
	CHECK_INT(send_hello(m, text), HA_MSG_WELCOME);
	m.version_min = 5;
	CHECK_INT(send_hello(m, text), HA_MSG_REFUSE);
	CHECK(strstr(text, "protocol version"));
	m = a_hello(listen->nonce);
	m.slots = HA_SLOTS / 2;
	CHECK_INT(send_hello(m, text), HA_MSG_REFUSE);
	CHECK(strstr(text, "slots"));
	m = a_hello(listen->nonce);
	m.rail[0].qp.link_layer = IBV_LINK_LAYER_INFINIBAND;
	CHECK_INT(send_hello(m, text), HA_MSG_REFUSE);
	CHECK(strstr(text, "InfiniBand"));
	lines_catch();
	CHECK_INT(send_hello(a_hello(listen->nonce + 1), text), 0);
	CHECK(lines_contain("its nonce is not this listener's"));
	ha_close_listen(listen);
	world_close(&w);
}

/* Two hosts, each with one port on a switch, by the file of `ha switches`. */
static void world_of_switches(const char *path)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	fprintf(f, "# hawser switches 1\ndummy0:1 mac:1 swp1 lldpd -\n");
	fclose(f);
	world_prepare(&w);
	w.config.enable_backup = true;
	snprintf(w.config.switches, sizeof(w.config.switches), "%s", path);
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
}

/* HELLO and WELCOME say on which switch the ports are; a listener that knows of no switches is told
 * nothing that it would take for a rail, and what it says is taken for nothing else. */
static void switches_are_exchanged(void)
{
	uint32_t leaf = ha_leaf_of_switch("mac:1");
	char path[] = "/tmp/hawser-bootstrap-XXXXXX", text[80];
	struct ha_listen *listen;
	struct ha_msg_hello m;
	struct ends e;

	close(mkstemp(path));
	world_of_switches(path);
	e = connect_ends(NULL, NULL, 1);
	CHECK(e.send && e.recv);
	CHECK(e.send->b.terms.flags & HA_FLAG_SWITCHES);
	CHECK_INT(ha_peer_place(&e.send->b, &e.send->b.rail[0].setup.peer), leaf);
	CHECK_INT(ha_peer_place(&e.recv->b, &e.recv->b.rail[0].setup.peer), leaf);
	/* as the answer of a next incarnation has it: no key is forgotten for it */
	CHECK_INT(e.send->b.rail[0].setup.peer.keys, leaf << 8);
	close_ends(&e);

	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &listen), 0);
	m = a_hello(listen->nonce);
	m.flags = HA_FLAG_FAILOVER | HA_FLAG_PAIRS | HA_FLAG_MOVES;
	CHECK_INT(send_hello(m, text), HA_MSG_WELCOME);
	CHECK_INT(welcome.rail[0].keys, 0);
	m.flags |= HA_FLAG_SWITCHES;
	CHECK_INT(send_hello(m, text), HA_MSG_WELCOME);
	CHECK_INT(welcome.rail[0].keys, leaf << 8);
	ha_close_listen(listen);
	world_close(&w);
	CHECK_INT(unlink(path), 0);
}

static void ece_is_negotiated(void)
{
	struct ends e;

	world_prepare(&w);
	w.dummy[0].ece = 3;
	w.dummy[1].ece = 5;
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	e = connect_ends(NULL, NULL, 1);
	check_connected(&e, 1);
	CHECK_INT(w.dummy[0].last_ece, 5); /* the connector's offer */
	CHECK_INT(w.dummy[1].last_ece, 3); /* the listener's answer */
	close_ends(&e);
	world_close(&w);
}

/* InfiniBand: by LID within a subnet, by the routable part of the GID beyond. */
static void infiniband_addresses(void)
{
	for (int routed = 0; routed < 2; routed++) {
		struct ends e;

		world_prepare(&w);
		w.dummy[0].devices[0].ports[0] = fake_ib_port(11);
		w.dummy[1].devices[0].ports[0] = fake_ib_port(12);
		w.dummy[0].devices[0].ports[0].gids[0].address =
			routed ? "fe80:0:33:9::1" : "fe80::1";
		w.dummy[1].devices[0].ports[0].gids[0].address = "fe80::2";
		CHECK_INT(world_open_over(&w, NULL, NULL), 0);
		e = connect_ends(NULL, NULL, 1);
		check_connected(&e, 1);
		CHECK_INT(w.dummy[1].last_rtr.ah_attr.is_global, routed);
		CHECK_INT(w.dummy[1].last_rtr.ah_attr.dlid, routed ? 0x33 : 11);
		close_ends(&e);
		world_close(&w);
	}
}

/* Never an answer, in any of the places where one is waited for. */
static void no_answer_anywhere(void)
{
	struct ha_wire_handle h;
	struct ends e = { 0 };
	char copy[HA_HANDLE_MAX] = { 0 };

	/* The network swallows the dial. */
	world_open(&w);
	w.net.silent = 1;
	e = connect_ends(NULL, NULL, 70);
	CHECK_INT(e.error, -ETIMEDOUT);
	CHECK(lines_contain("no answer in time"));
	close_ends(&e);
	/* The dial is refused, then nobody is reachable. */
	w.net.silent = 0;
	w.net.refuse = -ECONNREFUSED;
	e = connect_ends(NULL, NULL, 70);
	CHECK_INT(e.error, -ECONNREFUSED);
	close_ends(&e);
	w.net.refuse = -EHOSTUNREACH;
	e = connect_ends(NULL, NULL, 70);
	CHECK_INT(e.error, -EHOSTUNREACH);
	close_ends(&e);
	w.net.refuse = -EACCES;
	e = connect_ends(NULL, NULL, 70);
	CHECK_INT(e.error, -EACCES);
	close_ends(&e);
	w.net.refuse = 0;
	/* Somebody takes the connection and says nothing: host a, not at work. */
	memset(&e, 0, sizeof(e));
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &e.listen), 0);
	for (int i = 0; i < 7000 && !e.error; i++) {
		e.error = ha_connect(w.b, 0, NULL, handle, &e.send);
		w.clock.now += 10 * HA_NS_PER_MS;
	}
	CHECK_INT(e.error, -ETIMEDOUT);
	CHECK(lines_contain("waiting for WELCOME"));
	/* Foreign handles. */
	memcpy(&h, handle, sizeof(h));
	h.magic = 5;
	memcpy(copy, &h, sizeof(h));
	CHECK_INT(ha_connect(w.b, 0, NULL, copy, &e.send), -EPROTO);
	CHECK_INT(ha_connect(w.b, 5, NULL, handle, &e.send), -EINVAL);
	close_ends(&e);
	world_close(&w);
}

/* A dial that works only at the third try. */
static void time_limits(void)
{
	struct ends e = { 0 };

	world_open(&w);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &e.listen), 0);
	w.net.refuse = -ECONNREFUSED;
	for (int i = 0; i < 50; i++) {
		advance_ends(&e, NULL, handle);
		w.clock.now += 10 * HA_NS_PER_MS;
	}
	CHECK_INT(e.error, 0);
	w.net.refuse = 0;
	for (int i = 0; i < 500 && !(e.send && e.recv); i++) {
		advance_ends(&e, NULL, handle);
		w.clock.now += 10 * HA_NS_PER_MS;
	}
	check_connected(&e, 1);
	close_ends(&e);
	world_close(&w);
}

/* Everything closed after n steps of both ends, in three ways. */
static void ends_everywhere(void)
{
	for (int n = 0; n < 40; n++)
		for (int way = 0; way < 3; way++) {
			struct ends e = { 0 };

			world_open(&w);
			w.net.piece = 20;
			w.net.stall = 2;
			CHECK_INT(ha_listen(w.a, 0, NULL, handle, &e.listen), 0);
			for (int i = 0; i < n; i++)
				advance_ends(&e, NULL, handle);
			if (way == 0) {
				close_ends(&e);
			} else if (way == 1) {
				ha_close_listen(e.listen);
				for (int i = 0; i < 500 && !e.send && !e.error; i++) {
					e.error = ha_connect(w.b, 0, NULL, handle, &e.send);
					w.clock.now += 10 * HA_NS_PER_MS;
				}
				CHECK(e.send || e.error);
			} /* way 2: the contexts end with everything open */
			world_close(&w);
		}
}

/* Descriptors run out: listeners rest, then take the connection. */
static void no_descriptors(void)
{
	struct ends e = { 0 };

	world_open(&w);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &e.listen), 0);
	w.net.accept_error = -EMFILE;
	lines_catch();
	for (int i = 0; i < 100 && !(e.send && e.recv); i++) {
		advance_ends(&e, NULL, handle);
		w.clock.now += 10 * HA_NS_PER_MS;
	}
	check_connected(&e, 1);
	CHECK(lines_contain("cannot accept a connection"));
	close_ends(&e);
	world_close(&w);
}

/* A device that takes little inline data gets little. */
static void small_devices(void)
{
	static const uint32_t limits[] = { 128, 64, 10 };

	for (int i = 0; i < 3; i++) {
		struct ends e;

		world_prepare(&w);
		w.dummy[0].inline_limit = limits[i];
		CHECK_INT(world_open_over(&w, NULL, NULL), 0);
		e = connect_ends(NULL, NULL, 1);
		check_connected(&e, 1);
		CHECK_INT(e.recv->b.rail[0].max_inline, limits[i] < 64 ? 0 : 64);
		CHECK_INT(e.send->b.rail[0].max_inline, 64);
		close_ends(&e);
		world_close(&w);
	}
}

/* Both ends work for a virtual second, and nobody asks for the connections of b. */
static void progress_for_a_second(struct ends *one, struct ends *other)
{
	for (int i = 0; i < 100; i++) {
		ha_ctx_progress(w.b);
		if (one->listen && !one->recv)
			CHECK_INT(ha_accept(one->listen, &one->recv), 0);
		if (!other->recv)
			CHECK_INT(ha_accept(other->listen, &other->recv), 0);
		w.clock.now += 10 * HA_NS_PER_MS;
	}
}

/* As NCCL does where GPUs share connections (PXN): it connects to two listeners at once and takes
 * one of the two. The listening end must get that one, and not the other. */
static void one_of_two(void)
{
	struct ends taken = { 0 }, left = { 0 };
	char other[HA_HANDLE_MAX];

	world_open(&w);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &left.listen), 0);
	CHECK_INT(ha_listen(w.a, 0, NULL, other, &taken.listen), 0);
	CHECK_INT(ha_connect(w.b, 0, NULL, handle, &left.send), 0);
	CHECK_INT(ha_connect(w.b, 0, NULL, other, &taken.send), 0);
	progress_for_a_second(&left, &taken);
	CHECK(!left.recv && !taken.recv);
	for (int i = 0; i < 100 && !(taken.send && taken.recv); i++)
		advance_ends(&taken, NULL, other);
	progress_for_a_second(&left, &taken);
	check_connected(&taken, 1);
	CHECK(!left.recv);
	lines_catch();
	ha_close_listen(left.listen);
	left.listen = NULL;
	progress_for_a_second(&left, &taken);
	CHECK(!lines_contain("failed"));
	CHECK_INT(ha_connect(w.b, 0, NULL, handle, &left.send), -ECONNRESET);
	CHECK(!left.send && lines_contain("failed while NCCL did not ask for it"));
	close_ends(&taken);
	world_close(&w);
}

int main(void)
{
	lines_catch();
	one_rail_each();
	one_of_two();
	rails_of_the_poorer_end();
	properties_of_a_device();
	any_pieces_and_pauses();
	two_connectors_at_once();
	unknown_peers();
	a_thousand_silent_peers();
	peers_unlike_us();
	switches_are_exchanged();
	ece_is_negotiated();
	infiniband_addresses();
	no_answer_anywhere();
	time_limits();
	ends_everywhere();
	no_descriptors();
	small_devices();
	stream_ends_at_any_byte();
	one_bit_wrong_anywhere();
	return 0;
}
