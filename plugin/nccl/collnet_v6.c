/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v6.c - NCCL collnet interface, version 6: int sizes and counts */
#include "plugin/nccl/abi/net_v6.h"

#define ABI_VERSION 6
#include "plugin/nccl/collnet_int.h"
