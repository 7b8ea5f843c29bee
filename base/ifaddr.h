/* SPDX-License-Identifier: BSD-3-Clause */
/* ifaddr.h - the interface and address of the out-of-band connections, chosen as NCCL chooses
 * them */
#ifndef HA_BASE_IFADDR_H
#define HA_BASE_IFADDR_H

#include "base/sockaddr.h"

#include <net/if.h>

struct ha_config;

struct ha_ifaddr {
	char name[IF_NAMESIZE];
	union ha_sockaddr addr; /* port 0 */
};

/*
 * Pure choice among `n` addresses. ifname: text of NCCL_SOCKET_IFNAME, "" = none; then the order
 * is: names that begin with "ib", anything but docker, lo and virbr, docker, lo, virbr. family:
 * AF_UNSPEC, AF_INET or AF_INET6. Returns the index, or -1.
 */
int ha_ifaddr_choose(const struct ha_ifaddr *list, int n, const char *ifname, int family);

/* Addresses of this host's interfaces that are up, in the kernel's order; the caller frees the
 * list. Count or negative errno, without a list then. */
int ha_ifaddr_list(struct ha_ifaddr **list);

/* Both, by NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY. -ENODEV, with a line that says what to set:
 * none fits. */
int ha_ifaddr_select(const struct ha_config *config, struct ha_ifaddr *out);

#endif
