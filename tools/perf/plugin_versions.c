/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"
#include "tools/perf/plugin.h"

#define HA_V_PASTE(a, b) a##b
#define HA_V_NAME(stem, v) HA_V_PASTE(stem, v)
#define HA_V_TYPE_(stem, v) stem##_v##v##_t
#define HA_V_TYPE_OF(stem, v) HA_V_TYPE_(stem, v)
#define HA_V_TYPE(stem) HA_V_TYPE_OF(stem, HA_V)
#define HA_V_TEXT_(v) #v
#define HA_V_TEXT(v) HA_V_TEXT_(v)
#define HA_V_SYMBOL "ncclNetPlugin_v" HA_V_TEXT(HA_V)

#define HA_V 6
#include "tools/perf/plugin_version.h"
#define HA_V 7
#include "tools/perf/plugin_version.h"
#define HA_V 8
#include "tools/perf/plugin_version.h"
#define HA_V 9
#include "tools/perf/plugin_version.h"
#define HA_V 10
#include "tools/perf/plugin_version.h"
#define HA_V 11
#include "tools/perf/plugin_version.h"
#define HA_V 12
#include "tools/perf/plugin_version.h"

const struct ha_plugin_abi *const ha_plugin_abis[] = { &abi12, &abi11, &abi10, &abi9,
						       &abi8,  &abi7,  &abi6,  NULL };
