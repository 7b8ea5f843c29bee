/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "rdma/topo/sysfs.h"

#define GIDS_MAX 1024       /* entries of a port's table that are looked at */
#define IPV4_MAPPED_BITS 96 /* ::ffff:0:0/96 (RFC 4291, 2.5.5.2) */

static const uint8_t ipv4_mapped[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t link_local[8] = { 0xfe, 0x80 };

bool ha_gid_is_ipv4(const union ibv_gid *gid)
{
	return !memcmp(gid->raw, ipv4_mapped, sizeof(ipv4_mapped));
}

bool ha_gid_is_link_local(const union ibv_gid *gid)
{
	return !memcmp(gid->raw, link_local, sizeof(link_local));
}

bool ha_gid_is_zero(const union ibv_gid *gid)
{
	static const uint8_t zero[16];

	if (!memcmp(gid->raw + 8, zero, 8))
		return !memcmp(gid->raw, zero, 8) || ha_gid_is_link_local(gid);
	return false;
}

bool ha_gid_in_range(const union ibv_gid *gid, const struct ha_gid_range *range)
{
	unsigned bits = range->bits + (range->inet6 ? 0 : IPV4_MAPPED_BITS);
	unsigned rest = bits % 8;

	if (ha_gid_is_ipv4(gid) == range->inet6)
		return false;
	if (range->bits == 0)
		return true;
	if (memcmp(gid->raw, range->prefix.raw, bits / 8))
		return false;
	return !rest || !((gid->raw[bits / 8] ^ range->prefix.raw[bits / 8]) >> (8 - rest));
}

bool ha_gid_same_subnet(const union ibv_gid *a, const union ibv_gid *b, int ipv4_bits)
{
	bool inet6 = !ha_gid_is_ipv4(b);
	struct ha_gid_range range = { .inet6 = inet6,
				      .bits = inet6 ? 64 : (unsigned)ipv4_bits,
				      .prefix = *b };

	return !ha_gid_is_zero(a) && !ha_gid_is_zero(b) && ha_gid_in_range(a, &range);
}

int ha_gid_range_parse(struct ha_gid_range *range, const char *text, bool inet6)
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN], *end;
	unsigned long bits;

	memset(range, 0, sizeof(*range));
	range->inet6 = inet6;
	if (!*text)
		return 0;
	if (!slash || (size_t)(slash - text) >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = 0;
	if (inet6) {
		if (inet_pton(AF_INET6, address, range->prefix.raw) != 1)
			return -EINVAL;
	} else {
		memcpy(range->prefix.raw, ipv4_mapped, sizeof(ipv4_mapped));
		if (inet_pton(AF_INET, address, range->prefix.raw + sizeof(ipv4_mapped)) != 1)
			return -EINVAL;
	}
	if (slash[1] < '0' || slash[1] > '9')
		return -EINVAL;
	bits = strtoul(slash + 1, &end, 10);
	if (*end || bits > (inet6 ? 128 : 32))
		return -EINVAL;
	range->bits = (unsigned)bits;
	return 0;
}

/* Higher is better; -1: not usable at all. See the top of gid.h. */
static int rank_entry(const struct ha_gid_entry *entry, const struct ha_gid_range *range,
		      int roce_version)
{
	if (ha_gid_is_zero(&entry->gid))
		return -1;
	return 4 * ha_gid_in_range(&entry->gid, range) + 2 * !ha_gid_is_link_local(&entry->gid) +
	       (entry->roce_version == roce_version);
}

int ha_gid_choose(const struct ha_gid_entry *entries, int n, const struct ha_gid_range *range,
		  int roce_version)
{
	int best = -1, best_rank = -1;

	for (int i = 0; i < n; i++) {
		int r = rank_entry(&entries[i], range, roce_version);

		if (r > best_rank) {
			best_rank = r;
			best = i;
		}
	}
	return best;
}

/* 1 or 2 from the kernel's name of the type ("IB/RoCE v1", "RoCE v2"), 0 unknown. */
static int version_from_sysfs(const char *root, const char *name, int port, int index)
{
	char type[32];

	if (ha_sysfs_read(root, type, sizeof(type),
			  "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", name, port,
			  index) <= 0)
		return 0;
	if (strstr(type, "RoCE v2"))
		return 2;
	return strstr(type, "RoCE v1") ? 1 : 0;
}

static int version_of_type(uint32_t type)
{
	return type == IBV_GID_TYPE_ROCE_V2 ? 2 : type == IBV_GID_TYPE_ROCE_V1;
}

/* 0; -ENODATA: the index is empty; another negative errno: it cannot be read. */
static int entry_query(const struct ha_verbs_ops *verbs, struct ibv_context *context,
		       const char *root, const char *name, uint8_t port, int index,
		       struct ha_gid_entry *entry)
{
	struct ibv_gid_entry ex;
	int rc;

	memset(&ex, 0, sizeof(ex));
	memset(entry, 0, sizeof(*entry));
	entry->index = index;
	rc = verbs->query_gid_ex(verbs, context, port, index, &ex);
	if (!rc) {
		entry->gid = ex.gid;
		entry->roce_version = version_of_type(ex.gid_type);
		return 0;
	}
	if (rc == -ENODATA)
		return rc;
	rc = verbs->query_gid(verbs, context, port, index, &entry->gid);
	if (!rc)
		entry->roce_version = version_from_sysfs(root, name, port, index);
	return rc;
}

