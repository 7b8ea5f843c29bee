/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/perf/mesh.h"
#include "tools/perf/operation.h"
#include "tools/perf/options.h"

#define LL_SLOT 16384             /* bytes on the wire, half of them payload */
#define SIMPLE_BUFFER (4UL << 20) /* NCCL's default NCCL_BUFFSIZE */
#define P2P_SLOT (128UL << 10)    /* NCCL's default NCCL_P2P_NET_CHUNKSIZE */
#define SLOT_ALIGN 64UL

/* What the ranks must agree on before they connect. */
struct agreement {
	int32_t version, max_recvs;
};

static int channels_of(const struct ha_mesh *mesh, int group)
{
	int left = mesh->options->channels - group * mesh->group;

	return left < mesh->group ? left : mesh->group;
}

static int groups_of(const struct ha_mesh *mesh)
{
	return (mesh->options->channels + mesh->group - 1) / mesh->group;
}

static int device_of(const struct ha_mesh *mesh, const struct ha_place *place, int group)
{
	int dev = mesh->options->dev;

	if (dev == HA_DEV_BY_RANK)
		return place->local_rank % mesh->plugin.devices;
	if (dev == HA_DEV_ALL)
		return (place->local_rank + group) % mesh->plugin.devices;
	return dev == HA_DEV_FUSED ? mesh->fused : dev;
}

/*
 * NCCL never looks at the number that makeVDevice returns: it finds the device behind the ports, as
 * far as devices() reaches then.
 */
static int devices_fuse(struct ha_mesh *mesh)
{
	const struct perf_options *o = mesh->options;
	const struct ha_plugin_abi *abi = mesh->plugin.abi;
	int err, devices = 0;

	if (o->dev != HA_DEV_FUSED)
		return 0;
	if (!abi->fuse)
		return ha_fault(-EINVAL,
				"version %d of the net interface fuses no devices; 9 and later do",
				abi->version);
	err = ha_plugin_check(&mesh->plugin,
			      abi->fuse(&mesh->plugin, &mesh->fused, o->nfused, o->fused),
			      "makeVDevice");
	if (!err)
		err = ha_plugin_check(&mesh->plugin, mesh->plugin.count(&devices), "devices");
	if (!err && mesh->fused >= devices)
		err = ha_fault(-EPROTO,
			       "plugin '%s' has made device %d of several, and counts %d devices: "
			       "NCCL would not find it",
			       mesh->plugin.name, mesh->fused, devices);
	return err;
}

/* ---- what to connect ---- */

static int conns_allocate(struct ha_mesh *mesh, const struct ha_place *place, bool sending)
{
	const struct perf_options *o = mesh->options;
	unsigned direction = sending ? HA_LINK_SEND : HA_LINK_RECEIVE;
	int groups = groups_of(mesh), peers = 0, n = 0;
	struct ha_conn *conns;

	for (int p = 0; p < place->ranks; p++)
		peers += (o->operation->links(place->rank, place->ranks, o->run.root, p) &
			  direction) != 0;
	conns = calloc((size_t)(peers * groups) + 1, sizeof(*conns));
	if (!conns)
		return ha_fault(-ENOMEM, "out of memory");
	for (int p = 0; p < place->ranks; p++) {
		if (!(o->operation->links(place->rank, place->ranks, o->run.root, p) & direction))
			continue;
		for (int g = 0; g < groups; g++, n++) {
			conns[n].peer = p;
			conns[n].group = g;
			conns[n].dev = device_of(mesh, place, g);
			conns[n].lanes_count = channels_of(mesh, g);
			conns[n].lanes =
				calloc((size_t)conns[n].lanes_count, sizeof(*conns[n].lanes));
			if (!conns[n].lanes)
				return ha_fault(-ENOMEM, "out of memory");
			for (int l = 0; l < conns[n].lanes_count; l++)
				conns[n].lanes[l].tag =
					(sending ? place->rank : p) +
					(mesh->group > 1 ? place->ranks * (g * mesh->group + l)
							 : 0);
		}
	}
	*(sending ? &mesh->senders : &mesh->receivers) = conns;
	*(sending ? &mesh->senders_count : &mesh->receivers_count) = n;
	return 0;
}

/* ---- connecting ---- */

