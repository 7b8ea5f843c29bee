/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports by themselves: state, address, speed, MTU, firmware. */
#include <stdio.h>
#include <string.h>

#include "rdma/topo/gid.h"
#include "rdma/topo/port_errors.h"
#include "rdma/topo/sysfs.h"
#include "rdma/verbs/status.h"
#include "tools/doctor/checks.h"

#define LABEL_MAX (HA_DEVICE_NAME_MAX + 8)
#define WIDTH_1X 1 /* ibv_port_attr.active_width, a bit per width */
#define WIDTH_2X 16
#define MODEL_MAX 64

static const char *label_of(const struct ha_topo_device *dev, char *label)
{
	return ha_topo_device_label(dev, label, LABEL_MAX);
}

/* ---- a port that cannot be used ---- */

static void mend_down(const struct doctor_host *host, const struct ha_topo_device *dev,
		      struct doctor_finding *f)
{
	char netdev[64];

	if (!dev->is_ethernet && dev->port_attr.state == IBV_PORT_INIT) {
		doctor_mend(f,
			    "systemctl start opensm on one host of the subnet: no subnet manager "
			    "has set it up");
		return;
	}
	if (*doctor_netdev(host, dev, netdev, sizeof(netdev)))
		doctor_mend(f,
			    "ip link set dev %s up; then check cable, transceiver and switch port",
			    netdev);
	else
		doctor_mend(f, "check cable, transceiver and switch port; `ibstat %s %d`",
			    dev->name, dev->port);
}

static void find_down(const struct doctor_host *host, const struct ha_topo_device *dev,
		      struct doctor_report *report)
{
	char label[LABEL_MAX], netdev[64];
	struct doctor_finding *f;

	if (dev->port_attr.state != IBV_PORT_ACTIVE) {
		f = doctor_add(report, DOCTOR_WARNING, "port.state", label_of(dev, label),
			       "the port is %s", ha_verbs_port_state_name(dev->port_attr.state));
		mend_down(host, dev, f);
	} else {
		f = doctor_add(report, DOCTOR_WARNING, "port.address", label_of(dev, label),
			       "the port has a link and no address that peers could use");
		doctor_netdev(host, dev, netdev, sizeof(netdev));
		doctor_mend(f, "ip address add ADDRESS/PREFIX dev %s", *netdev ? netdev : "NAME");
	}
	doctor_cost(f,
		    "it carries nothing and stands by for nobody; exclude it with "
		    "NCCL_IB_HCA=^%s if that is meant",
		    dev->name);
}

/* ---- a port that is up ---- */

static void check_gid(const struct ha_topo_device *dev, struct doctor_report *report)
{
	char label[LABEL_MAX], gid[HA_GID_TEXT_MAX];
	struct doctor_finding *f;

	if (!dev->is_ethernet)
		return;
	ha_gid_text(&dev->address.gid, gid);
	if (dev->address.roce_version == 1) {
		f = doctor_add(report, DOCTOR_WARNING, "port.gid", label_of(dev, label),
			       "GID %d (%s) is of RoCE version 1", dev->address.gid_index, gid);
		doctor_cost(f, "no router forwards it, and there is no congestion control by ECN");
		doctor_mend(f, "unset NCCL_IB_GID_INDEX NCCL_IB_ROCE_VERSION_NUM");
		return;
	}
	if (ha_gid_is_link_local(&dev->address.gid)) {
		f = doctor_add(report, DOCTOR_WARNING, "port.gid", label_of(dev, label),
			       "its only address is link-local: %s", gid);
		doctor_cost(f, "peers behind a router cannot be reached");
		doctor_mend(f, "ip address add ADDRESS/PREFIX dev NAME, on its network interface");
		return;
	}
	doctor_add(report, DOCTOR_FINE, "port.gid", label_of(dev, label), "GID %d: %s",
		   dev->address.gid_index, gid);
}

static void check_mtu(const struct doctor_host *host, const struct ha_topo_device *dev,
		      struct doctor_report *report)
{
	int active = 128 << dev->address.mtu, most = 128 << dev->port_attr.max_mtu;
	char label[LABEL_MAX], netdev[64];
	struct doctor_finding *f;

	if (dev->place.is_soft || active >= most) {
		doctor_add(report, DOCTOR_FINE, "port.mtu", label_of(dev, label), "%d bytes",
			   active);
		return;
	}
	f = doctor_add(report, DOCTOR_WARNING, "port.mtu", label_of(dev, label),
		       "packets carry %d bytes, the port can %d", active, most);
	doctor_cost(f, "%d times the packets, headers and acknowledgements", most / active);
	if (dev->is_ethernet && *doctor_netdev(host, dev, netdev, sizeof(netdev)))
		doctor_mend(f, "ip link set dev %s mtu 9000, and the same on switches and peers",
			    netdev);
	else
		doctor_mend(f, "set the MTU of the subnet manager's partition to %d", most);
}

/* "0x15b3 0x1021": ports of one model should be alike; "" = not known. */
static const char *model_of(const struct doctor_host *host, const struct ha_topo_device *dev,
			    char *model)
{
	const char *root = host->config->sysfs_root;
	char vendor[16], device[16];

	*model = 0;
	if (dev->place.is_soft ||
	    ha_sysfs_read(root, vendor, sizeof(vendor), "%s/vendor", dev->place.physical_path) <=
		    0 ||
	    ha_sysfs_read(root, device, sizeof(device), "%s/device", dev->place.physical_path) <= 0)
		return model;
	snprintf(model, MODEL_MAX, "%s %s", vendor, device);
	return model;
}

