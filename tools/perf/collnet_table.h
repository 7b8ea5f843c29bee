/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_COLLNET_TABLE_H
#define HAWSER_PERF_COLLNET_TABLE_H

#include <stddef.h>

#include "tools/perf/plugin.h"

/*
 * collnet_table - the collnet table of a loaded plugin, whichever version it is
 *
 * Some versions differ in nothing but their number and are called as one: 6 and 7, 9 and 10, 11 and
 * 12.
 */
struct ha_collnet_table {
	const void *table;
	int version;
	void *context; /* of v11 and later */
	const char *name;
	int devices;
	size_t max_bytes; /* of one operation */
};

/*
 * Finds it in a plugin whose net table is open already, the same version or the highest (0), and
 * initialises it, as NCCL does. 0 or a negative errno with the fault recorded; -ENODEV: it has no
 * device here.
 */
int ha_collnet_table_open(struct ha_collnet_table *t, const struct ha_plugin *plugin, int version,
			  ncclDebugLogger_t logger);
int ha_collnet_table_close(struct ha_collnet_table *t);
/* As ha_plugin_check. */
int ha_collnet_table_check(const struct ha_collnet_table *t, ncclResult_t result, const char *what);

ncclResult_t ha_collnet_table_init(struct ha_collnet_table *t, ncclDebugLogger_t logger);
ncclResult_t ha_collnet_table_devices(const struct ha_collnet_table *t, int *ndev);
ncclResult_t ha_collnet_table_max_bytes(const struct ha_collnet_table *t, int dev, size_t *bytes,
					int *ptr_support);
ncclResult_t ha_collnet_table_listen(const struct ha_collnet_table *t, int dev, void *handle,
				     void **comm);
ncclResult_t ha_collnet_table_connect(const struct ha_collnet_table *t, void **handles, int ranks,
				      int rank, void *listen, void **comm);
ncclResult_t ha_collnet_table_support(const struct ha_collnet_table *t, ncclDataType_t type,
				      ncclRedOp_t op, int *supported);
ncclResult_t ha_collnet_table_reg(const struct ha_collnet_table *t, void *comm, void *data,
				  size_t size, int type, void **mhandle);
ncclResult_t ha_collnet_table_dereg(const struct ha_collnet_table *t, void *comm, void *mhandle);
ncclResult_t ha_collnet_table_iallreduce(const struct ha_collnet_table *t, void *comm, void *send,
					 void *recv, long count, ncclDataType_t type,
					 ncclRedOp_t op, void *send_mhandle, void *recv_mhandle,
					 void **request);
ncclResult_t ha_collnet_table_iflush(const struct ha_collnet_table *t, void *comm, void *data,
				     int size, void *mhandle, void **request);
ncclResult_t ha_collnet_table_test(const struct ha_collnet_table *t, void *request, int *done,
				   int *size);
ncclResult_t ha_collnet_table_close_coll(const struct ha_collnet_table *t, void *comm);
ncclResult_t ha_collnet_table_close_listen(const struct ha_collnet_table *t, void *listen);
ncclResult_t ha_collnet_table_finalize(struct ha_collnet_table *t);

#endif
