/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be taken away from a job: NICs and rails of software NICs, ports of real ones. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rdma/topo/sysfs.h"
#include "tools/drill/drill.h"
#include "tools/drill/port.h"

/* "mlx5_0" of "mlx5_0:1". */
static void device_of(const struct ha_port_bytes *d, char *name, size_t size)
{
	snprintf(name, size, "%.*s", (int)strcspn(d->name, ":"), d->name);
}

static bool is_wanted(const struct drill_options *o, const char *device)
{
	for (unsigned i = 0; i < o->nics_count; i++)
		if (!strcmp(o->nics[i], device))
			return true;
	return !o->nics_count;
}

static struct drill *add_drill(struct drill_run *run, enum fault_kind kind)
{
	struct drill *d;

	if (run->count == DRILLS)
		return NULL;
	d = &run->drills[run->count++];
	*d = (struct drill) { .fault = { .kind = kind,
					 .drop_ppm = run->options->drop_percent * 10000 } };
	return d;
}

static bool has_place(const struct fault *fault, const struct fault_place *place)
{
	for (unsigned i = 0; i < fault->places; i++)
		if (fault->place[i].pid == place->pid &&
		    !strcmp(fault->place[i].device, place->device))
			return true;
	return false;
}

static void add_place(struct fault *fault, const struct ha_port_bytes *device)
{
	struct fault_place place = { .pid = (uint32_t)device->pid };

	device_of(device, place.device, sizeof(place.device));
	if (fault->places < FAULT_PLACES && !has_place(fault, &place))
		fault->place[fault->places++] = place;
}

/* ---- software NICs ---- */

static bool wants_fault(const struct drill_options *o, enum fault_kind kind)
{
	if (kind == FAULT_CUT)
		return o->cut;
	return kind == FAULT_DROP ? o->drop : o->rate;
}

static void plan_nic(struct drill_run *run, const struct ha_port_bytes *device)
{
	char name[HA_STATUS_NAME];

	device_of(device, name, sizeof(name));
	if (!is_wanted(run->options, name))
		return;
	for (int kind = FAULT_CUT; kind <= FAULT_RATE; kind++) {
		struct drill *d = wants_fault(run->options, (enum fault_kind)kind)
					  ? add_drill(run, (enum fault_kind)kind)
					  : NULL;

		if (!d)
			continue;
		snprintf(d->target, sizeof(d->target), "%s of process %d", name, (int)device->pid);
		add_place(&d->fault, device);
	}
}

static_assert(FAULT_PLACES >= WATCH_PROCESSES, "a rail has a place in each process");

/* The NICs of one name of all processes, as behind one leaf switch. */
static void plan_rail(struct drill_run *run, const struct ha_port_bytes *device)
{
	const struct watch *w = &run->watch;
	char name[HA_STATUS_NAME], other[HA_STATUS_NAME];
	struct drill *d;

	device_of(device, name, sizeof(name));
	d = is_wanted(run->options, name) ? add_drill(run, FAULT_CUT) : NULL;
	if (!d)
		return;
	snprintf(d->target, sizeof(d->target), "rail %s, all processes", name);
	for (unsigned i = 0; i < w->devices; i++) {
		device_of(&w->device[i], other, sizeof(other));
		if (w->device[i].soft && !strcmp(name, other))
			add_place(&d->fault, &w->device[i]);
	}
	if (d->fault.places < 2)
		run->count--;
}

static void plan_soft(struct drill_run *run)
{
	const struct watch *w = &run->watch;
	pid_t first = w->device[0].pid;

	for (unsigned i = 0; i < w->devices; i++)
		if (w->device[i].soft && w->device[i].pid == first)
			plan_nic(run, &w->device[i]);
	for (unsigned i = 0; i < w->devices && run->options->rails && run->options->cut; i++)
		if (w->device[i].soft && w->device[i].pid == first)
			plan_rail(run, &w->device[i]);
}

/* ---- real ports ---- */

static bool is_planned(const struct drill_run *run, const char *netdev)
{
	for (unsigned i = 0; i < run->count; i++)
		if (!strcmp(run->drills[i].fault.place[0].netdev, netdev))
			return true;
	return false;
}

static void plan_port(struct drill_run *run, const struct ha_port_bytes *device)
{
	const char *colon = strchr(device->name, ':');
	char name[HA_STATUS_NAME], netdev[64];
	struct drill *d;

	device_of(device, name, sizeof(name));
	if (!is_wanted(run->options, name))
		return;
	ha_sysfs_netdev(run->watch.sysfs, netdev, sizeof(netdev), name, colon ? colon[1] - '0' : 1);
	if (!*netdev || strlen(netdev) >= IF_NAMESIZE) {
		fprintf(stderr,
			"ha drill: %s has no network interface that ip(8) could take down; not "
			"drilled (InfiniBand: disable its switch port by ibportstate)\n",
			device->name);
		return;
	}
	if (is_planned(run, netdev))
		return;
	if (port_has_default_route(netdev) && !run->options->default_route) {
		fprintf(stderr,
			"ha drill: the default route leads over %s (%s); not drilled without "
			"--yes-the-default-route-too\n",
			netdev, device->name);
		return;
	}
	d = add_drill(run, FAULT_PORT);
	if (!d)
		return;
	snprintf(d->target, sizeof(d->target), "%s (%s)", device->name, netdev);
	add_place(&d->fault, device);
	snprintf(d->fault.place[0].netdev, sizeof(d->fault.place[0].netdev), "%.15s", netdev);
}

int drill_plan(struct drill_run *run)
{
	const struct watch *w = &run->watch;
	bool soft = false, real = false;

	for (unsigned i = 0; i < w->devices; i++) {
		soft |= w->device[i].soft;
		real |= !w->device[i].soft;
	}
	if (real && !run->options->take_ports && !soft) {
		fprintf(stderr, "ha drill: this job has real ports; --yes-take-ports-down takes "
				"them down, one after the other\n");
		return -EPERM;
	}
	if (soft)
		plan_soft(run);
	for (unsigned i = 0; i < w->devices && run->options->take_ports; i++)
		if (!w->device[i].soft)
			plan_port(run, &w->device[i]);
	if (run->count)
		return 0;
	fprintf(stderr, "ha drill: nothing can be taken away from this job; `ha status` shows its "
			"devices\n");
	return -ENODEV;
}
