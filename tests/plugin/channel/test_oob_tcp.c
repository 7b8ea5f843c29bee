/* SPDX-License-Identifier: BSD-3-Clause */
/* The live out-of-band stream: both address families, refusal, the end of a stream, last words. */
#include "plugin/channel/oob_tcp.h"

#include "base/check.h"
#include "base/config.h"
#include "tests/base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUTE_TRIES 500 /* 10 ms apart */

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

static int option_of(struct ha_oob_conn *conn, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK(!getsockopt(tcp->fd(conn), level, name, &value, &len));
	return value;
}

/* A machine that has lost power is noticed within 30 s, small messages go at once, and nobody waits
 * in a call or takes the socket along through exec(). */
static void check_options(struct ha_oob_conn *conn)
{
	CHECK(option_of(conn, IPPROTO_TCP, TCP_NODELAY));
	CHECK(option_of(conn, SOL_SOCKET, SO_KEEPALIVE));
	CHECK_INT(option_of(conn, IPPROTO_TCP, TCP_KEEPIDLE), 10);
	CHECK_INT(option_of(conn, IPPROTO_TCP, TCP_KEEPINTVL), 5);
	CHECK_INT(option_of(conn, IPPROTO_TCP, TCP_KEEPCNT), 4);
	CHECK_INT(option_of(conn, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
	CHECK(fcntl(tcp->fd(conn), F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(tcp->fd(conn), F_GETFD) & FD_CLOEXEC);
}

/* The next descriptor that there is. */
static int next_fd(void)
{
	int fd = dup(0);

	CHECK(fd >= 0);
	close(fd);
	return fd;
}

/* A child after fork() holds none of the parent's sockets and may close what it knows of; the
 * parent's stream goes on. */
static void check_fork(struct ha_oob_tcp *net, struct ha_oob_conn *a, struct ha_oob_conn *b)
{
	struct ha_wire_addr addr;
	char byte;
	int status, fd = tcp->fd(a);
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		bool closed = fcntl(fd, F_GETFD) < 0 && tcp->fd(a) == -1 && tcp->fd(b) == -1;

		CHECK_INT(tcp->connected(a), -EBADF);
		CHECK_INT(tcp->send(a, "x", 1), -EBADF);
		CHECK_INT(tcp->recv(a, &byte, 1), -EBADF);
		tcp->close(a);
		tcp->close(b);
		CHECK_INT(tcp->listen(net, &a, &addr), 0); /* it may have its own */
		tcp->close(a);
		_exit(closed ? 0 : 1);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	CHECK_INT(tcp->send(a, "f", 1), 1);
	CHECK_INT(WAIT(tcp->recv(b, &byte, 1)), 1);
	CHECK_INT(byte, 'f');
}

/* Every unread byte is read at the close, or the kernel would send a reset: whoever connected. */
static void last_bytes_behind_unread(struct ha_oob_conn *a, struct ha_oob_conn *b)
{
	char unread[2000] = { 0 }, last[3], byte;

	CHECK_INT(tcp->send(b, unread, sizeof(unread)), sizeof(unread));
	CHECK_INT(WAIT(recv(tcp->fd(a), unread, sizeof(unread), MSG_PEEK | MSG_DONTWAIT) ==
				       sizeof(unread)
			       ? 0
			       : -EAGAIN),
		  0);
	CHECK_INT(tcp->send(a, "bye", 3), 3);
	tcp->close(a);
	CHECK_INT(WAIT(tcp->recv(b, last, 3)), 3);
	CHECK_INT(WAIT(tcp->recv(b, &byte, 1)), 0);
	CHECK_INT(option_of(b, SOL_SOCKET, SO_ERROR), 0); /* in order: no reset behind it */
	tcp->close(b);
}

static void connect_both(struct ha_oob_tcp *net, struct ha_oob_conn *l,
			 const struct ha_wire_addr *addr, struct ha_oob_conn **a,
			 struct ha_oob_conn **b)
{
	int err = -ENETUNREACH;

	/* a link-local route may be away for a moment (enter_link_local) */
	for (int i = 0; i < ROUTE_TRIES && err == -ENETUNREACH; i++) {
		if (i) {
			tcp->close(*a);
			usleep(10000);
		}
		CHECK_INT(tcp->connect(net, addr, a), 0);
		err = WAIT(tcp->connected(*a));
	}
	CHECK_INT(err, 0);
	CHECK_INT(WAIT(tcp->accept(l, b)), 0);
}

/* Each end is called by the other's address. */
static void check_names(struct ha_oob_conn *l, struct ha_oob_conn *a, struct ha_oob_conn *b)
{
	char listener[HA_OOB_NAME_MAX], of_a[HA_OOB_NAME_MAX], of_b[HA_OOB_NAME_MAX];

	tcp->peer(l, listener);
	tcp->peer(a, of_a);
	tcp->peer(b, of_b);
	CHECK(strchr(of_b, ':'));
	CHECK_TEXT(of_a, listener);
	CHECK(strcmp(of_b, listener)); /* the connector's port is another */
}

/* An address is written where it belongs, and nowhere else. */
static void check_address(struct ha_oob_tcp *net, int family)
{
	struct {
		struct ha_wire_addr addr;
		char behind[8];
	} is;
	struct ha_oob_conn *l;

	memset(&is, 0x55, sizeof(is));
	CHECK_INT(tcp->listen(net, &l, &is.addr), 0);
	CHECK_INT(is.addr.family, family == HA_SOCKET_INET ? 4 : 6);
	CHECK(family == HA_SOCKET_INET ? is.addr.ip[0] == 127 : is.addr.ip[0] || is.addr.ip[15]);
	CHECK_INT(is.addr.reserved, 0);
	CHECK_INT(is.addr.scope, 0);
	for (unsigned i = family == HA_SOCKET_INET ? 4 : 16; i < sizeof(is.addr.ip); i++)
		CHECK_INT(is.addr.ip[i], 0);
	for (unsigned i = 0; i < sizeof(is.behind); i++)
		CHECK_INT(is.behind[i], 0x55);
	tcp->close(l);
}

static void check_stream(struct ha_oob_tcp *net)
{
	struct ha_oob_conn *l, *a, *b;
	struct ha_wire_addr addr, local;
	char name[HA_OOB_NAME_MAX], byte, big[65536] = { 1 };
	long sent = 0, n;

	CHECK_INT(tcp->listen(net, &l, &addr), 0);
	CHECK(addr.port && tcp->fd(l) >= 0);
	tcp->local(net, &local);
	CHECK_INT(local.family, addr.family);
	CHECK(!memcmp(local.ip, addr.ip, sizeof(addr.ip)));
	tcp->peer(l, name);
	CHECK(strchr(name, ':'));
	CHECK_INT(tcp->accept(l, &b), -EAGAIN);
	connect_both(net, l, &addr, &a, &b);
	check_names(l, a, b);
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
	check_options(a);
	check_options(b);
	check_fork(net, a, b);
	last_bytes_behind_unread(a, b);
	connect_both(net, l, &addr, &a, &b);
	last_bytes_behind_unread(b, a);
	tcp->close(l);
	/* Nobody there. */
	CHECK_INT(tcp->connect(net, &addr, &a), 0);
	CHECK_INT(WAIT(tcp->connected(a)), -ECONNREFUSED);
	tcp->peer(a, name);
	CHECK_TEXT(name, "?");
	tcp->close(a);
}

/* A namespace whose loopback interface has an fe80:: address and no other of IPv6. The kernel makes
 * the address's route in its own time: on a busy machine it is not there at once (ENETUNREACH). */
static bool enter_link_local(void)
{
	return !unshare(CLONE_NEWNET) &&
	       !system("ip link set lo up && ip addr del ::1/128 dev lo && "
		       "ip addr add fe80::1/64 dev lo nodad && "
		       "n=0; for i in $(seq 500); do "
		       "ip -6 route get fe80::1 oif lo >/dev/null 2>&1 && n=$((n+1)) || n=0; "
		       "[ $n = 10 ] && exit 0; sleep 0.01; done; exit 1");
}

/* A link-local address travels without its link: the peer looks for it on its own. */
static void link_local(void)
{
	struct ha_oob_tcp *net;
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		if (!enter_link_local())
			_exit(77);
		CHECK_INT(open_net("=lo", HA_SOCKET_INET6, &net), 0);
		check_stream(net);
		ha_oob_tcp_close(net);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 77));
	if (status)
		printf("no network namespace for us, or no IPv6 in it: link-local was not tried\n");
}

/* What was opened, or could not be, is given back: a process may open and close the plugin as often
 * as it likes. */
static void gives_back(void)
{
	struct ha_oob_conn *conn;
	struct ha_wire_addr addr;
	struct ha_oob_tcp *net;
	size_t used = 0;

	for (int i = 0; i < 20; i++) {
		CHECK_INT(open_net("=lo", HA_SOCKET_INET, &net), 0);
		CHECK_INT(tcp->listen(net, &conn, &addr), 0);
		tcp->close(conn);
		ha_oob_tcp_close(net);
		CHECK_INT(open_net("=nosuch", HA_SOCKET_ANY, &net), -ENODEV);
		CHECK(!net);
		if (i == 9) /* what is allocated once is, and malloc's own lists are full */
			used = mallinfo2().uordblks;
	}
	CHECK_INT(mallinfo2().uordblks, used);
}

/* A link-local address means nothing over IPv4: refused at once, and no socket is left behind. */
static void refused_at_once(void)
{
	const struct ha_wire_addr there = { .family = 6,
					    .port = 9,
					    .ip = { 0xfe, 0x80, [15] = 1 } };
	/* nor is a group of hosts a peer */
	const struct ha_wire_addr group = { .family = 4, .port = 9, .ip = { 224, 0, 0, 1 } };
	struct ha_oob_conn *conn;
	struct ha_oob_tcp *net;
	int fd = next_fd();

	CHECK_INT(open_net("=lo", HA_SOCKET_INET, &net), 0);
	CHECK(tcp->connect(net, &there, &conn) < 0);
	CHECK(tcp->connect(net, &group, &conn) < 0);
	CHECK_INT(next_fd(), fd);
	ha_oob_tcp_close(net);
}

/* A process without standard input: 0 is a descriptor as good as any. */
static void descriptor_zero(struct ha_oob_tcp *net)
{
	struct ha_oob_conn *l, *a, *b;
	struct ha_wire_addr addr;
	int kept = dup(0);

	CHECK(kept > 0);
	close(0);
	CHECK_INT(tcp->listen(net, &l, &addr), 0);
	CHECK_INT(tcp->fd(l), 0);
	tcp->close(l);
	CHECK(fcntl(0, F_GETFD) < 0);
	CHECK_INT(dup2(kept, 0), 0);
	CHECK_INT(tcp->listen(net, &l, &addr), 0);
	close(0);
	CHECK_INT(tcp->connect(net, &addr, &a), 0);
	CHECK_INT(tcp->fd(a), 0);
	CHECK_INT(WAIT(tcp->connected(a)), 0);
	CHECK_INT(WAIT(tcp->accept(l, &b)), 0);
	tcp->close(b);
	tcp->close(a);
	CHECK_INT(dup2(kept, 0), 0);
	CHECK_INT(tcp->connect(net, &addr, &a), 0);
	close(0);
	CHECK_INT(WAIT(tcp->accept(l, &b)), 0);
	CHECK_INT(tcp->fd(b), 0);
	tcp->close(b);
	tcp->close(a);
	tcp->close(l);
	CHECK_INT(dup2(kept, 0), 0);
	close(kept);
}

/* A process that may have no more descriptors: each call says so, and a connection that waits is
 * accepted later. */
static void no_descriptor(struct ha_oob_tcp *net)
{
	struct rlimit limit, none;
	struct ha_oob_conn *l, *a, *b;
	struct ha_wire_addr addr;

	CHECK_INT(tcp->listen(net, &l, &addr), 0);
	CHECK_INT(tcp->connect(net, &addr, &a), 0);
	CHECK_INT(WAIT(tcp->connected(a)), 0);
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = (rlim_t)next_fd();
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	CHECK_INT(tcp->accept(l, &b), -EMFILE);
	CHECK_INT(tcp->connect(net, &addr, &b), -EMFILE);
	CHECK_INT(tcp->listen(net, &b, &addr), -EMFILE);
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK_INT(WAIT(tcp->accept(l, &b)), 0);
	tcp->close(b);
	tcp->close(a);
	tcp->close(l);
}

/* The address that was chosen at the start is gone: no socket is left behind. */
static void address_gone(void)
{
	struct ha_oob_tcp *net;
	struct ha_oob_conn *l;
	struct ha_wire_addr addr;
	int status, fd;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		if (unshare(CLONE_NEWNET) || system("ip link set lo up"))
			_exit(77);
		CHECK_INT(open_net("=lo", HA_SOCKET_INET, &net), 0);
		if (system("ip addr del 127.0.0.1/8 dev lo"))
			_exit(77);
		fd = next_fd();
		CHECK_INT(tcp->listen(net, &l, &addr), -EADDRNOTAVAIL);
		CHECK_INT(next_fd(), fd);
		ha_oob_tcp_close(net);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 77));
	if (status)
		printf("no network namespace for us: a lost address was not tried\n");
}

int main(void)
{
	struct ha_oob_tcp *net;

	lines_catch(); /* of what cannot be opened */
	link_local();
	address_gone();
	gives_back();
	refused_at_once();
	CHECK_INT(open_net("=lo", HA_SOCKET_INET, &net), 0);
	check_stream(net);
	check_address(net, HA_SOCKET_INET);
	descriptor_zero(net);
	no_descriptor(net);
	ha_oob_tcp_close(net);
	if (open_net("", HA_SOCKET_INET6, &net)) {
		printf("no IPv6 address on this machine: IPv4 only\n");
		return 0;
	}
	check_stream(net);
	check_address(net, HA_SOCKET_INET6);
	ha_oob_tcp_close(net);
	return 0;
}
