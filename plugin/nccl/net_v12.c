/* SPDX-License-Identifier: BSD-3-Clause */
/* net_v12.c - NCCL network interface, version 12: a context per communicator, rail and plane */
#include "plugin/nccl/abi/net_v12.h"

#define ABI_VERSION 12
#include "plugin/nccl/net_context.h"
