/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.h - functions of CUDA's driver API, found by name only (cudaGetDriverEntryPoint)
 */
#ifndef SOFTCUDA_DRIVER_H
#define SOFTCUDA_DRIVER_H

#include "softcuda/runtime/cuda_driver.h"

typedef void driver_function(void);

struct driver_entry {
	const char *name;
	driver_function *function;
};

/* NULL: not here. */
driver_function *find_driver_function(const char *name);

/* The functions that deal with memory; ends with an entry without a name. */
extern const struct driver_entry driver_memory_functions[];

#endif
