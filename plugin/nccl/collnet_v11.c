/* SPDX-License-Identifier: BSD-3-Clause */
/* collnet_v11.c - NCCL collnet interface, version 11: a context per communicator, finalize */
#include "plugin/nccl/abi/net_v11.h"

#define ABI_VERSION 11
#include "plugin/nccl/collnet_context.h"
