/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gid.h - which of a port's GIDs peers shall use
 *
 * On RoCE a GID is an IP address (IPv4 as ::ffff:a.b.c.d) together with a RoCE version, and each
 * address is listed once per version. Of the entries that are filled, the best is, in this order of
 * weight: inside NCCL_IB_ADDR_RANGE and of NCCL_IB_ADDR_FAMILY, not link-local, of
 * NCCL_IB_ROCE_VERSION_NUM, the lowest index.
 */
#ifndef HA_TOPO_GID_H
#define HA_TOPO_GID_H

#include <stdbool.h>
#include <stddef.h>

#include "rdma/verbs/ops.h"

struct ha_config;

struct ha_gid_range {
	bool inet6;
	unsigned bits; /* 0: everything of the family */
	union ibv_gid prefix;
};

struct ha_gid_entry {
	int index;
	union ibv_gid gid;
	int roce_version; /* 1, 2; 0: unknown */
};

/* "10.1.0.0/16" or "fd00::/8". -EINVAL: no address of this family, or no prefix length that
 * fits. */
int ha_gid_range_parse(struct ha_gid_range *range, const char *text, bool inet6);

bool ha_gid_is_zero(const union ibv_gid *gid);       /* empty: no address, or fe80:: alone */
bool ha_gid_is_link_local(const union ibv_gid *gid); /* fe80::/64 */
bool ha_gid_is_ipv4(const union ibv_gid *gid);       /* ::ffff:0:0/96 */
bool ha_gid_in_range(const union ibv_gid *gid, const struct ha_gid_range *range);
/* Two addresses of one kind, neither of them zero, whose first `ipv4_bits` bits are the same; of
 * IPv6 64. */
bool ha_gid_same_subnet(const union ibv_gid *a, const union ibv_gid *b, int ipv4_bits);

/* Pure choice among RoCE entries in index order. Position in `entries`, -1: all are empty. */
int ha_gid_choose(const struct ha_gid_entry *entries, int n, const struct ha_gid_range *range,
		  int roce_version);

/*
 * Choose for a port. name: the device, for sysfs and the log. 0; -ENODATA: the port has no usable
 * GID, with a line; on InfiniBand, whose ports are addressed by LID, that is never an error.
 */
int ha_gid_select(const struct ha_verbs_ops *verbs, struct ibv_context *context, const char *name,
		  uint8_t port, const struct ibv_port_attr *attr, const struct ha_config *config,
		  struct ha_gid_entry *chosen);

#define HA_GID_TEXT_MAX 64
/* "10.0.0.1" for IPv4, else as IPv6. Returns buf (HA_GID_TEXT_MAX bytes). */
const char *ha_gid_text(const union ibv_gid *gid, char *buf);

#endif
