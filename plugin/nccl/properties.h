/* SPDX-License-Identifier: BSD-3-Clause */
/* properties.h - a device's facts in each version's words: the net table's, which collnet's take
 * and change a little */
#ifndef HA_NCCL_PROPERTIES_H
#define HA_NCCL_PROPERTIES_H

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"

ncclResult_t ha_net_properties_v6(int dev, ncclNetProperties_v6_t *props);
ncclResult_t ha_net_properties_v7(int dev, ncclNetProperties_v7_t *props);
ncclResult_t ha_net_properties_v8(int dev, ncclNetProperties_v8_t *props);
ncclResult_t ha_net_properties_v9(int dev, ncclNetProperties_v9_t *props);
ncclResult_t ha_net_properties_v10(int dev, ncclNetProperties_v10_t *props);
ncclResult_t ha_net_properties_v11(int dev, ncclNetProperties_v11_t *props);
ncclResult_t ha_net_properties_v12(int dev, ncclNetProperties_v12_t *props);

#endif
