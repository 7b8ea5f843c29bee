/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h - the core's outcome as NCCL's: the one place where it is translated */
#ifndef HA_NCCL_RESULT_H
#define HA_NCCL_RESULT_H

#include "nccl/abi/types.h"

/* err: 0 or a negative errno. Only values that every NCCL since 2.13 knows. */
ncclResult_t ha_result(int err);

#endif
