/* SPDX-License-Identifier: BSD-3-Clause */
/* The out-of-band interface, as NCCL would choose it. */
#include "base/ifaddr.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/config.h"
#include "tests/base/lines.h"

#define MANY 500

static bool pretend; /* MANY addresses of eth0, and one of oob0 */

int getifaddrs(struct ifaddrs **all)
{
	static struct sockaddr_in address[MANY + 1];
	static struct ifaddrs entry[MANY + 1];
	int (*libc)(struct ifaddrs **) = (int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs");

	if (!pretend)
		return libc(all);
	for (int i = 0; i <= MANY; i++) {
		address[i].sin_family = AF_INET;
		address[i].sin_addr.s_addr =
			htonl(i < MANY ? 0xac100000u + (unsigned)i : 0x0a000007u);
		entry[i].ifa_name = i < MANY ? "eth0" : "oob0";
		entry[i].ifa_flags = IFF_UP;
		entry[i].ifa_addr = (struct sockaddr *)&address[i];
		entry[i].ifa_next = i < MANY ? &entry[i + 1] : NULL;
	}
	*all = entry;
	return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
	void (*libc)(struct ifaddrs *) =
		(void (*)(struct ifaddrs *))dlsym(RTLD_NEXT, "freeifaddrs");

	if (!pretend)
		libc(all);
}

static struct ha_ifaddr list[16];
static int count;

static void add_address(const char *name, const char *address)
{
	struct ha_ifaddr *a = &list[count++];

	memset(a, 0, sizeof(*a));
	snprintf(a->name, sizeof(a->name), "%s", name);
	if (strchr(address, ':')) {
		a->addr.in6.sin6_family = AF_INET6;
		CHECK_INT(inet_pton(AF_INET6, address, &a->addr.in6.sin6_addr), 1);
	} else {
		a->addr.in.sin_family = AF_INET;
		CHECK_INT(inet_pton(AF_INET, address, &a->addr.in.sin_addr), 1);
	}
}

static const char *choose_address(const char *ifname, int family)
{
	static char text[HA_SOCKADDR_TEXT_MAX];
	int index = ha_ifaddr_choose(list, count, ifname, family);

	return index < 0 ? "none" : ha_sockaddr_text(&list[index].addr, text);
}

static void best_interface_is_chosen(void)
{
	add_address("lo", "127.0.0.1");
	CHECK_TEXT(choose_address("", AF_UNSPEC), "127.0.0.1:0");
	add_address("virbr0", "192.168.122.1");
	CHECK_TEXT(choose_address("", AF_UNSPEC), "127.0.0.1:0");
	add_address("docker0", "172.17.0.1");
	CHECK_TEXT(choose_address("", AF_UNSPEC), "172.17.0.1:0");
	add_address("eth0", "10.0.0.1");
	add_address("eth0", "fd00::1");
	CHECK_TEXT(choose_address("", AF_UNSPEC), "10.0.0.1:0");
	CHECK_TEXT(choose_address("", AF_INET6), "[fd00::1]:0");
	add_address("ib0", "10.9.0.1");
	add_address("eth10", "10.1.0.1");
	CHECK_TEXT(choose_address("", AF_UNSPEC), "10.9.0.1:0");
	CHECK_TEXT(choose_address("", AF_INET6), "[fd00::1]:0");
	CHECK_TEXT(choose_address("eth1", AF_UNSPEC), "10.1.0.1:0");
	CHECK_TEXT(choose_address("=eth1", AF_UNSPEC), "none");
	CHECK_TEXT(choose_address("^ib,eth0,lo", AF_UNSPEC), "192.168.122.1:0");
	CHECK_TEXT(choose_address("=eth0", AF_INET6), "[fd00::1]:0");
	CHECK_TEXT(choose_address("wlan", AF_UNSPEC), "none");
}

static void this_host(void)
{
	struct ha_ifaddr *found, out;
	struct ha_config config;

	CHECK(ha_ifaddr_list(&found) > 0);
	free(found);
	ha_config_defaults(&config);
	CHECK_INT(ha_ifaddr_select(&config, &out), 0);
	CHECK(ha_sockaddr_len(&out.addr) == sizeof(struct sockaddr_in) ||
	      ha_sockaddr_len(&out.addr) == sizeof(struct sockaddr_in6));
	strcpy(config.socket_ifname, "=lo");
	config.socket_family = HA_SOCKET_INET;
	CHECK_INT(ha_ifaddr_select(&config, &out), 0);
	CHECK_TEXT(out.name, "lo");
	CHECK_INT(out.addr.sa.sa_family, AF_INET);
	lines_catch();
	strcpy(config.socket_ifname, "=nosuch0");
	CHECK_INT(ha_ifaddr_select(&config, &out), -ENODEV);
	CHECK(lines_contain("NCCL_SOCKET_IFNAME='=nosuch0'"));
}

/* A node of a cluster of containers: hundreds of addresses, and the one that is asked for is the
 * last. */
static void many_addresses(void)
{
	struct ha_config config;
	struct ha_ifaddr out;
	char text[HA_SOCKADDR_TEXT_MAX];

	ha_config_defaults(&config);
	strcpy(config.socket_ifname, "=oob0");
	pretend = true;
	CHECK_INT(ha_ifaddr_select(&config, &out), 0);
	pretend = false;
	CHECK_TEXT(ha_sockaddr_text(&out.addr, text), "10.0.0.7:0");
}

int main(void)
{
	best_interface_is_chosen();
	this_host();
	many_addresses();
	return 0;
}
