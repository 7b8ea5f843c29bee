/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/gin.h"

const struct softcuda_kernel *find_gin_kernel(const char *name)
{
	(void)name;
	return NULL;
}