/* The fastest port of the same model on this host; NULL: there is no other. */
static const struct ha_topo_device *find_fastest(const struct doctor_host *host,
						 const struct ha_topo_device *dev)
{
	char model[MODEL_MAX], other[MODEL_MAX];
	const struct ha_topo_device *fastest = NULL;

	if (!*model_of(host, dev, model))
		return NULL;
	for (int i = 0; i < host->topo->ndevices; i++) {
		const struct ha_topo_device *d = &host->topo->devices[i];

		if (d == dev || strcmp(model_of(host, d, other), model))
			continue;
		if (!fastest || d->speed_mbps > fastest->speed_mbps)
			fastest = d;
	}
	return fastest;
}

static void check_speed(const struct doctor_host *host, const struct ha_topo_device *dev,
			struct doctor_report *report)
{
	const struct ha_topo_device *fastest = find_fastest(host, dev);
	unsigned width = dev->port_attr.active_width;
	char label[LABEL_MAX], other[LABEL_MAX];
	struct doctor_finding *f;

	label_of(dev, label);
	if (!dev->is_ethernet && (width == WIDTH_1X || width == WIDTH_2X)) {
		f = doctor_add(report, DOCTOR_WARNING, "port.width", label,
			       "%s of 4 lanes carry its link", width == WIDTH_1X ? "1" : "2");
		doctor_cost(f, "%s of the bandwidth",
			    width == WIDTH_1X ? "three quarters" : "half");
		doctor_mend(f,
			    "clean and reseat both ends of the cable; `mlxlink -d %s -c` shows "
			    "its lanes",
			    dev->name);
		return;
	}
	if (fastest && fastest->speed_mbps > dev->speed_mbps) {
		f = doctor_add(report, DOCTOR_WARNING, "port.speed", label,
			       "the link runs at %g Gb/s, %s of the same model at %g",
			       dev->speed_mbps / 1e3, label_of(fastest, other),
			       fastest->speed_mbps / 1e3);
		doctor_cost(f, "every ring through it runs at that speed");
		doctor_mend(f, "compare cable, transceiver and the switch port's settings with the "
			       "other's");
		return;
	}
	doctor_add(report, DOCTOR_FINE, "port.speed", label, "%s %g Gb/s",
		   dev->is_ethernet ? "RoCE" : "InfiniBand", dev->speed_mbps / 1e3);
}

static void check_firmware(const struct doctor_host *host, int index, struct doctor_report *report)
{
	const struct ha_topo_device *dev = &host->topo->devices[index];
	char model[MODEL_MAX], other[MODEL_MAX], label[LABEL_MAX];
	struct doctor_finding *f;

	if (!*model_of(host, dev, model))
		return;
	for (int i = 0; i < index; i++) {
		const struct ha_topo_device *d = &host->topo->devices[i];

		if (strcmp(model_of(host, d, other), model))
			continue;
		if (!strcmp(d->attr.fw_ver, dev->attr.fw_ver))
			return;
		f = doctor_add(report, DOCTOR_NOTE, "port.firmware", label_of(dev, label),
			       "firmware %.32s, %s of the same model has %.32s", dev->attr.fw_ver,
			       d->name, d->attr.fw_ver);
		doctor_cost(f, "two NICs of one job may behave differently");
		doctor_mend(f, "update the older one: `mlxfwmanager` or the vendor's tool");
		return;
	}
}

static void check_apm(const struct ha_topo_device *dev, struct doctor_report *report)
{
	char label[LABEL_MAX];
	struct doctor_finding *f;

	if (!dev->apm_enabled)
		return;
	f = doctor_add(report, DOCTOR_WARNING, "port.apm", label_of(dev, label),
		       "the driver's own path migration (APM) is on");
	doctor_cost(f, "it would move paths against hawser's failover");
	doctor_mend(f, "echo 0 > /sys/class/infiniband/%s/ports/%d/apm_enable", dev->name,
		    dev->port);
}

/* What a bad cable leaves behind. Links go down when hosts are started, too: a few are a note. */
static void check_errors(const struct doctor_host *host, const struct ha_topo_device *dev,
			 struct doctor_report *report)
{
	char label[LABEL_MAX], text[128];
	struct ha_port_errors errors;
	struct doctor_finding *f;

	if (!ha_port_errors_read(host->config->sysfs_root, dev->name, dev->port, &errors))
		return;
	label_of(dev, label);
	f = doctor_add(report, errors.symbols > 0 ? DOCTOR_WARNING : DOCTOR_NOTE, "port.errors",
		       label, "%s since its counters were reset",
		       ha_port_errors_text(host->config->sysfs_root, label, text, sizeof(text)));
	doctor_cost(f, "packets are sent again, and a path that works may be many times slower");
	doctor_mend(f,
		    "clean and reseat both ends of the cable, `mlxlink -d %s -c` shows its "
		    "quality; `perfquery -R` resets the counters",
		    dev->name);
}

void doctor_check_ports(const struct doctor_host *host, struct doctor_report *report)
{
	const struct ha_topo *topo = host->topo;

	for (int i = 0; host->verbs && i < host->from_devices.n; i++) {
		struct doctor_finding *f =
			doctor_add(report, topo->ndevices ? DOCTOR_WARNING : DOCTOR_ERROR,
				   "devices", NULL, "%s", host->from_devices.text[i]);

		doctor_cost(f, topo->ndevices ? "the device or setting is not used"
					      : "hawser has no device, and NCCL uses another "
						"network");
		doctor_mend(f, "as the line says; `ha topo` shows what is left");
	}
	for (int i = 0; i < topo->nports; i++) {
		const struct ha_topo_device *dev = &topo->devices[i];

		if (!dev->up) {
			find_down(host, dev, report);
			continue;
		}
		check_speed(host, dev, report);
		check_gid(dev, report);
		check_mtu(host, dev, report);
		check_firmware(host, i, report);
		check_apm(dev, report);
		check_errors(host, dev, report);
	}
}
