/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_PLUGIN_H
#define HAWSER_PERF_PLUGIN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/nccl/abi/types.h"

/*
 * plugin - one loaded NCCL net plugin, whichever version of the interface it has
 *
 * Calls whose signature never changed from v6 to v12 are pointers straight into the plugin's table;
 * the others go through the conversion of plugin_version.h, which does what NCCL's own
 * compatibility layer does and nothing more.
 */

#define HA_PLUGIN_MAX_GROUP 8 /* buffers in one grouped receive, as in NCCL's own transports */

struct ha_plugin;

/*
 * What the driver needs of ncclNetProperties; what an old version lacks has the value NCCL assumes.
 */
struct ha_plugin_props {
	char name[64];
	int force_flush; /* flush after every receive */
	int speed;       /* Mbit/s */
	int port;
	int max_comms;
	int max_recvs;        /* buffers in one grouped receive */
	size_t max_p2p_bytes; /* largest message */
};

/*
 * Conversion to one version of the interface; all of these are called with a plugin whose table has
 * that version.
 */
struct ha_plugin_abi {
	int version;
	const char *symbol;
	/* copies the name and the calls of constant signature out of the table */
	void (*bind)(struct ha_plugin *plugin);
	ncclResult_t (*init)(struct ha_plugin *plugin, uint64_t comm_id, ncclDebugLogger_t logger);
	ncclResult_t (*props)(struct ha_plugin *plugin, int dev, struct ha_plugin_props *props);
	ncclResult_t (*listen)(struct ha_plugin *plugin, int dev, void *handle, void **comm);
	ncclResult_t (*connect)(struct ha_plugin *plugin, int dev, void *handle, void **comm);
	ncclResult_t (*accept)(struct ha_plugin *plugin, void *listen_comm, void **comm);
	ncclResult_t (*reg)(struct ha_plugin *plugin, void *comm, void *data, size_t size,
			    void **mhandle);
	ncclResult_t (*isend)(struct ha_plugin *plugin, void *comm, void *data, size_t size,
			      int tag, void *mhandle, void **request);
	/*
	 * *request holds NCCL_NET_OPTIONAL_RECV_COMPLETION on entry when the completion is
	 * optional, else NULL
	 */
	ncclResult_t (*irecv)(struct ha_plugin *plugin, void *comm, int n, void **data,
			      size_t *sizes, int *tags, void **mhandles, void **request);
	/*
	 * hints about the traffic to come, before connecting; NULL where the version has no such
	 * call
	 */
	void (*announce)(struct ha_plugin *plugin, int peers, int flows);
	/* n devices as one; NULL where the version has no such call */
	ncclResult_t (*fuse)(struct ha_plugin *plugin, int *dev, int n, const int *devs);
	ncclResult_t (*finalize)(struct ha_plugin *plugin);
};

struct ha_plugin {
	const struct ha_plugin_abi *abi;
	const void *table;
	void *library;
	char path[PATH_MAX]; /* as resolved by the dynamic linker */
	const char *name;    /* the name in the table */
	void *context;       /* of v11 and later */
	bool initialized;
	int devices;
	void *phandle; /* stands for the profiler handle NCCL passes a pointer to */

	ncclResult_t (*count)(int *ndev);
	ncclResult_t (*dereg)(void *comm, void *mhandle);
	ncclResult_t (*iflush)(void *comm, int n, void **data, int *sizes, void **mhandles,
			       void **request);
	ncclResult_t (*test)(void *request, int *done, int *sizes);
	ncclResult_t (*close_send)(void *comm);
	ncclResult_t (*close_recv)(void *comm);
	ncclResult_t (*close_listen)(void *comm);
	ncclResult_t (*consumed)(void *comm, int n, void *request); /* NULL when there is none */
};

/*
 * Finds and loads the plugin as NCCL would: name is a path, a library's name, or X for
 * libnccl-net-X.so; NULL is "ha".
 * A short name that NCCL would not find is looked for beside this program too. Picks the highest
 * version it exports or the forced one (0: none forced), and initializes it. Returns 0 or a
 * negative errno with the fault recorded.
 */
int ha_plugin_open(struct ha_plugin *plugin, const char *name, int version, uint64_t comm_id);

/* finalize (v11 and later), then unloads. Returns 0 or -EIO with the fault recorded. */
int ha_plugin_close(struct ha_plugin *plugin);

/*
 * Records the fault "what: plugin X returned ..." for a result other than ncclSuccess; returns 0 or
 * -EIO.
 */
int ha_plugin_check(const struct ha_plugin *plugin, ncclResult_t result, const char *what);

/* The profiler callback that v10 and later get: accepts and ignores every event. */
ncclResult_t ha_plugin_profiler(void **event, int type, void *parent, int64_t plugin_id,
				void *data);

/* The highest first; NULL at the end. */
extern const struct ha_plugin_abi *const ha_plugin_abis[];

#endif
