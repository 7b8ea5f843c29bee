/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_v15.c - NCCL's one-sided interface, version 15: operations have flags */
#include "plugin/nccl/abi/rma_v15.h"

#define ABI_VERSION 15
#include "plugin/nccl/rma_table.h"
