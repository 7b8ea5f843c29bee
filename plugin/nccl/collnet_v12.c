/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v12.c - NCCL collnet interface, version 12: as version 11 */
#include "plugin/nccl/abi/net_v12.h"

#define ABI_VERSION 12
#include "plugin/nccl/collnet_context.h"
