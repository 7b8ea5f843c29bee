/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_plain - what plain UDP moves between two processes of this machine with the offloads and
 * buffers that softroce uses
 *
 * The yardstick for softroce: packets of 4,112 bytes (4,096 of payload), runs of 15 by UDP_SEGMENT,
 * received with
 * UDP_GRO into 64 KiB buffers, both sockets with 32 MiB of buffer. Nothing is checked, nothing is
 * acknowledged but a window that keeps the receiver's buffer from overflowing: after each 512 KiB
 * received the receiver says how far it is. Usage: udp_plain [SECONDS]; prints MB/s (2^20, as
 * perftest does).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

#define PACKET 4112
#define PAYLOAD 4096
#define RUN 15
#define WINDOW (2u << 20)
#define REPORT (512u << 10)
/* the sender walks through a buffer of this size, as with 1 MiB messages */
#define MESSAGE (1u << 20)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int socket_make(struct sockaddr_in *own)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), buffer = 32 << 20, on = 1;
	socklen_t len = sizeof(*own);

	if (fd < 0)
		die("socket");
	own->sin_family = AF_INET;
	own->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)own, sizeof(*own)) ||
	    getsockname(fd, (struct sockaddr *)own, &len))
		die("bind");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)))
		die("UDP_GRO");
	return fd;
}

static uint64_t progress_read(int fd, uint64_t acked, int wait_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t value;

	if (wait_ms)
		poll(&pfd, 1, wait_ms);
	while (recv(fd, &value, sizeof(value), MSG_DONTWAIT) == sizeof(value))
		acked = value;
	return acked;
}

static void run_send(int fd, const struct sockaddr_in *to, const char *buf, size_t at)
{
	char control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	static const char header[PACKET - PAYLOAD];
	struct iovec iov[2 * RUN];
	struct msghdr msg = {
		.msg_name = (void *)to,
		.msg_namelen = sizeof(*to),
		.msg_iov = iov,
		.msg_iovlen = 2 * RUN,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	uint16_t segment = PACKET;

	cmsg->cmsg_level = IPPROTO_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(cmsg), &segment, sizeof(segment));
	for (int i = 0; i < RUN; i++) {
		iov[2 * i] = (struct iovec) { (void *)header, sizeof(header) };
		iov[2 * i + 1] =
			(struct iovec) { (void *)(buf + (at + (size_t)i * PAYLOAD) % MESSAGE),
					 PAYLOAD };
	}
	if (sendmsg(fd, &msg, 0) < 0)
		die("sendmsg");
}

static void sender(int fd, const struct sockaddr_in *to, double seconds)
{
	char *buf = malloc(MESSAGE);
	uint64_t sent = 0, acked = 0;
	double start = now(), end;

	memset(buf, 1, MESSAGE);
	while ((end = now()) - start < seconds) {
		acked = progress_read(fd, acked, 0);
		while (sent - acked >= WINDOW) {
			uint64_t before = acked;

			acked = progress_read(fd, acked, 200);
			if (acked == before) /* a run was lost after all */
				acked = sent;
		}
		run_send(fd, to, buf, sent % MESSAGE);
		sent += RUN * PAYLOAD;
	}
	acked = progress_read(fd, acked, 200);
	printf("%.1f\n", (double)acked / (end - start) / (1 << 20));
	free(buf);
}

static void receiver(int fd, const struct sockaddr_in *to)
{
	char *buf = malloc(65536);
	uint64_t got = 0, told = 0;

	for (;;) {
		ssize_t n = recv(fd, buf, 65536, 0);

		if (n <= 0)
			die("recv");
		got += n / PACKET * PAYLOAD;
		if (got - told >= REPORT) {
			told = got;
			sendto(fd, &got, sizeof(got), 0, (const struct sockaddr *)to, sizeof(*to));
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { 0 }, b = { 0 };
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int one = socket_make(&a), two = socket_make(&b);
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (!child)
		receiver(two, &a);
	sender(one, &b, seconds > 0 ? seconds : 1);
	kill(child, 9);
	waitpid(child, NULL, 0);
	return 0;
}
