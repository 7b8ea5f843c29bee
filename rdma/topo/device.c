/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/device.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "base/namelist.h"
#include "rdma/topo/gdr.h"
#include "rdma/topo/gid.h"
#include "rdma/topo/look.h"
#include "rdma/topo/pci.h"
#include "rdma/topo/speed.h"
#include "rdma/topo/switches.h"
#include "rdma/topo/sysfs.h"
#include "rdma/verbs/status.h"

#define SYSFS "/sys/"

/* One discovery in progress. */
struct discovery {
	const struct ha_verbs_ops *verbs;
	const struct ha_config *config;
	struct ha_topo *topo;
	struct ha_namelist hcas; /* NCCL_IB_HCA */
	bool peer_memory;        /* a kernel module translates GPU addresses */
	bool soft_gpu;           /* the GPUs are softcuda's */
	int listed;              /* devices that the library knows */
	int filtered;            /* ports that NCCL_IB_HCA keeps out */
	/* ports that are not usable yet; from devices[HA_TOPO_DEVICES_MAX] on while the list
	 * grows */
	int waiting;
};

/*
 * A software NIC has no PCI function, but NCCL must be given a place: it takes all without
 * one for a card, merges its ports, and has no room for what comes of it. The kernel's stands on a
 * NIC; one in user space may have folders of its own that look like those of a function.
 */
static void stand_in_fill(const struct discovery *d, struct ha_topo_device *dev,
			  const struct ibv_device *listed)
{
	const char *root = d->config->sysfs_root;
	char path[PATH_MAX] = "", netdev[64];

	if (ha_sysfs_read(root, netdev, sizeof(netdev), "/sys/class/infiniband/%s/parent",
			  dev->name) > 0)
		ha_sysfs_realpath(root, path, sizeof(path), "/sys/class/net/%s/device", netdev);
	else if (*listed->ibdev_path)
		ha_sysfs_realpath("", path, sizeof(path), "%s/device", listed->ibdev_path);
	ha_pci_climb(path);
	if (strlen(path) < sizeof(dev->place.card_path))
		ha_pci_card_path(path, false, dev->place.card_path, sizeof(dev->place.card_path));
}

static void place_fill(const struct discovery *d, struct ha_topo_device *dev)
{
	const char *root = d->config->sysfs_root;
	const char *card;

	ha_sysfs_realpath(root, dev->place.pci_path, sizeof(dev->place.pci_path),
			  "/sys/class/infiniband/%s/device", dev->name);
	/* softroce-run's, of a NIC in user space */
	if (strncmp(dev->place.pci_path, SYSFS, strlen(SYSFS)))
		dev->place.pci_path[0] = 0;
	dev->place.is_virtual = ha_pci_leave_subfunction(dev->place.pci_path);
	dev->place.is_virtual |=
		ha_pci_physical(root, dev->place.pci_path, dev->place.physical_path,
				sizeof(dev->place.physical_path));
	card = d->config->ib_merge_vfs ? dev->place.physical_path : dev->place.pci_path;
	ha_pci_card_path(card, d->config->ib_merge_vfs, dev->place.card_path,
			 sizeof(dev->place.card_path));
	dev->place.numa_node = ha_pci_numa_node(root, dev->place.pci_path);
	dev->place.is_soft = ha_pci_order(dev->place.pci_path) == UINT64_MAX;
	if (dev->place.is_soft)
		stand_in_fill(d, dev, d->topo->list[dev->list_index]);
}

/* NCCL is given the function that data takes, and then exports GPU memory for it. */
static void data_direct_fill(const struct discovery *d, struct ha_topo_device *dev)
{
	char path[HA_DEVICE_PATH_MAX];

	if (!d->config->ib_data_direct || !dev->dma_buf ||
	    d->verbs->data_direct_path(d->verbs, dev->context, path, sizeof(path)))
		return;
	dev->data_direct = true;
	memcpy(dev->place.card_path, path, sizeof(path));
	HA_INFO(dev->name, "data direct: the data of GPU memory goes through %s", path);
}

