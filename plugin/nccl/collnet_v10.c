/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v10.c - NCCL collnet interface, version 10: as version 9 */
#include "plugin/nccl/abi/net_v10.h"

#define ABI_VERSION 10
#include "plugin/nccl/collnet_wide.h"
