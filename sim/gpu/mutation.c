/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/gpu/mutation.h"

enum ha_gpu_mutation ha_gpu_mutation;
