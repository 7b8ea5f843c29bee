/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_v17.c - NCCL's one-sided interface, version 17: a configuration that names ranks */
#include "plugin/nccl/abi/rma_v17.h"

#define ABI_VERSION 17
#include "plugin/nccl/rma_table.h"
