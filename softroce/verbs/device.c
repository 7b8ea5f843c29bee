/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - the list of devices, opening and closing */
#include "softroce/pci.h"
#include "softroce/settings.h"
#include "softroce/verbs/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

static void device_ref(struct sr_vdevice *device)
{
	pthread_mutex_lock(&device->adapter->lock);
	device->refs++;
	pthread_mutex_unlock(&device->adapter->lock);
}

static void device_unref(struct sr_vdevice *device)
{
	struct sr_adapter *adapter = device->adapter;
	bool last;

	pthread_mutex_lock(&adapter->lock);
	last = !--device->refs;
	if (last && adapter->listed == device)
		adapter->listed = NULL;
	pthread_mutex_unlock(&adapter->lock);
	if (!last)
		return;
	sr_adapter_release(adapter, device->incarnation);
	free(device);
}

static struct sr_vdevice *device_create(struct sr_adapter *adapter)
{
	struct sr_vdevice *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	device->adapter = adapter;
	device->incarnation = adapter->incarnation;
	device->refs = 1;
	memcpy(device->gid, adapter->link.gid[0], 16);
	device->dev.node_type = IBV_NODE_CA;
	device->dev.transport_type = IBV_TRANSPORT_IB;
	snprintf(device->dev.name, sizeof(device->dev.name), "%s", adapter->spec.name);
	snprintf(device->dev.dev_name, sizeof(device->dev.dev_name), "%s", adapter->spec.name);
	/* The usual places, where nothing lies: no kernel device is behind this one. But for its
	 * PCI function there is a stand-in. */
	if (sr_pci_folder(&adapter->spec, device->dev.ibdev_path, sizeof(device->dev.ibdev_path)))
		snprintf(device->dev.ibdev_path, sizeof(device->dev.ibdev_path),
			 "/sys/class/infiniband/%s", adapter->spec.name);
	snprintf(device->dev.dev_path, sizeof(device->dev.dev_path),
		 "/sys/class/infiniband_verbs/%s", adapter->spec.name);
	return device;
}

/* The device of an adapter that the caller holds, which becomes the device's. The same as long as
 * anybody has it: programs compare the pointers of two lists (librdmacm does, and takes a new one
 * for a new device). */
static struct sr_vdevice *device_of(struct sr_adapter *adapter)
{
	struct sr_vdevice *device;
	bool known;

	pthread_mutex_lock(&adapter->lock);
	device = adapter->listed;
	known = device && device->incarnation == adapter->incarnation &&
		!memcmp(device->gid, adapter->link.gid[0], 16);
	if (known)
		device->refs++;
	else
		device = device_create(adapter);
	if (device)
		adapter->listed = device;
	pthread_mutex_unlock(&adapter->lock);
	if (known || !device)
		sr_adapter_release(adapter, adapter->incarnation);
	return device;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct sr_adapter *adapters[SR_DEVICES_MAX];
	struct ibv_device **list;
	int n, made = 0;

	if (num_devices)
		*num_devices = 0;
	n = sr_adapter_list(adapters, SR_DEVICES_MAX);
	list = calloc(n + 1, sizeof(*list));
	for (int i = 0; i < n; i++) {
		struct sr_vdevice *device;

		if (!list) {
			sr_adapter_release(adapters[i], adapters[i]->incarnation);
			continue;
		}
		device = device_of(adapters[i]);
		if (device)
			list[made++] = &device->dev;
	}
	if (!list)
		return sr_fail(ENOMEM);
	if (num_devices)
		*num_devices = made;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	for (int i = 0; list[i]; i++)
		device_unref((struct sr_vdevice *)list[i]);
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return sr_guid_of(((struct sr_vdevice *)device)->gid);
}

int ibv_get_device_index(struct ibv_device *device)
{
	return -1; /* no kernel device, no index */
}

static void context_fill(struct sr_context *context)
{
	struct verbs_context *verbs = &context->verbs;
	struct ibv_context *ibv = &verbs->context;

	verbs->sz = sizeof(*verbs);
	verbs->query_port = sr_query_port_verb;
	verbs->query_device_ex = sr_query_device_ex;
	verbs->create_cq_ex = sr_cq_create_ex;
	verbs->create_qp_ex = sr_qp_create_ex;
	verbs->create_srq_ex = sr_srq_create_ex;
	ibv->device = &context->device->dev;
	ibv->ops.poll_cq = sr_cq_poll_verb;
	ibv->ops.req_notify_cq = sr_cq_notify_verb;
	ibv->ops.post_srq_recv = sr_srq_post_verb;
	ibv->ops.post_send = sr_qp_post_send_verb;
	ibv->ops.post_recv = sr_qp_post_recv_verb;
	ibv->ops.alloc_mw = sr_mw_alloc_verb;
	ibv->ops.dealloc_mw = sr_mw_dealloc_verb;
	ibv->ops.bind_mw = sr_mw_bind_verb;
	ibv->cmd_fd = -1;
	ibv->async_fd = context->async.fd;
	ibv->num_comp_vectors = get_nprocs();
	ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&ibv->mutex, NULL);
}

struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
	struct sr_vdevice *device = (struct sr_vdevice *)ibv;
	struct sr_context *context = calloc(1, sizeof(*context));
	int err;

	if (!context)
		return sr_fail(ENOMEM);
	context->device = device;
	context->adapter = device->adapter;
	err = sr_notices_init(&context->async);
	if (err)
		goto fail;
	err = sr_adapter_open(context->adapter, &sr_verbs_events);
	if (err) {
		sr_log_line("%s cannot be opened: %s", ibv->name, strerror(-err));
		goto fail_open;
	}
	context->incarnation = context->adapter->incarnation;
	device_ref(device);
	context_fill(context);
	if (sr_context_enter(context)) {
		LIST_INSERT_HEAD(&context->adapter->contexts, context, link);
		sr_context_leave(context);
	}
	return &context->verbs.context;

fail_open:
	sr_notices_destroy(&context->async);
fail:
	free(context);
	return sr_fail(err);
}

int ibv_close_device(struct ibv_context *ibv)
{
	struct sr_context *context = sr_context_of(ibv);

	if (sr_context_enter(context)) {
		struct sr_context *listed;

		LIST_FOREACH(listed, &context->adapter->contexts, link)
			if (listed == context)
				break;
		if (listed)
			LIST_REMOVE(listed, link);
		sr_context_leave(context);
	}
	sr_adapter_close(context->adapter, context->incarnation);
	device_unref(context->device);
	sr_notices_destroy(&context->async);
	pthread_mutex_destroy(&ibv->mutex);
	free(context);
	return 0;
}
