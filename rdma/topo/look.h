/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * look.h - is a device that has failed in the library's list again, under whatever name?
 *
 * It is the one with its node GUID, and its PCI function where several devices have that GUID.
 * Where the device or the candidate has no GUID (0), the PCI function decides; where there is none
 * either, a GID of the port. A device of another GUID is another one, whatever its name or slot.
 */
#ifndef HA_TOPO_LOOK_H
#define HA_TOPO_LOOK_H

#include "rdma/topo/device.h"

/* What is known of it, and which names others have that are not it. */
struct ha_topo_mark {
	char name[HA_DEVICE_NAME_MAX]; /* the last one it had */
	uint64_t node_guid;
	char pci_path[HA_DEVICE_PATH_MAX];
	int port; /* one of its ports, with the last GID of that */
	union ibv_gid gid;
	bool is_ethernet;
	int nothers;
	char other[HA_TOPO_PORTS_MAX][HA_DEVICE_NAME_MAX];
};

enum ha_sight {
	HA_SIGHT_NONE,        /* it is not listed */
	HA_SIGHT_BACK,        /* it is, and was opened: name, context, hot, nports */
	HA_SIGHT_OTHER,       /* it is not, and another one has its name: guid */
	HA_SIGHT_LIST_FAILED, /* err */
	HA_SIGHT_OPEN_FAILED, /* it is listed as `name`, and cannot be used: err */
};

struct ha_topo_found {
	enum ha_sight sight;
	int err; /* negative errno */
	char name[HA_DEVICE_NAME_MAX];
	uint64_t guid; /* host byte order */
	struct ibv_context *context;
	struct ha_verbs_hot hot;
	int nports; /* of the device */
};

/* Look once. Slow: lists and opens devices. Any thread. */
void ha_topo_look(const struct ha_verbs_ops *verbs, const struct ha_config *config,
		  const struct ha_topo_mark *mark, struct ha_topo_found *found);
/* Only whether it is listed: 1, 0, or a negative errno. */
int ha_topo_listed(const struct ha_verbs_ops *verbs, const struct ha_topo_mark *mark);

#endif
