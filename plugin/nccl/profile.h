/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile.h - requests as NCCL's profiler sees them: their queue pairs, and what failed over
 * (include/hawser/profiler.h)
 *
 * Where nobody profiles, none of this is called: a table of the network interface gets these calls
 * instead of its usual ones when the library is opened, before NCCL looks at it.
 */
#ifndef HA_NCCL_PROFILE_H
#define HA_NCCL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "plugin/nccl/abi/types.h"

/* HA_NCCL_PROFILER, or a profiler that NCCL_PROFILER_PLUGIN names. */
bool ha_profile_wanted(void);
/* NCCL's, from init. */
void ha_profile_report_to(ncclProfilerCallback_t profiler);

/* As the calls of v10 and later. */
ncclResult_t ha_profile_isend(void *send_comm, void *data, size_t size, int tag, void *mhandle,
			      void *phandle, void **request);
ncclResult_t ha_profile_irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags,
			      void **mhandles, void **phandles, void **request);
ncclResult_t ha_profile_test(void *request, int *done, int *sizes);
ncclResult_t ha_profile_close_send(void *send_comm);
ncclResult_t ha_profile_close_recv(void *recv_comm);

#endif
