/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/route.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct question {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct ndmsg neighbour;
	};
	uint8_t attributes[64];
};

static void add_attribute(struct question *q, uint16_t type, const void *value, size_t size)
{
	struct rtattr *a = (struct rtattr *)(void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(RTA_DATA(a), value, size);
	q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

/* The answer's bytes in buf, 0: none. */
static size_t send_question(struct question *q, void *buf, size_t size)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct timeval time_limit = { .tv_sec = 1 };
	struct nlmsghdr *answer = buf;
	ssize_t n = 0;

	if (fd < 0)
		return 0;
	q->head.nlmsg_flags = NLM_F_REQUEST;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time_limit, sizeof(time_limit));
	if (send(fd, q, q->head.nlmsg_len, 0) == (ssize_t)q->head.nlmsg_len)
		n = recv(fd, buf, size, 0);
	close(fd);
	return n < (ssize_t)sizeof(*answer) || !NLMSG_OK(answer, (size_t)n) ||
			       answer->nlmsg_type == NLMSG_ERROR
		       ? 0
		       : (size_t)n;
}

/* An attribute of the first message, or NULL. */
static const void *find_attribute(const struct nlmsghdr *answer, size_t head, uint16_t type,
				  size_t size)
{
	const struct rtattr *a =
		(const struct rtattr *)(const void *)((const char *)NLMSG_DATA(answer) +
						      NLMSG_ALIGN(head));
	int left = (int)answer->nlmsg_len - (int)NLMSG_LENGTH(head);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == type && RTA_PAYLOAD(a) >= size)
			return RTA_DATA(a);
	return NULL;
}

uint32_t ha_route_hop(uint32_t addr, int ifindex)
{
	struct question q = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
					.nlmsg_type = RTM_GETROUTE },
			      .route = { .rtm_family = AF_INET, .rtm_dst_len = 32 } };
	_Alignas(8) char buf[4096];
	uint32_t to = htonl(addr), gateway;
	const void *via;

	add_attribute(&q, RTA_DST, &to, sizeof(to));
	add_attribute(&q, RTA_OIF, &ifindex, sizeof(ifindex));
	if (!send_question(&q, buf, sizeof(buf)))
		return addr;
	via = find_attribute((const struct nlmsghdr *)(const void *)buf, sizeof(struct rtmsg),
			     RTA_GATEWAY, sizeof(gateway));
	if (!via)
		return addr;
	memcpy(&gateway, via, sizeof(gateway));
	return ntohl(gateway);
}

bool ha_route_neighbour(uint32_t hop, int ifindex, uint8_t mac[6])
{
	struct question q = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
					.nlmsg_type = RTM_GETNEIGH },
			      .neighbour = { .ndm_family = AF_INET, .ndm_ifindex = ifindex } };
	_Alignas(8) char buf[4096];
	const struct nlmsghdr *answer = (const struct nlmsghdr *)(const void *)buf;
	const struct ndmsg *n;
	uint32_t to = htonl(hop);
	const void *found;

	add_attribute(&q, NDA_DST, &to, sizeof(to));
	if (!send_question(&q, buf, sizeof(buf)))
		return false;
	n = NLMSG_DATA(answer);
	if (answer->nlmsg_type != RTM_NEWNEIGH ||
	    n->ndm_state & (NUD_INCOMPLETE | NUD_FAILED | NUD_NONE))
		return false;
	found = find_attribute(answer, sizeof(*n), NDA_LLADDR, 6);
	if (found)
		memcpy(mac, found, 6);
	return found != NULL;
}
