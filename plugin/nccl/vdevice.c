/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/nccl/vdevice.h"

#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/device/fused.h"
#include "plugin/nccl/resident.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct set {
	int n;
	int member[HA_MAX_RAILS];
};

#define PORTS_MAX 64
#define LABEL_MAX 80

/* As NCCL has counted them; written by the first context, and under the lock of whoever makes
 * contexts. */
static struct {
	int n;
	char label[PORTS_MAX][LABEL_MAX];
	struct ha_topo_known known[PORTS_MAX];
} ports;

static struct {
	pthread_mutex_t lock; /* all of it */
	int ports;            /* when the sets were made */
	int n;
	struct set set[HA_FUSED_MAX];   /* what was fused, by its number behind the ports */
	int counted[HA_VDEVICE_TABLES]; /* of those, what each table has made */
	bool current; /* they exist in the present context; false: in an earlier one */
} made = { .lock = PTHREAD_MUTEX_INITIALIZER };

int ha_vdevice_ports(const struct ha_topo_known **known)
{
	*known = ports.known;
	return ha_resident_by_nccl() ? ports.n : 0;
}

static void remember_ports(struct ha_ctx *core)
{
	struct ha_dev_props props;
	const char *label;

	for (ports.n = 0; ports.n < PORTS_MAX && (label = ha_ctx_port(core, ports.n)) != NULL;
	     ports.n++) {
		snprintf(ports.label[ports.n], LABEL_MAX, "%s", label);
		ports.known[ports.n].label = ports.label[ports.n];
		if (!ha_ctx_device(core, ports.n, &props))
			ports.known[ports.n].speed_mbps = props.speed_mbps;
	}
}

void ha_vdevice_begin(struct ha_ctx *core)
{
	remember_ports(core);
	pthread_mutex_lock(&made.lock);
	made.current = false;
	pthread_mutex_unlock(&made.lock);
}

int ha_vdevice_count(const struct ha_ctx *core, enum ha_vdevice_table table)
{
	int n = ha_ctx_ndevices(core);

	pthread_mutex_lock(&made.lock);
	if (made.current)
		n += made.counted[table];
	pthread_mutex_unlock(&made.lock);
	return n;
}

/*
 * NCCL has no room in its topology for a fused device whose members hang off the CPU: it would lose
 * them all. And members that it has not been asked to fuse it takes for one card, since all of them
 * have the same place, none.
 */
static bool have_places(struct ha_ctx *core, const int *devs, int n)
{
	for (int i = 0; i < n && n > 1; i++) {
		struct ha_dev_props p;

		if (ha_ctx_device(core, devs[i], &p) || p.pci_path)
			continue; /* what is no device is refused by the core, with its own words */
		HA_WARN(NULL,
			"%s:%d cannot be fused: it has no PCI path, and NCCL finds fused devices "
			"by theirs",
			p.name, p.port);
		return false;
	}
	return true;
}

/* Under the lock. The number is the core's, which gives the same to the same members. */
static void remember_vdevice(int ports, int number, const int *devs, int n,
			     enum ha_vdevice_table table)
{
	if (!made.current) {
		made.n = 0;
		memset(made.counted, 0, sizeof(made.counted));
		made.ports = ports;
		made.current = true;
	}
	if (number >= made.n) {
		made.n = number + 1;
		made.set[number].n = n;
		memcpy(made.set[number].member, devs, (size_t)n * sizeof(*devs));
	}
	if (made.counted[table] <= number)
		made.counted[table] = number + 1;
}

int ha_vdevice_make(struct ha_ctx *core, enum ha_vdevice_table table, const int *devs, int n,
		    int *dev)
{
	int ports = ha_ctx_ndevices(core), err;

	if (n > 1 && !core->config.ib_merge_nics) {
		HA_INFO(NULL,
			"NCCL asks for %d devices as one; NCCL_IB_MERGE_NICS=0 keeps them apart",
			n);
		return -EPERM;
	}
	if (!have_places(core, devs, n))
		return -EINVAL;
	pthread_mutex_lock(&made.lock);
	err = ha_ctx_fuse(core, devs, n, dev);
	if (!err && *dev >= ports)
		remember_vdevice(ports, *dev - ports, devs, n, table);
	pthread_mutex_unlock(&made.lock);
	return err;
}

/* Under the lock. */
static int bring_back(struct ha_ctx *core)
{
	int ports = ha_ctx_ndevices(core), dev, err = 0;

	if (made.ports != ports) {
		HA_WARN(NULL,
			"NCCL counts on %d devices and what was fused of them, and now there are "
			"%d, so that its device numbers would mean other devices; start the "
			"process anew",
			made.ports, ports);
		return -ENODEV;
	}
	for (int i = 0; i < made.n && !err; i++)
		err = ha_ctx_fuse(core, made.set[i].member, made.set[i].n, &dev);
	made.current = !err;
	return err;
}

int ha_vdevice_props(struct ha_ctx *core, int dev, struct ha_dev_props *props)
{
	int err = ha_ctx_device(core, dev, props);

	if (err != -EINVAL)
		return err;
	pthread_mutex_lock(&made.lock);
	if (!made.current && dev >= made.ports && dev < made.ports + made.n)
		err = bring_back(core);
	pthread_mutex_unlock(&made.lock);
	return err ? err : ha_ctx_device(core, dev, props);
}
