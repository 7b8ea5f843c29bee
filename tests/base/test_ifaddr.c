/* SPDX-License-Identifier: BSD-3-Clause */
/* The out-of-band interface, as NCCL would choose it. */
#include "base/ifaddr.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/check.h"
#include "base/config.h"
#include "tests/base/lines.h"

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
	static char text[HA_IFADDR_TEXT_MAX];
	int index = ha_ifaddr_choose(list, count, ifname, family);

	return index < 0 ? "none" : ha_ifaddr_text(&list[index].addr.sa, text);
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
	struct ha_ifaddr found[HA_IFADDR_MAX], out;
	struct ha_config config;
	int n = ha_ifaddr_list(found, HA_IFADDR_MAX);

	CHECK(n > 0);
	CHECK_INT(ha_ifaddr_list(found, 1), 1);
	ha_config_defaults(&config);
	CHECK_INT(ha_ifaddr_select(&config, &out), 0);
	CHECK(ha_ifaddr_len(&out) == sizeof(struct sockaddr_in) ||
	      ha_ifaddr_len(&out) == sizeof(struct sockaddr_in6));
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

static void unknown_families_have_a_text(void)
{
	struct sockaddr other = { .sa_family = AF_UNIX };
	char text[HA_IFADDR_TEXT_MAX];

	CHECK_TEXT(ha_ifaddr_text(&other, text), "address family 1");
}

int main(void)
{
	best_interface_is_chosen();
	this_host();
	unknown_families_have_a_text();
	return 0;
}
