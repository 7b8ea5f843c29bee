/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/perf/gin_table.h"

#include <dlfcn.h>
#include <stdio.h>

#include "plugin/nccl/abi/gin_v11.h"
#include "plugin/nccl/abi/gin_v12.h"
#include "plugin/nccl/abi/gin_v13.h"
#include "plugin/nccl/abi/rma_v14.h"
#include "plugin/nccl/abi/rma_v15.h"
#include "plugin/nccl/abi/rma_v16.h"
#include "plugin/nccl/abi/rma_v17.h"

struct ha_gin_calls {
	int version;
	void (*bind)(struct ha_gin_table *gin);
	ncclResult_t (*init)(struct ha_gin_table *gin, uint64_t id, ncclDebugLogger_t logger);
	ncclResult_t (*finalize)(struct ha_gin_table *gin);
	ncclResult_t (*devices)(const struct ha_gin_table *gin, int *n);
	ncclResult_t (*device)(const struct ha_gin_table *gin, int dev,
			       struct ha_gin_device *device);
	ncclResult_t (*listen)(const struct ha_gin_table *gin, int dev, void *handle,
			       void **listen_comm);
	ncclResult_t (*close_listen)(const struct ha_gin_table *gin, void *listen_comm);
	ncclResult_t (*connect)(const struct ha_gin_table *gin, void **handles, int ranks, int rank,
				int contexts, void *listen_comm, struct ha_gin_comm *comm);
	ncclResult_t (*close)(const struct ha_gin_table *gin, struct ha_gin_comm *comm);
	ncclResult_t (*reg)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			    void *data, size_t size, int type, uint64_t flags,
			    struct ha_gin_memory *memory);
	ncclResult_t (*dereg)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			      void *mhandle);
	ncclResult_t (*put)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			    const struct ha_gin_put *p, void **request);
	ncclResult_t (*get)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			    const struct ha_gin_put *g, void **request);
	ncclResult_t (*flush)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			      void *mhandle, int rank, void **request);
	ncclResult_t (*last_error)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
				   bool *has_error);
	ncclResult_t (*test)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			     void *request, int *done);
	ncclResult_t (*progress)(const struct ha_gin_table *gin, const struct ha_gin_comm *comm);
};

#define HA_V_PASTE(a, b) a##_v##b
#define HA_V_NAME(stem, v) HA_V_PASTE(stem, v)

#define HA_V 11
#define HA_V_TABLE ncclGin_v11_t
#include "tools/perf/gin_version.h"
#define HA_V 12
#define HA_V_TABLE ncclGin_v12_t
#include "tools/perf/gin_version.h"
#define HA_V 13
#define HA_V_TABLE ncclGin_v13_t
#include "tools/perf/gin_version.h"
#define HA_V 14
#define HA_V_TABLE ncclRma_v14_t
#define HA_V_CONFIG ncclRmaConfig_v14_t
#include "tools/perf/gin_version.h"
#define HA_V 15
#define HA_V_TABLE ncclRma_v15_t
#define HA_V_CONFIG ncclRmaConfig_v15_t
#include "tools/perf/gin_version.h"
#define HA_V 16
#define HA_V_TABLE ncclRma_v16_t
#define HA_V_CONFIG ncclRmaConfig_v16_t
#include "tools/perf/gin_version.h"
#define HA_V 17
#define HA_V_TABLE ncclRma_v17_t
#define HA_V_CONFIG ncclRmaConfig_v17_t
#include "tools/perf/gin_version.h"

static const struct ha_gin_calls *const versions[] = { &calls_v17, &calls_v16, &calls_v15,
						       &calls_v14, &calls_v13, &calls_v12,
						       &calls_v11 };

bool ha_gin_find(struct ha_gin_table *gin, void *library, int version)
{
	char name[32];

	*gin = (struct ha_gin_table) { 0 };
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (version && versions[i]->version != version)
			continue;
		gin->version = versions[i]->version;
		gin->calls = versions[i];
		snprintf(name, sizeof(name), "nccl%sPlugin_v%d",
			 gin->version >= HA_GIN_RMA ? "Rma" : "Gin", gin->version);
		gin->table = dlsym(library, name);
		if (gin->table) {
			gin->calls->bind(gin);
			return true;
		}
	}
	return false;
}

ncclResult_t ha_gin_table_init(struct ha_gin_table *gin, uint64_t id, ncclDebugLogger_t logger)
{
	return gin->calls->init(gin, id, logger);
}

ncclResult_t ha_gin_table_finalize(struct ha_gin_table *gin)
{
	return gin->calls->finalize(gin);
}

ncclResult_t ha_gin_devices(const struct ha_gin_table *gin, int *n)
{
	return gin->calls->devices(gin, n);
}

ncclResult_t ha_gin_device(const struct ha_gin_table *gin, int dev, struct ha_gin_device *device)
{
	return gin->calls->device(gin, dev, device);
}

ncclResult_t ha_gin_table_listen(const struct ha_gin_table *gin, int dev, void *handle,
				 void **listen)
{
	return gin->calls->listen(gin, dev, handle, listen);
}

ncclResult_t ha_gin_table_connect(const struct ha_gin_table *gin, void **handles, int ranks,
				  int rank, int contexts, void *listen, struct ha_gin_comm *comm)
{
	return gin->calls->connect(gin, handles, ranks, rank, contexts, listen, comm);
}

ncclResult_t ha_gin_table_close(const struct ha_gin_table *gin, struct ha_gin_comm *comm)
{
	return gin->calls->close(gin, comm);
}

ncclResult_t ha_gin_table_close_listen(const struct ha_gin_table *gin, void *listen)
{
	return gin->calls->close_listen(gin, listen);
}

ncclResult_t ha_gin_register(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			     void *data, size_t size, int type, uint64_t flags,
			     struct ha_gin_memory *memory)
{
	return gin->calls->reg(gin, comm, data, size, type, flags, memory);
}

ncclResult_t ha_gin_deregister(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			       const struct ha_gin_memory *memory)
{
	return gin->calls->dereg(gin, comm, memory->mhandle);
}

ncclResult_t ha_gin_post(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			 const struct ha_gin_put *put, void **request)
{
	return gin->calls->put(gin, comm, put, request);
}

ncclResult_t ha_gin_post_get(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			     const struct ha_gin_put *get, void **request)
{
	if (!gin->calls->get)
		return ncclInvalidUsage;
	return gin->calls->get(gin, comm, get, request);
}

ncclResult_t ha_gin_post_flush(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			       const struct ha_gin_memory *memory, int rank, void **request)
{
	if (!gin->calls->flush)
		return ncclInvalidUsage;
	return gin->calls->flush(gin, comm, memory->mhandle, rank, request);
}

ncclResult_t ha_gin_last_error(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			       bool *has_error)
{
	if (!gin->calls->last_error)
		return ncclInvalidUsage;
	return gin->calls->last_error(gin, comm, has_error);
}

ncclResult_t ha_gin_done(const struct ha_gin_table *gin, const struct ha_gin_comm *comm,
			 void *request, int *done)
{
	return gin->calls->test(gin, comm, request, done);
}

ncclResult_t ha_gin_table_progress(const struct ha_gin_table *gin, const struct ha_gin_comm *comm)
{
	return gin->calls->progress(gin, comm);
}
