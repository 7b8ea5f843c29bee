/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin_table.h - NCCL's one-sided tables, called in one way whatever their version
 *
 * As NCCL's proxy thread calls them: ncclGinPlugin up to v13, ncclRmaPlugin from v14 on. Handles,
 * memory and requests are the plugin's own.
 */
#ifndef HA_TOOL_PERF_GIN_TABLE_H
#define HA_TOOL_PERF_GIN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/nccl/abi/types.h"

#define HA_GIN_NEWEST 17
#define HA_GIN_GETS 13 /* from here on there are gets, flushes and errors to ask for */
#define HA_GIN_RMA 14  /* from here on the table is ncclRma's */
#define HA_GIN_INC 1   /* NCCL_NET_SIGNAL_OP_* */
#define HA_GIN_ADD 2

struct ha_gin_calls;

struct ha_gin_table {
	int version;
	const char *name;
	const void *table;
	const struct ha_gin_calls *calls;
	void *ctx;
};

struct ha_gin_device {
	const char *name;
	int speed; /* Mbit/s */
	int max_receives, memory;
	ncclNetDeviceType type;
};

/* The communicator, and what operations are posted to: the same up to v12. */
struct ha_gin_comm {
	void *comm, *context;
};

struct ha_gin_put {
	int rank, context;
	void *source, *target; /* gin handles; a get's source is here, too */
	uint64_t source_offset, target_offset;
	size_t size;
	uint32_t signal_op; /* HA_GIN_*, or 0 */
	bool is_weak;       /* from v14 on: the signal covers its own data alone */
	void *signals;
	uint64_t signal_offset, value;
};

/* The table of this version, or with 0 the newest, in an opened library. False: there is none. */
bool ha_gin_find(struct ha_gin_table *gin, void *library, int version);
ncclResult_t ha_gin_table_init(struct ha_gin_table *gin, uint64_t id, ncclDebugLogger_t logger);
ncclResult_t ha_gin_table_finalize(struct ha_gin_table *gin);
ncclResult_t ha_gin_devices(const struct ha_gin_table *gin, int *n);
ncclResult_t ha_gin_device(const struct ha_gin_table *gin, int dev, struct ha_gin_device *device);
ncclResult_t ha_gin_table_listen(const struct ha_gin_table *gin, int dev, void *handle,
				 void **listen);
/* The context, too. From v13 on NCCL hands in the net table's instead of gin->ctx; so do we. */
ncclResult_t ha_gin_table_connect(const struct ha_gin_table *gin, void **handles, int ranks,
				  int rank, int contexts, void *listen, struct ha_gin_comm *comm);
ncclResult_t ha_gin_table_close(const struct ha_gin_table *gin, struct ha_gin_comm *comm);
ncclResult_t ha_gin_table_close_listen(const struct ha_gin_table *gin, void *listen);
/* What operations take, and what deregistration takes. */
struct ha_gin_memory {
	void *handle, *mhandle;
};
ncclResult_t ha_gin_register(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			     void *data, size_t size, int type, uint64_t flags,
			     struct ha_gin_memory *memory);
ncclResult_t ha_gin_deregister(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			       const struct ha_gin_memory *memory);
ncclResult_t ha_gin_post(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			 const struct ha_gin_put *put, void **request);
/* ncclInvalidUsage where the version has none. */
ncclResult_t ha_gin_post_get(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			     const struct ha_gin_put *get, void **request);
/* For tests: flushes and questions for errors, which `ha perf` does without. */
ncclResult_t ha_gin_post_flush(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			       const struct ha_gin_memory *memory, int rank, void **request);
ncclResult_t ha_gin_last_error(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			       bool *has_error);
ncclResult_t ha_gin_done(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			 void *request, int *done);
/* Nothing, where the table has none. */
ncclResult_t ha_gin_table_progress(const struct ha_gin_table *gin, const struct ha_gin_comm *comm);

#endif
