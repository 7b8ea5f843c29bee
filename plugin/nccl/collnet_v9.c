/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v9.c - NCCL collnet interface, version 9: size_t counts, virtual devices */
#include "plugin/nccl/abi/net_v9.h"

#define ABI_VERSION 9
#include "plugin/nccl/collnet_wide.h"
