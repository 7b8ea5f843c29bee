/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h - the core's outcome as NCCL's: the one place where it is translated */
#ifndef HA_NCCL_RESULT_H
#define HA_NCCL_RESULT_H

#include "plugin/nccl/abi/types.h"

/* err: a negative errno. Only values that every NCCL since 2.13 knows. */
ncclResult_t ha_result_failure(int err) __attribute__((cold));

/* err: 0 or a negative errno. */
static inline ncclResult_t ha_result(int err)
{
	return __builtin_expect(!err, 1) ? ncclSuccess : ha_result_failure(err);
}

#endif
