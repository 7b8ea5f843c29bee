/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_plain - what plain UDP moves between two processes of this machine with the offloads and
 * buffers that softroce uses
 *
 * The yardstick for softroce: packets of 4,112 bytes (4,096 of payload), runs of 15 by UDP_SEGMENT,
 * received with UDP_GRO into 64 KiB buffers, both sockets with 32 MiB of buffer. Nothing is
 * checked, nothing is acknowledged but a window that keeps the receiver's buffer from overflowing:
 * after each 512 KiB received the receiver reports how far it is.
 *
 * With --checked each packet costs what RoCE asks of any program behind a socket and no more: the
 * sender computes a CRC over header and payload, the receiver computes it again, and then copies
 * the payload in ascending order into memory of the program. There are no queue pairs, no headers
 * to parse and nothing to retransmit: a software NIC cannot be faster.
 *
 * Usage: udp_plain [--checked] [SECONDS [SENDER_CPU RECEIVER_CPU]]; prints MB/s (2^20, as perftest
 * does) and the processor time of sender and receiver in ms per GiB.
 */
#include "base/clock.h"
#include "base/options.h"
#include "softroce/engine/place.h"
#include "softroce/icrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

#define PACKET 4112
#define PAYLOAD 4096
#define HEADER 12 /* of a BTH */
#define TRAILER (PACKET - HEADER - PAYLOAD)
#define RUN 15
#define WINDOW (2u << 20)
#define REPORT (512u << 10)
/* the sender walks through a buffer of this size, as with 1 MiB messages */
#define MESSAGE (1u << 20)
#define RECEIVE_SIZE 65536

static bool checked;

static void exit_with_error(const char *what)
{
	perror(what);
	exit(1);
}

static int socket_make(struct sockaddr_in *own)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), buffer = 32 << 20, on = 1;
	socklen_t len = sizeof(*own);

	if (fd < 0)
		exit_with_error("socket");
	own->sin_family = AF_INET;
	own->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)own, sizeof(*own)) ||
	    getsockname(fd, (struct sockaddr *)own, &len))
		exit_with_error("bind");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)))
		exit_with_error("UDP_GRO");
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

static uint32_t packet_crc(const void *header, const void *payload)
{
	return sr_icrc_update(sr_icrc_update(0, header, HEADER), payload, PAYLOAD);
}

/* The pieces of a run: the trailer of each packet lies before the header of the next. */
static void run_gather(struct iovec iov[2 * RUN + 1], const char *buf, size_t at)
{
	static char between[RUN + 1][TRAILER + HEADER];

	iov[0] = (struct iovec) { between[0] + TRAILER, HEADER };
	for (int i = 0; i < RUN; i++) {
		const char *payload = buf + (at + (size_t)i * PAYLOAD) % MESSAGE;
		uint32_t crc = checked ? packet_crc(between[i] + TRAILER, payload) : 0;

		memcpy(between[i + 1], &crc, sizeof(crc));
		iov[2 * i + 1] = (struct iovec) { (void *)payload, PAYLOAD };
		iov[2 * i + 2] = (struct iovec) { between[i + 1], TRAILER + HEADER };
	}
	iov[2 * RUN].iov_len = TRAILER;
}

static void run_send(int fd, const struct sockaddr_in *to, const char *buf, size_t at)
{
	char control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	struct iovec iov[2 * RUN + 1];
	struct msghdr msg = {
		.msg_name = (void *)to,
		.msg_namelen = sizeof(*to),
		.msg_iov = iov,
		.msg_iovlen = 2 * RUN + 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	uint16_t segment = PACKET;

	cmsg->cmsg_level = IPPROTO_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(cmsg), &segment, sizeof(segment));
	run_gather(iov, buf, at);
	if (sendmsg(fd, &msg, 0) < 0)
		exit_with_error("sendmsg");
}

