/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/look.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "rdma/topo/gid.h"
#include "rdma/topo/sysfs.h"

/* How sure a candidate is, better first. */
enum likeness { SAME_ALL, SAME_GUID, SAME_PLACE, MAYBE, DIFFERENT };

struct look {
	const struct ha_verbs_ops *verbs;
	const struct ha_config *config;
	const struct ha_topo_mark *mark;
};

static bool is_other(const struct look *l, const char *name)
{
	for (int i = 0; i < l->mark->nothers; i++)
		if (!strcmp(l->mark->other[i], name))
			return true;
	return false;
}

static bool same_place(const struct look *l, const char *name)
{
	char path[HA_DEVICE_PATH_MAX];

	return *l->mark->pci_path &&
	       !ha_sysfs_realpath(l->config->sysfs_root, path, sizeof(path),
				  "/sys/class/infiniband/%s/device", name) &&
	       !strcmp(path, l->mark->pci_path);
}

static enum likeness compare_device(const struct look *l, struct ibv_device *device)
{
	uint64_t guid = l->verbs->device_guid(l->verbs, device), ours = l->mark->node_guid;
	bool place;

	if (is_other(l, device->name) || (guid && ours && guid != ours))
		return DIFFERENT;
	place = same_place(l, device->name);
	if (guid && ours)
		return place ? SAME_ALL : SAME_GUID;
	if (*l->mark->pci_path)
		return place ? SAME_PLACE : DIFFERENT;
	return MAYBE; /* its GIDs say */
}

/* The likeliest of the list, or NULL. */
static struct ibv_device *choose_device(const struct look *l, struct ibv_device **list, int n,
					enum likeness *how)
{
	struct ibv_device *best = NULL;

	*how = DIFFERENT;
	for (int i = 0; i < n; i++) {
		enum likeness now = compare_device(l, list[i]);

		if (now >= *how)
			continue;
		*how = now;
		best = list[i];
	}
	return best;
}

static bool has_gid(const struct look *l, struct ibv_context *context)
{
	struct ha_port_attr attr;
	union ibv_gid gid;

	if (l->verbs->query_port(l->verbs, context, (uint8_t)l->mark->port, &attr))
		return false;
	for (int i = 0; i < attr.attr.gid_tbl_len; i++)
		if (!l->verbs->query_gid(l->verbs, context, (uint8_t)l->mark->port, i, &gid) &&
		    !memcmp(&gid, &l->mark->gid, sizeof(gid)) && !ha_gid_is_zero(&gid))
			return true;
	return false;
}

/* Listed is not working: one that is being reset may open and refuse everything. */
static int probe_device(const struct look *l, struct ibv_context *context, enum likeness how,
			struct ha_topo_found *found)
{
	struct ibv_device_attr attr;
	struct ha_port_attr port;
	struct ibv_pd *pd;
	int err = l->verbs->query_device(l->verbs, context, &attr);

	if (!err)
		err = l->verbs->query_port(l->verbs, context, (uint8_t)l->mark->port, &port);
	if (!err)
		err = l->verbs->hot(l->verbs, context, &found->hot);
	if (!err)
		err = l->verbs->alloc_pd(l->verbs, context, &pd);
	if (err)
		return err;
	l->verbs->dealloc_pd(l->verbs, pd);
	found->nports = attr.phys_port_cnt;
	if (how == MAYBE && !has_gid(l, context))
		return -ENOENT;
	return (port.attr.link_layer == IBV_LINK_LAYER_ETHERNET) == l->mark->is_ethernet
		       ? 0
		       : -EPROTOTYPE;
}

static void open_it(const struct look *l, struct ibv_device *device, enum likeness how,
		    struct ha_topo_found *found)
{
	struct ibv_context *context;
	int err = l->verbs->open(l->verbs, device, &context);

	snprintf(found->name, sizeof(found->name), "%.*s", (int)sizeof(found->name) - 1,
		 device->name);
	if (!err) {
		err = probe_device(l, context, how, found);
		if (err)
			l->verbs->close(l->verbs, context);
	}
	if (how == MAYBE && err)
		return; /* nobody knows whether it is this one */
	found->sight = err ? HA_SIGHT_OPEN_FAILED : HA_SIGHT_BACK;
	found->err = err;
	found->context = err ? NULL : context;
}

/* Its name has gone to another one, which is not in use here. */
static void find_namesake(const struct look *l, struct ibv_device **list, int n,
			  struct ha_topo_found *found)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(list[i]->name, l->mark->name) != 0 || is_other(l, list[i]->name))
			continue;
		found->sight = HA_SIGHT_OTHER;
		found->guid = l->verbs->device_guid(l->verbs, list[i]);
		memcpy(found->name, l->mark->name, sizeof(found->name));
	}
}

void ha_topo_look(const struct ha_verbs_ops *verbs, const struct ha_config *config,
		  const struct ha_topo_mark *mark, struct ha_topo_found *found)
{
	const struct look l = { verbs, config, mark };
	struct ibv_device **list, *device;
	enum likeness how;
	int n, err;

	memset(found, 0, sizeof(*found));
	err = verbs->device_list(verbs, &list, &n);
	if (err) {
		/* the kernel has no RDMA at all now: an empty list */
		found->sight = err == -ENOSYS ? HA_SIGHT_NONE : HA_SIGHT_LIST_FAILED;
		found->err = err;
		return;
	}
	device = choose_device(&l, list, n, &how);
	if (device)
		open_it(&l, device, how, found);
	if (found->sight == HA_SIGHT_NONE)
		find_namesake(&l, list, n, found);
	verbs->device_list_free(verbs, list);
}

int ha_topo_listed(const struct ha_verbs_ops *verbs, const struct ha_topo_mark *mark)
{
	struct ibv_device **list;
	bool listed = false;
	int n, err = verbs->device_list(verbs, &list, &n);

	if (err)
		return err == -ENOSYS ? 0 : err;
	for (int i = 0; i < n; i++) {
		uint64_t guid = verbs->device_guid(verbs, list[i]);

		listed |= !strcmp(list[i]->name, mark->name) &&
			  (!guid || !mark->node_guid || guid == mark->node_guid);
	}
	verbs->device_list_free(verbs, list);
	return listed;
}
