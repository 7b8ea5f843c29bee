/* SPDX-License-Identifier: BSD-3-Clause */
/* Real sockets: who is refused, and when a call is too late; what an ended process leaves; signals;
 * whole messages. */
#include "base/socket.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define LONG_MS 300000 /* that only a hang reaches */
#define MESSAGE (4 << 20)

static char folder[] = "/tmp/ha-socket-XXXXXX";
static char path[64]; /* in it */

static int64_t in_ms(int64_t ms)
{
	return ha_monotonic_ms() + ms;
}

static void check_flags(int fd)
{
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static int option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK(!getsockopt(fd, level, name, &value, &len));
	return value;
}

/* A listener at a port of the loopback interface, and its address. */
static int listen_locally(union ha_sockaddr *bound)
{
	union ha_sockaddr at;
	int fd;

	CHECK_INT(ha_sockaddr_parse("127.0.0.1:0", &at), 0);
	fd = ha_socket_listen(&at, bound);
	check_flags(fd);
	CHECK(bound->in.sin_port);
	return fd;
}

static int accept_next(int listener)
{
	int fd;

	CHECK_INT(ha_socket_wait(listener, POLLIN, in_ms(LONG_MS)), 0);
	fd = ha_socket_accept(listener);
	check_flags(fd);
	return fd;
}

static void connect_pair(int pair[2])
{
	union ha_sockaddr at;
	int listener = listen_locally(&at);

	CHECK_INT(ha_socket_accept(listener), -EAGAIN);
	pair[0] = ha_socket_connect(&at, NULL, in_ms(LONG_MS));
	check_flags(pair[0]);
	pair[1] = accept_next(listener);
	close(listener);
}

static void options_are_set(void)
{
	const struct ha_keepalive keepalive = { 10, 5, 4, 30000 };
	int pair[2];

	connect_pair(pair);
	CHECK(option_of(pair[0], IPPROTO_TCP, TCP_NODELAY));
	CHECK(!option_of(pair[0], SOL_SOCKET, SO_KEEPALIVE));
	ha_socket_tune(pair[1], &keepalive);
	CHECK(option_of(pair[1], IPPROTO_TCP, TCP_NODELAY));
	CHECK(option_of(pair[1], SOL_SOCKET, SO_KEEPALIVE));
	CHECK_INT(option_of(pair[1], IPPROTO_TCP, TCP_KEEPIDLE), 10);
	CHECK_INT(option_of(pair[1], IPPROTO_TCP, TCP_KEEPINTVL), 5);
	CHECK_INT(option_of(pair[1], IPPROTO_TCP, TCP_KEEPCNT), 4);
	CHECK_INT(option_of(pair[1], IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
	close(pair[0]);
	close(pair[1]);
}

/* At a port that somebody has bound, and nobody listens at. */
static void nobody_listens(void)
{
	int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	union ha_sockaddr at = { .in = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);

	CHECK(!bind(holder, &at.sa, ha_sockaddr_len(&at)) && !getsockname(holder, &at.sa, &len));
	CHECK_INT(ha_socket_connect(&at, NULL, in_ms(LONG_MS)), -ECONNREFUSED);
	CHECK_INT(ha_socket_listen(&at, NULL), -EADDRINUSE);
	close(holder);
}

static bool is_full(int listener)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	CHECK(!getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &len));
	return info.tcpi_unacked > info.tcpi_sacked; /* of a listener: its queue, and the limit */
}

/* A listener whose queue is full does not answer whoever connects. */
static void connecting_ends_in_time(void)
{
	union ha_sockaddr at;
	int listener = listen_locally(&at), fd[8], n = 0;
	int64_t from;

	CHECK(!listen(listener, 0));
	while (!is_full(listener)) {
		CHECK(n < 8);
		fd[n] = ha_socket_connect(&at, NULL, in_ms(LONG_MS));
		CHECK(fd[n++] >= 0);
	}
	from = ha_monotonic_ms();
	CHECK_INT(ha_socket_connect(&at, NULL, from + 100), -ETIMEDOUT);
	CHECK(ha_monotonic_ms() >= from + 100);
	CHECK_INT(ha_socket_connect(&at, NULL, from), -ETIMEDOUT);
	while (n)
		close(fd[--n]);
	close(listener);
}

