/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TESTS_TOOLS_TESTSOCK_H
#define HAWSER_TESTS_TOOLS_TESTSOCK_H

#include "plugin/nccl/abi/types.h"

#define TS_DEVICES 2
#define TS_MAX_RECVS 8

enum ts_fault {
	TS_CORRUPT,
	TS_DROP,
	TS_SWAP,
	TS_STALE,
	TS_SHORT,
	TS_NULL,
	TS_ERROR,
	TS_SENTINEL,
	TS_UNTOUCHED,
	TS_DIE,
	TS_NO_ACCEPT,
	TS_NODEV,
	TS_LEAVE,
	TS_QUIT,
	TS_DESERT,
	TS_FAULTS,
};

/* The plugin, apart from the versions' tables (testsock_tables.c), with the newest types. */
ncclResult_t ts_init(ncclDebugLogger_t logger);
ncclResult_t ts_finalize(void);
ncclResult_t ts_devices(int *ndev);
ncclResult_t ts_listen(int dev, void *handle, void **comm);
ncclResult_t ts_connect(int dev, void *handle, void **comm);
ncclResult_t ts_accept(void *listen_comm, void **comm);
ncclResult_t ts_reg(void *comm, void *data, size_t size, int type, void **mhandle);
ncclResult_t ts_dereg(void *comm, void *mhandle);
ncclResult_t ts_isend(void *comm, void *data, size_t size, int tag, void **request);
ncclResult_t ts_irecv(void *comm, int n, void **data, const size_t *sizes, int *tags,
		      void **request);
ncclResult_t ts_iflush(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);
ncclResult_t ts_test(void *request, int *done, int *sizes);
ncclResult_t ts_close(void *comm);
ncclResult_t ts_close_listen(void *comm);

#endif
