/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/perf/collnet_table.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"
#include "tools/job/fault.h"
#include "tools/perf/logger.h"

/* The table as each kind of version lays it out. */
static const ncclCollNet_v7_t *table_v7(const struct ha_collnet_table *t)
{
	return t->table;
}

static const ncclCollNet_v8_t *table_v8(const struct ha_collnet_table *t)
{
	return t->table;
}

static const ncclCollNet_v10_t *table_v10(const struct ha_collnet_table *t)
{
	return t->table;
}

static const ncclCollNet_v12_t *table_v12(const struct ha_collnet_table *t)
{
	return t->table;
}

int ha_collnet_table_check(const struct ha_collnet_table *t, ncclResult_t result, const char *what)
{
	if (result == ncclSuccess)
		return 0;
	return ha_fault(-EIO, "%s: collnet of plugin '%s' (v%d) returned %d%s%s", what, t->name,
			t->version, result, *ha_logger_last_warning() ? "; its last warning: " : "",
			ha_logger_last_warning());
}

int ha_collnet_table_open(struct ha_collnet_table *t, const struct ha_plugin *plugin, int version,
			  ncclDebugLogger_t logger)
{
	char symbol[64];
	int err;

	memset(t, 0, sizeof(*t));
	for (int v = version ? version : 12; v >= (version ? version : 6) && !t->table; v--) {
		snprintf(symbol, sizeof(symbol), "ncclCollNetPlugin_v%d", v);
		t->table = dlsym(plugin->library, symbol);
		t->version = v;
	}
	if (!t->table)
		return ha_fault(-ENOENT, "plugin %s exports no collnet table%s", plugin->path,
				version ? " of that version" : " (ncclCollNetPlugin_v6 to _v12)");
	t->name = *(const char *const *)t->table;
	err = ha_collnet_table_check(t, ha_collnet_table_init(t, logger), "init");
	if (!err)
		err = ha_collnet_table_check(t, ha_collnet_table_devices(t, &t->devices),
					     "devices");
	if (!err && t->devices <= 0)
		err = ha_fault(-ENODEV,
			       "plugin '%s' offers no collnet device here (NCCL_DEBUG=INFO says "
			       "why; hawser's wants ha-backend, or HA_NCCL_COLLNET=1)",
			       t->name);
	return err;
}

int ha_collnet_table_close(struct ha_collnet_table *t)
{
	return t->table ? ha_collnet_table_check(t, ha_collnet_table_finalize(t), "finalize") : 0;
}

ncclResult_t ha_collnet_table_init(struct ha_collnet_table *t, ncclDebugLogger_t logger)
{
	return t->version >= 11 ? table_v12(t)->init(&t->context, 1, logger)
				: table_v10(t)->init(logger);
}

ncclResult_t ha_collnet_table_devices(const struct ha_collnet_table *t, int *ndev)
{
	return table_v12(t)->devices(ndev);
}

/* The old versions have no such field; NCCL assumes MAX_COLLNET_SIZE. */
ncclResult_t ha_collnet_table_max_bytes(const struct ha_collnet_table *t, int dev, size_t *bytes,
					int *ptr_support)
{
	union {
		ncclNetProperties_v6_t v6;
		ncclNetProperties_v8_t v8;
		ncclNetProperties_v9_t v9;
		ncclNetProperties_v10_t v10;
		ncclNetProperties_v11_t v11;
		ncclNetProperties_v12_t v12;
	} p = { 0 };
	ncclResult_t result = table_v12(t)->getProperties(dev, &p.v12);

	*ptr_support = p.v12.ptrSupport; /* at the same place in all */
	switch (t->version) {
	case 9:
		*bytes = p.v9.maxCollBytes;
		break;
	case 10:
		*bytes = p.v10.maxCollBytes;
		break;
	case 11:
		*bytes = p.v11.maxCollBytes;
		break;
	case 12:
		*bytes = p.v12.maxCollBytes;
		break;
	default:
		*bytes = MAX_COLLNET_SIZE;
	}
	return result;
}

ncclResult_t ha_collnet_table_listen(const struct ha_collnet_table *t, int dev, void *handle,
				     void **comm)
{
	return t->version >= 11 ? table_v12(t)->listen(t->context, dev, handle, comm)
				: table_v10(t)->listen(dev, handle, comm);
}

ncclResult_t ha_collnet_table_connect(const struct ha_collnet_table *t, void **handles, int ranks,
				      int rank, void *listen, void **comm)
{
	return table_v12(t)->connect(handles, ranks, rank, listen, comm);
}

ncclResult_t ha_collnet_table_support(const struct ha_collnet_table *t, ncclDataType_t type,
				      ncclRedOp_t op, int *supported)
{
	return table_v12(t)->reduceSupport(type, op, supported);
}

ncclResult_t ha_collnet_table_reg(const struct ha_collnet_table *t, void *comm, void *data,
				  size_t size, int type, void **mhandle)
{
	return t->version < 8 ? table_v7(t)->regMr(comm, data, (int)size, type, mhandle)
			      : table_v12(t)->regMr(comm, data, size, type, mhandle);
}

ncclResult_t ha_collnet_table_dereg(const struct ha_collnet_table *t, void *comm, void *mhandle)
{
	return table_v12(t)->deregMr(comm, mhandle);
}

ncclResult_t ha_collnet_table_iallreduce(const struct ha_collnet_table *t, void *comm, void *send,
					 void *recv, long count, ncclDataType_t type,
					 ncclRedOp_t op, void *send_mhandle, void *recv_mhandle,
					 void **request)
{
	if (t->version < 9)
		return table_v8(t)->iallreduce(comm, send, recv, (int)count, type, op, send_mhandle,
					       recv_mhandle, request);
	return table_v12(t)->iallreduce(comm, send, recv, (size_t)count, type, op, send_mhandle,
					recv_mhandle, request);
}

ncclResult_t ha_collnet_table_iflush(const struct ha_collnet_table *t, void *comm, void *data,
				     int size, void *mhandle, void **request)
{
	return t->version < 8 ? table_v7(t)->iflush(comm, data, size, mhandle, request)
			      : table_v12(t)->iflush(comm, data, size, mhandle, request);
}

ncclResult_t ha_collnet_table_test(const struct ha_collnet_table *t, void *request, int *done,
				   int *size)
{
	return t->version < 8 ? table_v7(t)->test(request, done, size)
			      : table_v12(t)->test(request, done, size);
}

ncclResult_t ha_collnet_table_close_coll(const struct ha_collnet_table *t, void *comm)
{
	return t->version < 8 ? table_v7(t)->closeColl(comm) : table_v12(t)->closeColl(comm);
}

ncclResult_t ha_collnet_table_close_listen(const struct ha_collnet_table *t, void *listen)
{
	return t->version < 8 ? table_v7(t)->closeListen(listen)
			      : table_v12(t)->closeListen(listen);
}

ncclResult_t ha_collnet_table_finalize(struct ha_collnet_table *t)
{
	return t->version >= 11 ? table_v12(t)->finalize(t->context) : ncclSuccess;
}
