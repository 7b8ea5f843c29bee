/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_v14.c - NCCL's one-sided interface, version 14: a table of its own */
#include "plugin/nccl/abi/rma_v14.h"

#define ABI_VERSION 14
#include "plugin/nccl/rma_table.h"