/* Listens for every sender and spreads the handles: table[receiver][sender][group]. */
static int handles_exchange(struct ha_mesh *mesh, const struct ha_place *place,
			    struct ha_rendezvous *rendezvous)
{
	size_t row = (size_t)place->ranks * (size_t)groups_of(mesh), one = NCCL_NET_HANDLE_MAXSIZE;
	char *mine = calloc(row, one), *all = malloc(row * one * (size_t)place->ranks);
	int err = mine && all ? 0 : ha_fault(-ENOMEM, "out of memory");

	for (int i = 0; i < mesh->receivers_count && !err; i++) {
		struct ha_conn *c = &mesh->receivers[i];
		char *handle =
			mine + ((size_t)c->peer * (size_t)groups_of(mesh) + (size_t)c->group) * one;

		err = ha_plugin_check(&mesh->plugin,
				      mesh->plugin.abi->listen(&mesh->plugin, c->dev, handle,
							       &c->listen_comm),
				      "listen");
	}
	if (!err)
		err = ha_rendezvous_allgather(rendezvous, mine, row * one, all);
	for (int i = 0; i < mesh->senders_count && !err; i++) {
		struct ha_conn *c = &mesh->senders[i];
		size_t at = (size_t)c->peer * row + (size_t)place->rank * (size_t)groups_of(mesh) +
			    (size_t)c->group;

		memcpy(c->handle, all + at * one, one);
	}
	free(mine);
	free(all);
	return err;
}

/*
 * One call of connect or accept for each connection that is still open; *left counts those that
 * remain so.
 */
static int connect_pass(struct ha_mesh *mesh, int *left)
{
	struct ha_plugin *plugin = &mesh->plugin;
	int err = 0;

	*left = 0;
	for (int i = 0; i < mesh->senders_count && !err; i++) {
		struct ha_conn *c = &mesh->senders[i];

		if (c->comm)
			continue;
		err = ha_plugin_check(plugin,
				      plugin->abi->connect(plugin, c->dev, c->handle, &c->comm),
				      "connect");
		*left += !c->comm;
	}
	for (int i = 0; i < mesh->receivers_count && !err; i++) {
		struct ha_conn *c = &mesh->receivers[i];

		if (c->comm)
			continue;
		err = ha_plugin_check(plugin, plugin->abi->accept(plugin, c->listen_comm, &c->comm),
				      "accept");
		*left += !c->comm;
		if (!err && c->comm) {
			err = ha_plugin_check(plugin, plugin->close_listen(c->listen_comm),
					      "closeListen");
			c->listen_comm = NULL;
		}
	}
	return err;
}

static int timed_out(struct ha_mesh *mesh)
{
	for (int i = 0; i < mesh->senders_count; i++)
		if (!mesh->senders[i].comm)
			return ha_fault(-ETIMEDOUT,
					"connect to rank %d on device %d is not ready after %d s",
					mesh->senders[i].peer, mesh->senders[i].dev,
					mesh->options->run.launch.timeout_s);
	for (int i = 0; i < mesh->receivers_count; i++)
		if (!mesh->receivers[i].comm)
			return ha_fault(-ETIMEDOUT,
					"accept from rank %d on device %d is not ready after %d s",
					mesh->receivers[i].peer, mesh->receivers[i].dev,
					mesh->options->run.launch.timeout_s);
	return 0;
}

static int connect_all(struct ha_mesh *mesh, struct ha_rendezvous *rendezvous)
{
	time_t deadline = time(NULL) + mesh->options->run.launch.timeout_s;
	int left, err = connect_pass(mesh, &left);

	for (unsigned pass = 1; !err && left; pass++) {
		sched_yield();
		if (pass % 64 == 0) {
			err = ha_rendezvous_poll(rendezvous);
			if (!err && time(NULL) > deadline)
				err = timed_out(mesh);
		}
		if (!err)
			err = connect_pass(mesh, &left);
	}
	return err;
}

/* ---- buffers ---- */

