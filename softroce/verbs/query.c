/* SPDX-License-Identifier: BSD-3-Clause */
/* query.c - attributes of the device and its port, GID and P_Key tables */
#include "softroce/verbs/objects.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

__be64 sr_guid_of(const uint8_t gid[16])
{
	uint8_t raw[8] = { 0x02, 'S', 'R' }; /* 0x02: locally administered */
	__be64 guid;

	if (sr_gid_ipv4(gid))
		memcpy(raw + 4, gid + 12, 4);
	else
		memcpy(raw, gid + 8, 8);
	memcpy(&guid, raw, sizeof(guid));
	return guid;
}

#undef ibv_query_port /* the header's macro; here the function of that name is defined */

#define PORT 1
#define PHYS_STATE_DISABLED 3 /* PortInfo.PortPhysicalState, IBTA vol. 1 14.2.5.6 */
#define PHYS_STATE_LINK_UP 5
#define PKEY_DEFAULT 0xffff /* full member of the default partition, IBTA vol. 1 10.9.1.2 */
/* struct _compat_ibv_port_attr */
#define COMPAT_PORT_ATTR_LEN offsetof(struct ibv_port_attr, port_cap_flags2)

static int device_fill(struct sr_context *context, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	if (!sr_context_enter(context))
		return EIO;
	sr_nic_query_device(context->adapter->nic, attr);
	sr_context_leave(context);
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", HAWSER_VERSION);
	/*
	 * Of no vendor, as the kernel's software NIC says too; 0 would read as a device that does
	 * not know.
	 */
	attr->vendor_id = 0xffffff;
	attr->vendor_part_id = 0;
	attr->node_guid = sr_guid_of(context->device->gid);
	attr->sys_image_guid = attr->node_guid;
	attr->phys_port_cnt = 1;
	attr->max_pkeys = 1;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return device_fill(sr_context_of(context), attr);
}

int sr_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex full = { 0 };
	int err;

	if (input && input->comp_mask)
		return EINVAL;
	if (len < sizeof(full.orig_attr))
		return EINVAL;
	err = device_fill(sr_context_of(context), &full.orig_attr);
	if (err)
		return err;
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	full.phys_port_cnt_ex = 1;
	/* No on-demand paging, no timestamps, no offloads: zeros say so. */
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

static int port_fill(struct sr_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	if (port != PORT)
		return EINVAL;
	if (!sr_context_enter(context))
		return EIO;
	sr_nic_query_port(context->adapter->nic, attr);
	sr_netif_ib_speed(context->adapter->speed_reported ? context->adapter->speed_reported
							   : context->adapter->link.speed,
			  &attr->active_width, &attr->active_speed);
	sr_context_leave(context);
	attr->gid_tbl_len = SR_GIDS;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
	attr->phys_state =
		attr->state == IBV_PORT_ACTIVE ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
	return 0;
}

int sr_query_port_verb(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		       size_t len)
{
	struct ibv_port_attr full;
	int err = port_fill(sr_context_of(context), port, &full);

	if (err)
		return err;
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

/* Called by programs built before the struct grew; NCCL too takes it by dlvsym(). */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return sr_query_port_verb(context, port, (struct ibv_port_attr *)attr,
				  COMPAT_PORT_ATTR_LEN);
}

/* 0, or ENODATA for an unused entry. */
static int gid_read(struct sr_context *context, uint32_t port, uint32_t index,
		    struct ibv_gid_entry *entry)
{
	static const uint8_t zero[16];

	memset(entry, 0, sizeof(*entry));
	if (port != PORT || index >= SR_GIDS)
		return EINVAL;
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	if (!sr_context_enter(context))
		return EIO;
	memcpy(entry->gid.raw, context->adapter->link.gid[index], 16);
	entry->ndev_ifindex = context->adapter->link.ifindex;
	sr_context_leave(context);
	return memcmp(entry->gid.raw, zero, 16) ? 0 : ENODATA;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int err = gid_read(sr_context_of(context), port, index, &entry);

	/* An unused entry reads as zeros, as from the kernel's table. */
	if (err && err != ENODATA) {
		errno = err;
		return -1;
	}
	*gid = entry.gid;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *out, uint32_t flags, size_t len)
{
	struct ibv_gid_entry entry;
	int err;

	if (flags)
		return EOPNOTSUPP;
	err = gid_read(sr_context_of(context), port, index, &entry);
	if (err)
		return err;
	memset(out, 0, len);
	memcpy(out, &entry, len < sizeof(entry) ? len : sizeof(entry));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t len)
{
	ssize_t n = 0;

	if (flags)
		return -EOPNOTSUPP;
	for (uint32_t i = 0; i < SR_GIDS; i++) {
		struct ibv_gid_entry entry;
		char *out = (char *)entries + n * len;
		int err = gid_read(sr_context_of(context), PORT, i, &entry);

		if (err == ENODATA)
			continue;
		if (err)
			return -err;
		if ((size_t)n == max)
			return -EINVAL;
		memset(out, 0, len);
		memcpy(out, &entry, len < sizeof(entry) ? len : sizeof(entry));
		n++;
	}
	return n;
}

/*
 * Private to rdma-core, but its own ibv_devinfo calls it. Types as sysfs counts them: 0 v1 or
 * InfiniBand, 1 v2.
 */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	struct ibv_gid_entry entry;
	int err = gid_read(sr_context_of(context), port, index, &entry);

	if (err && err != ENODATA) {
		errno = err;
		return -1;
	}
	*type = 1;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (port != PORT || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htons(PKEY_DEFAULT);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (port != PORT || pkey != htons(PKEY_DEFAULT)) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}