/* Who listens at all addresses of IPv6 does so at those of IPv4. */
static void both_families(void)
{
	union ha_sockaddr at, bound, v4 = { .in.sin_family = AF_INET };
	int listener, fd;

	CHECK_INT(ha_sockaddr_parse("[::]:0", &at), 0);
	listener = ha_socket_listen(&at, &bound);
	if (listener < 0) {
		printf("no IPv6 on this machine: %s\n", strerror(-listener));
		return;
	}
	v4.in.sin_port = bound.in6.sin6_port;
	v4.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = ha_socket_connect(&v4, NULL, in_ms(LONG_MS));
	CHECK(fd >= 0);
	close(accept_next(listener));
	close(fd);
	close(listener);
}

static int interruptions;

static void count_interruption(int number)
{
	static const char text[] =
		"test_socket.c: interrupted 60000 times, and the limit of 100 ms is not over\n";

	(void)number;
	if (++interruptions < 60000)
		return;
	(void)!write(2, text, sizeof(text) - 1);
	_exit(1);
}

static void deadline_holds_with_signals(void)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	struct sigaction act = { .sa_handler = count_interruption };
	int pair[2];
	int64_t from;
	char byte;

	connect_pair(pair);
	CHECK(!sigaction(SIGALRM, &act, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
	from = ha_monotonic_ms();
	CHECK_INT(ha_socket_receive(pair[0], &byte, 1, from + 100), -ETIMEDOUT);
	CHECK(ha_monotonic_ms() >= from + 100);
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	CHECK(interruptions);
	close(pair[0]);
	close(pair[1]);
}

static char sent[MESSAGE], received[MESSAGE];

static void *send_message(void *fd)
{
	CHECK_INT(ha_socket_send(*(int *)fd, sent, MESSAGE, in_ms(LONG_MS)), 0);
	return NULL;
}

/* More than the kernel takes at once, received in other pieces than it was sent in. */
static void messages_arrive_whole(void)
{
	pthread_t thread;
	int pair[2];

	for (int i = 0; i < MESSAGE; i++)
		sent[i] = (char)(i * 31 >> 4);
	connect_pair(pair);
	CHECK_INT(pthread_create(&thread, NULL, send_message, &pair[0]), 0);
	CHECK_INT(ha_socket_receive(pair[1], received, 7, in_ms(LONG_MS)), 0);
	CHECK_INT(ha_socket_receive(pair[1], received + 7, MESSAGE - 7, in_ms(LONG_MS)), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK(!memcmp(sent, received, MESSAGE));
	close(pair[0]);
	close(pair[1]);
}

/* Nobody receives; then the other end closes, in the middle of a message. */
static void messages_end(void)
{
	int pair[2], err = 0;
	char four[4];

	connect_pair(pair);
	while (!err)
		err = ha_socket_send(pair[0], sent, MESSAGE, in_ms(50));
	CHECK_INT(err, -ETIMEDOUT);
	CHECK_INT(ha_socket_send(pair[1], "abc", 3, in_ms(LONG_MS)), 0);
	CHECK_INT(shutdown(pair[1], SHUT_WR), 0);
	CHECK_INT(ha_socket_receive(pair[0], four, 4, in_ms(LONG_MS)), -EPIPE);
	close(pair[1]);
	CHECK_INT(ha_socket_send(pair[0], sent, MESSAGE, in_ms(LONG_MS)), -EPIPE);
	CHECK_INT(ha_socket_receive(pair[0], four, 4, in_ms(LONG_MS)), -EPIPE);
	close(pair[0]);
}

static void paths_have_a_limit(void)
{
	char longest[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];
	int listener, fd;

	memset(longest, 'a', sizeof(longest));
	memcpy(longest, folder, strlen(folder));
	longest[strlen(folder)] = '/';
	longest[sizeof(longest) - 1] = 0;
	CHECK_INT(ha_socket_listen_unix(longest, SOCK_STREAM, 0600), -ENAMETOOLONG);
	CHECK_INT(ha_socket_connect_unix(longest, SOCK_STREAM, 0), -ENAMETOOLONG);
	CHECK_INT(ha_socket_connect_unix("", SOCK_STREAM, 0), -ENAMETOOLONG);
	longest[sizeof(longest) - 2] = 0;
	listener = ha_socket_listen_unix(longest, SOCK_STREAM, 0600);
	check_flags(listener);
	fd = ha_socket_connect_unix(longest, SOCK_STREAM, 0);
	check_flags(fd);
	close(fd);
	close(listener);
	unlink(longest);
}

/* Its mode, who is at the other end, and what is left of it. */
static void unix_socket_is_left_behind(void)
{
	int listener, fd, accepted;
	struct ucred peer;
	struct stat st;

	CHECK_INT(ha_socket_connect_unix(path, SOCK_SEQPACKET, 0), -ENOENT);
	listener = ha_socket_listen_unix(path, SOCK_SEQPACKET, 0640);
	check_flags(listener);
	CHECK(!stat(path, &st));
	CHECK_INT(st.st_mode & 07777, 0640);
	CHECK_INT(ha_socket_listen_unix(path, SOCK_SEQPACKET, 0640), -EADDRINUSE);
	fd = ha_socket_connect_unix(path, SOCK_SEQPACKET, 0);
	check_flags(fd);
	accepted = accept_next(listener);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(ha_socket_peer(i ? fd : accepted, &peer), 0);
		CHECK_INT(peer.pid, getpid());
		CHECK_INT(peer.uid, geteuid());
	}
	close(accepted);
	close(fd);
	close(listener);
	CHECK_INT(ha_socket_connect_unix(path, SOCK_SEQPACKET, 0), -ECONNREFUSED);
	CHECK_INT(ha_socket_listen_unix(path, SOCK_SEQPACKET, 0640), -EADDRINUSE);
	CHECK(!unlink(path));
	CHECK_INT(ha_socket_peer(-1, &peer), -EBADF);
}

/* A listener whose queue is full, and one that does not answer. */
static void unix_calls_end_in_time(void)
{
	int listener = ha_socket_listen_unix(path, SOCK_STREAM, 0600), fd[8], n = 0, late;
	int64_t from;
	char byte;

	CHECK(listener >= 0 && !listen(listener, 0));
	while (n < 8 && (fd[n] = ha_socket_connect_unix(path, SOCK_STREAM, 0)) >= 0)
		n++;
	CHECK(n && n < 8);
	CHECK_INT(fd[n], -EAGAIN);
	from = ha_monotonic_ms();
	CHECK_INT(ha_socket_connect_unix(path, SOCK_STREAM, 100), -EAGAIN);
	CHECK(ha_monotonic_ms() >= from + 100);
	while (n)
		close(fd[--n]);
	while (ha_socket_accept(listener) >= 0) /* until the test ends */
		;
	late = ha_socket_connect_unix(path, SOCK_STREAM, 100);
	CHECK(late >= 0 && !(fcntl(late, F_GETFL) & O_NONBLOCK));
	from = ha_monotonic_ms();
	CHECK(read(late, &byte, 1) < 0 && errno == EAGAIN);
	CHECK(ha_monotonic_ms() >= from + 100);
	close(late);
	close(listener);
	CHECK(!unlink(path));
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	options_are_set();
	nobody_listens();
	connecting_ends_in_time();
	both_families();
	deadline_holds_with_signals();
	messages_arrive_whole();
	messages_end();
	paths_have_a_limit();
	unix_socket_is_left_behind();
	unix_calls_end_in_time();
	CHECK(!rmdir(folder));
	return 0;
}