static void unordered_fill(const struct discovery *d, struct ha_topo_device *dev)
{
	if (!d->config->ib_ooo_rq)
		return;
	dev->unordered = !d->verbs->query_unordered(d->verbs, dev->context);
	if (dev->unordered)
		HA_INFO(dev->name,
			"messages may arrive in any order, if the peer's NICs can do that too");
	else
		HA_WARN(dev->name,
			"NCCL_IB_OOO_RQ=1: this NIC, its kernel or its libmlx5 (rdma-core 55) has "
			"no queue pairs whose messages may arrive in any order; they arrive in "
			"order");
}

static void abilities_fill(const struct discovery *d, struct ha_topo_device *dev)
{
	int routing = d->config->ib_adaptive_routing;

	dev->adaptive_routing = routing < 0 ? !dev->is_ethernet : routing;
	dev->relaxed_ordering = !dev->place.is_soft && d->verbs->optional_access &&
				d->config->ib_pci_relaxed_ordering;
	dev->dma_buf = ha_gdr_dma_buf(d->verbs, dev->context);
	data_direct_fill(d, dev);
	unordered_fill(d, dev);
	dev->peer_memory = dev->place.is_soft ? d->soft_gpu : d->peer_memory;
	dev->apm_enabled = ha_sysfs_number(d->config->sysfs_root, 0,
					   "/sys/class/infiniband/%s/ports/%d/apm_enable",
					   dev->name, dev->port) != 0;
	if (dev->apm_enabled && d->config->enable_backup)
		HA_WARN(dev->name,
			"the driver's own path migration (APM) is enabled on port %d and would "
			"fight with the standby "
			"path. Disable it, or set HA_NCCL_ENABLE_BACKUP=0",
			dev->port);
}

/* How peers reach an active port. False: they cannot, and the log said why. */
static bool address_fill(const struct ha_verbs_ops *verbs, const struct ha_config *config,
			 struct ha_topo_device *dev, const struct ibv_port_attr *attr)
{
	struct ha_gid_entry gid;

	dev->address.lid = attr->lid;
	dev->address.mtu = attr->active_mtu;
	if (ha_gid_select(verbs, dev->context, dev->system_name, (uint8_t)dev->port, attr, config,
			  &gid))
		return false;
	dev->address.gid_index = gid.index;
	dev->address.gid = gid.gid;
	dev->address.roce_version = dev->is_ethernet ? gid.roce_version : 0;
	return true;
}

/* What the hardware says of a port; not its address. */
static void attributes_fill(const struct ha_verbs_ops *verbs, struct ha_topo_device *dev,
			    const struct ha_port_attr *port)
{
	dev->port_attr = port->attr;
	dev->is_ethernet = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	dev->speed_mbps = dev->speed_now =
		ha_speed_port(verbs, dev->context, (uint8_t)dev->port, port);
}

static void port_fill(const struct discovery *d, struct ha_topo_device *dev,
		      const struct ha_port_attr *port)
{
	attributes_fill(d->verbs, dev, port);
	dev->up = port->attr.state == IBV_PORT_ACTIVE &&
		  address_fill(d->verbs, d->config, dev, &port->attr);
	place_fill(d, dev);
	abilities_fill(d, dev);
}

