/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ifaddr.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "base/namelist.h"

static int first_match(const struct ha_ifaddr *list, int n, const char *names, int family)
{
	struct ha_namelist filter;

	ha_namelist_parse(&filter, names);
	for (int i = 0; i < n; i++)
		if ((family == AF_UNSPEC || list[i].addr.sa.sa_family == family) &&
		    ha_namelist_match(&filter, list[i].name, HA_NAMELIST_ANY, NULL))
			return i;
	return -1;
}

int ha_ifaddr_choose(const struct ha_ifaddr *list, int n, const char *ifname, int family)
{
	static const char *const order[] = { "ib", "^docker,lo,virbr", "docker", "lo", "virbr" };

	if (*ifname)
		return first_match(list, n, ifname, family);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		int found = first_match(list, n, order[i], family);

		if (found >= 0)
			return found;
	}
	return -1;
}

/* ::1 is left out: 127.0.0.1 stands for the loopback interface, as with NCCL. */
static int is_usable(const struct ifaddrs *ifa)
{
	if (!ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP))
		return 0;
	if (ifa->ifa_addr->sa_family == AF_INET)
		return 1;
	return ifa->ifa_addr->sa_family == AF_INET6 &&
	       !IN6_IS_ADDR_LOOPBACK(
		       &((const struct sockaddr_in6 *)(const void *)ifa->ifa_addr)->sin6_addr);
}

static int count_usable(const struct ifaddrs *all)
{
	int n = 0;

	for (const struct ifaddrs *ifa = all; ifa; ifa = ifa->ifa_next)
		n += is_usable(ifa);
	return n;
}

int ha_ifaddr_list(struct ha_ifaddr **list)
{
	struct ifaddrs *all;
	int n = 0;

	*list = NULL;
	if (getifaddrs(&all))
		return -errno;
	*list = calloc((size_t)count_usable(all) + 1, sizeof(**list));
	if (!*list) {
		freeifaddrs(all);
		return -ENOMEM;
	}
	for (const struct ifaddrs *ifa = all; ifa; ifa = ifa->ifa_next) {
		struct ha_ifaddr *entry = &(*list)[n];

		if (!is_usable(ifa))
			continue;
		snprintf(entry->name, sizeof(entry->name), "%s", ifa->ifa_name);
		entry->addr.sa.sa_family = ifa->ifa_addr->sa_family;
		memcpy(&entry->addr, ifa->ifa_addr, ha_sockaddr_len(&entry->addr));
		n++;
	}
	freeifaddrs(all);
	return n;
}

int ha_ifaddr_select(const struct ha_config *config, struct ha_ifaddr *out)
{
	static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6 };
	struct ha_ifaddr *list;
	int n = ha_ifaddr_list(&list);
	int index;

	if (n < 0) {
		HA_WARN(NULL, "cannot list the network interfaces: %s", strerror(-n));
		return n;
	}
	index = ha_ifaddr_choose(list, n, config->socket_ifname, families[config->socket_family]);
	if (index < 0) {
		HA_WARN(NULL,
			"no network interface for the out-of-band connections among %d addresses "
			"(NCCL_SOCKET_IFNAME='%s'); set NCCL_SOCKET_IFNAME to one that all hosts "
			"can reach",
			n, config->socket_ifname);
		free(list);
		return -ENODEV;
	}
	*out = list[index];
	free(list);
	return 0;
}
