/* SPDX-License-Identifier: BSD-3-Clause */
/* The live out-of-band stream: both address families, refusal, the end of a stream, last words. */
#include "plugin/channel/oob_tcp.h"

#include "base/check.h"
#include "base/config.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static const struct ha_oob_ops *tcp = &ha_oob_tcp_ops;

/* The first result that is not "not now"; a minute at most. */
#define WAIT(expression)                                                                   \
	({                                                                                 \
		long r_ = -EAGAIN;                                                         \
		for (int i_ = 0; i_ < 400000 && r_ == -EAGAIN; i_++) {                     \
			r_ = (long)(expression);                                           \
			if (r_ == -EAGAIN)                                                 \
				nanosleep(&(struct timespec) { .tv_nsec = 100000 }, NULL); \
		}                                                                          \
		r_;                                                                        \
	})

static int open_net(const char *ifname, int family, struct ha_oob_tcp **net)
{
	struct ha_config config;

	ha_config_defaults(&config);
	snprintf(config.socket_ifname, sizeof(config.socket_ifname), "%s", ifname);
	config.socket_family = family;
	return ha_oob_tcp_open(&config, net);
}

static void stream(struct ha_oob_tcp *net)
{
	struct ha_oob_conn *l, *a, *b;
	struct ha_wire_addr addr;
	char name[HA_OOB_NAME_MAX], byte, big[65536] = { 1 };
	long sent = 0, n;

	CHECK_INT(tcp->listen(net, &l, &addr), 0);
	CHECK(addr.port && tcp->fd(l) >= 0);
	tcp->peer(l, name);
	CHECK(strchr(name, ':'));
	CHECK_INT(tcp->accept(l, &b), -EAGAIN);
	CHECK_INT(tcp->connect(net, &addr, &a), 0);
	CHECK_INT(WAIT(tcp->connected(a)), 0);
	CHECK_INT(WAIT(tcp->accept(l, &b)), 0);
	tcp->peer(b, name);
	CHECK(strchr(name, ':'));
	CHECK_INT(tcp->recv(b, &byte, 1), -EAGAIN);
	CHECK_INT(tcp->send(a, "x", 1), 1);
	CHECK_INT(WAIT(tcp->recv(b, &byte, 1)), 1);
	CHECK_INT(byte, 'x');
	/* Until the pipe is full, then again when it is not. */
	while ((n = tcp->send(a, big, sizeof(big))) > 0)
		sent += n;
	CHECK_INT(n, -EAGAIN);
	while (sent > 0) {
		n = WAIT(tcp->recv(b, big, sizeof(big)));
		CHECK(n > 0);
		sent -= n;
	}
	/* Last words arrive although the one who says them has unread bytes. */
	CHECK_INT(tcp->send(b, "unread", 6), 6);
	CHECK_INT(tcp->send(a, "bye", 3), 3);
	tcp->close(a);
	CHECK_INT(WAIT(tcp->recv(b, big, 3)), 3);
	CHECK_INT(WAIT(tcp->recv(b, &byte, 1)), 0);
	tcp->close(b);
	tcp->close(l);
	/* Nobody there. */
	CHECK_INT(tcp->connect(net, &addr, &a), 0);
	CHECK_INT(WAIT(tcp->connected(a)), -ECONNREFUSED);
	tcp->peer(a, name);
	CHECK_TEXT(name, "?");
	tcp->close(a);
}

int main(void)
{
	struct ha_oob_tcp *net;

	CHECK_INT(open_net("=lo", HA_SOCKET_INET, &net), 0);
	stream(net);
	ha_oob_tcp_close(net);
	CHECK_INT(open_net("=nosuch", HA_SOCKET_ANY, &net), -ENODEV);
	if (open_net("", HA_SOCKET_INET6, &net)) {
		printf("no IPv6 address on this machine: IPv4 only\n");
		return 0;
	}
	stream(net);
	ha_oob_tcp_close(net);
	return 0;
}
