/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - the RDMA devices of this host, one entry per port
 *
 * What is reported is what the hardware says: a standby or a fused device is the core's business,
 * not a property of the list. Ports that could not be used at discovery are known too, behind the
 * reported ones, because they may come up and then serve as a standby (standby.h). Discovery opens
 * each device once and leaves it open for the core; ha_topo_release closes them.
 */
#ifndef HA_TOPO_DEVICE_H
#define HA_TOPO_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "rdma/topo/leaf.h"
#include "rdma/topo/pci.h"
#include "rdma/verbs/ops.h"

#define HA_DEVICE_NAME_MAX IBV_SYSFS_NAME_MAX /* bytes, with the final 0 */
#define HA_DEVICE_PATH_MAX 512                /* bytes of a sysfs path, with the final 0 */
/* active ports that are looked at; more are ignored with a line */
#define HA_TOPO_DEVICES_MAX 64
/* with those that are not usable yet, as many again */
#define HA_TOPO_PORTS_MAX (2 * HA_TOPO_DEVICES_MAX)

struct ha_config;

/* Where a port sits; constant once the list is made. */
struct ha_topo_place {
	char pci_path[HA_DEVICE_PATH_MAX]; /* real path of its PCI function; "" when it has none */
	/* What NCCL is given: function (and a VF's number) set to 0; a software NIC's stand-in or
	 * "" */
	char card_path[HA_DEVICE_PATH_MAX];
	int card_port;            /* ports of the same card that come before this one in the list */
	int numa_node;            /* -1: unknown */
	int rail_id, plane_id;    /* from NCCL_IB_HCA's name:port:rail:plane; -1: not given */
	struct ha_topo_switch at; /* from the file of `ha switches` */
	/* of a virtual function: its physical one; else pci_path */
	char physical_path[HA_DEVICE_PATH_MAX];
	bool is_virtual; /* a PCI virtual function */
	bool is_soft;    /* no PCI device behind it: a software NIC */
};

/* How peers address it; ha_topo_refresh() writes it, under the lock of the topology. */
struct ha_topo_address {
	int gid_index;
	union ibv_gid gid;
	int roce_version; /* of that GID: 1, 2; 0 on InfiniBand */
	uint16_t lid;
	enum ibv_mtu mtu; /* active */
};

struct ha_topo_device {
	char name[HA_DEVICE_NAME_MAX]; /* "mlx5_0", as it was discovered */
	/* As the system has it now: another one if it came back by another name. Changed by one who
	 * refreshes. */
	char system_name[HA_DEVICE_NAME_MAX];
	int port;       /* 1-based, as verbs count */
	int list_index; /* position in the library's list */
	bool up;        /* active and with an address, when it was last asked */

	struct ibv_context
		*context;        /* shared by the ports of one device; NULL: the device is lost */
	struct ha_verbs_hot hot; /* of that context */

	struct ha_topo_place place;

	/* What it can do. */
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	uint64_t guid; /* system image GUID, host byte order: the same for all ports of a card */
	uint64_t node_guid;    /* of the device, host byte order */
	int speed_mbps;        /* that it was reported with */
	int speed_now;         /* when it was last asked while it was up */
	bool is_ethernet;      /* RoCE; else InfiniBand */
	bool adaptive_routing; /* the fabric may reorder packets of one queue pair */
	bool relaxed_ordering; /* register memory with IBV_ACCESS_RELAXED_ORDERING */
	bool dma_buf;          /* dma-buf registration works */
	bool data_direct;      /* and its data takes a PCIe function of its own: card_path */
	bool unordered;        /* NCCL_IB_OOO_RQ=1, and it has queue pairs of that kind */
	bool peer_memory;      /* a kernel module lets it register GPU memory by address */
	bool apm_enabled;      /* the driver's own path migration is on: it would fight with ours */
	struct ha_topo_address address;
};

struct ha_topo {
	const struct ha_verbs_ops *verbs;
	/* What ha_topo_refresh changes: written under it, by one at a time, who reads without;
	 * anybody else reads under it. Zero is a lock that is free. */
	pthread_mutex_t lock;
	int ndevices; /* reported: the first ones */
	int nports;   /* all that are known; those from ndevices on were not usable at discovery */
	struct ha_topo_device devices[HA_TOPO_PORTS_MAX];
	struct ibv_device **list; /* of the library; kept while contexts are open */
	int down;                 /* ports that were left out because they are not active */
	/* The orders that ha_topo_standby keeps, of the list as it is; NULL: none are made yet.
	 * Only the one who refreshes touches them. */
	struct ha_standby *standby;
};

/*
 * List the active ports that NCCL_IB_HCA lets through, in PCI order (or the library's,
 * NCCL_IB_DEVICE_PCI_ORDER=0). Ports that are down are one INFO line each and are listed behind,
 * from ndevices to nports, in the same order. `verbs` and `topo` must stay until ha_topo_release.
 * 0 with ndevices 0: no device, and the log said what to do. Negative errno: the library failed;
 * nothing to release.
 */
int ha_topo_discover(const struct ha_verbs_ops *verbs, const struct ha_config *config,
		     struct ha_topo *topo);
/* A port that was reported before. */
struct ha_topo_known {
	const char *label; /* "mlx5_0:1" */
	int speed_mbps;    /* as it was then */
};

/*
 * Number the list as `known` does (n of them): these ports are the reported ones, in this order, up
 * or not, and all others are listed behind. One that is down has the speed of before: its own is
 * that of a port without a link. For whoever has counted before and does not count again. -ENODEV:
 * one is not there at all, and the log said which; -ENOMEM.
 */
int ha_topo_number(struct ha_topo *topo, const struct ha_topo_known *known, int n);
/* Close every context. Objects made in them must be gone. */
void ha_topo_release(struct ha_topo *topo);

/*
 * Ask a port again, after an event about it or a failure on it (dev < nports). `up`, its state and
 * how peers address it become what they are now; what a reported device was reported with (speed,
 * abilities) stays, and so does the last address of a port that went down. Nobody else may refresh
 * the entry meanwhile.
 * 1: `up` changed, so standby orders made before are out of date; 0: it did not; negative errno:
 * the port cannot be asked and counts as down.
 */
int ha_topo_refresh(struct ha_topo *topo, const struct ha_config *config, int dev);

/*
 * The port's device has failed: its context is the caller's from here on, and the port is down
 * until ha_topo_regain gives it another one (look.h). As ha_topo_refresh, by one at a time; who it
 * is and what it was reported with stay.
 */
void ha_topo_lose(struct ha_topo *topo, int dev);
struct ha_topo_found;
void ha_topo_regain(struct ha_topo *topo, int dev, const struct ha_topo_found *found);

/* How far two devices of the list are apart; functions with one system image GUID are the same
 * card. */
enum ha_pci_distance ha_topo_distance(const struct ha_topo *topo, int a, int b);

/* "mlx5_0:1", for logs. Returns buf. */
const char *ha_topo_device_label(const struct ha_topo_device *device, char *buf, size_t len);

#endif