static size_t slot_bytes(const struct ha_mesh *mesh, enum ha_protocol protocol)
{
	const struct perf_options *o = mesh->options;
	size_t bytes;

	if (protocol == HA_LL)
		return LL_SLOT;
	if (o->buffer_bytes)
		bytes = o->buffer_bytes / (size_t)mesh->steps;
	else if (o->operation->point_to_point)
		bytes = P2P_SLOT;
	else
		/* NCCL_STEPS is 8: slices stay the same when --steps changes */
		bytes = SIMPLE_BUFFER / 8;
	if (bytes > mesh->props.max_p2p_bytes)
		bytes = mesh->props.max_p2p_bytes;
	bytes = bytes / SLOT_ALIGN * SLOT_ALIGN;
	return bytes ? bytes : SLOT_ALIGN;
}

static size_t page_round(size_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

static int conn_register(struct ha_mesh *mesh, struct ha_conn *c)
{
	size_t bank_bytes[HA_PROTOCOLS], lane_bytes = 0;
	char *at;
	int err = 0;

	for (int p = 0; p < HA_PROTOCOLS; p++) {
		bank_bytes[p] = page_round(slot_bytes(mesh, p) * (size_t)mesh->steps);
		lane_bytes += bank_bytes[p];
	}
	c->memory_bytes = lane_bytes * (size_t)c->lanes_count;
	at = mmap(NULL, c->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED)
		return ha_fault(-ENOMEM, "no memory for buffers of %zu bytes", c->memory_bytes);
	c->memory = at;
	for (int l = 0; l < c->lanes_count; l++) {
		for (int p = 0; p < HA_PROTOCOLS && !err; p++) {
			struct ha_bank *bank = &c->lanes[l].banks[p];

			bank->memory = at;
			bank->slot = slot_bytes(mesh, p);
			at += bank_bytes[p];
			err = ha_plugin_check(
				&mesh->plugin,
				mesh->plugin.abi->reg(&mesh->plugin, c->comm, bank->memory,
						      bank->slot * (size_t)mesh->steps,
						      &bank->mhandle),
				"regMr");
		}
	}
	return err;
}

static int register_all(struct ha_mesh *mesh)
{
	int err = 0;

	for (int i = 0; i < mesh->senders_count && !err; i++)
		err = conn_register(mesh, &mesh->senders[i]);
	for (int i = 0; i < mesh->receivers_count && !err; i++)
		err = conn_register(mesh, &mesh->receivers[i]);
	return err;
}

/* ---- opening ---- */

/*
 * Channels that share a connection: as asked or by default, as far as every receiver's plugin can
 * group.
 */
static int agree_on_group(struct ha_mesh *mesh, const struct ha_place *place,
			  struct ha_rendezvous *rendezvous)
{
	const struct perf_options *o = mesh->options;
	struct agreement mine = { mesh->plugin.abi->version, mesh->props.max_recvs };
	struct agreement *all = calloc((size_t)place->ranks, sizeof(*all));
	int err = all ? ha_rendezvous_allgather(rendezvous, &mine, sizeof(mine), all) : -ENOMEM;

	mesh->group = o->operation->point_to_point ? o->channels : 1;
	if (o->group)
		mesh->group = o->group;
	for (int i = 0; i < place->ranks && !err; i++) {
		if (all[i].version != mine.version)
			err = ha_fault(-EPROTO, "rank %d loaded net interface v%d, rank %d v%d", i,
				       all[i].version, place->rank, mine.version);
		if (all[i].max_recvs < mesh->group)
			mesh->group = all[i].max_recvs;
	}
	free(all);
	if (mesh->group > o->channels)
		mesh->group = o->channels;
	if (mesh->group > HA_PLUGIN_MAX_GROUP)
		mesh->group = HA_PLUGIN_MAX_GROUP;
	if (mesh->group < 1)
		mesh->group = 1;
	return err;
}

static int device_check(struct ha_mesh *mesh, const struct ha_place *place)
{
	int dev = device_of(mesh, place, 0), err;

	if (mesh->options->dev != HA_DEV_FUSED && dev >= mesh->plugin.devices)
		return ha_fault(-ENODEV, "plugin '%s' has %d device%s, there is no device %d",
				mesh->plugin.name, mesh->plugin.devices,
				mesh->plugin.devices == 1 ? "" : "s", dev);
	err = ha_plugin_check(&mesh->plugin,
			      mesh->plugin.abi->props(&mesh->plugin, dev, &mesh->props),
			      "getProperties");
	if (!err &&
	    (mesh->props.max_p2p_bytes < 1 || mesh->props.max_p2p_bytes > NCCL_MAX_NET_SIZE_BYTES))
		err = ha_fault(-EPROTO, "plugin '%s' gives maxP2pBytes %zu, NCCL accepts 1 to 2^40",
			       mesh->plugin.name, mesh->props.max_p2p_bytes);
	return err;
}

/* As NCCL: on unless the variable is 0. */
static bool optional_completion(void)
{
	const char *text = getenv("NCCL_NET_OPTIONAL_RECV_COMPLETION");

	return !text || strcmp(text, "0");
}

int ha_mesh_open(struct ha_mesh *mesh, const struct perf_options *options,
		 const struct ha_place *place, struct ha_rendezvous *rendezvous, const char *plugin,
		 int version)
{
	int err;

	memset(mesh, 0, sizeof(*mesh));
	mesh->options = options;
	mesh->steps = options->steps;
	mesh->optional = optional_completion();
	mesh->random = options->run.seed * 2 + 1 + (uint64_t)place->rank;
	err = ha_plugin_open(&mesh->plugin, plugin, version, place->job);
	if (!err)
		err = devices_fuse(mesh);
	if (!err)
		err = device_check(mesh, place);
	if (!err)
		err = agree_on_group(mesh, place, rendezvous);
	if (err)
		return err;
	mesh->flush = options->flush || mesh->props.force_flush;
	err = conns_allocate(mesh, place, true);
	if (!err)
		err = conns_allocate(mesh, place, false);
	if (!err && mesh->plugin.abi->announce)
		mesh->plugin.abi->announce(&mesh->plugin, mesh->senders_count / groups_of(mesh),
					   groups_of(mesh));
	if (!err)
		err = handles_exchange(mesh, place, rendezvous);
	if (!err)
		err = connect_all(mesh, rendezvous);
	if (!err)
		err = register_all(mesh);
	return err;
}

static int conn_close(struct ha_mesh *mesh, struct ha_conn *c, bool sending)
{
	struct ha_plugin *plugin = &mesh->plugin;
	int err = 0;

	for (int l = 0; l < c->lanes_count && c->comm; l++)
		for (int p = 0; p < HA_PROTOCOLS; p++)
			if (c->lanes[l].banks[p].mhandle)
				err |= ha_plugin_check(plugin,
						       plugin->dereg(c->comm,
								     c->lanes[l].banks[p].mhandle),
						       "deregMr");
	if (c->listen_comm)
		err |= ha_plugin_check(plugin, plugin->close_listen(c->listen_comm), "closeListen");
	if (c->comm && sending)
		err |= ha_plugin_check(plugin, plugin->close_send(c->comm), "closeSend");
	else if (c->comm)
		err |= ha_plugin_check(plugin, plugin->close_recv(c->comm), "closeRecv");
	if (c->memory)
		munmap(c->memory, c->memory_bytes);
	free(c->lanes);
	return err ? -EIO : 0;
}

int ha_mesh_close(struct ha_mesh *mesh)
{
	int err = 0;

	for (int i = 0; i < mesh->senders_count; i++)
		err |= conn_close(mesh, &mesh->senders[i], true);
	for (int i = 0; i < mesh->receivers_count; i++)
		err |= conn_close(mesh, &mesh->receivers[i], false);
	free(mesh->senders);
	free(mesh->receivers);
	err |= ha_plugin_close(&mesh->plugin);
	memset(mesh, 0, sizeof(*mesh));
	return err ? -EIO : 0;
}

struct ha_lane *ha_mesh_lane(struct ha_mesh *mesh, bool sending, int peer, int channel,
			     struct ha_conn **conn)
{
	struct ha_conn *conns = sending ? mesh->senders : mesh->receivers;
	int count = sending ? mesh->senders_count : mesh->receivers_count;

	for (int i = 0; i < count; i++) {
		if (conns[i].peer != peer || conns[i].group != channel / mesh->group)
			continue;
		*conn = &conns[i];
		return &conns[i].lanes[channel % mesh->group];
	}
	return NULL;
}

void ha_mesh_poison(struct ha_mesh *mesh, int byte)
{
	for (int i = 0; i < mesh->receivers_count; i++)
		memset(mesh->receivers[i].memory, byte, mesh->receivers[i].memory_bytes);
}
