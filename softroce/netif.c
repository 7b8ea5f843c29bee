/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * IP and UDP headers, BTH, the largest extended headers, ICRC: what must fit beside the payload in
 * one packet.
 */
#define ROCE_OVERHEAD_IPV4 (20 + 8 + 12 + 28 + 4)
#define ROCE_OVERHEAD_IPV6 (ROCE_OVERHEAD_IPV4 + 20)

/* Speed assumed where the interface names none (loopback, virtual interfaces): Mbit/s. */
#define SPEED_VIRTUAL 100000

static void address_gid(const struct sockaddr *sa, uint8_t gid[16])
{
	if (sa->sa_family == AF_INET)
		sr_gid_from_ipv4(gid, ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr));
	else
		memcpy(gid, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
}

/* A loopback interface owns its whole IPv4 prefix, not just the address it was given. */
static bool address_owns(const struct ifaddrs *ifa, const uint8_t want[16])
{
	uint8_t gid[16];

	address_gid(ifa->ifa_addr, gid);
	if (!memcmp(gid, want, 16))
		return true;
	if ((ifa->ifa_flags & IFF_LOOPBACK) && ifa->ifa_addr->sa_family == AF_INET &&
	    ifa->ifa_netmask && sr_gid_ipv4(want)) {
		uint32_t mask =
			ntohl(((const struct sockaddr_in *)ifa->ifa_netmask)->sin_addr.s_addr);

		return mask && (sr_gid_ipv4(gid) & mask) == (sr_gid_ipv4(want) & mask);
	}
	return false;
}

static bool gid_zero(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return !memcmp(gid, zero, 16);
}

/* Index 0 is for the routable address (IPv4 before IPv6), index 1 for the link-local one. */
static void interface_add(struct sr_netif *link, const struct sockaddr *sa)
{
	uint8_t gid[16];

	address_gid(sa, gid);
	if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) {
		if (gid_zero(link->gid[1]))
			memcpy(link->gid[1], gid, 16);
	} else if (gid_zero(link->gid[0]) || (sr_gid_ipv4(gid) && !sr_gid_ipv4(link->gid[0]))) {
		memcpy(link->gid[0], gid, 16);
	}
}

static unsigned speed_read(int fd, const char *ifname)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	struct ifreq ifr = { 0 };
	uint32_t speed;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ifr.ifr_data = (void *)&cmd;
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		return 0;
	speed = ethtool_cmd_speed(&cmd);
	return speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed;
}

/* Flags, MTU and speed of link->ifname. */
static int interface_read(struct sr_netif *link)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", link->ifname);
	if (ioctl(fd, SIOCGIFFLAGS, &ifr)) {
		err = errno == ENODEV ? -ENODEV : -errno;
		goto out;
	}
	link->up = (ifr.ifr_flags & IFF_UP) && (ifr.ifr_flags & IFF_RUNNING);
	link->loopback = ifr.ifr_flags & IFF_LOOPBACK;
	if (ioctl(fd, SIOCGIFMTU, &ifr)) {
		err = -errno;
		goto out;
	}
	link->mtu = ifr.ifr_mtu;
	link->speed = speed_read(fd, link->ifname);
	link->ifindex = if_nametoindex(link->ifname);
out:
	close(fd);
	return err;
}

int sr_netif_read(struct sr_netif *link, const struct sr_device_spec *spec, const uint8_t taken[16])
{
	const uint8_t *want = spec->kind == SR_DEVICE_SUBNET && taken ? taken : spec->gid;
	struct ifaddrs *list;

	memset(link, 0, sizeof(*link));
	if (spec->kind == SR_DEVICE_INTERFACE)
		memcpy(link->ifname, spec->ifname, sizeof(link->ifname));
	if (getifaddrs(&list))
		return -errno;
	for (struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!ifa->ifa_addr ||
		    (ifa->ifa_addr->sa_family != AF_INET && ifa->ifa_addr->sa_family != AF_INET6))
			continue;
		if (spec->kind == SR_DEVICE_INTERFACE) {
			if (!strcmp(ifa->ifa_name, spec->ifname))
				interface_add(link, ifa->ifa_addr);
		} else if (!link->ifname[0] && address_owns(ifa, want)) {
			snprintf(link->ifname, sizeof(link->ifname), "%s", ifa->ifa_name);
			memcpy(link->gid[0], want, 16);
		}
	}
	freeifaddrs(list);
	return link->ifname[0] ? interface_read(link) : -ENODEV;
}

enum ibv_mtu sr_netif_ib_mtu(const struct sr_netif *link)
{
	unsigned overhead = sr_gid_ipv4(link->gid[0]) && gid_zero(link->gid[1])
				    ? ROCE_OVERHEAD_IPV4
				    : ROCE_OVERHEAD_IPV6;

	for (int mtu = IBV_MTU_4096; mtu > IBV_MTU_256; mtu--)
		if (link->mtu >= (128u << mtu) + overhead)
			return mtu;
	return IBV_MTU_256;
}

void sr_netif_ib_speed(unsigned interface_mbps, uint8_t *width, uint8_t *speed)
{
	/* Lanes and lane rates of IBTA PortInfo: width code 1 = 1X, 2 = 4X; speed 1 SDR 2.5, 4 QDR
	 * 10, 32 EDR 25, 64 HDR 50, 128 NDR 100 Gbit/s per lane. */
	static const struct {
		unsigned mbps;
		uint8_t width, speed;
	} codes[] = {
		{ 400000, 2, 128 }, { 200000, 2, 64 }, { 100000, 2, 32 }, { 50000, 1, 64 },
		{ 40000, 2, 4 },    { 25000, 1, 32 },  { 10000, 1, 4 },
	};
	unsigned mbps = interface_mbps ? interface_mbps : SPEED_VIRTUAL;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (mbps >= codes[i].mbps) {
			*width = codes[i].width;
			*speed = codes[i].speed;
			return;
		}
	*width = 1;
	*speed = 1;
}

int sr_netif_watch_open(void)
{
	struct sockaddr_nl sa = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

bool sr_netif_watch_drain(int fd)
{
	char buf[8192];
	bool any = false;
	ssize_t n;

	/* What changed is not parsed: the state is read afresh. ENOBUFS means that messages were
	 * lost: also a change. */
	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0 ||
	       (n < 0 && (errno == ENOBUFS || errno == EINTR)))
		any = true;
	return any;
}
