/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dies_at.c - preloaded into a command (LD_PRELOAD): a process of it dies just before it goes on
 * the network
 *
 * HA_TEST_DIES_AT=connect: when it is about to dial; connect2: when it is about to dial a second
 * address; listen: when it is about to listen. Only processes that the command has forked die.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pid_t first;

__attribute__((constructor)) static void begin(void)
{
	first = getpid();
}

static void die_at(const char *here)
{
	const char *where = getenv("HA_TEST_DIES_AT");

	if (where && !strcmp(where, here) && getpid() != first)
		raise(SIGKILL);
}

int connect(int fd, const struct sockaddr *to, socklen_t length)
{
	static in_port_t dialled;
	int (*real)(int, const struct sockaddr *, socklen_t) =
		(int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");

	if (to->sa_family == AF_INET) {
		in_port_t port = ((const struct sockaddr_in *)(const void *)to)->sin_port;

		die_at("connect");
		if (dialled && port != dialled)
			die_at("connect2");
		dialled = port;
	}
	return real(fd, to, length);
}

int listen(int fd, int backlog)
{
	int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");

	die_at("listen");
	return real(fd, backlog);
}
