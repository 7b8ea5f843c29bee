/* SPDX-License-Identifier: BSD-3-Clause */
/* net_v11.c - NCCL network interface, version 11: a context per communicator */
#include "plugin/nccl/abi/net_v11.h"

#define ABI_VERSION 11
#include "plugin/nccl/net_context.h"