static bool link_layer_known(const struct ha_port_attr *attr)
{
	return attr->attr.link_layer == IBV_LINK_LAYER_INFINIBAND ||
	       attr->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* May this port be used, now or when it comes up? Queries it into `attr` and says why not. */
static bool port_wanted(struct discovery *d, const struct ha_topo_device *dev,
			struct ha_port_attr *attr, const struct ha_namelist_item **item)
{
	int rc;

	if (!ha_namelist_match(&d->hcas, dev->name, dev->port, item)) {
		d->filtered++;
		HA_TRACE(dev->name, "port %d is left out by NCCL_IB_HCA=%s", dev->port,
			 d->config->ib_hca);
		return false;
	}
	rc = d->verbs->query_port(d->verbs, dev->context, (uint8_t)dev->port, attr);
	if (rc) {
		HA_WARN(dev->name, "cannot query port %d: %s", dev->port, strerror(-rc));
		return false;
	}
	if (attr->attr.state != IBV_PORT_ACTIVE) {
		d->topo->down++;
		HA_INFO(dev->name,
			"port %d is %s and left out; check its cable and `ip link` or `ibstat`",
			dev->port, ha_verbs_port_state_name(attr->attr.state));
		return link_layer_known(attr);
	}
	if (!link_layer_known(attr)) {
		HA_INFO(dev->name, "port %d is neither InfiniBand nor RoCE and is left out",
			dev->port);
		return false;
	}
	return true;
}

/* Where the next port goes: to the reported ones or to those that wait. NULL: no room, with a
 * line. */
static struct ha_topo_device *port_place(struct discovery *d, const struct ha_topo_device *dev)
{
	int *n = dev->up ? &d->topo->ndevices : &d->waiting;

	if (*n < HA_TOPO_DEVICES_MAX)
		return &d->topo->devices[(dev->up ? 0 : HA_TOPO_DEVICES_MAX) + (*n)++];
	if (dev->up)
		HA_WARN(dev->name,
			"more than %d ports; the rest is left out. Choose with NCCL_IB_HCA",
			HA_TOPO_DEVICES_MAX);
	else
		HA_INFO(dev->name,
			"more than %d ports are down; port %d will not be seen when it comes up",
			HA_TOPO_DEVICES_MAX, dev->port);
	return NULL;
}

/* Adds the ports of one open device. Returns how many. */
static int ports_add(struct discovery *d, const struct ha_topo_device *model)
{
	int added = 0;

	for (int port = 1; port <= model->attr.phys_port_cnt; port++) {
		const struct ha_namelist_item *item;
		struct ha_topo_device dev = *model, *place;
		struct ha_port_attr attr;

		dev.port = port;
		if (!port_wanted(d, &dev, &attr, &item))
			continue;
		port_fill(d, &dev, &attr);
		dev.place.rail_id = item ? item->rail : HA_NAMELIST_ANY;
		dev.place.plane_id = item ? item->plane : HA_NAMELIST_ANY;
		place = port_place(d, &dev);
		if (!place)
			continue;
		*place = dev;
		added++;
	}
	return added;
}

static void device_add(struct discovery *d, struct ibv_device *device, int index)
{
	const struct ha_verbs_ops *verbs = d->verbs;
	struct ha_topo_device model = { .list_index = index };
	int rc;

	snprintf(model.name, sizeof(model.name), "%.*s", (int)sizeof(model.name) - 1, device->name);
	memcpy(model.system_name, model.name, sizeof(model.system_name));
	rc = verbs->open(verbs, device, &model.context);
	if (rc) {
		HA_WARN(model.name,
			"cannot open the device: %s. Check the rights on /dev/infiniband and "
			"`ulimit -l`",
			strerror(-rc));
		return;
	}
	rc = verbs->query_device(verbs, model.context, &model.attr);
	if (!rc)
		rc = verbs->hot(verbs, model.context, &model.hot);
	if (rc)
		HA_WARN(model.name, "cannot query the device: %s", strerror(-rc));
	model.guid = be64toh(model.attr.sys_image_guid);
	model.node_guid = be64toh(model.attr.node_guid);
	if (rc || !ports_add(d, &model))
		verbs->close(verbs, model.context);
}

static int order_compare(const void *a, const void *b)
{
	const struct ha_topo_device *x = a, *y = b;
	uint64_t ox = ha_pci_order(x->place.pci_path), oy = ha_pci_order(y->place.pci_path);

	if (ox != oy)
		return ox < oy ? -1 : 1;
	if (x->list_index != y->list_index)
		return x->list_index - y->list_index;
	return x->port - y->port;
}

/* The ports that wait follow the reported ones. */
static void list_close(struct discovery *d)
{
	struct ha_topo *topo = d->topo;
	struct ha_topo_device *waiting = &topo->devices[topo->ndevices];

	topo->nports = topo->ndevices + d->waiting;
	memmove(waiting, &topo->devices[HA_TOPO_DEVICES_MAX],
		(size_t)d->waiting * sizeof(*waiting));
	if (!d->config->ib_device_pci_order)
		return;
	qsort(topo->devices, (size_t)topo->ndevices, sizeof(*waiting), order_compare);
	qsort(waiting, (size_t)d->waiting, sizeof(*waiting), order_compare);
}

/* NCCL tells functions of one card apart by a port number that counts over the card. */
static void card_ports_count(struct ha_topo *topo)
{
	for (int i = 0; i < topo->ndevices; i++) {
		struct ha_topo_device *dev = &topo->devices[i];

		dev->place.card_port = 0;
		for (int j = 0; j < i && *dev->place.card_path; j++)
			dev->place.card_port +=
				!strcmp(topo->devices[j].place.card_path, dev->place.card_path);
	}
}

/* "mlx5_0, mlx5_1, ...": the devices that the library lists, as many as fit. Returns buf. */
static const char *names_list(const struct discovery *d, char *buf, size_t len)
{
	size_t used = 0;

	*buf = 0;
	for (int i = 0; i < d->listed; i++) {
		const char *name = d->topo->list[i]->name;

		if (used + strlen(name) + sizeof(", ...") > len - 2) {
			snprintf(buf + used, len - used, ", ...");
			break;
		}
		used += (size_t)snprintf(buf + used, len - used, "%s%s", i ? ", " : "", name);
	}
	return buf;
}

static void result_log(const struct discovery *d)
{
	const struct ha_topo *topo = d->topo;
	char gid[HA_GID_TEXT_MAX], names[256];

	for (int i = 0; i < topo->ndevices; i++) {
		const struct ha_topo_device *dev = &topo->devices[i];

		HA_INFO(dev->name, "device %d: port %d %s %d Mb/s GID %d %s%s NUMA %d %s", i,
			dev->port, dev->is_ethernet ? "RoCE" : "InfiniBand", dev->speed_mbps,
			dev->address.gid_index, ha_gid_text(&dev->address.gid, gid),
			dev->relaxed_ordering ? " relaxed-ordering" : "", dev->place.numa_node,
			*dev->place.pci_path ? dev->place.pci_path : "(no PCI device)");
	}
	if (topo->ndevices)
		return;
	if (!d->listed && !strcmp(d->config->verbs, "soft"))
		HA_WARN(NULL, "the software NIC has no device: SOFTROCE_DEVICES must name a "
			      "loopback subnet, or an address or an interface "
			      "of this machine");
	else if (!d->listed)
		HA_WARN(NULL,
			"no RDMA device in %s. Load the NIC's driver (`ibv_devices` must list it) "
			"and install "
			"ibverbs-providers, or set HA_NCCL_VERBS=soft for the software NIC",
			d->verbs->name);
	else if (d->filtered && !topo->down)
		HA_WARN(NULL,
			"NCCL_IB_HCA=%s leaves none of the %d devices (%s); correct or unset it",
			d->config->ib_hca, d->listed, names_list(d, names, sizeof(names)));
	else
		HA_WARN(NULL,
			"%d RDMA devices, none with a usable port (%d down); check cables and "
			"`ibstat`, or set "
			"HA_NCCL_VERBS=soft for the software NIC",
			d->listed, topo->down);
}

static void config_read(struct discovery *d)
{
	const struct ha_config *config = d->config;
	struct ha_gid_range range;
	bool inet6 = config->ib_addr_family == HA_GID_INET6;

	if (ha_namelist_parse(&d->hcas, config->ib_hca))
		HA_WARN(NULL,
			"NCCL_IB_HCA=%s has parts that are no name[:port[:rail[:plane]]] (rail up "
			"to %d, plane up to %d); they are "
			"ignored",
			config->ib_hca, HA_NAMELIST_RAIL_MAX, HA_NAMELIST_PLANE_MAX);
	if (ha_gid_range_parse(&range, config->ib_addr_range, inet6))
		HA_WARN(NULL, "NCCL_IB_ADDR_RANGE=%s is no %s prefix such as %s; it is ignored",
			config->ib_addr_range, inet6 ? "IPv6" : "IPv4",
			inet6 ? "fd00::/8" : "10.0.0.0/8");
	if (config->ib_pci_relaxed_ordering == 1 && !d->verbs->optional_access)
		HA_WARN(NULL,
			"NCCL_IB_PCI_RELAXED_ORDERING=1, but %s is too old for it (needs rdma-core "
			"28)",
			d->verbs->name);
	d->peer_memory = ha_gdr_peer_memory(config->sysfs_root);
	d->soft_gpu = ha_gdr_soft_gpu();
}

int ha_topo_discover(const struct ha_verbs_ops *verbs, const struct ha_config *config,
		     struct ha_topo *topo)
{
	struct discovery d = { .verbs = verbs, .config = config, .topo = topo };
	int rc;

	memset(topo, 0, sizeof(*topo));
	topo->verbs = verbs;
	if (config->ib_disable) {
		HA_INFO(NULL, "NCCL_IB_DISABLE=1: no RDMA device is used");
		return 0;
	}
	config_read(&d);
	rc = verbs->device_list(verbs, &topo->list, &d.listed);
	if (rc && rc != -ENOSYS) {
		HA_WARN(NULL, "%s cannot list devices: %s", verbs->name, strerror(-rc));
		return rc;
	}
	if (rc) /* the kernel has no RDMA at all: an empty list */
		d.listed = 0;
	for (int i = 0; i < d.listed; i++)
		device_add(&d, topo->list[i], i);
	list_close(&d);
	card_ports_count(topo);
	ha_switches_read(config, topo);
	result_log(&d);
	return 0;
}

static int find_label(const struct ha_topo *topo, const char *label)
{
	char own[HA_DEVICE_NAME_MAX + 8];

	for (int i = 0; i < topo->nports; i++)
		if (!strcmp(ha_topo_device_label(&topo->devices[i], own, sizeof(own)), label))
			return i;
	return -1;
}

int ha_topo_number(struct ha_topo *topo, const struct ha_topo_known *known, int n)
{
	bool placed[HA_TOPO_PORTS_MAX] = { false };
	struct ha_topo_device *list;
	int at = 0;

	if (n < 1)
		return 0;
	list = calloc((size_t)topo->nports + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (; at < n; at++) {
		int i = find_label(topo, known[at].label);

		if (i < 0 || placed[i]) {
			HA_WARN(NULL,
				"%s is gone, and NCCL counts on it as device %d: start the "
				"process anew",
				known[at].label, at);
			free(list);
			return -ENODEV;
		}
		placed[i] = true;
		list[at] = topo->devices[i];
		if (list[at].up)
			continue;
		HA_INFO(known[at].label, "device %d is down; what begins on it goes over another",
			at);
		if (known[at].speed_mbps > 0)
			list[at].speed_mbps = known[at].speed_mbps;
	}
	for (int i = 0; i < topo->nports; i++)
		if (!placed[i])
			list[at++] = topo->devices[i];
	memcpy(topo->devices, list, (size_t)topo->nports * sizeof(*list));
	free(list);
	topo->ndevices = n;
	card_ports_count(topo);
	return 0;
}

/* What the standby orders are made of has changed. */
static void forget_orders(struct ha_topo *topo)
{
	free(topo->standby);
	topo->standby = NULL;
}

void ha_topo_release(struct ha_topo *topo)
{
	for (int i = 0; i < topo->nports; i++) {
		struct ibv_context *context = topo->devices[i].context;

		for (int j = i; j < topo->nports; j++) /* ports of one device share it */
			if (topo->devices[j].context == context)
				topo->devices[j].context = NULL;
		if (context)
			topo->verbs->close(topo->verbs, context);
	}
	if (topo->list)
		topo->verbs->device_list_free(topo->verbs, topo->list);
	topo->list = NULL;
	topo->ndevices = topo->nports = 0;
	forget_orders(topo);
}

/* A port's attributes, once it has been up, are what they were: who looks at them then needs no
 * lock. */
static void store_attributes(struct ha_topo_device *d, const struct ha_topo_device *now)
{
	/* Padding that differs costs a store. */
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	if (!memcmp(&d->port_attr, &now->port_attr, sizeof(d->port_attr)) &&
	    d->is_ethernet == now->is_ethernet && d->speed_mbps == now->speed_mbps)
		return;
	d->port_attr = now->port_attr;
	d->is_ethernet = now->is_ethernet;
	d->speed_mbps = now->speed_mbps;
}

/* As standby orders see it (standby.c). */
static bool is_ordered_alike(const struct ha_topo_device *a, const struct ha_topo_device *b)
{
	return a->up == b->up && a->is_ethernet == b->is_ethernet &&
	       a->speed_mbps == b->speed_mbps &&
	       a->address.roce_version == b->address.roce_version &&
	       !memcmp(&a->address.gid, &b->address.gid, sizeof(a->address.gid));
}

static void store_device_state(struct ha_topo *topo, int dev, const struct ha_topo_device *now)
{
	struct ha_topo_device *d = &topo->devices[dev];

	if (!is_ordered_alike(d, now))
		forget_orders(topo);
	pthread_mutex_lock(&topo->lock);
	/* of a reported one they may be read by whoever asks for properties */
	if (dev < topo->ndevices)
		d->port_attr.state = now->port_attr.state;
	else
		store_attributes(d, now);
	d->speed_now = now->speed_now;
	d->up = now->up;
	d->address = now->address;
	pthread_mutex_unlock(&topo->lock);
}

int ha_topo_refresh(struct ha_topo *topo, const struct ha_config *config, int dev)
{
	struct ha_topo_device now = topo->devices[dev];
	struct ha_port_attr attr;
	bool was_up = now.up;
	int rc;

	rc = now.context
		     ? topo->verbs->query_port(topo->verbs, now.context, (uint8_t)now.port, &attr)
		     : -ENODEV;
	now.up = false;
	if (rc) {
		store_device_state(topo, dev, &now);
		return rc;
	}
	attributes_fill(topo->verbs, &now, &attr);
	if (attr.attr.state == IBV_PORT_ACTIVE)
		now.up = address_fill(topo->verbs, config, &now, &attr.attr);
	else if (dev < topo->ndevices)
		now.speed_now = topo->devices[dev].speed_now;
	store_device_state(topo, dev, &now);
	return now.up != was_up;
}

void ha_topo_lose(struct ha_topo *topo, int dev)
{
	pthread_mutex_lock(&topo->lock);
	topo->devices[dev].context = NULL;
	topo->devices[dev].up = false;
	pthread_mutex_unlock(&topo->lock);
	forget_orders(topo);
}

void ha_topo_regain(struct ha_topo *topo, int dev, const struct ha_topo_found *found)
{
	struct ha_topo_device *d = &topo->devices[dev];

	pthread_mutex_lock(&topo->lock);
	d->context = found->context;
	d->hot = found->hot;
	memcpy(d->system_name, found->name, sizeof(d->system_name));
	pthread_mutex_unlock(&topo->lock);
	forget_orders(topo);
}

enum ha_pci_distance ha_topo_distance(const struct ha_topo *topo, int a, int b)
{
	const struct ha_topo_device *x = &topo->devices[a], *y = &topo->devices[b];

	if (a == b || (x->context && x->context == y->context) ||
	    (x->guid && x->guid == y->guid && !x->place.is_soft))
		return HA_PCI_SAME_CARD;
	return ha_pci_distance(x->place.physical_path, x->place.numa_node, y->place.physical_path,
			       y->place.numa_node);
}

const char *ha_topo_device_label(const struct ha_topo_device *device, char *buf, size_t len)
{
	snprintf(buf, len, "%s:%d", device->name, device->port);
	return buf;
}
