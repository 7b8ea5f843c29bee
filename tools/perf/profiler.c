/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/perf/plugin.h"

ncclResult_t ha_plugin_profiler(void **event, int type, void *parent, int64_t plugin_id, void *data)
{
	return ncclSuccess;
}
