/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shim.c - a socket that has nothing yet: the caller yields, and sees what it would have seen;
 * how it yields */
#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int __wrap_sched_yield(void);
unsigned softcuda_yield_nap_us(void);
int __wrap_accept(int fd, struct sockaddr *address, socklen_t *size);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags);
int __wrap_usleep(useconds_t us);

static int yields;
static unsigned nap_us;

unsigned softcuda_yield_nap_us(void)
{
	return nap_us;
}

/* The C library's, for the shim. */
int sched_yield(void)
{
	yields++;
	errno = 0;
	return 0;
}

static void nothing_to_receive(void)
{
	int ends[2];
	char word[8] = "";

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
	CHECK_INT(__wrap_recv(ends[0], word, sizeof(word), 0), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(yields, 1);
	CHECK_INT(write(ends[1], "four", 4), 4);
	CHECK_INT(__wrap_recv(ends[0], word, sizeof(word), 0), 4);
	CHECK(!memcmp(word, "four", 4));
	close(ends[1]);
	CHECK_INT(__wrap_recv(ends[0], word, sizeof(word), 0), 0);
	CHECK_INT(yields, 1); /* only where there was nothing */
	close(ends[0]);
}

/* Many attempts in turn: it sleeps until something comes. */
static void nothing_for_long(void)
{
	int ends[2];
	char word[8];

	yields = 0;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
	for (int i = 0; i < 1000; i++) {
		CHECK_INT(__wrap_recv(ends[0], word, sizeof(word), 0), -1);
		CHECK_INT(errno, EAGAIN);
	}
	CHECK_INT(yields, 100);
	CHECK_INT(write(ends[1], "four", 4), 4);
	CHECK_INT(__wrap_recv(ends[0], word, sizeof(word), 0), 4);
	CHECK_INT(__wrap_recv(ends[0], word, sizeof(word), 0), -1);
	CHECK_INT(yields, 101); /* something came: from the beginning */
	close(ends[0]);
	close(ends[1]);
}

static void short_sleeps(void)
{
	uint64_t start = ha_clock_now(&ha_clock_live);

	CHECK_INT(__wrap_usleep(1), 0);
	CHECK(ha_clock_now(&ha_clock_live) - start >= 200 * HA_NS_PER_US);
}

/* One in 16, where it is asked for; a sleep of that length is no yield. */
static void naps(void)
{
	uint64_t start;

	yields = 0;
	nap_us = 0;
	for (int i = 0; i < 100; i++)
		CHECK_INT(__wrap_sched_yield(), 0);
	CHECK_INT(yields, 100);
	nap_us = 2000;
	start = ha_clock_now(&ha_clock_live);
	for (int i = 0; i < 160; i++)
		CHECK_INT(__wrap_sched_yield(), 0);
	CHECK_INT(yields, 100 + 150);
	CHECK(ha_clock_now(&ha_clock_live) - start >= 10 * 2000 * HA_NS_PER_US);
	nap_us = 0;
}

static void nobody_to_accept(void)
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	socklen_t size = sizeof(address.ss_family);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), peer, accepted;

	yields = 0;
	CHECK(!bind(fd, (struct sockaddr *)&address, size)); /* a name of the kernel's choice */
	CHECK(!listen(fd, 1));
	CHECK_INT(__wrap_accept(fd, NULL, NULL), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(yields, 1);
	peer = socket(AF_UNIX, SOCK_STREAM, 0);
	size = sizeof(address);
	CHECK(!getsockname(fd, (struct sockaddr *)&address, &size));
	CHECK(!connect(peer, (struct sockaddr *)&address, size));
	accepted = __wrap_accept(fd, NULL, NULL);
	CHECK(accepted >= 0);
	close(accepted);
	close(peer);
	close(fd);
	CHECK_INT(__wrap_accept(fd, NULL, NULL), -1); /* another error */
	CHECK_INT(errno, EBADF);
	CHECK_INT(yields, 1);
}

int main(void)
{
	nothing_to_receive();
	nothing_for_long();
	short_sleeps();
	naps();
	nobody_to_accept();
	return 0;
}
