/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC by which nothing leaves, for an exact time: netem with a loss of all or nothing, by
 * netlink.
 *
 * `tc` and `sleep` take 0.1 s each to start in an emulated machine, more than the flap that they
 * would make. And a queueing discipline that comes or goes stops its device for a moment; so netem
 * stays, once it is there, and only its loss changes, from one packet to the next.
 */
#include "commands.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define QUEUE 100000 /* packets: netem shall lose none of its own */

struct request {
	struct nlmsghdr header;
	struct tcmsg message;
	struct rtattr kind;
	char name[8];
	struct rtattr options;
	struct tc_netem_qopt netem;
};

struct answer {
	struct nlmsghdr header;
	struct nlmsgerr error;
	char rest[512];
};

static struct request build_request(unsigned device, int lost)
{
	return (struct request) {
		.header = { .nlmsg_len = sizeof(struct request),
			    .nlmsg_type = RTM_NEWQDISC,
			    .nlmsg_flags =
				    NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE },
		.message = { .tcm_family = AF_UNSPEC,
			     .tcm_ifindex = (int)device,
			     .tcm_parent = TC_H_ROOT },
		.kind = { .rta_len = RTA_LENGTH(sizeof("netem")), .rta_type = TCA_KIND },
		.name = "netem",
		.options = { .rta_len = RTA_LENGTH(sizeof(struct tc_netem_qopt)),
			     .rta_type = TCA_OPTIONS },
		.netem = { .limit = QUEUE, .loss = lost ? UINT32_MAX : 0 },
	};
}

/* Done when it returns; 0 or a negative errno. */
static int set_loss(int netlink, unsigned device, int lost)
{
	struct request request = build_request(device, lost);
	struct answer answer;

	if (send(netlink, &request, sizeof(request), 0) < 0)
		return -errno;
	if (recv(netlink, &answer, sizeof(answer), 0) < 0)
		return -errno;
	return answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

/* now_ns() of it, or a negative errno. */
static long long change_loss(int netlink, unsigned device, int lost)
{
	int error = set_loss(netlink, device, lost);
	long long now = now_ns();

	if (error)
		return error;
	printf("%lld\n", now);
	return now;
}

static void sleep_until(long long ns)
{
	struct timespec until = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* The ranks poll, and there is one processor: what waits for its time comes first. */
static void come_first(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		perror("agent silence: sched_setscheduler");
}

static long long make_silence(int netlink, unsigned device, const char *time)
{
	long long begin;

	if (!strcmp(time, "off"))
		return change_loss(netlink, device, 0);
	begin = change_loss(netlink, device, 1);
	if (begin < 0 || !strcmp(time, "on"))
		return begin;
	sleep_until(begin + strtoll(time, NULL, 10));
	return change_loss(netlink, device, 0);
}

int silence_command(const char *device, const char *time)
{
	unsigned number = if_nametoindex(device);
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	long long changed;

	if (!number || netlink < 0) {
		perror(device);
		return 1;
	}
	come_first();
	changed = make_silence(netlink, number, time);
	close(netlink);
	if (changed < 0)
		fprintf(stderr, "agent silence %s: %s\n", device, strerror((int)-changed));
	return changed < 0;
}
