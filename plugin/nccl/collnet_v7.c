/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v7.c - NCCL collnet interface, version 7: as version 6 */
#include "plugin/nccl/abi/net_v7.h"

#define ABI_VERSION 7
#include "plugin/nccl/collnet_int.h"