/* In one call: a table has up to 1,024 entries, nearly all of them empty, and is read before a path
 * is opened. How many are filled; -1: the library cannot. */
static int table_read_at_once(const struct ha_verbs_ops *verbs, struct ibv_context *context,
			      uint8_t port, struct ha_gid_entry *entries)
{
	struct ibv_gid_entry *all = malloc(GIDS_MAX * sizeof(*all));
	int found, n = 0;

	if (!all || verbs->query_gid_table(verbs, context, all, GIDS_MAX, &found)) {
		free(all);
		return -1;
	}
	for (int i = 0; i < found; i++) {
		if (all[i].port_num != port || ha_gid_is_zero(&all[i].gid))
			continue;
		entries[n++] = (struct ha_gid_entry) {
			.index = (int)all[i].gid_index,
			.gid = all[i].gid,
			.roce_version = version_of_type(all[i].gid_type),
		};
	}
	free(all);
	return n;
}

static int table_read(const struct ha_verbs_ops *verbs, struct ibv_context *context,
		      const char *root, const char *name, uint8_t port, int table_len,
		      struct ha_gid_entry *entries)
{
	int n = table_read_at_once(verbs, context, port, entries);

	if (n >= 0)
		return n;
	n = 0;
	for (int i = 0; i < table_len && n < GIDS_MAX; i++)
		if (!entry_query(verbs, context, root, name, port, i, &entries[n]) &&
		    !ha_gid_is_zero(&entries[n].gid))
			n++;
	return n;
}

/*
 * A GID of InfiniBand whose bytes 4-5 are not 0 carries a FLID that routers forward by; NCCL takes
 * it from index 1.
 */
static int infiniband_select(const struct ha_verbs_ops *verbs, struct ibv_context *context,
			     const char *name, uint8_t port, const struct ibv_port_attr *attr,
			     const struct ha_config *config, struct ha_gid_entry *chosen)
{
	const char *root = config->sysfs_root;
	int routable = config->ib_flid_gid_index;

	if (routable < attr->gid_tbl_len &&
	    !entry_query(verbs, context, root, name, port, routable, chosen) &&
	    (chosen->gid.raw[4] || chosen->gid.raw[5])) {
		chosen->roce_version = 0;
		return 0;
	}
	if (entry_query(verbs, context, root, name, port, 0, chosen))
		HA_INFO(name, "port %d has no GID 0; peers reach it by its LID %d", port,
			attr->lid);
	chosen->index = 0;
	chosen->roce_version = 0;
	return 0;
}

static int fixed_select(const struct ha_verbs_ops *verbs, struct ibv_context *context,
			const char *name, uint8_t port, const struct ibv_port_attr *attr,
			const struct ha_config *config, struct ha_gid_entry *chosen)
{
	int index = config->ib_gid_index;
	int rc = -ENODATA;

	if (index < attr->gid_tbl_len)
		rc = entry_query(verbs, context, config->sysfs_root, name, port, index, chosen);
	if (!rc && ha_gid_is_zero(&chosen->gid))
		rc = -ENODATA;
	if (rc)
		HA_WARN(name,
			"port %d has no GID at NCCL_IB_GID_INDEX=%d; unset it, or see `show_gids` "
			"for its table",
			port, index);
	return rc;
}

int ha_gid_select(const struct ha_verbs_ops *verbs, struct ibv_context *context, const char *name,
		  uint8_t port, const struct ibv_port_attr *attr, const struct ha_config *config,
		  struct ha_gid_entry *chosen)
{
	struct ha_gid_entry *entries;
	struct ha_gid_range range;
	int n, best;

	if (attr->link_layer == IBV_LINK_LAYER_INFINIBAND)
		return infiniband_select(verbs, context, name, port, attr, config, chosen);
	if (config->ib_gid_index >= 0)
		return fixed_select(verbs, context, name, port, attr, config, chosen);
	entries = malloc(GIDS_MAX * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	ha_gid_range_parse(&range, config->ib_addr_range, config->ib_addr_family == HA_GID_INET6);
	n = table_read(verbs, context, config->sysfs_root, name, port, attr->gid_tbl_len, entries);
	best = ha_gid_choose(entries, n, &range, config->ib_roce_version);
	if (best >= 0)
		*chosen = entries[best];
	free(entries);
	if (best < 0) {
		HA_WARN(name, "port %d has no GID; give its network interface an address", port);
		return -ENODATA;
	}
	if (range.bits && !ha_gid_in_range(&chosen->gid, &range))
		HA_WARN(name, "port %d has no address in NCCL_IB_ADDR_RANGE=%s; using GID %d", port,
			config->ib_addr_range, chosen->index);
	return 0;
}

const char *ha_gid_text(const union ibv_gid *gid, char *buf)
{
	if (ha_gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid->raw + sizeof(ipv4_mapped), buf, HA_GID_TEXT_MAX);
	else
		inet_ntop(AF_INET6, gid->raw, buf, HA_GID_TEXT_MAX);
	return buf;
}