/* Milliseconds of processor time per GiB. */
static double measure_cost(int who, uint64_t bytes)
{
	struct rusage usage;

	getrusage(who, &usage);
	return ((double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3) /
	       ((double)bytes / (1 << 30));
}

static uint64_t send_stream(int fd, const struct sockaddr_in *to, double seconds)
{
	char *buf = malloc(MESSAGE);
	uint64_t sent = 0, acked = 0;
	double start = ha_monotonic_s(), end;

	memset(buf, 1, MESSAGE);
	while ((end = ha_monotonic_s()) - start < seconds) {
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
	printf("%.1f", (double)acked / (end - start) / (1 << 20));
	free(buf);
	return acked;
}

/* Each packet of a run is checked and placed; its bytes of payload. */
static size_t run_place(const char *run, size_t len, char *memory, uint64_t at)
{
	size_t placed = 0;

	for (; len >= PACKET; run += PACKET, len -= PACKET) {
		uint32_t crc;

		memcpy(&crc, run + PACKET - TRAILER, sizeof(crc));
		if (packet_crc(run, run + HEADER) != crc) {
			fprintf(stderr, "udp_plain: a packet came with a wrong CRC\n");
			exit(1);
		}
		sr_place(memory + (at + placed) % MESSAGE, run + HEADER, PAYLOAD);
		placed += PAYLOAD;
	}
	return placed;
}

static void receive_stream(int fd, const struct sockaddr_in *to)
{
	char *buf = malloc(RECEIVE_SIZE), *memory = malloc(MESSAGE);
	uint64_t got = 0, reported = 0;

	for (;;) {
		ssize_t n = recv(fd, buf, RECEIVE_SIZE, 0);

		if (n <= 0)
			exit_with_error("recv");
		if (checked)
			got += run_place(buf, n, memory, got);
		else
			got += n / PACKET * PAYLOAD;
		if (got - reported >= REPORT) {
			reported = got;
			sendto(fd, &got, sizeof(got), 0, (const struct sockaddr *)to, sizeof(*to));
		}
	}
}

static void cpu_bind(const char *cpu)
{
	cpu_set_t set;

	if (!cpu)
		return;
	CPU_ZERO(&set);
	CPU_SET(atoi(cpu), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit_with_error("sched_setaffinity");
}

struct arguments {
	bool checked;
	const char *seconds, *sender_cpu, *receiver_cpu;
};

#define HA_TARGET struct arguments

static const struct ha_option options[] = {
	{ "checked", 0, NULL, "with a CRC over each packet, and a copy", HA_FLAG(checked) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "SECONDS", 0, NULL, "how long (1)", HA_TEXT(seconds) },
	{ "SENDER_CPU", 0, NULL, "the sender's processor", HA_TEXT(sender_cpu) },
	{ "RECEIVER_CPU", 0, NULL, "the receiver's", HA_TEXT(receiver_cpu) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "udp_plain",
	.about = "What plain UDP moves between two processes of this machine: MB/s (2^20), and the "
		 "processor time of sender and receiver in ms per GiB.",
	.options = { options },
	.operands = operands,
};

int main(int argc, char **argv)
{
	struct sockaddr_in a = { 0 }, b = { 0 };
	int one, two;
	struct arguments arguments = { .seconds = "1" };
	int stop = ha_options_parse(&program, argc, argv, &arguments);
	double seconds;
	uint64_t moved;
	pid_t child;

	if (stop)
		return stop - 1;
	one = socket_make(&a);
	two = socket_make(&b);
	checked = arguments.checked;
	seconds = atof(arguments.seconds);
	child = fork();
	if (child < 0)
		exit_with_error("fork");
	if (arguments.receiver_cpu)
		cpu_bind(child ? arguments.sender_cpu : arguments.receiver_cpu);
	if (!child)
		receive_stream(two, &a);
	moved = send_stream(one, &b, seconds > 0 ? seconds : 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf(" %.0f %.0f\n", measure_cost(RUSAGE_SELF, moved),
	       measure_cost(RUSAGE_CHILDREN, moved));
	return 0;
}
