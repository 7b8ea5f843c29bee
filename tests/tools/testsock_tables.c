/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * testsock_tables - one exported table; compiled once per version with TS_VERSION 6 to 12
 *
 * Written against the interface from the plugin's side and apart from the driver's conversions, so
 * that a slip in one of them does not cancel out.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"
#include "tests/tools/testsock.h"

#define PASTE2(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE2(a, b, c)
#define NET PASTE(ncclNet_v, TS_VERSION, _t)
#define PROPERTIES PASTE(ncclNetProperties_v, TS_VERSION, _t)
#define TABLE PASTE(ncclNetPlugin_v, TS_VERSION, )

#if TS_VERSION >= 9
#define SIZE size_t
#else
#define SIZE int
#endif

#if TS_VERSION >= 11
#define CONFIG PASTE(ncclNetCommConfig_v, TS_VERSION, _t)

static int contexts;

static ncclResult_t init(void **ctx, uint64_t comm_id, CONFIG *config, ncclDebugLogger_t logger,
			 ncclProfilerCallback_t profiler)
{
	if (!config || config->trafficClass != NCCL_NET_TRAFFIC_CLASS_UNDEF || !profiler)
		return ncclInvalidArgument;
	*ctx = &contexts;
	return contexts++ ? ncclSuccess : ts_init(logger);
}

static ncclResult_t finalize(void *ctx)
{
	if (ctx != &contexts || contexts < 1)
		return ncclInvalidArgument;
	return --contexts ? ncclSuccess : ts_finalize();
}

static ncclResult_t listen_on(void *ctx, int dev, void *handle, void **comm)
{
	return ctx == &contexts ? ts_listen(dev, handle, comm) : ncclInvalidArgument;
}

static ncclResult_t connect_to(void *ctx, int dev, void *handle, void **comm,
			       ncclNetDeviceHandle_v12_t **device)
{
	return ctx == &contexts && device ? ts_connect(dev, handle, comm) : ncclInvalidArgument;
}
#elif TS_VERSION == 10
static ncclResult_t init(ncclDebugLogger_t logger, ncclProfilerCallback_t profiler)
{
	return profiler ? ts_init(logger) : ncclInvalidArgument;
}

static ncclResult_t connect_to(int dev, ncclNetCommConfig_v10_t *config, void *handle, void **comm,
			       ncclNetDeviceHandle_v10_t **device)
{
	return config && device ? ts_connect(dev, handle, comm) : ncclInvalidArgument;
}
#elif TS_VERSION >= 7
static ncclResult_t connect_to(int dev, void *handle, void **comm,
			       ncclNetDeviceHandle_v7_t **device)
{
	return device ? ts_connect(dev, handle, comm) : ncclInvalidArgument;
}
#endif

#if TS_VERSION >= 7
static ncclResult_t accept_from(void *listen_comm, void **comm, ncclNetDeviceHandle_v7_t **device)
{
	return device ? ts_accept(listen_comm, comm) : ncclInvalidArgument;
}

/* NCCL reports every receive once its data has been used, also when nothing runs on a device. */
static ncclResult_t check_consumed(void *comm, int n, void *request)
{
	return request && n >= 1 && n <= TS_MAX_RECVS ? ncclSuccess : ncclInvalidArgument;
}
#endif

#if TS_VERSION < 8
static ncclResult_t register_memory(void *comm, void *data, int size, int type, void **mhandle)
{
	return size > 0 ? ts_reg(comm, data, (size_t)size, type, mhandle) : ncclInvalidArgument;
}
#endif

#if TS_VERSION >= 10
static ncclResult_t isend(void *comm, void *data, size_t size, int tag, void *mhandle,
			  void *phandle, void **request)
{
	return mhandle && phandle ? ts_isend(comm, data, size, tag, request) : ncclInvalidArgument;
}

static ncclResult_t irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
			  void **phandles, void **request)
{
	return mhandles[0] && phandles[0] ? ts_irecv(comm, n, data, sizes, tags, request)
					  : ncclInvalidArgument;
}
#else
static ncclResult_t isend(void *comm, void *data, SIZE size, int tag, void *mhandle, void **request)
{
	return mhandle ? ts_isend(comm, data, (size_t)size, tag, request) : ncclInvalidArgument;
}

static ncclResult_t irecv(void *comm, int n, void **data, SIZE *sizes, int *tags, void **mhandles,
			  void **request)
{
	size_t wide[TS_MAX_RECVS];

#if TS_VERSION < 9
	if (*request == (void *)NCCL_NET_OPTIONAL_RECV_COMPLETION)
		return ncclInvalidArgument; /* this version does not know it */
#endif
	for (int i = 0; i < n && i < TS_MAX_RECVS; i++)
		wide[i] = (size_t)sizes[i];
	return mhandles[0] ? ts_irecv(comm, n, data, wide, tags, request) : ncclInvalidArgument;
}
#endif

static ncclResult_t get_properties(int dev, PROPERTIES *p)
{
	static char names[TS_DEVICES][16] = { "sock0", "sock1" };

	if (dev < 0 || dev >= TS_DEVICES)
		return ncclInvalidArgument;
	memset(p, 0, sizeof(*p));
	p->name = names[dev];
	p->guid = (uint64_t)dev + 1;
	p->ptrSupport = NCCL_PTR_HOST;
	p->speed = 10000;
	p->port = 1;
	p->maxComms = 65536;
	p->maxRecvs = TS_MAX_RECVS;
#if TS_VERSION >= 9
	p->forceFlush = getenv("TESTSOCK_FLUSH") != NULL;
	p->vProps.ndevs = 1;
	p->vProps.devs[0] = dev;
	p->maxP2pBytes = MAX_NET_SIZE;
	p->maxCollBytes = MAX_COLLNET_SIZE;
#endif
#if TS_VERSION >= 11
	p->maxMultiRequestSize = 1;
#endif
#if TS_VERSION >= 12
	p->railId = p->planeId = NCCL_NET_ID_UNDEF;
#endif
	return ncclSuccess;
}

__attribute__((visibility("default"))) extern const NET TABLE;

const NET TABLE = {
	.name = "testsock",
#if TS_VERSION >= 10
	.init = init,
#else
	.init = ts_init,
#endif
	.devices = ts_devices,
	.getProperties = get_properties,
#if TS_VERSION >= 11
	.listen = listen_on,
	.finalize = finalize,
#else
	.listen = ts_listen,
#endif
#if TS_VERSION >= 7
	.connect = connect_to,
	.accept = accept_from,
	.irecvConsumed = check_consumed,
#else
	.connect = ts_connect,
	.accept = ts_accept,
#endif
#if TS_VERSION >= 8
	.regMr = ts_reg,
#else
	.regMr = register_memory,
#endif
	.deregMr = ts_dereg,
	.isend = isend,
	.irecv = irecv,
	.iflush = ts_iflush,
	.test = ts_test,
	.closeSend = ts_close,
	.closeRecv = ts_close,
	.closeListen = ts_close_listen,
};
