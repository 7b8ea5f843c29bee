/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define DISCARD 9 /* RFC 863: a datagram that only makes the kernel look for its receiver */

/* One question and its answer. */
struct ask {
	struct nlmsghdr h;
	union {
		struct rtmsg route;
		struct ndmsg neighbour;
	} u;
	uint8_t room[2048];
};

static void add_attribute(struct ask *a, unsigned short type, const void *data, unsigned short len)
{
	struct rtattr *r = (struct rtattr *)(void *)((uint8_t *)a + NLMSG_ALIGN(a->h.nlmsg_len));

	r->rta_type = type;
	r->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(r), data, len);
	a->h.nlmsg_len = NLMSG_ALIGN(a->h.nlmsg_len) + RTA_ALIGN(r->rta_len);
}

static int query_kernel(struct ask *a)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct timeval time_limit = { .tv_sec = 1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	a->h.nlmsg_flags = NLM_F_REQUEST;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time_limit, sizeof(time_limit));
	n = sendto(fd, a, a->h.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	if (n >= 0)
		n = recv(fd, a, sizeof(*a), 0);
	if (n < 0)
		err = -errno;
	else if (!NLMSG_OK(&a->h, (size_t)n))
		err = -EPROTO;
	else if (a->h.nlmsg_type == NLMSG_ERROR)
		err = ((struct nlmsgerr *)NLMSG_DATA(&a->h))->error;
	close(fd);
	return err;
}

/* The attribute's data of at least len bytes, or NULL. */
static const void *find_attribute(const struct ask *a, size_t header, unsigned short type,
				  size_t len)
{
	const struct rtattr *r =
		(const struct rtattr *)(const void *)((const uint8_t *)NLMSG_DATA(&a->h) +
						      NLMSG_ALIGN(header));
	size_t left = a->h.nlmsg_len - NLMSG_LENGTH(header);

	for (; RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == type && RTA_PAYLOAD(r) >= len)
			return RTA_DATA(r);
	return NULL;
}

/* addr: network byte order, here and below. ifindex: of the interface it leaves from, 0: any. */
static int query_route(struct ask *a, uint32_t addr, int ifindex)
{
	*a = (struct ask) { .h = { .nlmsg_len = NLMSG_LENGTH(sizeof(a->u.route)),
				   .nlmsg_type = RTM_GETROUTE },
			    .u.route = { .rtm_family = AF_INET, .rtm_dst_len = 32 } };
	add_attribute(a, RTA_DST, &addr, sizeof(addr));
	if (ifindex)
		add_attribute(a, RTA_OIF, &ifindex, sizeof(ifindex));
	return query_kernel(a);
}

/* The gateway, or addr itself. */
static uint32_t hop_of(const struct ask *a, uint32_t addr)
{
	const void *at = find_attribute(a, sizeof(a->u.route), RTA_GATEWAY, sizeof(addr));

	if (at)
		memcpy(&addr, at, sizeof(addr));
	return addr;
}

/* Out of which interface, and who is next. */
static int find_route(uint32_t addr, int *ifindex, uint32_t *hop)
{
	struct ask a;
	const void *at;
	int err = query_route(&a, addr, 0);

	if (err)
		return err == -EHOSTUNREACH ? -ENETUNREACH : err;
	if (a.u.route.rtm_type == RTN_LOCAL)
		return -EADDRINUSE;
	at = find_attribute(&a, sizeof(a.u.route), RTA_OIF, sizeof(*ifindex));
	if (!at)
		return -ENETUNREACH;
	memcpy(ifindex, at, sizeof(*ifindex));
	*hop = hop_of(&a, addr);
	return 0;
}

static int find_neighbour(uint32_t hop, int ifindex, uint8_t mac[6])
{
	struct ask a = { .h = { .nlmsg_len = NLMSG_LENGTH(sizeof(a.u.neighbour)),
				.nlmsg_type = RTM_GETNEIGH },
			 .u.neighbour = { .ndm_family = AF_INET, .ndm_ifindex = ifindex } };
	const void *at;
	int err;

	add_attribute(&a, NDA_DST, &hop, sizeof(hop));
	err = query_kernel(&a);
	if (err)
		return err == -ENOENT ? -EAGAIN : err;
	at = find_attribute(&a, sizeof(a.u.neighbour), NDA_LLADDR, 6);
	if (!at || a.u.neighbour.ndm_state & (NUD_INCOMPLETE | NUD_FAILED | NUD_NONE))
		return -EAGAIN;
	memcpy(mac, at, 6);
	return 0;
}

static bool is_bridge(int ifindex)
{
	char name[IF_NAMESIZE], path[64];

	if (!if_indextoname((unsigned)ifindex, name))
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", name);
	return !access(path, F_OK);
}

/* Of a bridge's ports the one that has seen this address. */
static int port_of(int bridge, const uint8_t mac[6], int *ifindex)
{
	struct ask a = { .h = { .nlmsg_len = NLMSG_LENGTH(sizeof(a.u.neighbour)),
				.nlmsg_type = RTM_GETNEIGH },
			 .u.neighbour = { .ndm_family = AF_BRIDGE } };
	int err;

	add_attribute(&a, NDA_LLADDR, mac, 6);
	add_attribute(&a, NDA_MASTER, &bridge, sizeof(bridge));
	err = query_kernel(&a);
	if (err)
		return err == -ENOENT ? -EAGAIN : err;
	*ifindex = a.u.neighbour.ndm_ifindex;
	return 0;
}

static void trigger_arp(uint32_t hop)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(DISCARD),
				  .sin_addr.s_addr = hop };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	(void)!sendto(fd, "", 0, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	close(fd);
}

int ina_neighbour_find(uint32_t addr, struct ina_neighbour *n)
{
	uint32_t hop;
	int err = find_route(htonl(addr), &n->ifindex, &hop);

	if (err)
		return err;
	err = find_neighbour(hop, n->ifindex, n->mac);
	if (!err && is_bridge(n->ifindex))
		err = port_of(n->ifindex, n->mac, &n->ifindex);
	if (err == -EAGAIN)
		trigger_arp(hop);
	return err;
}

uint32_t ina_neighbour_hop(uint32_t addr, int ifindex)
{
	struct ask a;

	return query_route(&a, htonl(addr), ifindex) ? addr : ntohl(hop_of(&a, htonl(addr)));
}

bool ina_neighbour_mac(uint32_t hop, int ifindex, uint8_t mac[6])
{
	return !find_neighbour(htonl(hop), ifindex, mac);
}
