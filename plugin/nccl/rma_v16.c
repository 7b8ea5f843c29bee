/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_v16.c - NCCL's one-sided interface, version 16: properties of a communicator */
#include "plugin/nccl/abi/rma_v16.h"

#define ABI_VERSION 16
#include "plugin/nccl/rma_table.h"
