/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stream.c - TCP connections with time limits: signals, addresses that are none, a port that
 * nobody listens at */
#include "gpu/host/stream.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int interruptions;

static void count_interruption(int number)
{
	static const char text[] =
		"test_stream.c: interrupted 60000 times, and the limit of 100 ms is not over\n";

	if (++interruptions < 60000)
		return;
	(void)!write(2, text, sizeof(text) - 1);
	_exit(1);
}

/* Each interruption began the limit anew: a process with a timer waited for ever. */
static void limit_holds_with_signals(void)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction act = { .sa_handler = count_interruption };
	int fd[2];
	char byte;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	CHECK(!sigaction(SIGALRM, &act, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
	CHECK_INT(ha_gpu_stream_receive(fd[0], &byte, 1, 100), -ETIMEDOUT);
	CHECK(interruptions);
}

static void bad_addresses_are_refused(void)
{
	static const char *const wrong[] = { "",
					     ":80",
					     "127.0.0.1",
					     "127.0.0.1:",
					     "127.0.0.1:65536",
					     "127.0.0.1:70000",
					     "127.0.0.1:4294967376",
					     "127.0.0.1:-1",
					     "127.0.0.1:x",
					     "[]:80",
					     "localhost:80",
					     "[::1:80" };

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int fd = ha_gpu_stream_listen(wrong[i]);

		if (fd != -EINVAL) {
			fprintf(stderr, "\"%s\" is an address: %d\n", wrong[i], fd);
			exit(1);
		}
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Who dials a port of this host at which nobody listens yet, and is given that very port to dial
 * from, was connected with itself. In a network of its own, where there is no other port to dial
 * from. */
static void no_connection_to_itself(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET)) {
		printf("no network of its own: %s\n", strerror(errno));
		exit(77);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo));
	write_file("/proc/sys/net/ipv4/ip_local_port_range", "40000 40000");
	CHECK_INT(ha_gpu_stream_connect("127.0.0.1:40000", 300), -ETIMEDOUT);
	close(fd);
}

static const struct named_test tests[] = {
	{ "signals", limit_holds_with_signals },
	{ "addresses", bad_addresses_are_refused },
	{ "itself", no_connection_to_itself },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
